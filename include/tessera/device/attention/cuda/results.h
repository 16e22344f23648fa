// SPDX-License-Identifier: MIT
// Stores o and the logarithm of the sum. The epilogue's pair_of() makes o of two neighbouring elements, and its
// store_pairs() stores four such pairs, which rows have multiples of.
//
// Takes args, P_SHIFT, O_BITS, pair_of, store_pairs.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H

#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/device/attention/cuda/totals.h"

// The total of the thread's row r, in all of the four lanes that share it.
INLINE struct total total_of_row(const struct rows_state *x, int r, const args *a, const struct task *task, float scale,
                                 float unit) {
    return total_of(a, own_head(a, task, r), scaled_max(x->max[r], scale), sum_of_row(x->sum[r]), unit);
}

#if MERGED
// The results of a part of the keys, in fp32.
INLINE void store_part(const struct rows_state *x, float o[RESULTS], const args *a, const struct task *task,
                       float scale, float unit) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        const struct total total = total_of_row(x, r, a, task, scale, unit);
        const int row = own_row(task, r);
        if (row >= count_rows(a, task)) continue;
        const int64_t number = partial_row(a, task, row);
        float *const to = a->o_acc + number * a->call.hdim_v + thread_column();
        UNROLL
        for (int j = 0; j < DV / 8; j++) {
            const float left = o[ELEMENT(j, r, 0)] * total.over, right = o[ELEMENT(j, r, 1)] * total.over;
            if (8 * j < a->call.hdim_v) store_8(to + 8 * j, (u32x2){AS_U32(left), AS_U32(right)});
        }
        if (lane_id() % 4 == 0) a->lse_acc[number] = log2_of(&total);
    }
}
#endif

INLINE void store_results(const struct rows_state *x, float o[RESULTS], const args *a, const struct task *task,
                          float scale, float unit) {
#if MERGED
    if (a->parts > 1) {
        store_part(x, o, a, task, scale, unit);
        return;
    }
#endif
    const int64_t o_first = block_element(task, a->call.batch_stride_o, a->call.nhead_stride_o, a->call.stride_o);
    const int64_t lse_first = block_element(task, a->call.batch_stride_lse, a->call.nhead_stride_lse, 1);
    UNROLL
    for (int r = 0; r < 2; r++) {
        const struct total total = total_of_row(x, r, a, task, scale, unit);
        const int inside = own_query(a, task, r) < task->seqlen_q;
        const int64_t o_row = row_element(a, task, r, a->call.nhead_stride_o, a->call.stride_o);
        char *const to = (char *)a->call.o + (o_first + o_row) * (O_BITS / 8);
        UNROLL
        for (int j = 0; j < DV / 8; j += 4) {
            uint32_t pairs[4];
            UNROLL
            for (int c = 0; c < 4; c++)
                pairs[c] = pair_of(o[ELEMENT(j + c, r, 0)] * total.over, o[ELEMENT(j + c, r, 1)] * total.over);
            transpose_four(pairs);
            const int column = 8 * (j + lane_id() % 4);
            if (inside && column < a->call.hdim_v) store_pairs(to + column * (O_BITS / 8), pairs);
        }
        const float log2_sum = log2_of(&total);
        if (a->call.lse && inside && lane_id() % 4 == 0)
            a->call.lse[lse_first + row_element(a, task, r, a->call.nhead_stride_lse, 1)] = log2_sum * LN2;
    }
}

#endif
