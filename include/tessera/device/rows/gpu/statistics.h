// SPDX-License-Identifier: MIT
// Sums over a piece of the row, of a lane's columns.
//
// Takes STATISTICS.
#ifndef TESSERA_DEVICE_ROWS_GPU_STATISTICS_H
#define TESSERA_DEVICE_ROWS_GPU_STATISTICS_H

#include "tessera/device/rows/gpu/values.h"

// Two columns at a time, as one instruction adds. Columns that there are not are zeros here,
INLINE f32x2 two_of(values s, int c, int i) { return (f32x2){s[c][i], s[c][i + 1]}; }

INLINE float sum_of(values s) {
    f32x2 sum = {0.0f, 0.0f};
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += 2) sum += two_of(s, c, i);
    }
    return sum.x + sum.y;
}

INLINE float sum_of_squares(values s) {
    f32x2 sum = {0.0f, 0.0f};
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += 2) sum += two_of(s, c, i) * two_of(s, c, i);
    }
    return sum.x + sum.y;
}

// but not less a mean: of differences from mean + rest, and of their squares.
struct sums {
    float differences, squares;
};

INLINE struct sums sums_around(values s, float mean, float rest, const struct piece *at) {
    f32x2 differences = {0.0f, 0.0f}, squares = {0.0f, 0.0f};
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += 2) {
            f32x2 difference = two_of(s, c, i) - mean - rest;
            if (!is_inside(at, c, i)) difference.x = 0.0f;
            if (!is_inside(at, c, i + 1)) difference.y = 0.0f;
            differences += difference;
            squares += difference * difference;
        }
    }
    return (struct sums){differences.x + differences.y, squares.x + squares.y};
}

// s becomes its differences from a mean, of which columns that there are not stay zeros.
INLINE void subtract(values s, float mean, const struct piece *at) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i += TOGETHER) {
            const float less = is_inside(at, c, i) ? mean : 0.0f;
            UNROLL
            for (int k = i; k < i + TOGETHER; k++) s[c][k] -= less;
        }
    }
}

INLINE float finite_or_0(float x) { return abs_f32(x) < INFINITY_F32 ? x : 0.0f; }

// The variance, of differences of 1 / over columns from a mean of which their sum tells what rounding left.
INLINE float variance_of(struct sums sums, float over) {
    const float variance = sums.squares * over - sums.differences * over * (sums.differences * over);
    return variance < 0.0f ? 0.0f : variance;
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

// Of a lane's columns until now: how many; of their differences from what is taken for the row's mean the sum; and the
// sum of squares of differences from `mean`, which is about the mean of those. With statistics `square`, of squares.
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

// Chan, Golub and LeVeque (1979): two sets become one, and nothing great is subtracted.
INLINE void add_piece(struct moments *m, values s, float about, const struct piece *at) {
    if (STATISTICS == SQUARE) {
        m->squares += sum_of_squares(s);
        return;
    }
    const float count = count_of(at), sum = sums_around(s, about, 0.0f, at).differences, total = m->count + count;
    const float mean = sum * reciprocal(max_f32(count, 1.0f)), share = count * reciprocal(max_f32(total, 1.0f));
    const float apart = mean - m->mean;
    m->squares +=
        sums_around(s, about, mean, at).squares + apart * (m->count * share) * apart; // 0 of none, however far
    m->mean += apart * share;
    m->sum += sum;
    m->count = total;
}

// The sum of squares of differences from `mean`.
INLINE float squares_around(const struct moments *m, float mean) {
    return m->squares + m->count * (m->mean - mean) * (m->mean - mean);
}

#endif
