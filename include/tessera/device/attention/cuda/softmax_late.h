// SPDX-License-Identifier: MIT
// softmax.h, but no maximum is looked for: the reference stays while sums of probabilities, which are made anyway, say
// that none is too great for P. Where one is, all of its row become less by a factor, which the reference follows. That
// is possible unless a probability is infinite: then scores, whose place probabilities have taken, are made again.
//
// Takes BITS, BM, BN, DQ, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_LATE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SOFTMAX_LATE_H

#include "tessera/device/attention/cuda/slices.h"
#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/isa/sm90_quantised.h"

// A row of a thread is summed up in so many chains, of which none exceeds what P has room for while no probability
// exceeds 1.
enum { CHAINS = 2 };
static_assert((SCORES / 2 / CHAINS) << P_SHIFT <= (int)GREATEST_FP8, "sums say whether probabilities fit");

// The scores of the warp's 16 rows of `q` once more, by products of a warp. Four columns that a lane has go as two
// pairs into steps 2 (lane % 4) and 8 + 2 (lane % 4) of both factors.
INLINE void remake_scores(float s[SCORES], uint32_t q, uint32_t k) {
    const int thread = thread_id_again(), lane = thread % 32, row = thread % WARPGROUP / 32 * 16 + lane % 16;
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] = 0.0f;
    _Pragma("unroll 1") for (int piece = 0; piece < DQ / 16; piece++) {
        uint32_t x[4];
        read_matrices(x, q + piece / 8 * BM * SLICE + piece_at(row, piece % 8)); // 16 rows twice
        const u32x2 low = fp16_of_e4m3(x[0]), high = fp16_of_e4m3(x[1]);
        const uint32_t a[4] = {low.x, high.x, low.y, high.y};
        UNROLL
        for (int j = 0; j < BN / 8; j += 4) {
            read_matrices(x, k + piece / 8 * BN * SLICE + piece_at(8 * j + lane, piece % 8));
            UNROLL
            for (int n = 0; n < 4; n++) {
                const u32x2 b = fp16_of_e4m3(x[n]);
                add_product(&s[4 * (j + n)], a, b.x, b.y);
            }
        }
    }
}

// Probabilities, of which one is too great for P, become less: the greatest of a row is 1 then.
INLINE void lower(float s[SCORES], struct rows_state *x, float sum[2], float scale, const float most[2],
                  const float shift[2], float alpha[2]) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        x->max[r] += max_f32(log2_fast(most[r]) - P_SHIFT, 0.0f) * reciprocal(scale);
        alpha[r] = exp2_fast(shift[r] - product(x->max[r], scale));
        x->sum[r] *= alpha[r];
        sum[r] *= alpha[r];
    }
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] *= alpha[ROW_OF(i)];
}

// Scores become probabilities. Returns whether the references change; then O is to be multiplied by `alpha`. Scores are
// those of the warpgroup's rows at `q` and of the tile at `k`.
INLINE int softmax_late(float s[SCORES], struct rows_state *x, float scale, uint32_t q, uint32_t k, float alpha[2]) {
    const float shift[2] = {product(x->max[0], scale), product(x->max[1], scale)};
    float chain[2][CHAINS], sum[2];
    exponentials(s, s, 0, SCORES, scale, shift, 1);
    int fits = 1;
    UNROLL
    for (int r = 0; r < 2; r++) {
        UNROLL
        for (int j = 0; j < SCORES / 4; j++) {
            const float first = s[ELEMENT(j, r, 0)], second = s[ELEMENT(j, r, 1)];
            chain[r][j % CHAINS] = j < CHAINS ? first + second : chain[r][j % CHAINS] + first + second;
        }
        UNROLL
        for (int c = 0; c < CHAINS; c++) fits = fits && chain[r][c] <= GREATEST_FP8; // NaN does not
        fits = fits && abs_f32(shift[r]) < GREAT;                                    // nor where there was no key yet
        sum[r] = chain[r][0] + chain[r][1];
    }
    const int changes = any_lane(!fits);
    if (SELDOM(changes)) {
        float most[2];
        own_max(s, most);
        UNROLL
        for (int r = 0; r < 2; r++) most[r] = max_of_row(most[r]);
        const int serves =
            most[0] < INFINITY_F32 && most[1] < INFINITY_F32 && abs_f32(shift[0]) < GREAT && abs_f32(shift[1]) < GREAT;
        if (any_lane(!serves)) {
            remake_scores(s, q, k);
            softmax_referred(s, x, scale, 0, alpha);
            return 1;
        }
        lower(s, x, sum, scale, most, shift, alpha);
    }
    UNROLL
    for (int r = 0; r < 2; r++) x->sum[r] += sum[r];
    return changes;
}

#endif
