// SPDX-License-Identifier: MIT
// Columns of a row, UNIT of them at a time in two vectors. Of bf16 these are the even ones and the odd ones, as the
// halves of words in memory, unless each row has scales of its own; of other inputs those of smaller numbers and the
// rest. What is with them has their order.
//
// Takes MEAN, SQUARE, BY_EXPERT.
#ifndef TESSERA_DEVICE_ROWS_CPU_COLUMNS_H
#define TESSERA_DEVICE_ROWS_CPU_COLUMNS_H

#include "tessera/isa/cpu_common.h"

enum { UNIT = 2 * LANES, LINE_BYTES = 64, NORMALIZES = MEAN | SQUARE };

typedef struct two {
    vf v[2];
} two;

INLINE two two_of(float x) { return (two){{v_set1(x), v_set1(x)}}; }
INLINE two two_sum(two a, two b) { return (two){{v_add(a.v[0], b.v[0]), v_add(a.v[1], b.v[1])}}; }
INLINE two two_difference(two a, two b) { return (two){{v_sub(a.v[0], b.v[0]), v_sub(a.v[1], b.v[1])}}; }
INLINE two two_product(two a, two b) { return (two){{v_mul(a.v[0], b.v[0]), v_mul(a.v[1], b.v[1])}}; }
INLINE two two_fma(two a, two b, two c) {
    return (two){{v_fma(a.v[0], b.v[0], c.v[0]), v_fma(a.v[1], b.v[1], c.v[1])}};
}

INLINE int is_split(tessera_type in) { return in == TESSERA_TYPE_BF16 && !BY_EXPERT; }

// UNIT numbers of `type` beside inputs of `in`.
INLINE two load_two(tessera_type in, tessera_type type, const void *p) {
    two x;
    if (is_split(in) && type == TESSERA_TYPE_BF16) {
        v_load_bf16_split((const uint16_t *)p, x.v);
    } else if (is_split(in)) {
        v_load_split((const float *)p, x.v);
    } else {
        x.v[0] = v_load_as(type, p);
        x.v[1] = v_load_as(type, (const char *)p + bytes_of(type, LANES));
    }
    return x;
}

// One byte of each lane, two in a word's low half.
INLINE vi zip_bytes(vi even, vi odd) { return v_or_i(v_and_i(even, v_set1_i(255)), v_shl_i(odd, 8)); }

INLINE void store_words(void *p, vi x, int past) { past ? v_stream_i(p, x) : v_store_i(p, x); }
INLINE void store_u16(void *p, vi x, int past) {
    past ? v_stream_u16((uint16_t *)p, x) : v_store_u16((uint16_t *)p, x);
}
INLINE void store_u8(void *p, vi x, int past) { past ? v_stream_u8((uint8_t *)p, x) : v_store_u8((uint8_t *)p, x); }
INLINE void store_f16(void *p, vf x, int past) {
    past ? v_stream_f16((uint16_t *)p, x) : v_store_f16((uint16_t *)p, x);
}

// int8: of numbers within +-127 and NaN, which is 0. `past` the caches only to whole lines.
INLINE void store_two(tessera_type in, tessera_type type, void *p, two x, int past) {
    char *const rest = (char *)p + bytes_of(type, LANES);
    if (type == TESSERA_TYPE_BF16 && is_split(in)) {
        store_words(p, v_to_bf16_split(x.v), past);
    } else if (type == TESSERA_TYPE_INT8 && is_split(in)) {
        store_u16(p, zip_bytes(v_to_i(x.v[0]), v_to_i(x.v[1])), past);
    } else if (type == TESSERA_TYPE_E4M3 && is_split(in)) {
        store_u16(p, zip_bytes(v_code_e4m3(x.v[0]), v_code_e4m3(x.v[1])), past);
    } else if (type == TESSERA_TYPE_INT8) {
        store_u8(p, v_to_i(x.v[0]), past);
        store_u8(rest, v_to_i(x.v[1]), past);
    } else if (type == TESSERA_TYPE_E4M3) {
        store_u8(p, v_code_e4m3(x.v[0]), past);
        store_u8(rest, v_code_e4m3(x.v[1]), past);
    } else if (type == TESSERA_TYPE_FP16) {
        store_f16(p, x.v[0], past);
        store_f16(rest, x.v[1], past);
    } else {
        store_words(p, v_as_i(x.v[0]), past);
        store_words(rest, v_as_i(x.v[1]), past);
    }
}

INLINE const void *at_column(tessera_type type, const void *base, int64_t j) {
    return (const char *)base + bytes_of(type, j);
}

// What rows have in common of so many columns, whole units. What is NULL is not asked for; all but the first `kept` of
// them are only there to fill up the last unit.
struct columns {
    const void *bias, *gamma, *beta; // input type
    const float *smooth;             // not BY_EXPERT
    int32_t count, kept;
    int adds;  // there may be more than x
    int twice; // factors of z are rounded one by one
    int past;  // results go past the caches
};

// What a row alone has of them.
struct sources {
    const void *x, *residual; // input type
    const float *smooth;      // BY_EXPERT
};

// s of a unit.
INLINE two value(const struct columns *c, const struct sources *from, tessera_type in, int64_t j) {
    two s = load_two(in, in, at_column(in, from->x, j));
    if (MEAN && c->adds && c->bias) s = two_sum(s, load_two(in, in, at_column(in, c->bias, j)));
    if (NORMALIZES && c->adds && from->residual) s = two_sum(s, load_two(in, in, at_column(in, from->residual, j)));
    return s;
}

// 0 where there is no column: only the first `kept` of the unit are there.
INLINE two only_kept(tessera_type in, int32_t kept, two x) {
    int32_t bits[UNIT];
    float mask[UNIT];
    for (int i = 0; i < UNIT; i++) bits[i] = i < kept ? -1 : 0;
    memcpy(mask, bits, sizeof mask);
    const two all = load_two(in, TESSERA_TYPE_FP32, mask);
    for (int i = 0; i < 2; i++) x.v[i] = v_as_f(v_and_i(v_as_i(x.v[i]), v_as_i(all.v[i])));
    return x;
}

#endif
