// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_fwd_splitkv, or with FUZZ_PAGEDKV of fmha_fwd_pagedkv, with random traits and
// args, sensible ones and nonsense: caches with pages and without, any tables and lengths, new keys that are appended
// first. None may crash; each returns a status, and writes only the outputs of a call that succeeds, which match the
// reference.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "append.h"
#include "attention.h"
#include "found_keys.h"
#ifdef FUZZ_PAGEDKV
#include "tessera/kernel/fmha_fwd_pagedkv.h"
const char fuzz_name[] = "fuzz_fmha_fwd_pagedkv";
typedef tessera_fmha_fwd_pagedkv_args args_t;
typedef tessera_fmha_fwd_pagedkv_traits traits_t;
#else
#include "tessera/kernel/fmha_fwd_splitkv.h"
const char fuzz_name[] = "fuzz_fmha_fwd_splitkv";
typedef tessera_fmha_fwd_splitkv_args args_t;
typedef tessera_fmha_fwd_splitkv_traits traits_t;
#endif

// The rooms, and the pointers of args to them.
enum {
    Q,
    K,
    V,
    BIAS,
    Q_DESCALE,
    K_DESCALE,
    V_DESCALE,
    SINK,
    KNEW,
    VNEW,
    COS,
    SIN,
    SEQSTART_Q, // from here on int32
    SEQSTART_K,
    SEQLEN_K,
    CACHE_BATCH_IDX,
    BLOCK_TABLE,
    O, // from here on outputs
    LSE,
    POINTERS
};
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [BIAS] = offsetof(args_t, bias_ptr),
    [Q_DESCALE] = offsetof(args_t, q_descale_ptr),
    [K_DESCALE] = offsetof(args_t, k_descale_ptr),
    [V_DESCALE] = offsetof(args_t, v_descale_ptr),
    [SINK] = offsetof(args_t, sink_ptr),
    [KNEW] = offsetof(args_t, knew_ptr),
    [VNEW] = offsetof(args_t, vnew_ptr),
    [COS] = offsetof(args_t, rotary_cos_ptr),
    [SIN] = offsetof(args_t, rotary_sin_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [SEQSTART_K] = offsetof(args_t, seqstart_k_ptr),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [CACHE_BATCH_IDX] = offsetof(args_t, cache_batch_idx),
    [BLOCK_TABLE] = offsetof(args_t, block_table_ptr),
    [O] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
};

FUZZ_CALL;

// ---- a sensible call

static enum shape shape;

static void choose_traits(traits_t *t) {
    attention_traits f = TESSERA_FMHA_FWD_TRAITS_INIT;
    shape = choose_shape();
    f.data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_MXFP8);
    choose_attention(&f, shape);
    memset(t, 0, sizeof *t);
    t->struct_size = sizeof *t;
    COPY_ATTENTION_TRAITS(t, &f);
#ifdef FUZZ_PAGEDKV
    t->skip_min_seqlen_q = t->is_group_mode && chance(4);
#endif
}

// Where keys lie: one sequence after the other in group mode, each in its own room, or in pages.
enum layout { TOKENS, SEQUENCES, PAGES, GAPPY };

static enum layout choose_layout(const traits_t *t) {
    if (chance(3)) return t->is_group_mode ? TOKENS : SEQUENCES;
    return t->is_group_mode && chance(3) ? GAPPY : PAGES;
}

