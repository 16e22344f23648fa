// SPDX-License-Identifier: MIT
// Columns of a row in registers. WAVES waves have a row; a lane holds CHUNKS chunks of 8 of the columns of a piece of
// the row: with VECTORS so many side by side as 16 bytes of the inputs hold, else neighbours are those of neighbouring
// lanes. Columns past the piece's end read as zeros and are not written, those of 16 bytes all or none.
//
// Takes WAVES, CHUNKS, VECTORS, IN_BITS.
#ifndef TESSERA_DEVICE_COMMON_CUDA_ROW_CHUNKS_H
#define TESSERA_DEVICE_COMMON_CUDA_ROW_CHUNKS_H

#include "tessera/device/common/cuda/reads.h"

enum { CHUNK = 8, LANES = WAVE_LANES * WAVES, PIECE = CHUNKS * CHUNK * LANES };
enum { TOGETHER = VECTORS ? 128 / IN_BITS : 1 }; // columns side by side, of which all or none exist

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
    return ((c * CHUNK + i) / TOGETHER * LANES + p->lane) * TOGETHER + i % TOGETHER;
}
INLINE int is_inside(const struct piece *p, int c, int i) {
    return column_of(p, c, i - i % TOGETHER) < p->columns; // the same for all that are together
}

// The piece's part of a row that begins at element `begin` of `bits`.
typedef char *columns;
INLINE columns columns_of(const void *base, int64_t begin, const struct piece *p, int bits) {
    return (char *)base + (begin + p->first) * (bits / 8);
}

INLINE void load_columns(chunk *to, columns from, const struct piece *p, int c, int bits, int once) {
#if VECTORS
    UNROLL
    for (int byte = 0; byte < CHUNK * bits / 8; byte += 16) {
        const int i = byte * 8 / bits, there = is_inside(p, c, i);
        const columns at = from + column_of(p, c, i) * (bits / 8);
        const u32x4 x = once ? load_16_once(at, there) : load_16(at, there);
        UNROLL
        for (int k = 0; k < 4; k++) to->word[byte / 4 + k] = x[k];
    }
#else
    (void)once;
    UNROLL
    for (int i = 0; i < CHUNK; i++) {
        const columns at = from + column_of(p, c, i) * (bits / 8);
        to->word[i] = bits == 16 ? load_2(at, is_inside(p, c, i)) : load_4(at, is_inside(p, c, i));
    }
#endif
}

// Chunk c of what all rows have.
INLINE const chunk *load_chunk(chunk *to, columns from, const struct piece *p, int c, int bits) {
    load_columns(to, from, p, c, bits, 0);
    return to;
}

// All chunks of the inputs' type, of what this row alone has.
INLINE void load_chunks(chunk to[CHUNKS], columns from, const struct piece *p) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) load_columns(&to[c], from, p, c, IN_BITS, 1);
}

// The bits of column i of a chunk, in the lower ones of a word.
INLINE uint32_t bits_of(const chunk *x, int i, int bits) {
    return bits == 16 && VECTORS ? x->word[i / 2] >> i % 2 * 16 : x->word[i];
}

// A chunk of 16-bit numbers, of which words have two each; of 32-bit ones; of bytes, of which words have four each.
INLINE void store_halves(columns to, const struct piece *p, int c, const uint32_t pairs[CHUNK / 2]) {
#if VECTORS
    if (is_inside(p, c, 0)) store_16(to + 2 * column_of(p, c, 0), (u32x4){pairs[0], pairs[1], pairs[2], pairs[3]});
#else
    UNROLL
    for (int i = 0; i < CHUNK; i++)
        if (is_inside(p, c, i)) store_2(to + 2 * column_of(p, c, i), pairs[i / 2] >> i % 2 * 16);
#endif
}

INLINE void store_words(columns to, const struct piece *p, int c, const uint32_t words[CHUNK]) {
    UNROLL
    for (int i = 0; i < CHUNK; i += TOGETHER) {
        if (!is_inside(p, c, i)) continue;
        char *const at = to + 4 * column_of(p, c, i);
#if VECTORS
        store_16(at, (u32x4){words[i], words[i + 1], words[i + 2], words[i + 3]});
#else
        store_4(at, words[i]);
#endif
    }
}

INLINE void store_bytes(columns to, const struct piece *p, int c, uint32_t low, uint32_t high) {
    UNROLL
    for (int i = 0; i < CHUNK; i += TOGETHER) {
        if (!is_inside(p, c, i)) continue;
        char *const at = to + column_of(p, c, i);
        const uint32_t word = i < 4 ? low : high;
        if (TOGETHER == 8)
            store_8(at, (u32x2){low, high});
        else if (TOGETHER == 4)
            store_4(at, word);
        else
            store_1(at, word >> i % 4 * 8);
    }
}

#endif
