// SPDX-License-Identifier: MIT
// A row of a problem: where its columns are. Those behind the last whole unit are copied to where zeros follow them.
//
// Takes problem, MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_ROW_H
#define TESSERA_DEVICE_ROWS_CPU_ROW_H

#include "tessera/device/rows/cpu/results.h"

enum { AHEAD_BYTES = 2048 };

struct row {
    int64_t number; // among outputs
    struct columns columns[2];
    struct outputs to;
    struct making making;
    struct coming coming;
    int64_t ahead, residual_ahead; // bytes from what it reads to what a later row reads
};

// The last columns of what is read.
struct rest {
    float x[UNIT], residual[UNIT], bias[UNIT], gamma[UNIT], beta[UNIT], smooth[UNIT];
};

INLINE const void *of_row(tessera_type type, const void *base, int64_t row, int64_t stride) {
    return base ? (const char *)base + bytes_of(type, row * stride) : NULL;
}
INLINE void *to_row(tessera_type type, void *base, int64_t row, int64_t stride) {
    return base ? (char *)base + bytes_of(type, row * stride) : NULL;
}

// `count` numbers behind the first `whole`, at `room`; NULL where there are none.
INLINE void *copy_rest(tessera_type type, const void *from, int32_t whole, int32_t count, float *room) {
    if (!from || !count) return NULL;
    memcpy(room, at_column(type, from, whole), (size_t)bytes_of(type, count));
    return room;
}

// What all rows share.
INLINE void begin_rows(const problem *p, struct row *r, struct rest *rest) {
    const tessera_type in = (tessera_type)p->in;
    const int32_t count = p->n % UNIT, whole = p->n - count;
    struct columns *const all = &r->columns[0], *const last = &r->columns[1];
    // Rows are asked for so early that memory has brought them in by then.
    const int64_t rows_ahead = 1 + AHEAD_BYTES / bytes_of(in, p->n);
    memset(rest, 0, sizeof *rest);
    r->making.twice = p->rounds_twice;
    r->ahead = bytes_of(in, rows_ahead * p->x_stride);
    r->residual_ahead = bytes_of(in, rows_ahead * p->residual_stride);
    const int passes = (MEAN ? 3 : SQUARE ? 2 : 1) + (p->y_scale != NULL);
    r->coming.step = p->past ? (uintptr_t)(bytes_of(in, UNIT) / passes) : 0;
    *all = (struct columns){NULL, NULL, p->bias, p->gamma, p->beta, p->smooth, whole, whole};
    last->count = count ? UNIT : 0;
    last->kept = count;
    last->bias = copy_rest(in, p->bias, whole, count, rest->bias);
    last->gamma = copy_rest(in, p->gamma, whole, count, rest->gamma);
    last->beta = copy_rest(in, p->beta, whole, count, rest->beta);
    if (!p->expert) last->smooth = (float *)copy_rest(TESSERA_TYPE_FP32, p->smooth, whole, count, rest->smooth);
}

// The row that `i` counts, where the slots of a token follow one another. False: it is left as it is.
INLINE int find_row(const problem *p, int64_t i, struct row *r, struct rest *rest) {
    const tessera_type in = (tessera_type)p->in;
    struct columns *const all = &r->columns[0], *const last = &r->columns[1];
    int64_t from = i;
    r->number = i;
    if (!NORMALIZES && p->expert) {
        const int32_t expert = p->expert[i];
        if (expert < 0 || expert >= p->experts) return 0;
        from = i / p->slots;
        r->number = i % p->slots * (p->m / p->slots) + from;
        all->smooth = p->smooth + (int64_t)expert * p->n;
        last->smooth = (float *)copy_rest(TESSERA_TYPE_FP32, all->smooth, all->count, last->kept, rest->smooth);
    }
    all->x = of_row(in, p->x, from, p->x_stride);
    all->residual = of_row(in, p->residual, i, p->residual_stride);
    r->coming.x = (uintptr_t)all->x + (uintptr_t)r->ahead;
    r->coming.residual = (uintptr_t)all->residual + (uintptr_t)r->residual_ahead;
    last->x = copy_rest(in, all->x, all->count, last->kept, rest->x);
    last->residual = copy_rest(in, all->residual, all->count, last->kept, rest->residual);
    r->to.y = to_row((tessera_type)p->out, p->y, r->number, p->y_stride);
    r->to.residual = to_row(in, p->residual_out, i, p->residual_out_stride);
    r->to.unquantized = to_row(in, p->unquantized, i, p->y_stride);
    return 1;
}

#endif
