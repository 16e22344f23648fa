// SPDX-License-Identifier: MIT
// Sums over a row, each in an order that its columns decide.
//
// Takes problem, MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_STATISTICS_H
#define TESSERA_DEVICE_ROWS_CPU_STATISTICS_H

#include "tessera/device/rows/cpu/row.h"

// A number of each column: its value; its square; its squared difference from the mean.
enum sum { VALUES, SQUARES, DIFFERENCES };

INLINE vf added(const struct row *r, tessera_type in, enum sum what, int64_t j, int count, vf sum) {
    vf s = value(r, in, j, count);
    if (what == VALUES) return v_add(sum, s);
    if (what == DIFFERENCES) s = v_first(v_sub(s, v_set1(r->mean)), count);
    return v_fma(s, s, sum);
}

INLINE float sum_of(const struct row *r, tessera_type in, enum sum what) {
    vf sums[4] = {v_set1(0), v_set1(0), v_set1(0), v_set1(0)};
    int64_t j = 0;
    for (; j + 4 * LANES <= r->n; j += 4 * LANES) UNROLL
    for (int u = 0; u < 4; u++) sums[u] = added(r, in, what, j + u * LANES, LANES, sums[u]);
    for (; j + LANES <= r->n; j += LANES) sums[0] = added(r, in, what, j, LANES, sums[0]);
    if (j < r->n) sums[1] = added(r, in, what, j, (int)(r->n - j), sums[1]);
    return v_sum(v_add(v_add(sums[0], sums[1]), v_add(sums[2], sums[3])));
}

// The mean, and the inverse of deviation or root mean square.
INLINE void find_statistics(struct row *r, tessera_type in, float epsilon) {
    const float n = (float)r->n;
    if (MEAN) r->mean = sum_of(r, in, VALUES) / n;
    r->inv = 1.0f / sqrtf(sum_of(r, in, MEAN ? DIFFERENCES : SQUARES) / n + epsilon);
}

#endif
