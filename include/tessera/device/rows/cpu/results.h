// SPDX-License-Identifier: MIT
// Results of columns. Each column is written behind all that is read of it, so that outputs may be inputs.
//
// Takes MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_RESULTS_H
#define TESSERA_DEVICE_ROWS_CPU_RESULTS_H

#include "tessera/device/rows/cpu/columns.h"
#include "tessera/device/rows/cpu/statistics.h"

// As a tensor of that type would give it back.
INLINE two two_rounded(tessera_type type, two x) {
    float memory[UNIT];
    store_two(type, type, memory, x);
    return load_two(type, type, memory);
}

// z; `twice`: its factors are rounded one by one.
INLINE two normalized(const struct columns *c, tessera_type in, const struct statistics *of, int twice, int64_t j,
                      two s) {
    if (!NORMALIZES) return s;
    const two gamma = load_two(in, in, at_column(in, c->gamma, j));
    if (MEAN) {
        const two beta = load_two(in, in, at_column(in, c->beta, j));
        for (int i = 0; i < 2; i++) {
            const vf normal = v_fma(s.v[i], v_set1(of->inv), v_set1(-of->mean * of->inv));
            s.v[i] = v_fma(normal, gamma.v[i], beta.v[i]);
        }
        return s;
    }
    for (int i = 0; i < 2; i++) s.v[i] = v_mul(s.v[i], v_set1(of->inv));
    if (twice) return two_rounded(in, two_product(two_rounded(in, s), gamma));
    return two_product(s, gamma);
}

INLINE two smoothed(const struct columns *c, tessera_type in, int64_t j, two z) {
    return c->smooth ? two_product(z, load_two(in, TESSERA_TYPE_FP32, c->smooth + j)) : z;
}

// Of magnitudes, whose order is that of their bits: NaN is above all.
INLINE void raise_greatest(const struct columns *columns, tessera_type in, const struct statistics *of, int twice,
                           struct coming *coming, vi greatest[2]) {
    const struct columns c = *columns;
    const struct statistics found = *of;
    struct coming next = *coming;
    for (int64_t j = 0; j < c.count; j += UNIT) {
        two z = smoothed(&c, in, j, normalized(&c, in, &found, twice, j, value(&c, in, j, &next)));
        if (NORMALIZES) z = only_kept(&c, in, j, z); // what fills up is 0, which beta or an infinity changes
        for (int i = 0; i < 2; i++) greatest[i] = v_max_i(greatest[i], v_as_i(v_abs(z.v[i])));
    }
    *coming = next;
}

typedef void greatest_pass(const struct columns *c, const struct statistics *of, int twice, struct coming *coming,
                           vi greatest[2]);
