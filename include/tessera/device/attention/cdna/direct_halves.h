// SPDX-License-Identifier: MIT
// Rows of 16 bits in registers (direct_rows.h), which products take as they are.
//
// Takes KV.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_HALVES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_HALVES_H

#include "tessera/device/attention/cdna/direct_linear.h"

INLINE u32x4 numbers_of_chunk(const uint32_t words[CHUNK_WORDS]) {
    return (u32x4){words[0], words[1], words[2], words[3]};
}

INLINE void pairs_of_columns(uint32_t to[4], const uint32_t one[PART_WORDS], const uint32_t other[PART_WORDS],
                             int first) {
    UNROLL
    for (int i = 0; i < 4 && first + i < D_BLOCKS; i += 2) {
        const uint32_t a = one[(first + i) / 2], b = other[(first + i) / 2];
        to[i] = low_halves(a, b), to[i + 1] = high_halves(a, b);
    }
}

// ---- what no key or column is becomes 0: 0 times infinity is no number

INLINE void clear_rest_of_row(struct rows_of_k *x, int hdim) {
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int n = 0; n < K_RUNS; n++) {
            UNROLL
            for (int w = 0; w < 2 * CHUNK_WORDS; w++) x->run[b][n][w] = first_of_run(n) < hdim ? x->run[b][n][w] : 0;
        }
    }
}

// Of a tile that has `left` keys.
INLINE void clear_rest_of_tile(struct rows_of_v *x, int left) {
    UNROLL
    for (int n = 0; n < V_PARTS; n++) {
        UNROLL
        for (int w = 0; w < PART_WORDS; w++)
            x->part[n][w] = key_of_operand_row(row_of_part(n)) < left ? x->part[n][w] : 0;
    }
}

#endif
