// SPDX-License-Identifier: MIT
// Stores o and the logarithm of the sum. The epilogue's pair_of() makes o of two neighbouring elements, and its
// store_pairs() stores four such pairs, which rows have multiples of.
//
// Takes args, P_SHIFT, O_BITS, pair_of, store_pairs.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_RESULTS_H

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
        const float sink = LOG2E * a->call.sink[task->head], most = max_f32(t.max, sink);
        const float old = t.max == -INFINITY_F32 ? 0.0f : exp2_fast(t.max - most);
        t.sum = t.sum * old + (sink == -INFINITY_F32 ? 0.0f : exp2_fast(sink - most + P_SHIFT));
        t.over *= old;
        t.max = most;
    }
    t.over = t.sum == 0.0f ? 0.0f : t.over * reciprocal(t.sum);
    return t;
}

// Four lanes have four pairs of columns each: pair c of lane l is columns 8 c + 2 l and the next. After this lane l has
// the pairs of columns 8 l to 8 l + 7.
INLINE void transpose_four(uint32_t x[4]) {
    const int lane = lane_id();
    UNROLL
    for (int bit = 1; bit <= 2; bit *= 2) {
        const int set = lane & bit;
        UNROLL
        for (int c = 0; c < 4; c++) {
            if (c & bit) continue;
            const uint32_t low = x[c], high = x[c + bit], other = other_lane_bits(set ? low : high, bit);
            x[c] = set ? other : low;
            x[c + bit] = set ? high : other;
        }
    }
}

INLINE void store_results(const struct rows_state *x, float o[RESULTS], const args *a, const struct task *task,
                          float scale, float unit) {
    const int query = thread_query(task);
    const int64_t o_first = query_element(task, a->call.batch_stride_o, a->call.nhead_stride_o, a->call.stride_o);
    const int64_t lse_first = query_element(task, a->call.batch_stride_lse, a->call.nhead_stride_lse, 1);
    UNROLL
    for (int r = 0; r < 2; r++) {
        const struct total total = total_of(x, r, a, task, scale, unit);
        const int row = query + 8 * r - task->first, inside = query + 8 * r < task->seqlen_q;
        char *const to = (char *)a->call.o + (o_first + row * a->call.stride_o) * (O_BITS / 8);
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
        const float log2_sum = total.sum == 0.0f ? -INFINITY_F32 : total.max + log2_fast(total.sum) - P_SHIFT;
        if (a->call.lse && inside && lane_id() % 4 == 0) a->call.lse[lse_first + row] = log2_sum * LN2;
    }
}

#endif
