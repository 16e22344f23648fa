// SPDX-License-Identifier: MIT
// Online softmax: a tile's scores to probabilities, which are kept times 2^P_SHIFT, and the running maximum and sum of
// a thread's two rows, each of which four lanes share.
//
// Takes P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_H

#include "tessera/device/attention/cuda/sizes.h"

struct rows_state {
    float max[2], sum[2]; // of all scores; of the probabilities of this thread's keys
};

INLINE float max_of_four(float x) {
    x = max_f32(x, other_lane(x, 1));
    return max_f32(x, other_lane(x, 2));
}
INLINE float sum_of_four(float x) {
    x += other_lane(x, 1);
    return x + other_lane(x, 2);
}

// The greatest of both rows' scores, in four chains.
INLINE void row_max(const float s[SCORES], float max[2]) {
    float most[4] = {s[0], s[1], s[2], s[3]};
    UNROLL
    for (int i = 4; i < SCORES; i++) most[i % 4] = max_f32(most[i % 4], s[i]);
    UNROLL
    for (int r = 0; r < 2; r++) max[r] = max_of_four(max_f32(most[ELEMENT(0, r, 0)], most[ELEMENT(0, r, 1)]));
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

// Scores become exp2(scale * s - shift); returns their sums.
INLINE void exponentials(float s[SCORES], float scale, const float shift[2], float sum[2]) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] = exp2_fast(fused(s[i], scale, -shift[i / 2 % 2]));
    sum[0] = s[0] + s[1];
    sum[1] = s[2] + s[3];
    UNROLL
    for (int i = 4; i < SCORES; i++) sum[i / 2 % 2] += s[i];
}

// Scores become probabilities, and maxima and sums those of all tiles so far. `alpha` is what sums and O of the tiles
// before are to be multiplied by.
INLINE void softmax(float s[SCORES], struct rows_state *x, float scale, float alpha[2]) {
    float shift[2], max[2], sum[2];
    row_max(s, max);
    UNROLL
    for (int r = 0; r < 2; r++) {
        max[r] = max_f32(x->max[r], max[r]);
        shift[r] = shift_of(max[r], scale);
        alpha[r] = exp2_fast(product(x->max[r], scale) - shift[r]); // 0 where there was no key before
    }
    if (any_lane(max_f32(abs_f32(shift[0]), abs_f32(shift[1])) >= 0x1p20f)) {
        subtract_max(s, max);
        UNROLL
        for (int r = 0; r < 2; r++) {
            if (x->max[r] != -INFINITY_F32) alpha[r] = exp2_fast((x->max[r] - max[r]) * scale);
            shift[r] = 0.0f;
        }
    }
    UNROLL
    for (int r = 0; r < 2; r++) shift[r] -= P_SHIFT;
    exponentials(s, scale, shift, sum);
    UNROLL
    for (int r = 0; r < 2; r++) {
        x->max[r] = max[r];
        x->sum[r] = fused(x->sum[r], alpha[r], sum[r]);
    }
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
