// SPDX-License-Identifier: MIT
// What a row's sum is in the end, to which a sink adds, and what O is to be multiplied by.
//
// Takes args, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TOTALS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TOTALS_H

#include "tessera/device/attention/cuda/task.h"

struct total {
    float max, sum, over; // max is scaled; O is to be multiplied by `over`
};

// Of a query head's row with this scaled maximum, or -inf, and this sum.
INLINE struct total total_of(const args *a, int head, float max, float sum, float unit) {
    struct total t = {max, sum, a->call.keep_scale * unit};
    if (a->call.sink) {
        const float sink = LOG2E * a->call.sink[head], most = max_f32(t.max, sink);
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

#endif
