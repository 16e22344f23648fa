// SPDX-License-Identifier: MIT
// Columns of a row, UNIT of them at a time in two vectors. Of bf16 these are the even ones and the odd ones, as the
// halves of words in memory; of other inputs those of smaller numbers and the rest. What is with them has their order.
//
// Takes MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_COLUMNS_H
#define TESSERA_DEVICE_ROWS_CPU_COLUMNS_H

#include "tessera/isa/cpu_common.h"

enum { UNIT = 2 * LANES, NORMALIZES = MEAN || SQUARE };

typedef struct two {
    vf v[2];
} two;

INLINE two two_sum(two a, two b) { return (two){{v_add(a.v[0], b.v[0]), v_add(a.v[1], b.v[1])}}; }
INLINE two two_product(two a, two b) { return (two){{v_mul(a.v[0], b.v[0]), v_mul(a.v[1], b.v[1])}}; }

// UNIT numbers of `type` beside inputs of `in`.
INLINE two load_two(tessera_type in, tessera_type type, const void *p) {
    two x;
    if (in == TESSERA_TYPE_BF16 && type == TESSERA_TYPE_BF16) {
        v_load_bf16_split((const uint16_t *)p, x.v);
    } else if (in == TESSERA_TYPE_BF16) {
        v_load_split((const float *)p, x.v);
    } else {
        x.v[0] = v_load_as(type, p);
        x.v[1] = v_load_as(type, (const char *)p + bytes_of(type, LANES));
    }
    return x;
}

// One byte of each lane, two a word.
INLINE void store_split_bytes(void *p, vi even, vi odd) {
    v_store_u16((uint16_t *)p, v_or_i(v_and_i(even, v_set1_i(255)), v_shl_i(odd, 8)));
}

// int8: of numbers within +-127 and NaN, which is 0.
INLINE void store_two(tessera_type in, tessera_type type, void *p, two x) {
    char *const rest = (char *)p + bytes_of(type, LANES);
    const int split = in == TESSERA_TYPE_BF16;
    if (type == TESSERA_TYPE_BF16) {
        v_store_bf16_split((uint16_t *)p, x.v);
    } else if (type == TESSERA_TYPE_INT8 && split) {
        store_split_bytes(p, v_to_i(x.v[0]), v_to_i(x.v[1]));
    } else if (type == TESSERA_TYPE_E4M3 && split) {
        store_split_bytes(p, v_code_e4m3(x.v[0]), v_code_e4m3(x.v[1]));
    } else if (type == TESSERA_TYPE_INT8) {
        v_store_u8((uint8_t *)p, v_to_i(x.v[0]));
        v_store_u8((uint8_t *)rest, v_to_i(x.v[1]));
    } else if (type == TESSERA_TYPE_E4M3) {
        v_store_e4m3((uint8_t *)p, x.v[0]);
        v_store_e4m3((uint8_t *)rest, x.v[1]);
    } else if (type == TESSERA_TYPE_FP16) {
        v_store_f16((uint16_t *)p, x.v[0]);
        v_store_f16((uint16_t *)rest, x.v[1]);
    } else {
        v_store((float *)p, x.v[0]);
        v_store((float *)rest, x.v[1]);
    }
}

// Inputs of a stretch of columns, whole units of them. What is NULL is not asked for; `kept`: all but the first so many
// columns are only there to fill up the last unit.
struct columns {
    const void *x, *residual, *bias, *gamma, *beta; // input type
    const float *smooth;
    int32_t count, kept;
};

// What a later row reads is asked for little by little, `step` bytes for each unit of a pass over this one. 0: it is in
// a cache anyway.
struct coming {
    uintptr_t x, residual, step;
};

// Each line once.
INLINE void ask_for(uintptr_t *at, uintptr_t step) {
    if (*at % 64 < step) prefetch(*at);
    *at += step;
}

INLINE void ask(struct coming *coming, int residual) {
    if (coming->step == 0) return;
    ask_for(&coming->x, coming->step);
    if (NORMALIZES && residual) ask_for(&coming->residual, coming->step);
}

INLINE const void *at_column(tessera_type type, const void *base, int64_t j) {
    return (const char *)base + bytes_of(type, j);
}

// x + bias + residual of the unit that begins with column j.
INLINE two value(const struct columns *c, tessera_type in, int64_t j, struct coming *coming) {
    ask(coming, c->residual != NULL);
    two s = load_two(in, in, at_column(in, c->x, j));
    if (MEAN && c->bias) s = two_sum(s, load_two(in, in, at_column(in, c->bias, j)));
    if (NORMALIZES && c->residual) s = two_sum(s, load_two(in, in, at_column(in, c->residual, j)));
    return s;
}

// 0 where there is no column.
INLINE two only_kept(const struct columns *c, tessera_type in, int64_t j, two x) {
    int32_t bits[UNIT];
    float mask[UNIT];
    if (c->kept == c->count) return x;
    for (int i = 0; i < UNIT; i++) bits[i] = j + i < c->kept ? -1 : 0;
    memcpy(mask, bits, sizeof mask);
    const two kept = load_two(in, TESSERA_TYPE_FP32, mask);
    for (int i = 0; i < 2; i++) x.v[i] = v_as_f(v_and_i(v_as_i(x.v[i]), v_as_i(kept.v[i])));
    return x;
}

#endif
