// SPDX-License-Identifier: MIT
// The barriers between the warp that brings things and the warpgroups that compute with them: of each place in shared
// memory there is one that says that it is full and one that says that it is empty.
//
// Takes STAGES, Q_STAGES, WARPGROUPS, BITS, V_COLUMNS, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PIPE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PIPE_H

#include "tessera/device/attention/cuda/sizes.h"

// The number n counts what went through the places of its kind before.
INLINE struct place queries_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % Q_STAGES, barriers = base + AT_BARRIERS + stage * 16;
    return (struct place){barriers, barriers + 8, base + AT_Q + stage * Q_BYTES, n / Q_STAGES % 2};
}
INLINE struct place task_place(uint32_t base, uint32_t n) {
    const uint32_t barriers = base + AT_BARRIERS + 16 * Q_STAGES + n % TASKS * 16;
    return (struct place){barriers, barriers + 8, base + AT_TASKS + n % TASKS * TASK_BYTES, n / TASKS % 2};
}
INLINE struct place keys_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_KV_BARRIERS + stage * 16;
    return (struct place){barriers, barriers + 8, base + AT_K + stage * K_BYTES, n / STAGES % 2};
}
INLINE struct place values_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_KV_BARRIERS + (STAGES + stage) * 16;
    return (struct place){barriers, barriers + 8, base + AT_V + stage * V_BYTES, n / STAGES % 2};
}
#if BITS == 8 && !V_COLUMNS
INLINE struct place transposed_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_KV_BARRIERS + (2 * STAGES + stage) * 16;
    return (struct place){barriers, barriers + 8, base + AT_TRANSPOSED + stage * TRANSPOSED_BYTES, n / STAGES % 2};
}
#else
INLINE struct place transposed_place(uint32_t base, uint32_t n) { return values_place(base, n); }
#endif

// v: TESSERA_CUDA_V_*, what the launch does with tiles of V. Of those that are transposed already the warp that brings
// them is told when they are needed no longer, and warps that would transpose them have nothing to do. telling: how
// many others tell the other workgroup of a pair what is needed no longer (pairs.h).
INLINE void start_barriers(uint32_t base, int v, int telling) {
    const int transposed = v == TESSERA_CUDA_V_TRANSPOSED, helping = telling + (transposed ? 0 : HELPING_WARPS);
    if (thread_id() == 0) {
        for (uint32_t n = 0; n < Q_STAGES; n++) start_place(queries_place(base, n), 1, CONSUMER_WARPS);
        for (uint32_t n = 0; n < TASKS; n++) start_place(task_place(base, n), 1, CONSUMER_WARPS + helping);
        for (uint32_t n = 0; n < STAGES; n++) {
            start_place(keys_place(base, n), FILLING_WARPS, CONSUMER_WARPS);
            start_place(values_place(base, n), V_ARRIVALS, TRANSPOSES ? TRANSPOSING_WARPS : CONSUMER_WARPS);
            if (TRANSPOSES)
                start_place(transposed_place(base, n), transposed ? 1 : TRANSPOSING_WARPS,
                            v == TESSERA_CUDA_V_TRANSPOSING ? 1 : CONSUMER_WARPS);
        }
        for (int n = 0; PAIRS && n < 2 * STAGES; n++)
            start_barrier(base + AT_PAIR_BARRIERS + 8 * n,
                          n < STAGES || !TRANSPOSES || telling ? 1 : TRANSPOSING_WARPS);
        publish_barriers();
    }
#if PAIRS
    meet_cluster();
#else
    barrier();
#endif
}

#endif
