// SPDX-License-Identifier: MIT
// The barriers between the warps that bring things and the warpgroups that compute with them: of each place in shared
// memory there is one that says that it is full and one that says that it is empty.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_PIPE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_PIPE_H

#include "tessera/device/attention/cuda_bwd/sizes.h"

INLINE struct place place_of(uint32_t base, uint32_t n, int stages, int first, int at, int bytes) {
    const uint32_t stage = n % stages, barriers = base + AT_BARRIERS + 16 * (first + stage);
    return (struct place){barriers, barriers + 8, base + at + stage * bytes, n / stages % 2};
}

enum { READING_WARPS = 3 }; // of those that do not compute, how many read tasks

// The number n counts what went through the places of its kind before.
INLINE struct place k_place(uint32_t base, uint32_t n) { return place_of(base, n, 1, 0, AT_K, K_BYTES); }
INLINE struct place v_place(uint32_t base, uint32_t n) { return place_of(base, n, 1, 1, AT_V, V_BYTES); }
INLINE struct place task_place(uint32_t base, uint32_t n) { return place_of(base, n, TASKS, 2, AT_TASKS, TASK_BYTES); }
INLINE struct place q_place(uint32_t base, uint32_t n) { return place_of(base, n, Q_STAGES, 2 + TASKS, AT_Q, Q_BYTES); }
INLINE struct place do_place(uint32_t base, uint32_t n) {
    return place_of(base, n, DO_STAGES, 2 + TASKS + Q_STAGES, AT_DO, DO_BYTES);
}
INLINE struct place sums_place(uint32_t base, uint32_t n) {
    return place_of(base, n, SUMS_STAGES, 2 + TASKS + Q_STAGES + DO_STAGES, AT_SUMS, SUMS_BYTES);
}

enum { FIRST_DQ_BARRIER = 2 + TASKS + Q_STAGES + DO_STAGES + SUMS_STAGES };
// A warpgroup's part of dq, which its four warps fill.
INLINE struct place dq_room(uint32_t base, int warpgroup, uint32_t n) {
    const uint32_t barriers = base + AT_BARRIERS + 16 * (FIRST_DQ_BARRIER + warpgroup);
    return (struct place){barriers, barriers + 8, base + AT_DQ + warpgroup * DQ_ROOM_BYTES, n % 2};
}
#if !GENERAL
INLINE struct place ds_place(uint32_t base, uint32_t n) {
    return place_of(base, n, DS_STAGES, FIRST_DQ_BARRIER + WARPGROUPS, AT_DS, DS_BYTES);
}
#endif

INLINE void start_barriers(uint32_t base) {
    if (thread_id() == 0) {
        start_place(k_place(base, 0), 1, CONSUMER_WARPS);
        start_place(v_place(base, 0), 1, CONSUMER_WARPS);
        for (uint32_t n = 0; n < TASKS; n++) start_place(task_place(base, n), 1, CONSUMER_WARPS + READING_WARPS);
        for (uint32_t n = 0; n < Q_STAGES; n++) start_place(q_place(base, n), 1, CONSUMER_WARPS);
        for (uint32_t n = 0; n < DO_STAGES; n++) start_place(do_place(base, n), 1, CONSUMER_WARPS);
        for (uint32_t n = 0; n < SUMS_STAGES; n++) start_place(sums_place(base, n), 1, CONSUMER_WARPS);
        for (int n = 0; n < WARPGROUPS; n++) start_place(dq_room(base, n, 0), 4, 1);
#if !GENERAL
        for (uint32_t n = 0; n < DS_STAGES; n++) start_place(ds_place(base, n), CONSUMER_WARPS, CONSUMER_WARPS);
#endif
        start_barrier(base + AT_LATE, 1);
        publish_barriers();
    }
    barrier();
}

// Waits for all warpgroups that compute.
INLINE void meet_consumers(void) { MEET_ALIGNED_THREADS(1, WARPGROUPS * WARPGROUP); }

#endif
