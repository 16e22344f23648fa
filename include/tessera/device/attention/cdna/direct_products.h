// SPDX-License-Identifier: MIT
// The two products of a tile whose rows are in registers (direct_rows.h).
//
// Takes BN, PIECES, numbers_of_chunk.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_PRODUCTS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_PRODUCTS_H

#include "tessera/device/attention/cdna/direct_rows.h"

INLINE void scores_of_rows(mma_sums s[KEY_BLOCKS], const operand q[Q_STEPS], const struct rows_of_k *x) {
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) s[b] = (mma_sums)0.0f;
    UNROLL
    for (int n = 0; n < Q_STEPS; n++) {
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) {
            const operand k = {{numbers_of_chunk(x->run[b][n / 2] + n % 2 * CHUNK_WORDS)}};
            s[b] = MMA(k, q[n], s[b]);
        }
    }
}

#if PIECES
INLINE void add_values_of_rows(mma_sums o[D_BLOCKS], const struct rows_of_v *x, const p_operand p[KEY_STEPS]) {
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) {
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) {
            const operand v = {{numbers_of_chunk(x->piece[b] + n * CHUNK_WORDS)}};
            o[b] = MMA_P(v, p[n], o[b]);
        }
    }
}
#else
INLINE void add_values_of_rows(mma_sums o[D_BLOCKS], const struct rows_of_v *x, const p_operand p[KEY_STEPS]) {
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) {
        UNROLL
        for (int b = 0; b < D_BLOCKS; b += 4) {
            operand v[4];
            UNROLL
            for (int w = 0; w < 4; w++) {
                uint32_t pairs[4];
                pairs_of_columns(pairs, x->part[8 * n + 2 * w], x->part[8 * n + 2 * w + 1], b);
                UNROLL
                for (int i = 0; i < 4; i++) v[i].chunk[0][w] = pairs[i];
            }
            UNROLL
            for (int i = 0; i < 4 && b + i < D_BLOCKS; i++) o[b + i] = MMA_P(v[i], p[n], o[b + i]);
        }
    }
}
#endif

#endif
