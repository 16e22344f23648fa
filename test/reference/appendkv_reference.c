// SPDX-License-Identifier: MIT
#include "appendkv_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "elements.h"

__attribute__((format(printf, 2, 3))) static void say_wrong(appendkv_verdict *verdict, const char *format, ...) {
    va_list values;
    if (verdict->wrong++) return;
    va_start(values, format);
    vsnprintf(verdict->first, sizeof verdict->first, format, values);
    va_end(values);
}

static int64_t begin_of(const appendkv_tensor *x, int32_t block, int32_t head, int32_t row) {
    return block * x->block_stride + head * x->head_stride + row * x->row_stride;
}

// ---- one element

// The two products whose sum is column `column` of the row from `begin` on, rotated by the angles of `position`.
static void find_products(const appendkv_call *c, const appendkv_tensor *x, int64_t begin, int32_t position,
                          int32_t column, double product[2]) {
    const int32_t pairs = c->rotary_dim / 2, by_halves = c->rope == TESSERA_ROPE_HALF;
    const int32_t pair = by_halves ? column % pairs : column / 2,
                  is_first = by_halves ? column < pairs : column % 2 == 0;
    const int32_t distance = by_halves ? pairs : 1, partner = is_first ? column + distance : column - distance;
    const int64_t angle = (int64_t)position * pairs + pair;
    product[0] = element_load(c->type, x->begin, begin + column) * element_load(c->type, c->cos, angle);
    product[1] = element_load(c->type, x->begin, begin + partner) * element_load(c->type, c->sin, angle);
    if (is_first) product[1] = -product[1];
}

double appendkv_rotated(const appendkv_call *c, const appendkv_tensor *x, int64_t begin, int32_t position,
                        int32_t column) {
    double product[2];
    find_products(c, x, begin, position, column, product);
    return product[0] + product[1];
}

static double tolerance(const appendkv_call *c, double value, const double product[2]) {
    const int digits = c->type == TESSERA_TYPE_FP32 ? 23 : c->type == TESSERA_TYPE_FP16 ? 10 : 7;
    const double least_normal = c->type == TESSERA_TYPE_FP16 ? 0x1p-14 : 0x1p-126;
    const double in_fp32 = 0x1p-23 * (fabs(product[0]) + fabs(product[1])); // two roundings of products, one of the sum
    return in_fp32 + 0.5 * ldexp(1, ilogb(fmax(fabs(value) + in_fp32, least_normal)) - digits);
}

// ---- one row

struct way {
    const appendkv_tensor *from;
    const appendkv_output *to;
    int64_t begin, end; // the rows' first elements
    int32_t position;
    int32_t rotated; // columns
};

static void check_row(const appendkv_call *c, const struct way *way, appendkv_verdict *verdict) {
    const int64_t bytes = element_bits(c->type) / 8;
    const char *const from = (const char *)way->from->begin + way->begin * bytes;
    const char *const now = (const char *)way->to->now.begin + way->end * bytes;
    char *const before = (char *)way->to->before + way->end * bytes;
    for (int32_t column = 0; column < way->from->columns; column++) {
        const int64_t at = column * bytes;
        verdict->checked++;
        if (column < way->rotated) {
            double product[2];
            find_products(c, way->from, way->begin, way->position, column, product);
            const double value = product[0] + product[1], got = element_load(c->type, now, column);
            if (!(fabs(got - value) <= tolerance(c, value, product)))
                say_wrong(verdict, "%s: column %d of position %d is %.9g, not %.9g", way->to->name, column,
                          way->position, got, value);
        } else if (memcmp(now + at, from + at, (size_t)bytes) != 0) {
            say_wrong(verdict, "%s: column %d of position %d is no copy", way->to->name, column, way->position);
        }
        memcpy(before + at, now + at, (size_t)bytes);
    }
}

static void check_rest(const appendkv_output *out, appendkv_verdict *verdict) {
    const char *const now = out->now.begin, *const before = out->before;
    if (out->bytes == 0 || memcmp(now, before, (size_t)out->bytes) == 0) return;
    int64_t at = 0;
    while (now[at] == before[at]) at++;
    say_wrong(verdict, "%s: byte %" PRId64 " was written", out->name, at);
}

// ---- all rows

// The sequence or page of the cache that holds row `row` of sequence b, which becomes the row there.
static int32_t find_block(const appendkv_call *c, int32_t b, int32_t *row) {
    if (!c->pages) return c->cache_of ? c->cache_of[b] : b;
    const int32_t *page = c->pages + (int64_t)b * c->table_stride;
    for (; *row >= c->page_size; *row -= c->page_size) page++;
    return *page;
}

static int is_rotated(const appendkv_call *c, int32_t position) {
    return c->rope == TESSERA_ROPE_NONE || c->angles == 0 || position < c->angles;
}

static void check_keys(const appendkv_call *c, int32_t b, int32_t j, appendkv_verdict *verdict) {
    const int32_t position = c->keys_before[b] + j;
    int32_t row = position;
    if ((c->positions && position >= c->positions) || !is_rotated(c, position)) return;
    const int32_t block = find_block(c, b, &row);
    if (c->blocks && (block < 0 || block >= c->blocks)) return;
    for (int32_t g = 0; g < c->heads_k; g++) {
        const struct way of_k = {
            &c->knew, &c->k, begin_of(&c->knew, b, g, j), begin_of(&c->k.now, block, g, row), position, c->rotary_dim};
        const struct way of_v = {&c->vnew, &c->v, begin_of(&c->vnew, b, g, j), begin_of(&c->v.now, block, g, row),
                                 position, 0};
        check_row(c, &of_k, verdict);
        check_row(c, &of_v, verdict);
    }
}

static void check_queries(const appendkv_call *c, int32_t b, int32_t i, appendkv_verdict *verdict) {
    if (!is_rotated(c, c->keys_before[b] + (c->positions_differ ? i : 0))) return;
    for (int32_t h = 0; h < c->heads_q; h++) {
        const struct way way = {&c->q,
                                &c->q_rotated,
                                begin_of(&c->q, b, h, i),
                                begin_of(&c->q_rotated.now, b, h, i),
                                c->keys_before[b] + (c->positions_differ ? i : 0),
                                c->rotary_dim};
        check_row(c, &way, verdict);
    }
}

void appendkv_check(const appendkv_call *c, appendkv_verdict *verdict) {
    for (int32_t b = 0; b < c->batch; b++) {
        for (int32_t j = 0; j < c->added; j++) check_keys(c, b, j, verdict);
        for (int32_t i = 0; i < c->queries && c->rope != TESSERA_ROPE_NONE; i++) check_queries(c, b, i, verdict);
    }
    check_rest(&c->k, verdict);
    check_rest(&c->v, verdict);
    check_rest(&c->q_rotated, verdict);
}
