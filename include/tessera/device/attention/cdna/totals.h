// SPDX-License-Identifier: MIT
// What a row has come to when all keys are done: what O is divided by, and the logarithm of the sum.
//
// Takes args, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_TOTALS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_TOTALS_H

#include "tessera/device/attention/cdna/scores.h"

// The maximum and sum of a row to which a sink adds, and what O is to be multiplied by.
struct total {
    float max, sum, over; // max is scaled
};

INLINE struct total total_of(const struct row *r, const args *a, int head, float scale, float unit) {
    float max = r->max * scale, sum = sum_of_row(r->sum), over = a->keep_scale * unit;
    if (a->sink) {
        const float sink = LOG2E * read_float(a->sink, head), most = max_f32(max, sink);
        const float old = max == -INFINITY_F32 ? 0.0f : exp2_fast(max - most);
        sum = sum * old + (sink == -INFINITY_F32 ? 0.0f : exp2_fast(sink - most + P_SHIFT));
        over *= old;
        max = most;
    }
    const struct total total = {max, sum, sum == 0.0f ? 0.0f : over * reciprocal(sum)};
    return total;
}
INLINE float log2_of(const struct total *t) {
    return t->sum == 0.0f ? -INFINITY_F32 : t->max + log2_fast(t->sum) - P_SHIFT;
}

#endif
