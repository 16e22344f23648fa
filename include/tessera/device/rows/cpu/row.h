// SPDX-License-Identifier: MIT
// A row of a problem: where its columns are. Those behind the last whole unit are copied to where zeros follow them.
//
// Takes problem, MEAN, SQUARE, BY_EXPERT.
#ifndef TESSERA_DEVICE_ROWS_CPU_ROW_H
#define TESSERA_DEVICE_ROWS_CPU_ROW_H

#include "tessera/device/rows/cpu/columns.h"

struct statistics {
    float mean, inv; // of deviation, or of root mean square
};

// Where results go; what is NULL is not asked for.
struct outputs {
    void *y, *residual, *unquantized;
};

struct row {
    int64_t number;         // among outputs
    struct sources from[2]; // of whole units, and of the rest
    struct outputs to;
    struct statistics of;
    float down; // the inverse of y_scale
    vi greatest[2];
    uintptr_t next_x, next_residual; // what is asked for while results are written; 0: nothing
    float x_rest[UNIT], residual_rest[UNIT], smooth_rest[UNIT];
};

INLINE const void *of_row(tessera_type type, const void *base, int64_t row, int64_t stride) {
    return base ? (const char *)base + bytes_of(type, row * stride) : NULL;
}
INLINE void *to_row(tessera_type type, void *base, int64_t row, int64_t stride) {
    return base ? (char *)base + bytes_of(type, row * stride) : NULL;
}

// `count` numbers behind the first `whole`, at `room`, where they are followed by zeros; NULL where there are none.
INLINE const void *copy_rest(tessera_type type, const void *from, int32_t whole, int32_t count, float room[UNIT]) {
    if (!from || !count) return NULL;
    memset(room, 0, UNIT * sizeof *room);
    memcpy(room, at_column(type, from, whole), (size_t)bytes_of(type, count));
    return room;
}

// What rows have in common: whole units, and the rest.
struct shared {
    struct columns columns[2];
    float bias_rest[UNIT], gamma_rest[UNIT], beta_rest[UNIT], smooth_rest[UNIT];
};

INLINE int is_of_lines(tessera_type type, const void *base, int64_t stride) {
    return !base || (((uintptr_t)base | (uintptr_t)bytes_of(type, stride)) & (LINE_BYTES - 1)) == 0;
}

// Whether results go past the caches: rows that begin in the middle of a line cannot.
INLINE int passes_caches(const problem *p) {
    const tessera_type in = (tessera_type)p->in, out = (tessera_type)p->out;
    return p->past && is_of_lines(out, p->y, p->y_stride) && is_of_lines(in, p->unquantized, p->y_stride) &&
           is_of_lines(in, p->residual_out, p->residual_out_stride);
}

INLINE void find_columns(const problem *p, struct shared *s) {
    const tessera_type in = (tessera_type)p->in;
    const int32_t kept = p->n % UNIT, count = p->n - kept;
    const float *const smooth = BY_EXPERT ? NULL : p->smooth;
    struct columns *const whole = &s->columns[0], *const rest = &s->columns[1];
    *whole = (struct columns){p->bias,         p->gamma,        p->beta, smooth, count, count, p->residual || p->bias,
                              p->rounds_twice, passes_caches(p)};
    *rest = *whole;
    rest->bias = copy_rest(in, p->bias, count, kept, s->bias_rest);
    rest->gamma = copy_rest(in, p->gamma, count, kept, s->gamma_rest);
    rest->beta = copy_rest(in, p->beta, count, kept, s->beta_rest);
    rest->smooth = (const float *)copy_rest(TESSERA_TYPE_FP32, smooth, count, kept, s->smooth_rest);
    rest->count = kept ? UNIT : 0;
    rest->kept = kept;
    rest->past = 0;
}

// Row `from` of x, whose results are row `to`.
INLINE void find_row(const problem *p, const struct shared *s, int64_t from, int64_t to, const float *smooth,
                     struct row *r) {
    const tessera_type in = (tessera_type)p->in;
    const int32_t count = s->columns[0].count, kept = s->columns[1].kept;
    const struct sources whole = {of_row(in, p->x, from, p->x_stride),
                                  of_row(in, p->residual, from, p->residual_stride), smooth};
    r->number = to;
    r->from[0] = whole;
    r->from[1] = (struct sources){copy_rest(in, whole.x, count, kept, r->x_rest),
                                  copy_rest(in, whole.residual, count, kept, r->residual_rest),
                                  (const float *)copy_rest(TESSERA_TYPE_FP32, smooth, count, kept, r->smooth_rest)};
    r->to.y = to_row((tessera_type)p->out, p->y, to, p->y_stride);
    r->to.residual = to_row(in, p->residual_out, to, p->residual_out_stride);
    r->to.unquantized = to_row(in, p->unquantized, to, p->y_stride);
    r->greatest[0] = r->greatest[1] = v_set1_i(0);
}

#endif