#define GREATEST_PASS(IN)                                                                                              \
    static APART void greatest_##IN(const struct columns *c, const struct statistics *of, int twice,                   \
                                    struct coming *coming, vi greatest[2]) {                                           \
        raise_greatest(c, TESSERA_TYPE_##IN, of, twice, coming, greatest);                                             \
    }
GREATEST_PASS(FP32)
GREATEST_PASS(FP16)
GREATEST_PASS(BF16)
static greatest_pass *const greatests[] = {greatest_FP32, greatest_FP16, greatest_BF16}; // by tessera_type

// The greatest magnitude of what is quantized.
INLINE float find_greatest(const struct columns c[2], tessera_type in, const struct statistics *of, int twice,
                           struct coming *coming) {
    vi greatest[2] = {v_set1_i(0), v_set1_i(0)};
    int32_t lanes[LANES], all = 0;
    float result;
    greatests[in](&c[0], of, twice, coming, greatest);
    if (c[1].count) greatests[in](&c[1], of, twice, coming, greatest);
    v_store_i(lanes, v_max_i(greatest[0], greatest[1]));
    for (int lane = 0; lane < LANES; lane++) all = lanes[lane] > all ? lanes[lane] : all;
    memcpy(&result, &all, sizeof result);
    return result;
}

// Where results go; what is NULL is not asked for.
struct outputs {
    void *y, *residual, *unquantized;
};

// What they are made with.
struct making {
    struct statistics of;
    int twice;  // factors are rounded one by one
    float down; // the inverse of y_scale
};

// Columns begin .. end - 1, whole units, to the beginning of `to`.
INLINE void write_columns(const struct columns *columns, tessera_type in, tessera_type out, const struct making *making,
                          int64_t begin, int64_t end, const struct outputs *to, struct coming *coming) {
    const struct columns c = *columns;
    const struct making m = *making;
    const struct outputs o = *to;
    struct coming next = *coming;
    for (int64_t j = begin; j < end; j += UNIT) {
        const two s = value(&c, in, j, &next);
        two z = normalized(&c, in, &m.of, m.twice, j, s);
        if (NORMALIZES && o.residual) store_two(in, in, (char *)o.residual + bytes_of(in, j - begin), s);
        if (SQUARE && o.unquantized) store_two(in, in, (char *)o.unquantized + bytes_of(in, j - begin), z);
        if (out != in) z = two_product(smoothed(&c, in, j, z), (two){{v_set1(m.down), v_set1(m.down)}});
        store_two(in, out, (char *)o.y + bytes_of(out, j - begin), z);
    }
    *coming = next;
}

typedef void write_pass(const struct columns *c, const struct making *m, int64_t begin, int64_t end,
                        const struct outputs *to, struct coming *coming);
#define WRITE_PASS(IN, OUT)                                                                                            \
    static APART void write_##OUT##_of_##IN(const struct columns *c, const struct making *m, int64_t begin,            \
                                            int64_t end, const struct outputs *to, struct coming *coming) {            \
        write_columns(c, TESSERA_TYPE_##IN, TESSERA_TYPE_##OUT, m, begin, end, to, coming);                            \
    }
WRITE_PASS(FP32, FP32)
WRITE_PASS(FP16, FP16)
WRITE_PASS(BF16, BF16)
WRITE_PASS(FP32, INT8)
WRITE_PASS(FP16, INT8)
WRITE_PASS(BF16, INT8)
WRITE_PASS(FP32, E4M3)
WRITE_PASS(FP16, E4M3)
WRITE_PASS(BF16, E4M3)

// By tessera_type of inputs. Without statistics results are always quantized.
static write_pass *const writes[] = {NORMALIZES ? write_FP32_of_FP32 : NULL, NORMALIZES ? write_FP16_of_FP16 : NULL,
                                     NORMALIZES ? write_BF16_of_BF16 : NULL};
static write_pass *const writes_int8[] = {write_INT8_of_FP32, write_INT8_of_FP16, write_INT8_of_BF16};
static write_pass *const writes_e4m3[] = {write_E4M3_of_FP32, write_E4M3_of_FP16, write_E4M3_of_BF16};

// ---- from where they are made to their tensors

enum { BLOCK = 16 * UNIT, VECTOR_BYTES = LANES * 4 };

struct block {
    float y[BLOCK], residual[BLOCK], unquantized[BLOCK];
};

// By the caches, but for what is no whole vector there.
static void stream(char *to, const char *from, int64_t bytes) {
    const int64_t head = -(intptr_t)to & (VECTOR_BYTES - 1);
    int64_t at = head < bytes ? head : bytes;
    memcpy(to, from, (size_t)at);
    for (; at + VECTOR_BYTES <= bytes; at += VECTOR_BYTES) v_stream_i(to + at, v_load_i(from + at));
    memcpy(to + at, from + at, (size_t)(bytes - at));
}

INLINE void put_out(tessera_type type, void *to, int64_t j, const float *from, int64_t count, int past) {
    char *const begin = (char *)to + bytes_of(type, j);
    if (!to) return;
    if (past)
        stream(begin, (const char *)from, bytes_of(type, count));
    else
        memcpy(begin, from, (size_t)bytes_of(type, count));
}

INLINE void put_block(tessera_type in, tessera_type out, const struct outputs *to, int64_t j, const struct block *from,
                      int64_t count, int past) {
    put_out(out, to->y, j, from->y, count, past);
    if (NORMALIZES) put_out(in, to->residual, j, from->residual, count, past);
    if (SQUARE) put_out(in, to->unquantized, j, from->unquantized, count, past);
}

INLINE void write_row(const struct columns c[2], tessera_type in, tessera_type out, const struct making *m,
                      const struct outputs *to, int past, struct coming *coming) {
    write_pass *const pass = (out == TESSERA_TYPE_INT8   ? writes_int8
                              : out == TESSERA_TYPE_E4M3 ? writes_e4m3
                                                         : writes)[in];
    struct block block;
    const struct outputs room = {block.y, to->residual ? block.residual : NULL,
                                 to->unquantized ? block.unquantized : NULL};
    if (!past) pass(&c[0], m, 0, c[0].count, to, coming);
    for (int64_t j = 0; past && j < c[0].count; j += BLOCK) {
        const int64_t end = j + BLOCK < c[0].count ? j + BLOCK : c[0].count;
        pass(&c[0], m, j, end, &room, coming);
        put_block(in, out, to, j, &block, end - j, 1);
    }
    if (c[1].count == 0) return;
    pass(&c[1], m, 0, UNIT, &room, coming);
    put_block(in, out, to, c[0].count, &block, c[1].kept, 0);
}

#endif
