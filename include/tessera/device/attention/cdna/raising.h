// SPDX-License-Identifier: MIT
// A reference of probabilities that seldom moves: to the greatest score, where one exceeds it by so much that P would
// have no room. RAISE_BY: log2 of how far probabilities may exceed 2^P_SHIFT before O and the sums are rescaled.
//
// Takes P_SHIFT, RAISE_BY, MMA_PART, PARTS, RING.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_RAISING_H
#define TESSERA_DEVICE_ATTENTION_CDNA_RAISING_H

#include "tessera/device/attention/cdna/bundles.h"
#include "tessera/device/attention/cdna/reference.h"

// The reference becomes the greatest score. Returns the factor that O is to be rescaled by; the sums are. Where it has
// to be subtracted from scores, so it is of all tiles from then on.
INLINE float move_reference(struct loop *x, f32x16 next[KEY_BLOCKS]) {
    float max = greatest_score(x);
    max = max_f32(max, other_half(max));
    const float alpha = rescaling(x->row.max, max, x->scale);
    UNROLL
    for (int i = 0; i < SUMS; i++) x->sum[i] *= alpha;
    x->row.max = max;
    x->limit = max + min_f32(RAISE_BY / x->scale, GREATEST_F32);
    if (shift_to(max, x->scale, next, &x->shift)) x->limit = -INFINITY_F32;
    return alpha;
}

INLINE void rescale_o(struct loop *x, float alpha) {
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) x->o[b] *= alpha;
}

INLINE void raise_reference(struct loop *x, f32x16 next[KEY_BLOCKS]) { rescale_o(x, move_reference(x, next)); }

INLINE int exceeds_limit(const struct loop *x) { return any_lane(greatest_score(x) > x->limit); }

#endif
