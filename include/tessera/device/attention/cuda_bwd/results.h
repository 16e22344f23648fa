// SPDX-License-Identifier: MIT
// Stores dk and dv.
//
// Takes launch, TWO, GENERAL.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_RESULTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_RESULTS_H

#include "tessera/device/attention/cuda_bwd/task.h"

// Stores gradients of the warpgroup's keys, `to` being the first one's of the task, and the number of keys `rows`.
INLINE void store_rows(const float *x, int columns, char *to, int64_t stride, int rows, int hdim, float scale) {
    const int thread = thread_id_again();
    const int row = thread / 32 * 16 - 64 + thread % 32 / 4; // warps from 4 on
    UNROLL
    for (int r = 0; r < 2; r++) {
        char *const at = to + (row + 8 * r) * stride * 2;
        UNROLL
        for (int j = 0; j < columns / 8; j += 4) {
            uint32_t pairs[4];
            UNROLL
            for (int c = 0; c < 4; c++)
                pairs[c] = TWO(x[ELEMENT(j + c, r, 0)] * scale, x[ELEMENT(j + c, r, 1)] * scale);
            transpose_four(pairs);
            const int column = 8 * (j + thread % 4);
            if (row + 8 * r < rows && column < hdim)
                store_16(at + column * 2, (u32x4){pairs[0], pairs[1], pairs[2], pairs[3]});
        }
    }
}

// The head of dk and dv: that of the keys where the gradients of all its query heads were added.
INLINE int gradient_head(const launch *a, const struct task *task) {
    return a->call.dkv_group > 1 ? task->head_k : task->head;
}

// Values were kept, and multiplied by keep_scale, in the forward pass; 1 without dropout.
INLINE void store_values(const float dv[DV / 2], const launch *a, uint32_t task_at) {
    struct task task;
    get_task(task_at, &task);
    const int64_t first = key_element(&task, gradient_head(a, &task), a->call.batch_stride_dv, a->call.nhead_stride_dv,
                                      a->call.stride_dv);
    store_rows(dv, DV, (char *)a->call.dv + first * 2, a->call.stride_dv, task.seqlen_k - task.first, a->call.hdim_v,
               GENERAL ? a->call.keep_scale : 1.0f);
}
INLINE void store_keys(const float dk[DQ / 2], const launch *a, uint32_t task_at) {
    struct task task;
    get_task(task_at, &task);
    const int64_t first = key_element(&task, gradient_head(a, &task), a->call.batch_stride_dk, a->call.nhead_stride_dk,
                                      a->call.stride_dk);
    store_rows(dk, DQ, (char *)a->call.dk + first * 2, a->call.stride_dk, task.seqlen_k - task.first, a->call.hdim_q,
               a->call.scale);
}

#endif