static void choose_pages(const traits_t *t, args_t *a, int is_gappy) {
    const int32_t rows = most_rows(t->hdim_q, t->hdim_v, a->nhead_k);
    int32_t *const table = room(BLOCK_TABLE), *const offsets = room(SEQSTART_K), *const lengths = room(SEQLEN_K);
    a->page_block_size = chance(3) ? 1 << between(0, 4) : between(1, shape == USUAL ? 40 : 12);
    const int32_t size = a->page_block_size, columns = (a->seqlen_k + (is_gappy ? size - 1 : 0) + size - 1) / size;
    a->cache_blocks = between(1, rows / size);
    a->is_gappy = is_gappy;
    a->block_table_ptr = table;
    a->batch_stride_block_table = columns + between(0, 3);
    const int32_t own = a->batch * columns; // a page of its own for each entry, where pages are written to
    if (a->seqlen_knew > 0 && a->cache_blocks < own) a->cache_blocks = own;
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t first = is_gappy ? offsets[b] = between(0, size - 1) : 0;
        const int32_t keys = first + lengths[b] + a->seqlen_knew, of_none = lengths[b] + a->seqlen_knew == 0;
        for (int32_t n = 0; n < columns; n++) // entries of no key may be anything
            table[b * a->batch_stride_block_table + n] = n * size >= keys || of_none ? odd_int()
                                                         : a->seqlen_knew > 0
                                                             ? b * columns + n
                                                             : (int32_t)below((uint32_t)a->cache_blocks);
    }
    if (is_gappy) a->seqstart_k_ptr = offsets;
}

static void choose_sequences(const traits_t *t, args_t *a) {
    int32_t *const starts = room(SEQSTART_K), *const index = room(CACHE_BATCH_IDX), *const lengths = room(SEQLEN_K);
    starts[0] = 0;
    for (int32_t b = 0; b < a->batch; b++)
        starts[b + 1] = starts[b] + lengths[b] + (a->seqlen_k_ptr ? between(0, 3) : 0);
    if (t->is_group_mode) {
        a->seqstart_k_ptr = starts;
        return;
    }
    const int32_t most = most_rows(t->hdim_q, t->hdim_v, a->nhead_k) / (a->seqlen_k > 0 ? a->seqlen_k : 1) - a->batch;
    a->cache_blocks = a->batch + between(0, most < 2 ? (most > 0 ? most : 0) : 2);
    if (chance(2)) return;
    // Of those that are written to each has one of its own.
    for (int32_t b = 0; b < a->batch; b++)
        index[b] = a->seqlen_knew > 0 ? a->cache_blocks - 1 - b : (int32_t)below((uint32_t)a->cache_blocks);
    a->cache_batch_idx = index;
}

static void choose_lengths(const traits_t *t, args_t *a, enum layout layout) {
    int32_t *const lengths = room(SEQLEN_K), *const starts = room(SEQSTART_K);
    a->seqlen_k = between(0, most_keys(shape));
    const int is_growing = a->seqlen_knew > 0 || a->rope_type != TESSERA_ROPE_NONE;
    if (a->seqlen_k < a->seqlen_knew) a->seqlen_k = a->seqlen_knew;
    const int given = layout == GAPPY || is_growing || chance(2);
    starts[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t most = a->seqlen_k - a->seqlen_knew;
        lengths[b] = chance(6) ? 0 : chance(6) ? most : between(0, most);
        if (!given && !t->is_group_mode) lengths[b] = most;
        starts[b + 1] = starts[b] + lengths[b]; // of a group with pages, whose lengths are those
    }
    if (given) a->seqlen_k_ptr = lengths;
    if (!given && t->is_group_mode) a->seqstart_k_ptr = starts;
}

static append_traits append_traits_of(const traits_t *t, const args_t *a) {
    append_traits of = tessera_fmha_fwd_appendkv_traits_init();
    of.hdim_q = t->hdim_q, of.hdim_v = t->hdim_v, of.data_type = t->data_type, of.rope_type = a->rope_type;
    return of;
}

static append_args append_args_of(const traits_t *t, const args_t *a) {
    append_args of = tessera_fmha_fwd_appendkv_args_init();
    COPY_CACHE_ARGS(&of, a);
    COPY_APPEND_ARGS(&of, a);
    of.max_seqlen_k = a->seqlen_k, of.has_mask = t->mask_type != TESSERA_MASK_NONE;
    return of;
}

