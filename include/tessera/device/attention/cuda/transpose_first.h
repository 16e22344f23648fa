// SPDX-License-Identifier: MIT
// A launch before that of tasks which transposes all tiles of V, where many tasks read each of them. They are kept as
// they lie in shared memory, so that a tile is one run of bytes. One warp brings tiles, those that transpose do so, and
// one of those that compute stores them.
//
// Takes args, BN, TRANSPOSED_BYTES, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TRANSPOSE_FIRST_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TRANSPOSE_FIRST_H

#include "tessera/device/attention/cuda/loads.h"
#include "tessera/device/attention/cuda/transpose.h"
#include "tessera/isa/sm90_quantised.h"

INLINE char *transposed_tile(const args *a, int number) { return a->transposed + (int64_t)number * TRANSPOSED_BYTES; }

INLINE void bring_tiles(const args *a, uint32_t base) {
    const uint32_t at = task_place(base, 0).at;
    uint32_t n = 0;
    for (int number = workgroup_x(); number < a->all_tiles; number += workgroup_count(), n++) {
        const int head = number / a->head_tiles;
        struct task task; // all of it that copies of V read
        task.batch = head / a->call.nhead_k;
        task.head_k = head - task.batch * a->call.nhead_k;
        find_lengths(&task, a);
        meet_lanes(); // all of them have read the task that was there
        if (lane_id() == 0) put_task(at, &task);
        meet_lanes();
        wait_until_empty(values_place(base, n));
        load_v(values_place(base, n), a, &task, at, BN * (number - head * a->head_tiles));
    }
}

INLINE void transpose_tiles(const args *a, uint32_t base) {
    const int warp = of_first_lane(thread_id() / 32) - 1;
    uint32_t n = 0;
    for (int number = workgroup_x(); number < a->all_tiles; number += workgroup_count())
        transpose_next(base, n++, warp, 0);
}

INLINE void store_tiles(const args *a, uint32_t base) {
    uint32_t n = 0;
    for (int number = workgroup_x(); number < a->all_tiles; number += workgroup_count(), n++) {
        const struct place place = transposed_place(base, n);
        wait_until_full(place);
        if (lane_id() != 0) continue;
        store_run(transposed_tile(a, number), place.at, TRANSPOSED_BYTES);
        commit_boxes();
        await_boxes_read();
        arrive(place.empty);
    }
    if (lane_id() == 0) await_boxes();
}

// What the launch of tasks does then. No mask has a left edge, so that a task's tiles are the first ones of its head.
INLINE void load_transposed(struct place place, const args *a, const struct task *task, int i) {
    if (lane_id() != 0) return;
    const int head = task->batch * a->call.nhead_k + task->head_k;
    arrive_and_announce(place.full, TRANSPOSED_BYTES);
    copy_run(place.at, transposed_tile(a, head * a->head_tiles + i), TRANSPOSED_BYTES, place.full);
}

#if PAIRS
INLINE void fill_with_transposed(const args *a, uint32_t base, uint32_t n, int i, int head_k, int batch, int paired) {
    const struct place place = transposed_place(base, n);
    const int bytes = TRANSPOSED_BYTES / 2, own = bytes * cluster_rank();
    wait_until_both_empty(place, values_there(base, n), paired);
    if (lane_id() != 0) return;
    const char *const tile = transposed_tile(a, (batch * a->call.nhead_k + head_k) * a->head_tiles + i);
    arrive_and_announce(place.full, TRANSPOSED_BYTES);
    if (paired)
        copy_run_to_both(place.at + own, tile + own, bytes, place.full);
    else
        copy_run(place.at, tile, TRANSPOSED_BYTES, place.full);
}
#endif

#endif
