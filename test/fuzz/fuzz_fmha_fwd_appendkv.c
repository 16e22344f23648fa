// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_fwd_appendkv with random traits and args, sensible ones and nonsense: caches with
// pages and without, any tables, both rotations, queries in place. None may crash; each returns a status, and writes
// only the outputs of a call that succeeds, which match the reference.
#include <stdio.h>

#include "append.h"
#include "fmha_fwd_reference.h"
#include "tessera/kernel/fmha_fwd_appendkv.h"

const char fuzz_name[] = "fuzz_fmha_fwd_appendkv";

typedef append_args args_t;
typedef append_traits traits_t;

// The rooms, and the pointers of args to them.
enum { Q, Q_ROTATED, K, V, KNEW, VNEW, COS, SIN, SEQLEN_K, BLOCK_TABLE, CACHE_BATCH_IDX, POINTERS };
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [Q_ROTATED] = offsetof(args_t, q_rotated_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [KNEW] = offsetof(args_t, knew_ptr),
    [VNEW] = offsetof(args_t, vnew_ptr),
    [COS] = offsetof(args_t, rotary_cos_ptr),
    [SIN] = offsetof(args_t, rotary_sin_ptr),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [BLOCK_TABLE] = offsetof(args_t, block_table_ptr),
    [CACHE_BATCH_IDX] = offsetof(args_t, cache_batch_idx),
};

FUZZ_CALL;

// ---- a sensible call

static int is_wide;

static int bytes_of(const traits_t *t) { return element_bits(fmha_fwd_input_element(t->data_type, on.fp8)) / 8; }

static void choose_traits(traits_t *t) {
    *t = tessera_fmha_fwd_appendkv_traits_init();
    is_wide = chance(8);
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_MXFP8);
    t->hdim_q = between(1, is_wide ? 512 : 80), t->hdim_v = between(1, is_wide ? 512 : 80);
    choose_rope(t);
}

static void choose_pages(args_t *a) {
    int32_t *const table = room(BLOCK_TABLE);
    const int32_t *const before = a->seqlen_k_ptr;
    a->page_block_size = chance(3) ? 1 << between(0, 4) : between(1, 12);
    const int32_t size = a->page_block_size, columns = (a->max_seqlen_k + size - 1) / size;
    a->cache_blocks = a->batch * columns + between(0, 2);
    a->batch_stride_block_table = columns + between(0, 3);
    a->block_table_ptr = table;
    for (int32_t b = 0; b < a->batch; b++)
        for (int32_t n = 0; n < columns; n++) // entries that get no row may be anything
            table[b * a->batch_stride_block_table + n] =
                (n + 1) * size > before[b] && n * size < before[b] + a->seqlen_knew ? a->batch * n + b : odd_int();
}

static void choose_places(args_t *a) {
    int32_t *const index = room(CACHE_BATCH_IDX);
    if (chance(2)) {
        choose_pages(a);
        return;
    }
    a->cache_blocks = a->batch + between(0, 2);
    if (chance(2)) return;
    for (int32_t b = 0; b < a->batch; b++) index[b] = a->cache_blocks - 1 - b;
    a->cache_batch_idx = index;
}

// What a GPU leaves out: positions without a row in the cache or in the tables of angles, and caches that there are
// not.
static void choose_left_out(const traits_t *t, args_t *a) {
    const int32_t b = between(0, a->batch - 1);
    int32_t *const table = room(BLOCK_TABLE), *const index = room(CACHE_BATCH_IDX), *const before = room(SEQLEN_K);
    const int32_t id = chance(2) ? INT32_MIN + between(0, 9) : a->cache_blocks + between(0, 9);
    const uint32_t which = below(3);
    if (which == 0) before[b] = a->max_seqlen_k - a->seqlen_knew + between(1, 12);
    for (int32_t n = 0; which == 0 && a->block_table_ptr && n * a->page_block_size < a->max_seqlen_k; n++)
        table[b * a->batch_stride_block_table + n] = a->batch * n + b;
    if (which == 1 && t->rope_type != TESSERA_ROPE_NONE) a->rotary_rows = between(1, a->rotary_rows);
    if (which == 2 && a->cache_batch_idx) index[b] = id;
    if (which == 2 && a->block_table_ptr)
        for (int32_t n = 0; n < a->batch_stride_block_table; n++)
            if (chance(2)) table[b * a->batch_stride_block_table + n] = id;
    contents_are_wrong = 1;
}

