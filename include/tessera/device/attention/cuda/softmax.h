// SPDX-License-Identifier: MIT
// Online softmax: a tile's scores to probabilities, which are kept times 2^P_SHIFT, and the running reference and sum
// of a thread's two rows, each of which four lanes share.
//
// The reference, which is subtracted from scores, is the greatest score of some tile. Where KEEPS is 1 it stays while
// no row of the warp has a scaled score that exceeds it by more than HEADROOM, as FlashAttention 4 does it: then lanes
// need not know each other's maxima, and O stays as it is. What is subtracted makes no difference to O and to the
// logarithm of the sum but their rounding.
//
// Where KEEPS is 2, probabilities of a tile are made, and packed as fp8, before anything is known of their scores.
// Where a sum of some of them exceeds what fp8 has, one of them might, and they are made again by a greater reference.
//
// Takes P_SHIFT, KEEPS, HEADROOM, EARLY.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H

#include "tessera/device/attention/cuda/pack.h"

#define GREAT 0x1p20f // the rounding of such a shift would spoil P

struct rows_state {
    float max[2], sum[2]; // the reference; of the probabilities of this thread's keys
};

INLINE float max_of_four(float x) {
    x = max_f32(x, other_lane(x, 1));
    return max_f32(x, other_lane(x, 2));
}
INLINE float sum_of_four(float x) {
    x += other_lane(x, 1);
    return x + other_lane(x, 2);
}

// The greatest of this thread's scores of both rows, in four chains.
INLINE void own_max(const float s[SCORES], float max[2]) {
    float most[4] = {s[0], s[1], s[2], s[3]};
    UNROLL
    for (int i = 4; i < SCORES; i++) most[i % 4] = max_f32(most[i % 4], s[i]);
    UNROLL
    for (int r = 0; r < 2; r++) max[r] = max_f32(most[ELEMENT(0, r, 0)], most[ELEMENT(0, r, 1)]);
}

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
        for (int j = 0; j < BN / 8; j++) {
            s[ELEMENT(j, r, 0)] -= x;
            s[ELEMENT(j, r, 1)] -= x;
        }
    }
}

// Scores from `first` on, before `end`, become exp2(scale * s - shift).
INLINE void exponentials(const float s[SCORES], float to[SCORES], int first, int end, float scale,
                         const float shift[2]) {
    UNROLL
    for (int i = first; i < end; i++) to[i] = exp2_fast(fused(s[i], scale, P_SHIFT - shift[i / 2 % 2]));
}

INLINE void add_sums(const float s[SCORES], struct rows_state *x) {
    float sum[2] = {s[0] + s[1], s[2] + s[3]};
    UNROLL
    for (int i = 4; i < SCORES; i++) sum[i / 2 % 2] += s[i];
    UNROLL
    for (int r = 0; r < 2; r++) x->sum[r] += sum[r];
}

// The greatest scores so far become the references, and sums follow; `alpha` is what O is to be multiplied by.
INLINE void refer(float s[SCORES], struct rows_state *x, const float own[2], float scale, float shift[2],
                  float alpha[2]) {
    float max[2];
    UNROLL
    for (int r = 0; r < 2; r++) {
        max[r] = max_f32(x->max[r], max_of_four(own[r]));
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

#if KEEPS == 1
// Whether a reference serves a row's scores: not where there is none yet, whose shift is infinite.
INLINE int serves(float own, float scale, float shift) {
    return fused(own, scale, -shift) <= HEADROOM && abs_f32(shift) < GREAT;
}

// Scores become probabilities. Returns whether the references change; then O is to be multiplied by `alpha`. The first
// EARLY probabilities are made before that is known.
INLINE int softmax(float s[SCORES], struct rows_state *x, float scale, float alpha[2]) {
    float own[2], early[EARLY + 1], shift[2] = {product(x->max[0], scale), product(x->max[1], scale)};
    exponentials(s, early, 0, EARLY, scale, shift);
    own_max(s, own);
    const int changes = any_lane(!(serves(own[0], scale, shift[0]) && serves(own[1], scale, shift[1])));
    if (changes) {
        refer(s, x, own, scale, shift, alpha);
        exponentials(s, early, 0, EARLY, scale, shift);
    }
    UNROLL
    for (int i = 0; i < EARLY; i++) s[i] = early[i];
    exponentials(s, s, EARLY, SCORES, scale, shift);
    add_sums(s, x);
    return changes;
}

#endif

#if KEEPS == 2
// The sums of both rows, each in two parts.
INLINE void sum_in_parts(const float e[SCORES], float sum[4]) {
    UNROLL
    for (int i = 0; i < 4; i++) {
        const int r = i % 2, begin = i / 2 * (BN / 16);
        UNROLL
        for (int j = begin; j < begin + BN / 16; j += 2) {
            const float left = e[ELEMENT(j, r, 0)] + e[ELEMENT(j, r, 1)];
            const float right = e[ELEMENT(j + 1, r, 0)] + e[ELEMENT(j + 1, r, 1)];
            sum[i] = j > begin ? sum[i] + (left + right) : left + right;
        }
    }
}

// Scores become probabilities, packed. Returns whether the references change; then O is to be multiplied by `alpha`.
INLINE int softmax_late(float s[SCORES], uint32_t p[P_WORDS], struct rows_state *x, float scale, float alpha[2]) {
    float shift[2] = {product(x->max[0], scale), product(x->max[1], scale)};
    for (int changes = 0;; changes = 1) {
        float e[SCORES], sum[4], own[2];
        exponentials(s, e, 0, SCORES, scale, shift);
        pack_probabilities(e, p);
        sum_in_parts(e, sum);
        const int great = max_f32(abs_f32(shift[0]), abs_f32(shift[1])) >= GREAT;
        const int fits = sum[0] <= GREATEST_FP8 && sum[1] <= GREATEST_FP8 && sum[2] <= GREATEST_FP8 &&
                         sum[3] <= GREATEST_FP8; // NaN does not
        if (changes || !any_lane(great || !fits)) {
            UNROLL
            for (int r = 0; r < 2; r++) x->sum[r] += sum[r] + sum[2 + r];
            return changes;
        }
        own_max(s, own);
        UNROLL
        for (int r = 0; r < 2; r++) { // scores may be no greater, but many
            own[r] = max_of_four(own[r]);
            if (max_of_four(max_f32(sum[r], sum[2 + r])) > GREATEST_FP8 && own[r] <= x->max[r])
                own[r] = x->max[r] + reciprocal(scale);
        }
        refer(s, x, own, scale, shift, alpha);
    }
}
#endif

// The same where registers are few: the references always change.
INLINE void softmax_referred(float s[SCORES], struct rows_state *x, float scale, float alpha[2]) {
    float own[2], shift[2];
    own_max(s, own);
    refer(s, x, own, scale, shift, alpha);
    exponentials(s, s, 0, SCORES, scale, shift);
    add_sums(s, x);
}

INLINE void rescale(float o[RESULTS], const float alpha[2]) {
    UNROLL
    for (int j = 0; j < DV / 8; j++) {
        UNROLL
        for (int r = 0; r < 2; r++) {
            o[ELEMENT(j, r, 0)] *= alpha[r];
            o[ELEMENT(j, r, 1)] *= alpha[r];
        }
    }
}

#endif
