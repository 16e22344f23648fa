// SPDX-License-Identifier: MIT
// Backward: the sums of dK and dV of a wave's keys, and how they are stored.
//
// STORES: 2 where dK and dV have code of their own; with 1 they take turns with the same, which is a sixth less to
// compile, and takes moves of registers.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX, O_BITS, P_SHIFT, STORES, store_four.
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
        const f32x16 x = sums[b] * scale;
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const f32x4 four = {x[e], x[e + 1], x[e + 2], x[e + 3]};
            if (32 * b + 2 * e < hdim) store_four(to, offset + 32 * b + 2 * e, four);
        }
    }
}

// Of dV's turn blocks past its last are still dK's; they are past the head dim, and not stored.
INLINE void store_results(const struct sums *sums, int pass) {
    enum { BLOCKS = DQ_BLOCKS > D_BLOCKS ? DQ_BLOCKS : D_BLOCKS };
    const args *a = (const args *)kernel_argument();
    const struct task task = kept_task();
    const int left = task.of.seqlen_k - task.first;
    f32x16 x[BLOCKS];
    UNROLL
    for (int b = 0; b < BLOCKS; b++) x[b] = pass & FOR_DK && b < DQ_BLOCKS ? sums->dk[b] : sums->dv[b % D_BLOCKS];
#pragma unroll STORES
    for (int of_v = !(pass & FOR_DK); of_v <= !!(pass & FOR_DV); of_v++) {
        const int64_t stride = of_v ? a->stride_dv : a->stride_dk;
        const int64_t first = key_element(&task, task.head_dk, of_v ? a->batch_stride_dv : a->batch_stride_dk,
                                          of_v ? a->nhead_stride_dv : a->nhead_stride_dk, stride);
        const int hdim = of_v ? a->hdim_v : a->hdim_q;
        const float scale = of_v ? a->keep_scale / (float)(1 << P_SHIFT) : a->scale;
        store_keys(x, BLOCKS, rows_of(of_v ? a->dv : a->dk, first, left, BN, stride, hdim, O_BITS), (int)stride, hdim,
                   scale);
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) x[b] = sums->dv[b];
    }
}

#endif
