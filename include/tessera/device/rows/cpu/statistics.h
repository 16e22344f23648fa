// SPDX-License-Identifier: MIT
// What is found of a row before its results, in an order that its columns decide.
//
// Takes MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_STATISTICS_H
#define TESSERA_DEVICE_ROWS_CPU_STATISTICS_H

#include "tessera/device/rows/cpu/columns.h"

struct statistics {
    float mean, inv; // of deviation, or of root mean square
};

// A number of each column: its value; its square; its squared difference from the mean.
enum sum { VALUES, SQUARES, DIFFERENCES };

INLINE two add_number(const struct columns *c, tessera_type in, enum sum what, float mean, int64_t j,
                      struct coming *coming, two sum) {
    two s = value(c, in, j, coming);
    if (what == VALUES) return two_sum(sum, s);
    if (what == DIFFERENCES) {
        for (int i = 0; i < 2; i++) s.v[i] = v_sub(s.v[i], v_set1(mean));
        s = only_kept(c, in, j, s);
    }
    for (int i = 0; i < 2; i++) sum.v[i] = v_fma(s.v[i], s.v[i], sum.v[i]);
    return sum;
}

// Copies of what is pointed at stay in registers, whatever is stored.
INLINE two sum_over(const struct columns *of, tessera_type in, enum sum what, float mean, struct coming *coming) {
    const struct columns c = *of;
    struct coming next = *coming;
    two even = {{v_set1(0), v_set1(0)}}, odd = even; // units
    int64_t j = 0;
    for (; j + 2 * UNIT <= c.count; j += 2 * UNIT) {
        even = add_number(&c, in, what, mean, j, &next, even);
        odd = add_number(&c, in, what, mean, j + UNIT, &next, odd);
    }
    if (j < c.count) even = add_number(&c, in, what, mean, j, &next, even);
    *coming = next;
    return two_sum(even, odd);
}

// Passes are compiled once for each type of inputs, and called for whole units and for the rest.
typedef two sum_pass(const struct columns *c, float mean, struct coming *coming);
#define SUM_PASS(IN, WHAT)                                                                                             \
    static APART two sum_##WHAT##_##IN(const struct columns *c, float mean, struct coming *coming) {                   \
        return sum_over(c, TESSERA_TYPE_##IN, WHAT, mean, coming);                                                     \
    }
SUM_PASS(FP32, VALUES)
SUM_PASS(FP16, VALUES)
SUM_PASS(BF16, VALUES)
SUM_PASS(FP32, SQUARES)
SUM_PASS(FP16, SQUARES)
SUM_PASS(BF16, SQUARES)
SUM_PASS(FP32, DIFFERENCES)
SUM_PASS(FP16, DIFFERENCES)
SUM_PASS(BF16, DIFFERENCES)

// By tessera_type.
static sum_pass *const sums[] = {MEAN ? sum_VALUES_FP32 : sum_SQUARES_FP32, MEAN ? sum_VALUES_FP16 : sum_SQUARES_FP16,
                                 MEAN ? sum_VALUES_BF16 : sum_SQUARES_BF16};
static sum_pass *const sums_of_differences[] = {sum_DIFFERENCES_FP32, sum_DIFFERENCES_FP16, sum_DIFFERENCES_BF16};

INLINE float sum_of(sum_pass *pass, const struct columns c[2], float mean, struct coming *coming) {
    two sum = pass(&c[0], mean, coming);
    if (c[1].count) sum = two_sum(sum, pass(&c[1], mean, coming));
    return v_sum(v_add(sum.v[0], sum.v[1]));
}

INLINE struct statistics find_statistics(const struct columns c[2], tessera_type in, int32_t n, float epsilon,
                                         struct coming *coming) {
    const float first = sum_of(sums[in], c, 0, coming) / (float)n;
    const float squares = MEAN ? sum_of(sums_of_differences[in], c, first, coming) / (float)n : first;
    return (struct statistics){MEAN ? first : 0, 1.0f / sqrtf(squares + epsilon)};
}

#endif
