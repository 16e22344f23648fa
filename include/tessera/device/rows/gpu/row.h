// SPDX-License-Identifier: MIT
// Which row a wave, or a block of WAVES waves, computes, and what of memory is the row's.
//
// Takes problem, WAVES, ROWS, CHUNKS, IN_BITS, UNPACK, STATISTICS, columns_of, read_int.
#ifndef TESSERA_DEVICE_ROWS_GPU_ROW_H
#define TESSERA_DEVICE_ROWS_GPU_ROW_H

enum { NONE, SQUARE, MEAN };

struct row {
    int64_t row, from;   // of the outputs, of x
    const float *smooth; // NULL: not asked for
    int lane;            // of the row's
};

// 0: there is nothing to do. What loads take is at hand before the first of them.
INLINE int find_row(struct row *r, const problem *p) {
    at_hand(p->x);
    if (STATISTICS != NONE) at_hand(p->gamma);
    if (STATISTICS != NONE) at_hand(p->residual);
    if (STATISTICS == MEAN) at_hand(p->beta);
    if (STATISTICS == MEAN) at_hand(p->bias);
    at_hand(p->smooth);
    at_hand((const void *)p->x_stride);
    if (STATISTICS != NONE) at_hand((const void *)p->residual_stride);
    const uint32_t block = (uint32_t)workgroup_y() * TESSERA_ROWS_GRID_X + (uint32_t)workgroup_x();
    const uint32_t number = block * ROWS + (WAVES == 1 ? (uint32_t)wave_id() : 0);
    if (number >= (uint32_t)p->m) return 0;
    *r = (struct row){number, number, p->smooth, WAVES == 1 ? lane_id() : thread_id()};
    if (STATISTICS != NONE || !p->expert) return 1;

    // A token's slots come one after the other, so that caches have its row.
    const uint32_t slots = (uint32_t)p->slots, token = number / slots;
    const int expert = read_int(p->expert, (int)number);
    if ((uint32_t)expert >= (uint32_t)p->experts) return 0;
    r->from = token;
    r->row = (int64_t)(number - token * slots) * ((uint32_t)p->m / slots) + token;
    r->smooth += (int64_t)expert * p->n;
    return 1;
}

// Numbers of the inputs' type.
INLINE float number_of(const chunk *x, int i) { return UNPACK(bits_of(x, i, IN_BITS)); }

INLINE void store_numbers(void *to, int64_t begin, const struct piece *at, const float x[CHUNKS][CHUNK]) {
    const columns row = columns_of(to, begin, at, IN_BITS);
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        uint32_t words[CHUNK];
#if IN_BITS == 16
        UNROLL
        for (int i = 0; i < CHUNK; i += 2) words[i / 2] = PACK(x[c][i], x[c][i + 1]);
        store_halves(row, at, c, words);
#else
        UNROLL
        for (int i = 0; i < CHUNK; i++) words[i] = AS_U32(x[c][i]);
        store_words(row, at, c, words);
#endif
    }
}

// One number of the row.
INLINE void store_one(float *to, const struct row *r, float x) {
    if (to && r->lane == 0) ((GLOBAL float *)(uint64_t)to)[r->row] = x;
}

#endif
