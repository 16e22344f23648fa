// SPDX-License-Identifier: MIT
// What is found of a row before its results, in an order that its columns decide.
//
// Takes problem, MEAN, SQUARE, BY_EXPERT.
#ifndef TESSERA_DEVICE_ROWS_CPU_STATISTICS_H
#define TESSERA_DEVICE_ROWS_CPU_STATISTICS_H

#include "tessera/device/rows/cpu/row.h"

// Of differences from a guess, and of their squares. SQUARE: of squares alone, and the guess is 0.
struct sums {
    two differences, squares;
};

INLINE struct sums sums_of_units(struct sums a, struct sums b) {
    return (struct sums){two_sum(a.differences, b.differences), two_sum(a.squares, b.squares)};
}

// `kept` columns of the unit are there.
INLINE struct sums add_unit(struct sums sums, const struct columns *c, const struct sources *from, tessera_type in,
                            two guess, int64_t j, int32_t kept) {
    two s = value(c, from, in, j);
    if (MEAN) s = two_difference(s, guess);
    if (MEAN && kept < UNIT) s = only_kept(in, kept, s);
    if (MEAN) sums.differences = two_sum(sums.differences, s);
    sums.squares = two_fma(s, s, sums.squares);
    return sums;
}

// All columns, whole units. Copies of what is pointed at stay in registers.
INLINE struct sums sum_units(const struct columns *columns, const struct sources *of, tessera_type in, int adds,
                             float about) {
    const struct sources from = *of;
    const two guess = two_of(about);
    struct columns c = *columns;
    struct sums even = {two_of(0), two_of(0)}, odd = even; // units
    int32_t j = 0;
    c.adds = adds;
    for (; j + 2 * UNIT <= c.count; j += 2 * UNIT) {
        even = add_unit(even, &c, &from, in, guess, j, UNIT);
        odd = add_unit(odd, &c, &from, in, guess, j + UNIT, UNIT);
    }
    if (j < c.count) even = add_unit(even, &c, &from, in, guess, j, UNIT);
    return sums_of_units(even, odd);
}

// Passes are compiled once for each type of inputs, with and without what may be added.
typedef struct sums sum_pass(const struct columns *c, const struct sources *from, float guess);
#define SUM_PASS(NAME, IN, ADDS)                                                                                       \
    static APART struct sums NAME(const struct columns *c, const struct sources *from, float guess) {                  \
        return sum_units(c, from, TESSERA_TYPE_##IN, ADDS, guess);                                                     \
    }
SUM_PASS(sum_fp32, FP32, 0)
SUM_PASS(sum_fp16, FP16, 0)
SUM_PASS(sum_bf16, BF16, 0)
SUM_PASS(sum_added_fp32, FP32, 1)
SUM_PASS(sum_added_fp16, FP16, 1)
SUM_PASS(sum_added_bf16, BF16, 1)

// By what may be added, and tessera_type.
static sum_pass *const sum_passes[2][3] = {{sum_fp32, sum_fp16, sum_bf16},
                                           {sum_added_fp32, sum_added_fp16, sum_added_bf16}};

struct totals {
    float differences, squares;
};

INLINE struct totals sum_row(const struct columns c[2], const struct row *row, tessera_type in, float guess) {
    struct sums sums = sum_passes[c->adds][in](&c[0], &row->from[0], guess);
    if (c[1].count) sums = add_unit(sums, &c[1], &row->from[1], in, two_of(guess), 0, c[1].kept);
    return (struct totals){v_sum(v_add(sums.differences.v[0], sums.differences.v[1])),
                           v_sum(v_add(sums.squares.v[0], sums.squares.v[1]))};
}

// The mean of a row's first columns.
INLINE float guess_mean(const struct columns c[2], const struct row *row, tessera_type in) {
    const int none = c[0].count == 0;
    const two first = value(&c[none], &row->from[none], in, 0);
    return v_sum(v_add(first.v[0], first.v[1])) / (float)(none ? c[1].kept : UNIT);
}

// The variance is the mean of squares about a guess, less the square of what the guess is off: one pass. Where that
// would lose more than half a bit, the guess is the mean itself.
INLINE struct statistics find_moments(const struct columns c[2], const struct row *row, tessera_type in, float n,
                                      float epsilon) {
    const float guess = guess_mean(c, row, in);
    const struct totals about = sum_row(c, row, in, guess);
    const float off = about.differences / n, squares = about.squares / n;
    float mean = guess + off, variance = squares - off * off;
    if (!(off * off < 0.25f * squares && squares < 0x1p120f)) {
        mean = sum_row(c, row, in, 0).differences / n;
        variance = sum_row(c, row, in, mean).squares / n;
    }
    return (struct statistics){mean, 1.0f / sqrtf(variance + epsilon)};
}

INLINE struct statistics find_statistics(const struct columns c[2], const struct row *row, tessera_type in, int32_t n,
                                         float epsilon) {
    if (MEAN) return find_moments(c, row, in, (float)n, epsilon);
    return (struct statistics){0, 1.0f / sqrtf(sum_row(c, row, in, 0).squares / (float)n + epsilon)};
}

#endif