static void choose_args(const traits_t *t, args_t *a) {
    int32_t *const before = room(SEQLEN_K);
    *a = tessera_fmha_fwd_appendkv_args_init();
    a->batch = between(1, 3), a->nhead_k = between(1, 2), a->nhead_q = a->nhead_k * between(1, 3);
    a->seqlen_q = chance(4) ? 0 : between(1, is_wide ? 5 : 9), a->seqlen_knew = chance(6) ? 0 : between(1, 9);
    a->max_seqlen_k = a->seqlen_knew + between(0, is_wide ? 6 : 30);
    a->has_mask = (int32_t)below(2);
    for (int32_t b = 0; b < a->batch; b++) before[b] = chance(6) ? 0 : between(0, a->max_seqlen_k - a->seqlen_knew);
    a->seqlen_k_ptr = before;
    choose_append(t, a, a->max_seqlen_k + a->seqlen_q);
    choose_places(a);
    const int64_t rows = rows_of_block(a);
    const int bytes = bytes_of(t);
    choose_strides(a->nhead_k, rows, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(a->nhead_k, rows, t->hdim_v, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    choose_strides(a->nhead_q, a->seqlen_q, t->hdim_q, &a->batch_stride_q, &a->nhead_stride_q, &a->stride_q);
    choose_strides(a->nhead_q, a->seqlen_q, t->hdim_q, &a->batch_stride_q_rotated, &a->nhead_stride_q_rotated,
                   &a->stride_q_rotated);
    a->q_ptr = odd_room(Q, bytes), a->q_rotated_ptr = odd_room(Q_ROTATED, bytes);
    a->k_ptr = odd_room(K, bytes), a->v_ptr = odd_room(V, bytes);
    a->knew_ptr = odd_room(KNEW, bytes), a->vnew_ptr = odd_room(VNEW, bytes);
    a->rotary_cos_ptr = odd_room(COS, bytes), a->rotary_sin_ptr = odd_room(SIN, bytes);
    if (on.is_gpu && chance(4)) choose_left_out(t, a);
    if (!chance(3)) return;
    a->q_rotated_ptr = (void *)(uintptr_t)a->q_ptr; // in place
    a->stride_q_rotated = a->stride_q, a->nhead_stride_q_rotated = a->nhead_stride_q;
    a->batch_stride_q_rotated = a->batch_stride_q;
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    static const enum pattern patterns[] = {FP32, FP16, BF16, E2M1, E2M1, E2M1}; // fp8 is copied: any bytes
    for (int n = Q; n <= SIN; n++) fill_room(n, patterns[t->data_type]);
    (void)a;
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, rope_type);
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, seqlen_q, page_block_size),
        RUN(STRIDES, args_t, batch_stride_block_table, batch_stride_vnew),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQLEN_K, CACHE_BATCH_IDX)))[below(3)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, seqlen_q, -1),
    WRONG(0, args_t, seqlen_knew, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, hdim_v, 0),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, max_seqlen_k, -1),
    WRONG(0, args_t, cache_blocks, -1),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_MXFP8),
    WRONG(1, traits_t, data_type, -1),
    WRONG(1, traits_t, is_v_rowmajor, 0),
    WRONG(1, traits_t, rope_type, TESSERA_ROPE_COUNT),
};

// ---- what the call may touch

// Whether the arrays that the check reads lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    const double size = a->page_block_size,
                 columns = size < 1 ? 0 : (double)(int64_t)((a->max_seqlen_k + size - 1) / size);
    (void)t;
    if (a->batch < 1) return 1;
    return (!a->seqlen_k_ptr || fits(a->seqlen_k_ptr, a->batch - 1, 32, &unused)) &&
           (!a->cache_batch_idx || fits(a->cache_batch_idx, a->batch - 1, 32, &unused)) &&
           (!a->block_table_ptr || (a->batch > 1 && a->batch_stride_block_table < 0) ||
            fits(a->block_table_ptr, last_of(a->batch, 1, 1, columns, a->batch_stride_block_table, 0, 0), 32, &unused));
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) { return append_fits(t, a, comparable); }
static void allow_outputs(const traits_t *t, const args_t *a) { allow_append(t, a); }
static void compare(const traits_t *t, const args_t *a) { compare_append(t, a); }

void fuzz_describe(void) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr, "  dtype %d d %d/%d rope %d of %d, rows %d\n", (int)t->data_type, t->hdim_q, t->hdim_v,
            (int)t->rope_type, a->rotary_dim, a->rotary_rows);
    fprintf(stderr, "  b %d h %d/%d s %d new %d max %d mask %d blocks %d pages %d of %d index %d in place %d\n",
            a->batch, a->nhead_q, a->nhead_k, a->seqlen_q, a->seqlen_knew, a->max_seqlen_k, a->has_mask,
            a->cache_blocks, a->block_table_ptr != NULL, a->page_block_size, a->cache_batch_idx != NULL,
            a->q_ptr == a->q_rotated_ptr);
}

FUZZ_PROGRAM(fmha_fwd_appendkv)
