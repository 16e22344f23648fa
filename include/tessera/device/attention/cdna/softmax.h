// SPDX-License-Identifier: MIT
// Online softmax: a tile's scores to probabilities, which are kept times 2^P_SHIFT, and the running maximum and sum.
//
// Takes P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SOFTMAX_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SOFTMAX_H

#include "tessera/device/attention/cdna/reference.h"

// Raises the maximum to that of the tile, and rescales O and the sum to it. Scores are scale * s. Returns the shift
// that exponentials() is to subtract, for the maximum as reference.
INLINE float raise_max(struct row *r, mma_sums s[KEY_BLOCKS], mma_sums o[D_BLOCKS], float scale) {
    float max = r->max;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) max = max_f32(max, s[b][e]);
    }
    max = max_of_row(max);
    if (any_lane(max > r->max)) {
        const float alpha = rescaling(r->max, max, scale);
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) o[b] *= alpha;
        r->sum *= alpha;
        r->max = max;
    }
    float shift;
    shift_to(max, scale, s, &shift);
    return shift;
}

// s becomes exp2(scale * s - shift), and its sum is added to r->sum.
INLINE void exponentials(struct row *r, mma_sums s[KEY_BLOCKS], float scale, float shift) {
    f32x2 sum = {r->sum, 0.0f}; // one instruction adds two numbers
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
    r->sum = here_f32(sum.x + sum.y); // here, or the compiler adds later and keeps s in registers until then
}

#endif
