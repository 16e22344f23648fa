// SPDX-License-Identifier: MIT
// Results of columns. Each column is written behind all that is read of it, so that outputs may be inputs.
//
// Takes problem, MEAN, SQUARE, BY_EXPERT.
#ifndef TESSERA_DEVICE_ROWS_CPU_RESULTS_H
#define TESSERA_DEVICE_ROWS_CPU_RESULTS_H

#include "tessera/device/rows/cpu/row.h"

// Rows whose values are computed abreast, so that what they share is loaded once. More would take more lines of a
// nearest cache with 8 ways than there are, where rows are multiples of 4096 bytes apart.
enum { ABREAST = 2 };

// A row's columns and what is made of them.
struct place {
    struct sources from;
    struct outputs to;
    float inv, shift; // normal = s * inv + shift
    float down;       // the inverse of y_scale
    struct row *row;
};

INLINE struct place place_of(struct row *row, int is_rest) {
    return (struct place){.from = row->from[is_rest],
                          .to = row->to,
                          .inv = row->of.inv,
                          .shift = -row->of.mean * row->of.inv,
                          .down = row->down,
                          .row = row};
}

// As a tensor of that type would give it back.
INLINE two two_rounded(tessera_type type, two x) {
    float memory[UNIT];
    store_two(type, type, memory, x, 0);
    return load_two(type, type, memory);
}

// What rows share of a unit.
struct unit {
    two gamma, beta, smooth;
    two x; // BY_EXPERT, whose rows are a token's
};

INLINE struct unit load_unit(const struct columns *c, const struct place *first, tessera_type in, int32_t j) {
    const two none = two_of(0.0f);
    struct unit u = {none, none, none, none};
    if (NORMALIZES) u.gamma = load_two(in, in, at_column(in, c->gamma, j));
    if (MEAN) u.beta = load_two(in, in, at_column(in, c->beta, j));
    if (BY_EXPERT) u.x = load_two(in, in, at_column(in, first->from.x, j));
    if (!BY_EXPERT && c->smooth) u.smooth = load_two(in, TESSERA_TYPE_FP32, c->smooth + j);
    return u;
}

// z
INLINE two normalized(const struct columns *c, const struct place *at, tessera_type in, const struct unit *u, two s) {
    if (MEAN) return two_fma(two_fma(s, two_of(at->inv), two_of(at->shift)), u->gamma, u->beta);
    if (!SQUARE) return s;
    s = two_product(s, two_of(at->inv));
    if (c->twice) return two_rounded(in, two_product(two_rounded(in, s), u->gamma));
    return two_product(s, u->gamma);
}

INLINE two smoothed(const struct columns *c, const struct place *at, tessera_type in, const struct unit *u, int32_t j,
                    two z) {
    if (BY_EXPERT) return two_product(z, load_two(in, TESSERA_TYPE_FP32, at->from.smooth + j));
    return c->smooth ? two_product(z, u->smooth) : z;
}

INLINE two value_beside(const struct columns *c, const struct place *at, tessera_type in, const struct unit *u,
                        int32_t j) {
    return BY_EXPERT ? u->x : value(c, &at->from, in, j);
}

// Passes go over `rows` rows. They are compiled for each type, of one row and of several.
typedef void pass(const struct columns *c, const struct place *places);

// ---- the greatest magnitude of what is quantized

// Magnitudes have the order of their bits: NaN is above all.
INLINE void raise_greatest(const struct columns *columns, const struct place *places, int rows, tessera_type in) {
    const struct columns c = *columns;
    struct place at[ABREAST];
    vi most[ABREAST][2];
    for (int r = 0; r < rows; r++) {
        at[r] = places[r];
        for (int i = 0; i < 2; i++) most[r][i] = at[r].row->greatest[i];
    }
    for (int32_t j = 0; j < c.count; j += UNIT) {
        const struct unit u = load_unit(&c, at, in, j);
        UNROLL
        for (int r = 0; r < rows; r++) {
            two z = normalized(&c, &at[r], in, &u, value_beside(&c, &at[r], in, &u, j));
            z = smoothed(&c, &at[r], in, &u, j, z);
            if (NORMALIZES && c.kept < c.count) z = only_kept(in, c.kept, z); // beta or an infinity filled it up
            for (int i = 0; i < 2; i++) most[r][i] = v_max_i(most[r][i], v_as_i(v_abs(z.v[i])));
        }
    }
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < 2; i++) at[r].row->greatest[i] = most[r][i];
}

#define GREATEST_PASS(IN)                                                                                              \
    static APART void greatest_##IN(const struct columns *c, const struct place *places) {                             \
        raise_greatest(c, places, 1, TESSERA_TYPE_##IN);                                                               \
    }                                                                                                                  \
    static APART void greatests_##IN(const struct columns *c, const struct place *places) {                            \
        raise_greatest(c, places, ABREAST, TESSERA_TYPE_##IN);                                                         \
    }
GREATEST_PASS(FP32)
GREATEST_PASS(FP16)
GREATEST_PASS(BF16)

// By tessera_type, one row and several.
static pass *const greatest_passes[][2] = {
    {greatest_FP32, greatests_FP32}, {greatest_FP16, greatests_FP16}, {greatest_BF16, greatests_BF16}};

INLINE float greatest_of(const struct row *row) {
    int32_t lanes[LANES], all = 0;
    float result;
    v_store_i(lanes, v_max_i(row->greatest[0], row->greatest[1]));
    for (int lane = 0; lane < LANES; lane++) all = lanes[lane] > all ? lanes[lane] : all;
    memcpy(&result, &all, sizeof result);
    return result;
}

