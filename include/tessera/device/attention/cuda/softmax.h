// SPDX-License-Identifier: MIT
// Online softmax: a tile's scores to probabilities, which are kept times 2^P_SHIFT, and the running reference and sum
// of a thread's two rows, each of which four lanes share, or eight where products are TURNED.
//
// The reference, which is subtracted from scores, is the greatest score of some tile. With KEEPS it stays while no row
// of the warp has a scaled score that exceeds it by more than HEADROOM, as FlashAttention 4 does it: then lanes need
// not know each other's maxima, and O stays as it is. What is subtracted makes no difference to O and to the logarithm
// of the sum but their rounding.
//
// Takes KEYS, TURNED, P_SHIFT, KEEPS, HEADROOM, EARLY, FUSED_EXP2.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H

#include "tessera/device/attention/cuda/share.h"

#define SECOND(r) (ELEMENT(0, r, 0) + (TURNED ? 2 : 1)) // a thread's second element of a row
#define GREAT 0x1p20f                                   // the rounding of such a shift would spoil P

struct rows_state {
    float max[2], sum[2]; // the reference; of the probabilities of this thread's keys
};

INLINE float max_of_four(float x) {
    x = max_f32(x, other_lane(x, 1));
    return max_f32(x, other_lane(x, 2));
}
#if TURNED
INLINE float max_of_row(float x) {
    x = max_f32(x, other_lane(x, 4));
    x = max_f32(x, other_lane(x, 8));
    return max_f32(x, other_lane(x, 16));
}
INLINE float sum_of_row(float x) {
    x += other_lane(x, 4);
    x += other_lane(x, 8);
    return x + other_lane(x, 16);
}
#else
INLINE float max_of_row(float x) { return max_of_four(x); }
INLINE float sum_of_row(float x) {
    x += other_lane(x, 1);
    return x + other_lane(x, 2);
}
#endif

// The greatest of this thread's scores of both rows, in four chains.
INLINE void own_max(const float s[SCORES], float max[2]) {
    float most[4] = {s[0], s[1], s[2], s[3]};
    UNROLL
    for (int i = 4; i < SCORES; i++) most[i % 4] = max_f32(most[i % 4], s[i]);
    UNROLL
    for (int r = 0; r < 2; r++) max[r] = max_f32(most[ELEMENT(0, r, 0)], most[SECOND(r)]);
}

// The scaled maximum of scores, -inf where there is none.
INLINE float scaled_max(float max, float scale) { return max == -INFINITY_F32 ? -INFINITY_F32 : product(max, scale); }

// What is subtracted from scaled scores: the scaled maximum, rounded, and the same number wherever it is needed. Rows
// without a key have -inf, for which 0 does.
INLINE float shift_of(float max, float scale) { return max == -INFINITY_F32 ? 0.0f : product(max, scale); }

// Subtracts the maximum from the scores themselves, exactly: where the shift is so great that its rounding would spoil
// P.
INLINE void subtract_max(float s[SCORES], const float max[2]) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        const float x = max[r] == -INFINITY_F32 ? 0.0f : max[r];
        UNROLL
        for (int i = 0; i < SCORES; i++)
            if (ROW_OF(i) == r) s[i] -= x;
    }
}

// Scores from `first` on, before `end`, become exp2(scale * s - shift). some_fused: none is hidden, and one of
// FUSED_EXP2, if they are more than 1, is made by multiply-adds, which other units do beside.
INLINE void exponentials(const float s[SCORES], float to[SCORES], int first, int end, float scale, const float shift[2],
                         int some_fused) {
    UNROLL
    for (int i = first; i < end; i++) {
        const float x = fused(s[i], scale, P_SHIFT - shift[ROW_OF(i)]);
        to[i] = some_fused && i % FUSED_EXP2 == 1 ? exp2_fused(x) : exp2_fast(x);
    }
}

INLINE void add_sums(const float s[SCORES], struct rows_state *x) {
    float sum[2] = {s[ELEMENT(0, 0, 0)] + s[SECOND(0)], s[ELEMENT(0, 1, 0)] + s[SECOND(1)]};
    UNROLL
    for (int i = 4; i < SCORES; i++) sum[ROW_OF(i)] += s[i];
    UNROLL
    for (int r = 0; r < 2; r++) x->sum[r] += sum[r];
}

// The greatest scores so far become the references, and sums follow; `alpha` is what O is to be multiplied by.
INLINE void refer(float s[SCORES], struct rows_state *x, const float own[2], float scale, float shift[2],
                  float alpha[2]) {
    float max[2];
    UNROLL
    for (int r = 0; r < 2; r++) {
        max[r] = max_f32(x->max[r], max_of_row(own[r]));
        shift[r] = shift_of(max[r], scale);
        alpha[r] = exp2_fast(product(x->max[r], scale) - shift[r]); // 0 where there was no key before
    }
    if (any_lane(max_f32(abs_f32(shift[0]), abs_f32(shift[1])) >= GREAT)) {
        subtract_max(s, max);
        UNROLL
        for (int r = 0; r < 2; r++) {
            if (x->max[r] != -INFINITY_F32) alpha[r] = exp2_fast((x->max[r] - max[r]) * scale);
            shift[r] = 0.0f;
        }
    }
    UNROLL
    for (int r = 0; r < 2; r++) {
        x->max[r] = max[r];
        x->sum[r] *= alpha[r];
    }
}

#if KEEPS
// Whether a reference serves a row's scores: not where there is none yet, whose shift is infinite.
INLINE int serves(float own, float scale, float shift) {
    return fused(own, scale, -shift) <= HEADROOM && abs_f32(shift) < GREAT;
}

// Scores become probabilities. Returns whether the references change; then O is to be multiplied by `alpha`. The first
// EARLY probabilities are made before that is known.
INLINE int softmax(float s[SCORES], struct rows_state *x, float scale, float alpha[2]) {
    float own[2], early[EARLY + 1], shift[2] = {product(x->max[0], scale), product(x->max[1], scale)};
    exponentials(s, early, 0, EARLY, scale, shift, 1);
    own_max(s, own);
    const int changes = any_lane(!(serves(own[0], scale, shift[0]) && serves(own[1], scale, shift[1])));
    if (changes) {
        refer(s, x, own, scale, shift, alpha);
        exponentials(s, early, 0, EARLY, scale, shift, 1);
    }
    UNROLL
    for (int i = 0; i < EARLY; i++) s[i] = early[i];
    exponentials(s, s, EARLY, SCORES, scale, shift, 1);
    add_sums(s, x);
    return changes;
}

#endif

// The same where registers are few: the references always change.
INLINE void softmax_referred(float s[SCORES], struct rows_state *x, float scale, int special, float alpha[2]) {
    float own[2], shift[2];
    own_max(s, own);
    refer(s, x, own, scale, shift, alpha);
    exponentials(s, s, 0, SCORES, scale, shift, !special);
    add_sums(s, x);
}

INLINE void rescale(float o[RESULTS], const float alpha[2]) {
    UNROLL
    for (int i = 0; i < RESULTS; i++) o[i] *= alpha[ROW_OF(i)];
}

#endif