// New keys, if there are any.
static void choose_new(const traits_t *t, args_t *a, attention_args *f) {
    append_traits of = append_traits_of(t, a);
    append_args args = append_args_of(t, a);
    choose_rope(&of);
    args.seqlen_knew = between(0, 9), args.nhead_k = f->nhead_k;
    choose_append(&of, &args, most_keys(shape) + most_queries(shape) + 9);
    COPY_APPEND_ARGS(a, &args);
    a->rope_type = of.rope_type;
    if (a->seqlen_knew > 0) a->knew_ptr = odd_room(KNEW, element_bits_of(t->data_type) / 8), a->vnew_ptr = room(VNEW);
    if (a->rope_type != TESSERA_ROPE_NONE) a->rotary_cos_ptr = room(COS), a->rotary_sin_ptr = room(SIN);
}

static void choose_args(const traits_t *t, args_t *a) {
    attention_traits ft = TESSERA_FMHA_FWD_TRAITS_INIT;
    attention_args f = tessera_fmha_fwd_args_init();
    memset(a, 0, sizeof *a);
    a->struct_size = sizeof *a;
    COPY_ATTENTION_TRAITS(&ft, t);
    choose_numbers(&ft, &f, shape);
    choose_queries(&ft, &f, shape, room(SEQSTART_Q));
    const enum layout layout = choose_layout(t);
    if (!t->is_group_mode && chance(3)) choose_new(t, a, &f);
    COPY_ATTENTION_ARGS(a, &f);
    choose_lengths(t, a, layout);
    if (layout >= PAGES)
        choose_pages(t, a, layout == GAPPY);
    else
        choose_sequences(t, a);
    choose_rows(&ft, &f, a->seqlen_k);
    COPY_ATTENTION_ARGS(a, &f);
    a->seqlen_q = f.seqlen_q;
    const int64_t rows = layout >= PAGES       ? a->page_block_size
                         : layout == SEQUENCES ? a->seqlen_k
                                               : ((const int32_t *)a->seqstart_k_ptr)[a->batch];
    choose_strides(a->nhead_k, rows, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(a->nhead_k, rows, t->hdim_v, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    if (chance(8) && a->seqlen_knew == 0) a->nhead_stride_k = a->nhead_stride_v = 0;
    const int bytes = element_bits_of(t->data_type) / 8;
    a->q_ptr = odd_room(Q, bytes), a->k_ptr = odd_room(K, bytes), a->v_ptr = odd_room(V, bytes);
    a->bias_ptr = odd_room(BIAS, 4), a->sink_ptr = chance(2) ? odd_room(SINK, 4) : NULL;
    a->q_descale_ptr = room(Q_DESCALE), a->k_descale_ptr = room(K_DESCALE), a->v_descale_ptr = room(V_DESCALE);
    a->o_ptr = odd_room(O, 4), a->lse_ptr = odd_room(LSE, 4);
#ifdef FUZZ_PAGEDKV
    a->min_seqlen_q = between(0, 30);
#else
    a->num_splits = chance(3) ? 0 : chance(3) ? 1 : chance(8) ? TESSERA_NUM_SPLITS_CK : between(2, 128);
#endif
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    attention_traits f = TESSERA_FMHA_FWD_TRAITS_INIT;
    COPY_ATTENTION_TRAITS(&f, t);
    const enum pattern element = element_pattern(t->data_type);
    static const int rooms[] = {Q, K, V, KNEW, VNEW, COS, SIN};
    for (size_t n = 0; n < sizeof rooms / sizeof *rooms; n++) fill_room(rooms[n], element);
    fill_room(BIAS, bias_pattern(&f));
    for (int n = Q_DESCALE; n <= SINK; n++) fill_room(n, FP32);
    choose_special(&f, a->q_ptr, a->k_ptr, a->v_ptr, (const int[]){Q, K, V});
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    const struct run run = {INTS, offsetof(traits_t, hdim_q), sizeof *t - 4};
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, seqlen_q, is_gappy),
        RUN(FLOATS, args_t, scale_s, logits_soft_cap),
        RUN(STRIDES, args_t, batch_stride_block_table, batch_stride_o),
        RUN(INTS, args_t, window_size_left, mask_type),
        RUN(INTS, args_t, rope_type, rotary_rows),
        RUN(STRIDES, args_t, stride_knew, batch_stride_vnew),
#ifndef FUZZ_PAGEDKV
        RUN(INTS, args_t, num_splits, num_splits),
#endif
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, BLOCK_TABLE)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, hdim_v, 0),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, -1),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, seqlen_knew, -1),
    WRONG(0, args_t, rope_type, TESSERA_ROPE_COUNT),
    WRONG(0, args_t, mask_type, TESSERA_MASK_COUNT),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_MXFP8),
    WRONG(1, traits_t, data_type, -1),
    WRONG(1, traits_t, is_v_rowmajor, 0),
    WRONG(1, traits_t, mask_type, -1),
    WRONG(1, traits_t, bias_type, TESSERA_BIAS_COUNT),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_BLOCK),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_KV_BLOCK),
