// SPDX-License-Identifier: MIT
// Backward: the sums of dK and dV of a wave's keys, and how they are stored.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX, O_BITS, P_SHIFT, store_four.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_RESULTS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_RESULTS_H

#include "tessera/device/attention/cdna/bwd_keys.h"
#include "tessera/device/attention/cdna/bwd_operands.h"

struct sums {
    f32x16 dk[DQ_BLOCKS], dv[D_BLOCKS]; // transposed: a lane has a key
};

INLINE void store_keys(const f32x16 *sums, int blocks, buffer to, int stride, int hdim, float scale) {
    const int offset = (32 * wave_id() + lane_id() % 32) * stride + 4 * (lane_id() / 32);
    UNROLL
    for (int b = 0; b < blocks; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const f32x16 x = sums[b] * scale;
            const f32x4 four = {x[e], x[e + 1], x[e + 2], x[e + 3]};
            if (32 * b + 2 * e < hdim) store_four(to, offset + 32 * b + 2 * e, four);
        }
    }
}

INLINE void store_results(const struct sums *sums, struct place at, int pass) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a, at);
    const int left = task.of.seqlen_k - task.first;
    if (pass & FOR_DK) {
        const int64_t dk = key_element(&task, task.head_dk, a->batch_stride_dk, a->nhead_stride_dk, a->stride_dk);
        store_keys(sums->dk, DQ_BLOCKS, rows_of(a->dk, dk, left, BN, a->stride_dk, a->hdim_q, O_BITS),
                   (int)a->stride_dk, a->hdim_q, a->scale);
    }
    if (pass & FOR_DV) {
        const int64_t dv = key_element(&task, task.head_dk, a->batch_stride_dv, a->nhead_stride_dv, a->stride_dv);
        store_keys(sums->dv, D_BLOCKS, rows_of(a->dv, dv, left, BN, a->stride_dv, a->hdim_v, O_BITS), (int)a->stride_dv,
                   a->hdim_v, a->keep_scale / (float)(1 << P_SHIFT));
    }
}

#endif
