// SPDX-License-Identifier: MIT
// The two products of a tile: scores K Q^T, and V^T P^T. K and V are read from LDS, where the staging of tiles has put
// them.
//
// Takes lds_tile, k_operand, v_operand.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_PRODUCTS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_PRODUCTS_H

#include "tessera/device/attention/cdna/scores.h"

INLINE void scores(const operand q[Q_STEPS], lds_tile k, mma_sums s[KEY_BLOCKS]) {
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        s[b] = (mma_sums)0.0f;
        UNROLL
        for (int n = 0; n < Q_STEPS; n++) s[b] = MMA(k_operand(k, b, n), q[n], s[b]);
#if BITS == 8 && OPERAND_CHUNKS == 2
        s[b] = settled(s[b]);
#endif
    }
}

// P as the product's operand.
INLINE void pack(const mma_sums s[KEY_BLOCKS], p_operand p[KEY_STEPS]) {
    enum { NUMBERS = 32 / P_BITS, P_CHUNK = 128 / P_BITS }; // of a word and of 16 bytes
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += NUMBERS) {
            const int chunk = (ELEMENTS * b + e) / P_CHUNK;
            p[chunk / P_OPERAND_CHUNKS].chunk[chunk % P_OPERAND_CHUNKS][(ELEMENTS * b + e) % P_CHUNK / NUMBERS] =
                PACK_P(s[b], e);
        }
    }
}

INLINE void add_values(mma_sums o[D_BLOCKS], lds_tile v, const p_operand p[KEY_STEPS]) {
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) {
        UNROLL
        for (int n = 0; n < KEY_STEPS; n++) o[b] = MMA_P(v_operand(v, b, n), p[n], o[b]);
    }
}

#endif
