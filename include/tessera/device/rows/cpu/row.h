// SPDX-License-Identifier: MIT
// A row of a problem: where its columns begin, and its values.
//
// Takes problem, MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_ROW_H
#define TESSERA_DEVICE_ROWS_CPU_ROW_H

#include "tessera/isa/cpu_common.h"

enum { NORMALIZES = MEAN || SQUARE };

// What is NULL is not asked for.
struct row {
    int32_t n;
    int rounds_twice;
    float mean, inv;
    int64_t number;           // among outputs
    const void *x, *residual; // input type
    const void *bias, *gamma, *beta;
    const float *smooth;
    void *y, *residual_out, *unquantized;
};

INLINE const void *at_row(tessera_type type, const void *base, int64_t row, int64_t stride) {
    return base ? (const char *)base + bytes_of(type, row * stride) : NULL;
}
INLINE void *to_row(tessera_type type, void *base, int64_t row, int64_t stride) {
    return base ? (char *)base + bytes_of(type, row * stride) : NULL;
}

// The row that `i` counts, where the slots of a token follow one another. False: it is left as it is.
INLINE int find_row(const problem *p, int64_t i, struct row *r) {
    const tessera_type in = (tessera_type)p->in;
    int64_t from = i, to = i;
    r->smooth = p->smooth;
    if (!NORMALIZES && p->expert) {
        const int32_t expert = p->expert[i];
        if (expert < 0 || expert >= p->experts) return 0;
        from = i / p->slots;
        to = i % p->slots * (p->m / p->slots) + from;
        r->smooth = p->smooth + (int64_t)expert * p->n;
    }
    r->n = p->n;
    r->number = to;
    r->rounds_twice = SQUARE && p->rounds_twice;
    r->x = at_row(in, p->x, from, p->x_stride);
    r->residual = NORMALIZES ? at_row(in, p->residual, i, p->residual_stride) : NULL;
    r->bias = MEAN ? p->bias : NULL;
    r->gamma = p->gamma;
    r->beta = p->beta;
    r->y = to_row((tessera_type)p->out, p->y, to, p->y_stride);
    r->residual_out = NORMALIZES ? to_row(in, p->residual_out, i, p->residual_out_stride) : NULL;
    r->unquantized = SQUARE ? to_row(in, p->unquantized, i, p->y_stride) : NULL;
    return 1;
}

// x + bias + residual of `count` columns from j on; 0 in the lanes behind them.
INLINE vf value(const struct row *r, tessera_type in, int64_t j, int count) {
    vf s = v_fetch(in, r->x, j, count);
    if (r->bias) s = v_add(s, v_fetch(in, r->bias, j, count));
    if (r->residual) s = v_add(s, v_fetch(in, r->residual, j, count));
    return s;
}

// The first `count` lanes; 0 in the others.
INLINE vf v_first(vf x, int count) {
    int32_t first[LANES];
    if (count == LANES) return x;
    for (int lane = 0; lane < LANES; lane++) first[lane] = lane < count ? -1 : 0;
    return v_as_f(v_and_i(v_as_i(x), v_load_i(first)));
}

#endif
