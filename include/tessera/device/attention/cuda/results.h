// SPDX-License-Identifier: MIT
// Stores o and the logarithm of the sum. The epilogue's pair_of() makes o of two neighbouring elements, and its
// store_pairs() stores four such pairs, which rows have multiples of.
//
// Takes args, P_SHIFT, O_BITS, pair_of, store_pairs.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H

#include "tessera/device/attention/cuda/columns.h"
#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/device/attention/cuda/task.h"

// The sum of a row in all of its four lanes, to which a sink adds; `over` is what O is to be multiplied by.
struct total {
    float max, sum, over; // max is scaled
};

INLINE struct total total_of(const struct rows_state *x, int r, const args *a, const struct task *task, float scale,
                             float unit) {
    struct total t = {x->max[r] == -INFINITY_F32 ? -INFINITY_F32 : product(x->max[r], scale), sum_of_four(x->sum[r]),
                      a->call.keep_scale * unit};
    if (a->call.sink) {
        const float sink = LOG2E * a->call.sink[own_head(a, task, r)], most = max_f32(t.max, sink);
        const float old = t.max == -INFINITY_F32 ? 0.0f : exp2_fast(t.max - most);
        t.sum = t.sum * old + (sink == -INFINITY_F32 ? 0.0f : exp2_fast(sink - most + P_SHIFT));
        t.over *= old;
        t.max = most;
    }
    t.over = t.sum == 0.0f ? 0.0f : t.over * reciprocal(t.sum);
    return t;
}

INLINE float log2_of(const struct total *t) {
    return t->sum == 0.0f ? -INFINITY_F32 : t->max + log2_fast(t->sum) - P_SHIFT;
}

#if MERGED
// The results of a part of the keys, in fp32.
INLINE void store_part(const struct rows_state *x, float o[RESULTS], const args *a, const struct task *task,
                       float scale, float unit) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        const struct total total = total_of(x, r, a, task, scale, unit);
        const int row = own_row(task, r);
        if (row >= count_rows(a, task)) continue;
        const int64_t number = partial_row(a, task, row);
        float *const to = a->o_acc + number * a->call.hdim_v + first_column();
        UNROLL
        for (int i = 0; i < DV / 8; i++) {
            const int j = i / 4 * 4, c = i % 4, column = 8 * j + PAIR_OFFSET(c); // beside the thread's first
            const float left = o[PAIR_LEFT(j, r, c)] * total.over, right = o[PAIR_RIGHT(j, r, c)] * total.over;
            if (column < a->call.hdim_v) store_8(to + column, (u32x2){AS_U32(left), AS_U32(right)});
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
        const struct total total = total_of(x, r, a, task, scale, unit);
        const int inside = own_query(a, task, r) < task->seqlen_q;
        const int64_t o_row = row_element(a, task, r, a->call.nhead_stride_o, a->call.stride_o);
        char *const to = (char *)a->call.o + (o_first + o_row) * (O_BITS / 8);
        UNROLL
        for (int j = 0; j < DV / 8; j += 4) {
            uint32_t pairs[4];
            UNROLL
            for (int c = 0; c < 4; c++)
                pairs[c] = pair_of(o[PAIR_LEFT(j, r, c)] * total.over, o[PAIR_RIGHT(j, r, c)] * total.over);
            const int column = 8 * j + gather_pairs(pairs);
            if (inside && column < a->call.hdim_v) store_pairs(to + column * (O_BITS / 8), pairs);
        }
        const float log2_sum = log2_of(&total);
        if (a->call.lse && inside && lane_id() % 4 == 0)
            a->call.lse[lse_first + row_element(a, task, r, a->call.nhead_stride_lse, 1)] = log2_sum * LN2;
    }
}

#endif
