// SPDX-License-Identifier: MIT
// Calls the public functions of hadamard_rotate with random traits and args, sensible ones and nonsense. None may
// crash; each returns a status, and writes only the outputs of a call that succeeds, which match the sums of its header
// in fp64.
#include <math.h>
#include <stdio.h>

#include "fuzz.h"
#include "tessera/kernel/hadamard_rotate.h"
#include "turbo4_reference.h"

const char fuzz_name[] = "fuzz_hadamard_rotate";

typedef tessera_hadamard_rotate_args args_t;
typedef tessera_hadamard_rotate_traits traits_t;

// The rooms, and the pointers of args to them.
enum { X, Y, POINTERS };
static const size_t pointers[POINTERS] = {[X] = offsetof(args_t, x_ptr), [Y] = offsetof(args_t, y_ptr)};

FUZZ_CALL;

// ---- a sensible call

static int bytes_of(const traits_t *t) { return element_bits(turbo4_type(t->data_type)) / 8; }

static void choose_traits(traits_t *t) {
    *t = tessera_hadamard_rotate_traits_init();
    t->hdim = 64 << below(3);
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_BF16 + 1);
}

static void choose_args(const traits_t *t, args_t *a) {
    int64_t unused;
    *a = tessera_hadamard_rotate_args_init();
    a->tokens = between(0, 40), a->nhead = between(1, 5);
    choose_strides(a->nhead, a->tokens, t->hdim, &unused, &a->nhead_stride_x, &a->stride_x);
    choose_strides(a->nhead, a->tokens, t->hdim, &unused, &a->nhead_stride_y, &a->stride_y);
    const int bytes = bytes_of(t);
    a->x_ptr = odd_room(X, bytes), a->y_ptr = odd_room(Y, bytes);
    if (chance(8)) a->nhead_stride_x = 0; // one row for all heads
    if (!chance(3)) return;
    a->y_ptr = room(Y), a->x_ptr = a->y_ptr; // in place
    a->stride_x = a->stride_y, a->nhead_stride_x = a->nhead_stride_y;
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    static const enum pattern patterns[] = {FP32, FP16, BF16};
    fill_room(X, patterns[t->data_type]), fill_room(Y, patterns[t->data_type]);
    (void)a;
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim, data_type);
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {RUN(INTS, args_t, tokens, nhead), RUN(STRIDES, args_t, stride_x, nhead_stride_y)};
    const uint32_t kind = below(3);
    if (kind < 2)
        spoil_run(a, &runs[kind]);
    else
        *pointer_at(a, pointers[below(POINTERS)]) = odd_pointer();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, tokens, -1),      WRONG(0, args_t, nhead, 0),    WRONG(0, args_t, nhead, -3),
    WRONG(1, traits_t, hdim, 96),      WRONG(1, traits_t, hdim, 512), WRONG(1, traits_t, data_type, TESSERA_FMHA_FP8),
    WRONG(1, traits_t, data_type, -1),
};

// ---- what the call may touch

static int arrays_fit(const traits_t *t, const args_t *a) {
    (void)t, (void)a; // there are none
    return 1;
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int bits = 8 * bytes_of(t);
    return fits(a->x_ptr, last_of(1, a->tokens, a->nhead, t->hdim, 0, a->stride_x, a->nhead_stride_x), bits,
                comparable) &&
           fits(a->y_ptr, last_of(1, a->tokens, a->nhead, t->hdim, 0, a->stride_y, a->nhead_stride_y), bits,
                comparable);
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    const int64_t bytes = bytes_of(t);
    for (int64_t token = 0; token < a->tokens; token++)
        for (int64_t h = 0; h < a->nhead; h++)
            allow((char *)a->y_ptr + bytes * (token * a->stride_y + h * a->nhead_stride_y), bytes * t->hdim);
}

// ---- verdicts

void fuzz_describe(void) {
    const args_t *const a = &call_before.args;
    fprintf(stderr, "  dtype %d d %d tokens %d heads %d strides %lld,%lld to %lld,%lld in place %d\n",
            (int)call_before.traits.data_type, call_before.traits.hdim, a->tokens, a->nhead, (long long)a->stride_x,
            (long long)a->nhead_stride_x, (long long)a->stride_y, (long long)a->nhead_stride_y, a->x_ptr == a->y_ptr);
}

static void compare(const traits_t *t, const args_t *a) {
    const tessera_type type = turbo4_type(t->data_type);
    double row[TURBO4_MOST_HDIM], rotated[TURBO4_MOST_HDIM];
    for (int64_t token = between(0, 6); token < a->tokens; token += 7)
        for (int64_t h = 0; h < a->nhead; h++, counts.rows++) {
            const int64_t from = token * a->stride_x + h * a->nhead_stride_x,
                          to = token * a->stride_y + h * a->nhead_stride_y;
            for (int32_t d = 0; d < t->hdim; d++) row[d] = element_load(type, before_call(a->x_ptr), from + d);
            hadamard_rotate_row(row, t->hdim, rotated);
            for (int32_t d = 0; d < t->hdim; d++)
                if (!(fabs(element_load(type, a->y_ptr, to + d) - rotated[d]) <=
                      hadamard_bound(type, row, t->hdim, rotated[d])))
                    fail("y differs from the sums of the header");
        }
}

FUZZ_PROGRAM(hadamard_rotate)
