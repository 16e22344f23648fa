// SPDX-License-Identifier: MIT
// Columns of a row in registers. WAVES waves have a row; a lane holds CHUNKS chunks of 8 of the columns of a piece of
// the row: with VECTORS those that lie side by side, 16 bytes of which are loaded at once, else neighbours are those of
// neighbouring lanes. Columns past the piece's end read as zeros and are not written, with VECTORS four by four.
//
// Takes WAVES, CHUNKS, VECTORS.
#ifndef TESSERA_DEVICE_COMMON_CDNA_ROW_CHUNKS_H
#define TESSERA_DEVICE_COMMON_CDNA_ROW_CHUNKS_H

#include "tessera/device/common/cdna/buffers.h"

enum { CHUNK = 8, LANES = WAVE_LANES * WAVES, PIECE = CHUNKS * CHUNK * LANES };
enum { TOGETHER = VECTORS ? 4 : 1 }; // columns of which all or none exist

// A chunk as it lies in memory, in so many of the words as it takes; without VECTORS each column has one.
typedef struct chunk {
    uint32_t word[CHUNK];
} chunk;

// Columns `first` to first + columns - 1 of the row, of which the calling lane is number `lane` of LANES.
struct piece {
    int first, columns, lane;
};

// The number in the piece of the lane's column i of chunk c.
INLINE int column_of(const struct piece *p, int c, int i) {
    return VECTORS ? (c * LANES + p->lane) * CHUNK + i : (c * CHUNK + i) * LANES + p->lane;
}
INLINE int is_inside(const struct piece *p, int c, int i) { return column_of(p, c, i) < p->columns; }

// The piece's part of a row that begins at element `begin` of `bits`.
typedef buffer columns;
INLINE columns columns_of(const void *base, int64_t begin, const struct piece *p, int bits) {
    return make_buffer((const char *)base + (begin + p->first) * (bits / 8), (uint32_t)p->columns * (uint32_t)bits / 8);
}

// For what may be loaded or not. Of columns one by one, any numbers where it is not: of none, or known ones, the
// compiler would make conversions of those that are loaded, and wait for them where they are loaded.
INLINE void load_none(chunk to[CHUNKS]) {
    UNROLL
    for (int c = 0; c < CHUNKS && !VECTORS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) to[c].word[i] = any_u32();
    }
}

INLINE void load_chunks(chunk to[CHUNKS], columns from, const struct piece *p, int bits) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        const int offset = column_of(p, c, 0) * (bits / 8);
#if VECTORS
        UNROLL
        for (int word = 0; word < CHUNK * bits / 32; word += 4) {
            const u32x4 x = buffer_load_16(from, offset + 4 * word);
            UNROLL
            for (int i = 0; i < 4; i++) to[c].word[word + i] = x[i];
        }
#else
        UNROLL
        for (int i = 0; i < CHUNK; i++) {
            const int at = offset + i * LANES * (bits / 8);
            to[c].word[i] = bits == 16 ? buffer_load_2(from, at) : buffer_load_4(from, at);
        }
#endif
    }
}

// The bits of column i of a chunk, in the lower ones of a word.
INLINE uint32_t bits_of(const chunk *x, int i, int bits) {
    return bits == 16 && VECTORS ? x->word[i / 2] >> i % 2 * 16 : x->word[i];
}

// A chunk of 16-bit numbers, of which words have two each; of 32-bit ones; of bytes, of which words have four each.
INLINE void store_halves(columns to, const struct piece *p, int c, const uint32_t pairs[CHUNK / 2]) {
    const int offset = 2 * column_of(p, c, 0);
#if VECTORS
    buffer_store_16(to, offset, (u32x4){pairs[0], pairs[1], pairs[2], pairs[3]});
#else
    UNROLL
    for (int i = 0; i < CHUNK; i++) buffer_store_2(to, offset + 2 * i * LANES, pairs[i / 2] >> i % 2 * 16);
#endif
}

INLINE void store_words(columns to, const struct piece *p, int c, const uint32_t words[CHUNK]) {
    const int offset = 4 * column_of(p, c, 0);
#if VECTORS
    buffer_store_16(to, offset, (u32x4){words[0], words[1], words[2], words[3]});
    buffer_store_16(to, offset + 16, (u32x4){words[4], words[5], words[6], words[7]});
#else
    UNROLL
    for (int i = 0; i < CHUNK; i++) buffer_store_4(to, offset + 4 * i * LANES, words[i]);
#endif
}

INLINE void store_bytes(columns to, const struct piece *p, int c, uint32_t low, uint32_t high) {
    const int offset = column_of(p, c, 0);
#if VECTORS
    buffer_store_8(to, offset, (u32x2){low, high});
#else
    UNROLL
    for (int i = 0; i < CHUNK; i++) buffer_store_1(to, offset + i * LANES, (i < 4 ? low : high) >> i % 4 * 8);
#endif
}

#endif
