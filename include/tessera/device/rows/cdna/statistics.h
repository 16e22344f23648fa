// SPDX-License-Identifier: MIT
// Sums over a piece of the row, of a lane's columns.
//
// Takes STATISTICS.
#ifndef TESSERA_DEVICE_ROWS_CDNA_STATISTICS_H
#define TESSERA_DEVICE_ROWS_CDNA_STATISTICS_H

#include "tessera/device/rows/cdna/values.h"

// Columns that there are not are zeros here,
INLINE float sum_of(values s) {
    float sum = 0.0f;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) sum += s[c][i];
    }
    return sum;
}

INLINE float sum_of_squares(values s) {
    float sum = 0.0f;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) sum += s[c][i] * s[c][i];
    }
    return sum;
}

// but not less a mean.
INLINE float sum_of_deviations(values s, float mean, const struct piece *at) {
    float sum = 0.0f;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += TOGETHER) {
            float some = 0.0f;
            UNROLL
            for (int k = i; k < i + TOGETHER; k++) some += (s[c][k] - mean) * (s[c][k] - mean);
            sum += is_inside(at, c, i) ? some : 0.0f;
        }
    }
    return sum;
}

// The bits of the greatest |z|; those of a NaN are greater than those of all numbers.
INLINE uint32_t greatest_of(values z, const struct piece *at) {
    uint32_t most = 0;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += TOGETHER) {
            uint32_t some = 0;
            UNROLL
            for (int k = i; k < i + TOGETHER; k++) some = max_u32(some, AS_U32(abs_f32(z[c][k])));
            most = max_u32(most, is_inside(at, c, i) ? some : 0);
        }
    }
    return most;
}

// ---- of pieces one after the other

// Of a lane's columns until now: how many, their sum, and of their squares the sum, with statistics `mean` those of
// differences from `mean`, which is about theirs.
struct moments {
    float count, sum, mean, squares;
};

INLINE float count_of(const struct piece *at) {
    int count = 0;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += TOGETHER) count += is_inside(at, c, i) ? TOGETHER : 0;
    }
    return (float)count;
}

// Chan, Golub and LeVeque (1979): two sets become one, with no difference of great numbers.
INLINE void add_piece(struct moments *m, values s, const struct piece *at) {
    if (STATISTICS == SQUARE) {
        m->squares += sum_of_squares(s);
        return;
    }
    const float count = count_of(at), sum = sum_of(s), total = m->count + count;
    const float mean = sum * reciprocal(max_f32(count, 1.0f)), share = count * reciprocal(max_f32(total, 1.0f));
    const float apart = mean - m->mean;
    m->squares += sum_of_deviations(s, mean, at) + apart * apart * m->count * share;
    m->mean += apart * share;
    m->sum += sum;
    m->count = total;
}

INLINE float squares_around(const struct moments *m, float mean) {
    if (STATISTICS == SQUARE) return m->squares;
    return m->squares + m->count * (m->mean - mean) * (m->mean - mean);
}

#endif
