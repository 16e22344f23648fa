// SPDX-License-Identifier: MIT
// V of 8 bits in pages in pieces, in registers: of each block of MMA_ROWS columns a lane has one, and of that the keys
// that it has P of, which lie side by side.
//
// Takes KV, BN, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_PIECES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_PIECES_H

#include "tessera/device/attention/cdna/direct_rows.h"

enum { PIECE_WORDS = KEYS / 4 };

struct rows_of_v {
    uint32_t piece[D_BLOCKS][PIECE_WORDS];
};

// The lane that has looked up the first one of a lane's keys has the piece's address.
INLINE void load_v(struct rows_of_v *to, const struct cache *x, const struct spot *spot, int together) {
    (void)together; // they are
    const char *const first = address_of(own_v(x, spot), lane_id() / MMA_ROWS * 4);
    const uint32_t log = trailing_zeros((uint32_t)x->piece); // it is a power of 2
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) {
        const int column = MMA_ROWS * b + lane_id() % MMA_ROWS;
        load_words(to->piece[b], PIECE_WORDS, first + (column < x->hdim_v ? column << log : 0));
    }
}

// Of a tile that has `left` keys what lies behind these becomes 0: 0 times NaN is no number.
INLINE void clear_rest_of_tile(struct rows_of_v *x, int left) {
    UNROLL
    for (int w = 0; w < PIECE_WORDS; w++) {
        const int count = left - first_key(4 * w);
        const uint32_t keys = count >= 4 ? 0xffffffff : count > 0 ? (1u << 8 * count) - 1 : 0;
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) x->piece[b][w] &= keys;
    }
}

#endif
