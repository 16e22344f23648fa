// SPDX-License-Identifier: MIT
// Warpgroups hand what a step has of dq over to a warp that starts its way to memory, and waits there in their stead.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_HAND_OVER_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_HAND_OVER_H

#include "tessera/device/attention/cuda_bwd/dq.h"

// A step's columns of a warpgroup go through its room in so many rounds.
enum { ROUNDS = DQ_COLUMNS / DQ_ROOM };

// By a warpgroup. What goes by no boxes is added by itself, and the room is handed over empty.
INLINE void hand_over_dq(const float x[DQ_SUMS], const launch *a, uint32_t base, uint32_t task_at, int warpgroup,
                         uint32_t step, struct dq_tile tile) {
    const int thread = thread_id_again();
    UNROLL
    for (int round = 0; round < ROUNDS; round++) {
        const struct place room = dq_room(base, warpgroup, ROUNDS * step + round);
        wait_until_empty(room);
        if (is_by_box(a, tile.rows)) {
            put_boxes(x, a, room.at, round * DQ_ROOM, thread);
            finish_stores();
        } else if (round == 0) {
            if (a->turns) begin_turn(a, task_at, tile, NOT_SEEN);
            add_elements(x, a, tile, thread);
        }
        meet_lanes();
        if (thread % 32 == 0) arrive(room.full);
    }
}

// ---- the warp that takes dq to memory, where each warpgroup's part has its own way or, by turns, both have one

// Starts to add what a warpgroup has handed over.
INLINE void take_room(const launch *a, struct place room, int warpgroup, int round, struct dq_tile tile) {
    wait_until_full(room);
    if (lane_id() == 0 && is_by_box(a, tile.rows))
        start_boxes(a, room.at, warpgroup, round * DQ_ROOM, tile.row, tile.plane);
    meet_lanes();
}
INLINE void leave_rooms(uint32_t base, int first, int last, uint32_t n) {
    if (lane_id() == 0) {
        await_boxes_read();
        for (int w = first; w <= last; w++) arrive(dq_room(base, w, n).empty);
    }
    meet_lanes();
}

// Adds the tile in any order.
INLINE void take_dq(const launch *a, uint32_t base, uint32_t step, struct dq_tile tile) {
    for (int round = 0; round < ROUNDS; round++)
        for (int w = 0; w < WARPGROUPS; w++) {
            take_room(a, dq_room(base, w, ROUNDS * step + round), w, round, tile);
            leave_rooms(base, w, w, step);
        }
}

// Adds the tile when its turn comes, if the warpgroups have not done it themselves.
INLINE void take_dq_by_turn(const launch *a, uint32_t base, uint32_t task_at, uint32_t step, struct dq_tile tile,
                            uint32_t seen) {
    if (is_by_box(a, tile.rows)) begin_turn(a, task_at, tile, seen);
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0) leave_rooms(base, 0, WARPGROUPS - 1, step);
        for (int w = 0; w < WARPGROUPS; w++) take_room(a, dq_room(base, w, ROUNDS * step + round), w, round, tile);
    }
}

// Behind it, when all was read, and done.
INLINE void end_dq_by_turn(const launch *a, uint32_t base, uint32_t task_at, uint32_t step, struct dq_tile tile) {
    leave_rooms(base, 0, WARPGROUPS - 1, step);
    if (lane_id() == 0) {
        await_boxes();
        let_on(turns_of(a, tile.row, tile.plane), next_turn(task_at));
    }
    meet_lanes();
}

#endif
