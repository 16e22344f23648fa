// SPDX-License-Identifier: MIT
// Softmax of a tile, and of all before it. Probabilities are times 2^P_SHIFT.
//
// Takes P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SOFTMAX_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SOFTMAX_H

#include "tessera/device/attention/cdna/scores.h"

// The new maximum; what came before is brought to it. Scores are `scale` times what s holds. Returns what is to be
// taken from them: the maximum, or where its rounding would make P 2^64 or 0, nothing: then s is made less here.
INLINE float raise_max(struct row *r, f32x16 s[KEY_BLOCKS], f32x16 o[D_BLOCKS], float scale) {
    float max = r->max;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) max = max_f32(max, s[b][e]);
    }
    max = max_f32(max, other_half(max));
    if (any_lane(max > r->max)) {
        const float alpha = r->max == -INFINITY_F32 ? 0.0f : exp2_fast((r->max - max) * scale);
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) o[b] *= alpha;
        r->sum *= alpha;
        r->max = max;
    }
    max = max == -INFINITY_F32 ? 0.0f : max;
    const float shift = max * scale - P_SHIFT;
    if (!any_lane(abs_f32(shift) >= 0x1p20f)) return shift;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            s[b][e] -= max;
            one_after_the_other();
        }
    }
    return -P_SHIFT;
}

// Scores to exp2(scale s - shift).
INLINE void exponentials(struct row *r, f32x16 s[KEY_BLOCKS], float scale, float shift) {
    f32x2 sum = {r->sum, 0.0f}; // two at a time, as one instruction adds
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 2) {
            const f32x2 x = (f32x2){s[b][e], s[b][e + 1]} * scale - shift;
            const f32x2 p = {exp2_fast(x.x), exp2_fast(x.y)};
            sum += p;
            s[b][e] = p.x;
            s[b][e + 1] = p.y;
        }
    }
    r->sum = here_f32(sum.x + sum.y); // lest s is kept for it
}

#endif
