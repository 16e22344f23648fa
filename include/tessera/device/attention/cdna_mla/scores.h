// SPDX-License-Identifier: MIT
// One tile of scores, in whose registers softmax leaves probabilities, and these leave P as the operand of the values.
//
// Takes P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MLA_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MLA_SCORES_H

#include "tessera/device/attention/cdna/reference.h"

enum { SCORES = KEY_BLOCKS * ELEMENTS, CHAINS = 3 }; // of a lane; of maxima, so that one need not wait for the last

struct softmax {
    float scale;       // a probability is 2^(scale * (score - max) + P_SHIFT)
    float max, before; // before: the maximum that O and the sums are of,
    int moved;         // if that of any lane has moved
    float sum[CHAINS]; // of the probabilities of the lane's keys, one of so many each
};

INLINE void hide_later(f32x16 s[KEY_BLOCKS], int end) { // keys from `end` on, counted from the lane's first
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if (KEY(b, e) >= end) s[b][e] = -INFINITY_F32;
            one_after_the_other();
        }
    }
}

// Raises the maximum to that of the tile.
INLINE void raise_max(struct softmax *x, const f32x16 s[KEY_BLOCKS]) {
    float most[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) most[i] = x->max;
    UNROLL
    for (int e = 0; e < SCORES; e += 2) {
        const float a = s[e / ELEMENTS][e % ELEMENTS], b = s[e / ELEMENTS][e % ELEMENTS + 1];
        most[e / 2 % CHAINS] = max_f32(max_f32(most[e / 2 % CHAINS], a), b);
    }
    float max = max_f32(max_f32(most[0], most[1]), most[2]);
    max = max_f32(max, other_half(max));
    x->moved = any_lane(max > x->max);
    x->before = x->max;
    x->max = max;
}

// Scores become exponents of probabilities, two by one instruction: no product of this half of the waves is under way,
// and seldom one of the other.
INLINE void find_exponents(const struct softmax *x, f32x16 s[KEY_BLOCKS]) {
    float shift;
    shift_to(x->max, x->scale, s, &shift);
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) s[b] = pinned(s[b] * x->scale - shift);
}

// Exponents become probabilities, and are added to the sums; these and O are rescaled. Instructions for two numbers
// would make products of the other half of the waves wait.
INLINE void exponentials(struct softmax *x, f32x16 s[KEY_BLOCKS], f32x16 o[D_BLOCKS]) {
    const float alpha = rescaling(here_f32(x->before), x->max, x->scale);
    UNROLL
    for (int i = 0; i < CHAINS; i++) x->sum[i] *= alpha;
    UNROLL
    for (int e = 0; e < SCORES; e++) {
        const float p = here_f32(exp2_fast(s[e / ELEMENTS][e % ELEMENTS]));
        x->sum[e % CHAINS] = here_f32(x->sum[e % CHAINS] + p);
        s[e / ELEMENTS][e % ELEMENTS] = p;
    }
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) s[b] = pinned(s[b]); // in the registers of the products
    if (!x->moved) return;
    UNROLL
    for (int e = 0; e < D_BLOCKS * ELEMENTS; e++)
        o[e / ELEMENTS][e % ELEMENTS] = here_f32(o[e / ELEMENTS][e % ELEMENTS] * alpha);
}

// Four registers become one: P lies in the first quarter of the tile, each word in a register that words before have
// left.
INLINE void pack_in_place(f32x16 s[KEY_BLOCKS]) {
    UNROLL
    for (int w = 0; w < SCORES / 4; w++) {
        const f32x16 x = s[4 * w / ELEMENTS];
        const int e = 4 * w % ELEMENTS;
        s[0][w] = AS_F32(pack_fp8_over(AS_U32(s[0][w]), x[e], x[e + 1], x[e + 2], x[e + 3]));
    }
    s[0] = pinned(s[0]);
}

INLINE operand p_operand_of(f32x16 packed, int step) {
    operand p;
    UNROLL
    for (int w = 0; w < 4 * OPERAND_CHUNKS; w++) p.chunk[w / 4][w % 4] = AS_U32(packed[4 * OPERAND_CHUNKS * step + w]);
    return p;
}

#endif
