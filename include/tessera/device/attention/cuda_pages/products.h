// SPDX-License-Identifier: MIT
// Products with rows of a quantised cache, which are their B (sm90_quantised.h, add_product): rows of A are queries.
//
// Takes args, DQ, DV, KEYS, KV, Q_BF16.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_PRODUCTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_PRODUCTS_H

#include "tessera/device/attention/cuda_pages/queries.h"

// S = Q K^T.
INLINE void make_scores(float s[SCORES], uint32_t base, uint32_t raw, int aligned) {
    const int lane = here(lane_id());
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] = 0.0f;
    UNROLL
    for (int byte = 0; byte < K_BYTES; byte += K_ACCESS) {
        uint32_t x[KEYS / 8][K_ACCESS / 4];
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) load_words(x[j], raw, j, lane / 4, key_byte(lane, byte), K_ACCESS, aligned);
        UNROLL
        for (int w = 0; w < K_ACCESS / 4; w++) {
            uint32_t y[KEYS / 8][WORD_PAIRS];
            UNROLL
            for (int j = 0; j < KEYS / 8; j++) widen(y[j], x[j][w], base);
            UNROLL
            for (int n = 0; n < WORD_PAIRS; n += 2) {
                const u32x4 of = shared_load_16(query_place(base, ((byte / 4 + w) * WORD_PAIRS + n) / 2));
                const uint32_t q[4] = {of.x, of.y, of.z, of.w};
                UNROLL
                for (int j = 0; j < KEYS / 8; j++) add_product(&s[ELEMENT(j, 0, 0)], q, y[j][n], y[j][n + 1]);
            }
        }
    }
}

// O += P V.
INLINE void add_values(float o[RESULTS], const uint32_t p[P_WORDS], uint32_t base, uint32_t raw, int aligned) {
    const int lane = here(lane_id());
    UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        UNROLL
        for (int byte = 0; byte < V_BYTES; byte += V_ACCESS) {
            uint32_t x[4][V_ACCESS / 4];
            UNROLL
            for (int i = 0; i < 4; i++)
                load_words(x[i], raw, 2 * k + i / 2, 2 * (lane % 4) + i % 2, 8 * byte + lane / 4 * V_ACCESS, V_ACCESS,
                           aligned);
            UNROLL
            for (int w = 0; w < V_ACCESS / 4; w++) {
                uint32_t first[2 * WORD_PAIRS], second[2 * WORD_PAIRS];
                widen_both(first, x[0][w], x[1][w], base);
                widen_both(second, x[2][w], x[3][w], base);
                UNROLL
                for (int n = 0; n < 2 * WORD_PAIRS; n++)
                    add_product(&o[ELEMENT((byte / 4 + w) * 2 * WORD_PAIRS + n, 0, 0)], &p[4 * k], first[n], second[n]);
            }
        }
    }
}

// ---- values from pages in pieces, of which a word has four keys of a column

// Pairs of P for sixteen keys, of which a lane then has 4 (lane % 4) and the next three.
INLINE void deal_keys(uint32_t q[4], const uint32_t p[4]) {
    const int lane = lane_id() % 4, four = lane_id() - lane, low = lane < 2;
    const int first = low ? 2 * lane : 2 * lane - 3, second = low ? 2 * lane + 1 : 2 * lane - 4;
    UNROLL
    for (int r = 0; r < 2; r++) {
        const uint32_t one = of_lane(lane % 2 ? p[2 + r] : p[r], four + first);
        const uint32_t other = of_lane(lane % 2 ? p[r] : p[2 + r], four + second);
        q[r] = low ? one : other;
        q[2 + r] = low ? other : one;
    }
}

// O += P V.
INLINE void add_columns(float o[RESULTS], const uint32_t p[P_WORDS], uint32_t raw) {
    const int lane = here(lane_id());
    UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t q[4];
        deal_keys(q, &p[4 * k]);
        UNROLL
        for (int j = 0; j < DV / 8; j += 4) {
            uint32_t x[4];
            read_matrices(x, column_at(raw, value_feature(j + lane / 8, lane % 8), 16 * k));
            UNROLL
            for (int i = 0; i < 4; i++) {
                const u32x2 four = fp16_of_four(x[i]);
                add_product(&o[ELEMENT(j + i, 0, 0)], q, four.x, four.y);
            }
        }
    }
}

#endif
