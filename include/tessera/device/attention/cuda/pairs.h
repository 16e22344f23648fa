// SPDX-License-Identifier: MIT
// Pairs of workgroups, clusters of two, whose tasks side by side have the same keys: each brings a half of each tile of
// keys and of values to both, so that L2 is read half as often, which takes less power. A place is filled when it is
// empty in both, of which warps that do not compute tell: two that have nothing else to do, or else the one that brings
// tiles tells of keys, and those that transpose values tell of these. So loops that compute are as they are without.
// The first tasks of a launch are such, and behind them each workgroup may have others, alone: nobody is told of what
// is filled by one workgroup.
//
// Takes args, BN, STAGES, TRANSPOSES.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAIRS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAIRS_H

#include "tessera/device/attention/cuda/tasks.h"

enum { HALF = BN / 2 }; // rows of a tile

// Passed when the other workgroup's place of tile n is empty, phase after phase as the place's own barrier.
INLINE uint32_t keys_there(uint32_t base, uint32_t n) { return base + AT_PAIR_BARRIERS + n % STAGES * 8; }
INLINE uint32_t values_there(uint32_t base, uint32_t n) { return base + AT_PAIR_BARRIERS + (STAGES + n % STAGES) * 8; }

// Whether all warps beside the one that brings tiles have something to do.
INLINE int are_busy(const args *a) { return TRANSPOSES && a->v == TESSERA_CUDA_V_ROWS; }
// Else one tells of keys, and one of values.
INLINE int telling_warps(const args *a) { return a->paired && !are_busy(a) ? 2 : 0; }

INLINE void tell_other(uint32_t there) {
    if (lane_id() == 0) arrive_in(cluster_rank() ^ 1, there);
}

// Tells the other workgroup of each place that is to be filled anew, once it is empty.
INLINE void tell_of_places(uint32_t base, int values) {
    struct task task;
    uint32_t tile = 0;
    for (uint32_t n = 0; await_task(&task, base, n); n++) {
        meet_lanes();
        release(task_place(base, n));
        for (int i = 0; task.paired && i < task.tiles; i++, tile++) {
            const struct place place = values ? transposed_place(base, tile) : keys_place(base, tile);
            wait_until_empty(place);
            if (tile >= STAGES) tell_other(values ? values_there(base, tile) : keys_there(base, tile));
        }
    }
}

// Waits until what was in a place is needed by neither workgroup any longer, or not by this one.
INLINE void wait_until_both_empty(struct place p, uint32_t there, int paired) {
    wait_until_empty(p);
    if (paired) wait_for(there, p.parity ^ 1);
}

// Brings a tile by its map, whose boxes have half of its rows: the workgroup's own half to both, or all to itself.
INLINE void fill_by_halves(struct place place, const void *map, int slices, int row, int head, int batch, int paired) {
    if (lane_id() != 0) return;
    const int own = HALF * cluster_rank();
    arrive_and_announce(place.full, slices * BN * SLICE);
    for (int slice = 0; slice < slices; slice++) {
        const uint32_t to = place.at + slice * BN * SLICE;
        const int column = slice * COLUMNS;
        if (paired) {
            copy_box_to_both(to + own * SLICE, map, place.full, column, row + own, head, batch);
        } else {
            copy_box(to, map, place.full, column, row, head, batch);
            copy_box(to + HALF * SLICE, map, place.full, column, row + HALF, head, batch);
        }
    }
}

INLINE void fill_with_k(const args *a, uint32_t base, uint32_t n, int key, int head_k, int batch, int paired) {
    const struct place place = keys_place(base, n);
    wait_until_empty(place);
    if (paired) {
        if (are_busy(a) && n >= STAGES)
            tell_other(keys_there(base, n)); // no other warp does: the place was filled before
        wait_for(keys_there(base, n), place.parity ^ 1);
    }
    fill_by_halves(place, &a->map_k, Q_SLICES, key, head_k, batch, paired);
}
INLINE void fill_with_v(const args *a, uint32_t base, uint32_t n, int key, int head_k, int batch, int paired) {
    const struct place place = values_place(base, n);
    wait_until_both_empty(place, values_there(base, n), paired);
    fill_by_halves(place, &a->map_v, V_SLICES, key, head_k, batch, paired);
    if (V_ARRIVALS > 1 && lane_id() != 0) arrive(place.full); // the first lane has
}

#endif