#ifndef FUZZ_PAGEDKV
    WRONG(0, args_t, num_splits, 129),
    WRONG(0, args_t, num_splits, -2),
#endif
};

// ---- what the call may touch

// The keys of a sequence that the call attends to.
static int32_t keys_of(const traits_t *t, const args_t *a, int32_t b) {
    const int32_t *const starts = a->seqstart_k_ptr, *const lengths = a->seqlen_k_ptr;
    const int32_t before = lengths ? lengths[b] : t->is_group_mode ? starts[b + 1] - starts[b] : a->seqlen_k;
    return before + (t->is_group_mode ? 0 : a->seqlen_knew);
}

// Whether the arrays that the check reads lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    if (a->batch < 1) return 1;
    const double size = a->page_block_size, rows = a->seqlen_k + (a->is_gappy ? size - 1 : 0);
    (void)t;
    return (!a->seqstart_q_ptr || fits(a->seqstart_q_ptr, a->batch, 32, &unused)) &&
           (!a->seqstart_k_ptr || fits(a->seqstart_k_ptr, a->batch, 32, &unused)) &&
           (!a->seqlen_k_ptr || fits(a->seqlen_k_ptr, a->batch - 1, 32, &unused)) &&
           (!a->cache_batch_idx || fits(a->cache_batch_idx, a->batch - 1, 32, &unused)) &&
           (!a->block_table_ptr || (a->batch > 1 && a->batch_stride_block_table < 0) || size < 1 || rows < 1 ||
            fits(
                a->block_table_ptr,
                last_of(a->batch, 1, 1, (double)(int64_t)((rows + size - 1) / size), a->batch_stride_block_table, 0, 0),
                32, &unused));
}

// The call as one of fmha_fwd, whose keys are where the reference finds them.
static attention_args attention_of(const traits_t *t, const args_t *a, attention_traits *ft) {
    attention_args f = tessera_fmha_fwd_args_init();
    const attention_traits plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    *ft = plain;
    COPY_ATTENTION_TRAITS(ft, t);
    COPY_ATTENTION_ARGS(&f, a);
    f.seqlen_q = a->seqlen_q, f.seqlen_k = a->seqlen_k;
#ifdef FUZZ_PAGEDKV
    ft->skip_min_seqlen_q = t->skip_min_seqlen_q, f.min_seqlen_q = a->min_seqlen_q;
#endif
    return f;
}

