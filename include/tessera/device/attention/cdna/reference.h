// SPDX-License-Identifier: MIT
// The reference of a row's probabilities, a score at which they are 2^P_SHIFT. Scores are scale * s.
//
// Takes P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_REFERENCE_H
#define TESSERA_DEVICE_ATTENTION_CDNA_REFERENCE_H

#include "tessera/device/attention/cdna/scores.h"

// What O and the sum are multiplied by where the reference becomes another one; they are 0 where there was none.
INLINE float rescaling(float before, float now, float scale) {
    return before == -INFINITY_F32 ? 0.0f : exp2_fast((before - now) * scale);
}

// What exponents are less than scale * s, of a row that may have no reference.
INLINE float shift_of(float reference, float scale) {
    return (reference == -INFINITY_F32 ? 0.0f : reference) * scale - P_SHIFT;
}

// Whether it is so great that its rounding would spoil P.
INLINE int spoils(float shift) { return abs_f32(shift) >= 0x1p20f; }

// Sets the shift. Where it would spoil P of any lane, the reference is subtracted from s here, exactly, and only
// P_SHIFT is left. Returns whether that is so.
INLINE int shift_to(float reference, float scale, mma_sums s[KEY_BLOCKS], float *shift) {
    *shift = shift_of(reference, scale);
    if (!any_lane(spoils(*shift))) return 0;
    const float least = reference == -INFINITY_F32 ? 0.0f : reference;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            s[b][e] -= least;
            one_after_the_other();
        }
    }
    *shift = -P_SHIFT;
    return 1;
}

#endif