// ---- writing

INLINE void put_two(const struct columns *c, tessera_type in, tessera_type type, void *to, int32_t j, two x) {
    void *const p = (char *)to + bytes_of(type, j);
    if (c->past) // one branch, however many stores
        store_two(in, type, p, x, 1);
    else
        store_two(in, type, p, x, 0);
}

INLINE void put_unit(const struct columns *c, const struct place *at, tessera_type in, tessera_type out,
                     const struct unit *u, int32_t j, two s, two z) {
    if (NORMALIZES && at->to.residual) put_two(c, in, in, at->to.residual, j, s);
    if (SQUARE && at->to.unquantized) put_two(c, in, in, at->to.unquantized, j, z);
    if (out != in) z = two_product(smoothed(c, at, in, u, j, z), two_of(at->down));
    put_two(c, in, out, at->to.y, j, z);
}

INLINE void ask_for_lines(uintptr_t base, tessera_type in, int32_t j) {
    if (!base) return;
    for (int64_t i = 0; i < bytes_of(in, UNIT); i += LINE_BYTES) prefetch(base + (uintptr_t)(bytes_of(in, j) + i));
}

// The same columns of a later row.
INLINE void ask_for_unit(const struct row *row, tessera_type in, int32_t j) {
    ask_for_lines(row->next_x, in, j);
    if (NORMALIZES) ask_for_lines(row->next_residual, in, j);
}

INLINE void write_units(const struct columns *columns, const struct place *places, int rows, tessera_type in,
                        tessera_type out) {
    const struct columns c = *columns;
    struct place at[ABREAST];
    for (int r = 0; r < rows; r++) at[r] = places[r];
    for (int32_t j = 0; j < c.count; j += UNIT) {
        const struct unit u = load_unit(&c, at, in, j);
        two s[ABREAST], z[ABREAST]; // all is read before anything is written, lest a load wait for a store
        UNROLL
        for (int r = 0; r < rows; r++) ask_for_unit(at[r].row, in, j);
        UNROLL
        for (int r = 0; r < rows; r++) s[r] = value_beside(&c, &at[r], in, &u, j);
        UNROLL
        for (int r = 0; r < rows; r++) z[r] = normalized(&c, &at[r], in, &u, s[r]);
        UNROLL
        for (int r = 0; r < rows; r++) put_unit(&c, &at[r], in, out, &u, j, s[r], z[r]);
    }
}

#define WRITE_PASS(IN, OUT)                                                                                            \
    static APART void write_##OUT##_of_##IN(const struct columns *c, const struct place *places) {                     \
        write_units(c, places, 1, TESSERA_TYPE_##IN, TESSERA_TYPE_##OUT);                                              \
    }                                                                                                                  \
    static APART void writes_##OUT##_of_##IN(const struct columns *c, const struct place *places) {                    \
        write_units(c, places, ABREAST, TESSERA_TYPE_##IN, TESSERA_TYPE_##OUT);                                        \
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

// By tessera_type of inputs, one row and several. Without statistics results are always quantized.
#define OF_STATISTICS(pass) (NORMALIZES ? (pass) : NULL)
static pass *const same[][2] = {{OF_STATISTICS(write_FP32_of_FP32), OF_STATISTICS(writes_FP32_of_FP32)},
                                {OF_STATISTICS(write_FP16_of_FP16), OF_STATISTICS(writes_FP16_of_FP16)},
                                {OF_STATISTICS(write_BF16_of_BF16), OF_STATISTICS(writes_BF16_of_BF16)}};
static pass *const int8[][2] = {{write_INT8_of_FP32, writes_INT8_of_FP32},
                                {write_INT8_of_FP16, writes_INT8_of_FP16},
                                {write_INT8_of_BF16, writes_INT8_of_BF16}};
static pass *const e4m3[][2] = {{write_E4M3_of_FP32, writes_E4M3_of_FP32},
                                {write_E4M3_of_FP16, writes_E4M3_of_FP16},
                                {write_E4M3_of_BF16, writes_E4M3_of_BF16}};

INLINE pass *const *write_passes_of(tessera_type in, tessera_type out) {
    return (out == TESSERA_TYPE_INT8 ? int8 : out == TESSERA_TYPE_E4M3 ? e4m3 : same)[in];
}

// ---- the rest

// A unit of a row.
struct unit_room {
    float y[UNIT], residual[UNIT], unquantized[UNIT];
};

INLINE void put_rest(tessera_type type, void *to, int32_t whole, int32_t count, const float *from) {
    if (to) memcpy((char *)to + bytes_of(type, whole), from, (size_t)bytes_of(type, count));
}

// By way of a room, since not all of the unit has a place in the tensors.
INLINE void write_rest(const problem *p, const struct columns *rest, struct row *row, pass *write) {
    const tessera_type in = (tessera_type)p->in;
    const int32_t kept = rest->kept, whole = p->n - kept;
    struct unit_room room;
    struct place place = place_of(row, 1);
    place.to = (struct outputs){room.y, row->to.residual ? room.residual : NULL,
                                row->to.unquantized ? room.unquantized : NULL};
    write(rest, &place);
    put_rest((tessera_type)p->out, row->to.y, whole, kept, room.y);
    if (NORMALIZES) put_rest(in, row->to.residual, whole, kept, room.residual);
    if (SQUARE) put_rest(in, row->to.unquantized, whole, kept, room.unquantized);
}

#endif
