// SPDX-License-Identifier: MIT
// The barriers between the warp that brings things and the warpgroups that compute with them: of each place in shared
// memory there is one that says that it is full and one that says that it is empty.
//
// Takes STAGES, WARPGROUPS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PIPE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PIPE_H

#include "tessera/device/attention/cuda/sizes.h"

struct place {
    uint32_t full, empty; // barriers
    uint32_t at;          // its bytes
    uint32_t parity;      // of the full barrier's phase
};

// The number n counts what went through the places of its kind before.
INLINE struct place queries_place(uint32_t base, uint32_t n) {
    const uint32_t barriers = base + AT_BARRIERS;
    return (struct place){barriers, barriers + 8, base + AT_Q, n % 2};
}
INLINE struct place task_place(uint32_t base, uint32_t n) {
    const uint32_t barriers = base + AT_BARRIERS + 16 + n % TASKS * 16;
    return (struct place){barriers, barriers + 8, base + AT_TASKS + n % TASKS * TASK_BYTES, n / TASKS % 2};
}
INLINE struct place keys_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_BARRIERS + 16 + 16 * TASKS + stage * 16;
    return (struct place){barriers, barriers + 8, base + AT_K + stage * K_BYTES, n / STAGES % 2};
}
INLINE struct place values_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_BARRIERS + 16 + 16 * TASKS + (STAGES + stage) * 16;
    return (struct place){barriers, barriers + 8, base + AT_V + stage * V_BYTES, n / STAGES % 2};
}

INLINE void wait_until_full(struct place p) { wait_for(p.full, p.parity); }
INLINE void wait_until_empty(struct place p) { wait_for(p.empty, p.parity ^ 1); }

// A warp that computes is done with a place, whose products it has waited for.
INLINE void release(struct place p) {
    if (lane_id() == 0) arrive(p.empty);
}

// One warp fills places, and each warp that computes empties them.
INLINE void start_barriers(uint32_t base) {
    if (thread_id() == 0) {
        for (int i = 0; i < BARRIERS; i += 2) {
            start_barrier(base + AT_BARRIERS + 8 * i, 1);
            start_barrier(base + AT_BARRIERS + 8 * (i + 1), CONSUMER_WARPS);
        }
        publish_barriers();
    }
    barrier();
}

#endif