static int grows(const traits_t *t, const args_t *a) {
    return !t->is_group_mode && (a->seqlen_knew > 0 || a->rope_type != TESSERA_ROPE_NONE);
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    attention_traits ft;
    const attention_args f = attention_of(t, a, &ft);
    const int bits = element_bits_of(t->data_type), is_list = t->is_group_mode && !a->block_table_ptr;
    const double tokens = is_list ? ((const int32_t *)a->seqstart_k_ptr)[a->batch] : 0;
    double columns = t->is_group_mode ? 0 : a->seqlen_k; // there are as many, however long sequences are
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t keys = keys_of(t, a, b);
        columns = keys > columns ? keys : columns;
    }
    const double rows = is_list ? tokens : a->block_table_ptr ? a->page_block_size : a->seqlen_k;
    const double blocks = is_list ? 1 : a->cache_blocks;
    int good =
        rows_fit(&ft, &f, columns, comparable) &&
        fits(a->k_ptr, last_of(blocks, a->nhead_k, rows, a->hdim_q, a->batch_stride_k, a->nhead_stride_k, a->stride_k),
             bits, comparable) &&
        fits(a->v_ptr, last_of(blocks, a->nhead_k, rows, a->hdim_v, a->batch_stride_v, a->nhead_stride_v, a->stride_v),
             bits, comparable);
    if (grows(t, a)) {
        const append_traits of = append_traits_of(t, a);
        append_args args = append_args_of(t, a);
        args.seqlen_q = 0; // q_rotated is in the workspace
        good = good && append_fits(&of, &args, comparable);
    }
    return good;
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    attention_traits ft;
    const attention_args f = attention_of(t, a, &ft);
    const append_traits of = append_traits_of(t, a);
    const append_args args = append_args_of(t, a);
    allow_rows(&ft, &f);
    if (grows(t, a)) allow_append(&of, &args);
}

// ---- verdicts

void fuzz_describe(void) {
    attention_traits ft;
    const args_t *const a = &call_before.args;
    const attention_args f = attention_of(&call_before.traits, a, &ft);
    describe_attention(&ft, &f);
    fprintf(stderr, "  blocks %d pages %d of %d gappy %d index %d lengths %d new %d rope %d of %d\n", a->cache_blocks,
            a->block_table_ptr != NULL, a->page_block_size, a->is_gappy, a->cache_batch_idx != NULL,
            a->seqlen_k_ptr != NULL, a->seqlen_knew, (int)a->rope_type, a->rotary_dim);
#ifndef FUZZ_PAGEDKV
    fprintf(stderr, "  splits %d\n", a->num_splits);
#endif
}

struct cache {
    const traits_t *traits;
    const args_t *args;
};

static const void *find(const void *user, int is_v, int32_t b, int32_t g, int32_t j, int32_t d) {
    const struct cache *const c = user;
    const args_t *const a = c->args;
    const int32_t *const starts = a->seqstart_k_ptr, *const index = a->cache_batch_idx;
    int64_t block = index ? index[b] : b, row = j;
    if (a->block_table_ptr) {
        row = a->is_gappy && c->traits->is_group_mode ? starts[b] + j : j;
        block = ((const int32_t *)a->block_table_ptr)[b * a->batch_stride_block_table + row / a->page_block_size];
        row %= a->page_block_size;
    } else if (c->traits->is_group_mode) {
        block = 0, row = starts[b] + j;
    }
    const int64_t element = is_v ? block * a->batch_stride_v + g * a->nhead_stride_v + row * a->stride_v + d
                                 : block * a->batch_stride_k + g * a->nhead_stride_k + row * a->stride_k + d;
    return (const char *)(is_v ? a->v_ptr : a->k_ptr) + element * element_bits_of(c->traits->data_type) / 8;
}

static void compare(const traits_t *t, const args_t *a) {
    static int32_t lengths[1024];
    attention_traits ft;
    attention_args f = attention_of(t, a, &ft);
    const append_traits of = append_traits_of(t, a);
    const append_args args = append_args_of(t, a);
    const struct cache cache = {t, a};
    const found_keys keys = {lengths, (size_t)element_bits_of(t->data_type) / 8, find, &cache};
    for (int32_t b = 0; b < a->batch; b++) lengths[b] = keys_of(t, a, b);
    void *queries = NULL;
    if (grows(t, a)) {
        compare_append(&of, &args);
        f.q_ptr = queries = rotated_queries(&of, &args);
    }
    void *const found = put_in_order(&keys, &ft, &f);
    if (!found) fail("no memory for keys");
    compare_rows(&ft, &f);
    free(found), free(queries);
}

// ---- one iteration

#ifdef FUZZ_PAGEDKV
FUZZ_PROGRAM(fmha_fwd_pagedkv)
#else
FUZZ_PROGRAM(fmha_fwd_splitkv)
#endif
