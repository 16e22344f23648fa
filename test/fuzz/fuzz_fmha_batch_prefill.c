// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_batch_prefill with random traits and args, sensible ones and nonsense: both lookup
// tables, all layouts of pages and kinds of scales. None may crash; each returns a status, and writes only the outputs
// of a call that succeeds, which match the reference.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "found_keys.h"
#include "tessera/kernel/fmha_batch_prefill.h"

const char fuzz_name[] = "fuzz_fmha_batch_prefill";

typedef tessera_fmha_batch_prefill_args args_t;
typedef tessera_fmha_batch_prefill_traits traits_t;

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
    DROP_SEED,
    DROP_OFFSET,
    SEQSTART_Q, // from here on int32
    INDPTR,
    PAGE_INDICES,
    LAST_PAGE_LENS,
    SEQLEN_K,
    O, // from here on outputs
    LSE,
    RAND_VAL,
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
    [DROP_SEED] = offsetof(args_t, drop_seed_ptr),
    [DROP_OFFSET] = offsetof(args_t, drop_offset_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [INDPTR] = offsetof(args_t, kv_indptr),
    [PAGE_INDICES] = offsetof(args_t, kv_page_indices),
    [LAST_PAGE_LENS] = offsetof(args_t, kv_last_page_lens),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [O] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
    [RAND_VAL] = offsetof(args_t, rand_val_ptr),
};

FUZZ_CALL;

// ---- a sensible call

static enum shape shape;

// Elements in 16 bytes, of which pieces of pages consist.
static int32_t piece_of(tessera_fmha_dtype dtype) { return 128 / element_bits_of(dtype); }

static int32_t in_pieces(int32_t hdim, int32_t piece) { return (hdim + piece - 1) / piece * piece; }

static void choose_traits(traits_t *t) {
    attention_traits f = TESSERA_FMHA_FWD_TRAITS_INIT;
    shape = choose_shape();
    *t = tessera_fmha_batch_prefill_traits_init();
    f.data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_MXFP8);
    choose_attention(&f, shape);
    f.is_group_mode = 1;
    if (f.qscale_type == TESSERA_QSCALE_PER_TENSOR && chance(2))
        f.qscale_type = chance(2) ? TESSERA_QSCALE_KV_BLOCK : TESSERA_QSCALE_TOKEN_HEAD;
    COPY_ATTENTION_TRAITS(t, &f);
    t->has_dropout = chance(3), t->skip_min_seqlen_q = chance(4);
    t->kv_memory_layout = (tessera_kv_layout)below(TESSERA_KV_LAYOUT_COUNT);
    t->kv_lookup_table = (tessera_kv_lookup)below(TESSERA_KV_LOOKUP_COUNT);
    const int32_t piece = piece_of(t->data_type);
    if (t->kv_memory_layout != TESSERA_KV_LINEAR) t->hdim_q = in_pieces(t->hdim_q, piece);
    if (t->kv_memory_layout == TESSERA_KV_VECTORIZED) t->hdim_v = in_pieces(t->hdim_v, piece);
}

static int32_t columns_of(const args_t *a) { return (a->max_seqlen_k + a->page_block_size - 1) / a->page_block_size; }

static void choose_list(args_t *a) {
    int32_t *const first = room(INDPTR), *const pages = room(PAGE_INDICES), *const last = room(LAST_PAGE_LENS);
    const int32_t size = a->page_block_size;
    first[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t keys = chance(6) ? 0 : between(0, a->max_seqlen_k), count = (keys + size - 1) / size;
        first[b + 1] = first[b] + count;
        last[b] = count ? keys - (count - 1) * size : odd_int();
        for (int32_t n = first[b]; n < first[b + 1]; n++) pages[n] = (int32_t)below((uint32_t)a->num_total_pages);
    }
    a->kv_indptr = first, a->kv_page_indices = pages;
    if (size > 1 || chance(2)) a->kv_last_page_lens = last;
}

static void choose_table(args_t *a) {
    int32_t *const pages = room(PAGE_INDICES), *const keys = room(SEQLEN_K);
    const int32_t columns = columns_of(a);
    a->batch_stride_block_table = columns + between(0, 3);
    for (int32_t b = 0; b < a->batch; b++) {
        keys[b] = chance(6) ? 0 : between(0, a->max_seqlen_k);
        for (int32_t n = 0; n < columns; n++) // entries behind the last page may be anything
            pages[b * a->batch_stride_block_table + n] =
                n * a->page_block_size < keys[b] ? (int32_t)below((uint32_t)a->num_total_pages) : odd_int();
    }
    a->kv_page_indices = pages, a->seqlen_k_ptr = keys;
}

// Strides of a tensor of pages: of rows, or of pieces that lie without gaps in a head's part.
static void choose_strides_of_pages(const traits_t *t, const args_t *a, int32_t hdim, int64_t *page, int64_t *head,
                                    int64_t *row) {
    if (t->kv_memory_layout == TESSERA_KV_LINEAR) {
        choose_strides(a->nhead_k, a->page_block_size, hdim, page, head, row);
        return;
    }
    *row = odd_stride(); // which nobody reads
    *head = (int64_t)a->page_block_size * hdim + (chance(3) ? 16 * between(0, 2) : 0);
    *page = *head * a->nhead_k + (chance(3) ? 16 * between(0, 2) : 0);
}

static void choose_pages(const traits_t *t, args_t *a) {
    const int32_t rows = most_rows(t->hdim_q, t->hdim_v, a->nhead_k);
    const int32_t piece = t->kv_memory_layout == TESSERA_KV_VECTORIZED          ? piece_of(t->data_type)
                          : t->kv_memory_layout == TESSERA_KV_VLLM && on.is_gpu ? 8
                                                                                : 1;
    do a->page_block_size = 1 << between(0, 5);
    while (a->page_block_size > rows || a->page_block_size < piece);
    a->num_total_pages = between(1, rows / a->page_block_size);
    a->max_seqlen_k = between(0, most_keys(shape));
    a->kv_memory_layout = t->kv_memory_layout, a->kv_lookup_table = t->kv_lookup_table;
    choose_strides_of_pages(t, a, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides_of_pages(t, a, t->hdim_v, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    if (t->kv_lookup_table == TESSERA_KV_SGLANG_1D)
        choose_list(a);
    else
        choose_table(a);
    a->nhead_stride_kv_block_descale = between(0, 2);
    a->nblock_stride_kv_block_descale = a->nhead_k * a->nhead_stride_kv_block_descale + between(0, 2);
}

static void choose_args(const traits_t *t, args_t *a) {
    attention_traits ft = TESSERA_FMHA_FWD_TRAITS_INIT;
    attention_args f = tessera_fmha_fwd_args_init();
    int64_t unused;
    *a = tessera_fmha_batch_prefill_args_init();
    COPY_ATTENTION_TRAITS(&ft, t);
    choose_numbers(&ft, &f, shape);
    choose_queries(&ft, &f, shape, room(SEQSTART_Q));
    a->batch = f.batch, a->nhead_k = f.nhead_k;
    choose_pages(t, a);
    choose_rows(&ft, &f, a->max_seqlen_k);
    COPY_ATTENTION_ARGS(a, &f);
    const int bytes = element_bits_of(t->data_type) / 8;
    a->q_ptr = odd_room(Q, bytes), a->k_ptr = odd_room(K, bytes), a->v_ptr = odd_room(V, bytes);
    a->bias_ptr = odd_room(BIAS, 4), a->sink_ptr = chance(2) ? odd_room(SINK, 4) : NULL;
    a->q_descale_ptr = room(Q_DESCALE), a->k_descale_ptr = room(K_DESCALE), a->v_descale_ptr = room(V_DESCALE);
    a->o_ptr = odd_room(O, 4), a->lse_ptr = odd_room(LSE, 4);
    a->min_seqlen_q = between(0, 30);
    choose_dropout(&f, DROP_SEED, DROP_OFFSET);
    choose_strides(a->nhead_q, tokens_of(&ft, &f), a->max_seqlen_k, &unused, &f.nhead_stride_randval,
                   &f.stride_randval);
    f.rand_val_ptr = odd_room(RAND_VAL, 1);
    COPY_DROPOUT_ARGS(a, &f);
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    attention_traits f = TESSERA_FMHA_FWD_TRAITS_INIT;
    COPY_ATTENTION_TRAITS(&f, t);
    for (int n = Q; n <= V; n++) fill_room(n, element_pattern(t->data_type));
    fill_room(BIAS, bias_pattern(&f));
    for (int n = Q_DESCALE; n <= SINK; n++) fill_room(n, FP32);
    *(uint64_t *)room(DROP_SEED) = 1234567890123, *(uint64_t *)room(DROP_OFFSET) = 77;
    choose_special(&f, a->q_ptr, a->k_ptr, a->v_ptr, (const int[]){Q, K, V});
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, kv_lookup_table);
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, batch, kv_lookup_table),
        RUN(FLOATS, args_t, scale_s, logits_soft_cap),
        RUN(STRIDES, args_t, batch_stride_block_table, nhead_stride_kv_block_descale),
        RUN(INTS, args_t, window_size_left, min_seqlen_q),
        RUN(FLOATS, args_t, p_drop, p_drop),
        RUN(INTS, args_t, s_randval, drop_prefs),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, SEQLEN_K)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, hdim_v, 0),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, max_seqlen_k, -1),
    WRONG(0, args_t, num_total_pages, -1),
    WRONG(0, args_t, page_block_size, 0),
    WRONG(0, args_t, page_block_size, 24),
    WRONG(0, args_t, page_block_size, 131072),
    WRONG(0, args_t, mask_type, TESSERA_MASK_COUNT),
    WRONG(0, args_t, kv_memory_layout, TESSERA_KV_LAYOUT_COUNT),
    WRONG(0, args_t, kv_lookup_table, -1),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_MXFP4),
    WRONG(1, traits_t, is_group_mode, 0),
    WRONG(1, traits_t, is_v_rowmajor, 0),
    WRONG(1, traits_t, mask_type, -1),
    WRONG(1, traits_t, bias_type, TESSERA_BIAS_COUNT),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_BLOCK),
    WRONG(1, traits_t, kv_memory_layout, TESSERA_KV_LAYOUT_COUNT),
    WRONG(1, traits_t, kv_lookup_table, TESSERA_KV_LOOKUP_COUNT),
};

// ---- what the call may touch

static int32_t keys_of(const traits_t *t, const args_t *a, int32_t b) {
    if (t->kv_lookup_table == TESSERA_KV_VLLM_2D) return ((const int32_t *)a->seqlen_k_ptr)[b];
    const int32_t *const first = a->kv_indptr, pages = first[b + 1] - first[b];
    if (!a->kv_last_page_lens) return pages;
    return pages ? (pages - 1) * a->page_block_size + ((const int32_t *)a->kv_last_page_lens)[b] : 0;
}

// Whether the arrays that the check reads lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    if (a->batch < 1 || a->page_block_size < 1) return 1;
    const double columns = (double)(((int64_t)a->max_seqlen_k + a->page_block_size - 1) / a->page_block_size);
    if ((a->seqstart_q_ptr && !fits(a->seqstart_q_ptr, a->batch, 32, &unused)) ||
        (a->kv_last_page_lens && !fits(a->kv_last_page_lens, a->batch - 1, 32, &unused)))
        return 0;
    if (t->kv_lookup_table == TESSERA_KV_VLLM_2D)
        return (!a->seqlen_k_ptr || fits(a->seqlen_k_ptr, a->batch - 1, 32, &unused)) &&
               (!a->kv_page_indices || (a->batch > 1 && a->batch_stride_block_table < 0) ||
                fits(a->kv_page_indices, last_of(a->batch, 1, 1, columns, a->batch_stride_block_table, 0, 0), 32,
                     &unused));
    if (a->kv_indptr && !fits(a->kv_indptr, a->batch, 32, &unused)) return 0;
    int32_t last = 1; // at least one entry
    if (a->kv_indptr) memcpy(&last, (const int32_t *)a->kv_indptr + a->batch, sizeof last);
    return !a->kv_page_indices || fits(a->kv_page_indices, last - 1.0, 32, &unused);
}

static attention_args attention_of(const traits_t *t, const args_t *a, attention_traits *ft) {
    const attention_traits plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    attention_args f = tessera_fmha_fwd_args_init();
    *ft = plain;
    COPY_ATTENTION_TRAITS(ft, t);
    COPY_ATTENTION_ARGS(&f, a);
    ft->skip_min_seqlen_q = t->skip_min_seqlen_q, f.min_seqlen_q = a->min_seqlen_q;
    ft->has_dropout = t->has_dropout;
    COPY_DROPOUT_ARGS(&f, a);
    return f;
}

static int scales_fit(const traits_t *t, const args_t *a, double tokens, int *comparable) {
    if (t->qscale_type == TESSERA_QSCALE_KV_BLOCK) {
        const double last = last_of(a->num_total_pages, a->nhead_k, 1, 1, a->nblock_stride_kv_block_descale,
                                    a->nhead_stride_kv_block_descale, 0);
        return fits(a->q_descale_ptr, 0, 32, comparable) && fits(a->k_descale_ptr, last, 32, comparable) &&
               fits(a->v_descale_ptr, last, 32, comparable);
    }
    if (t->qscale_type != TESSERA_QSCALE_TOKEN_HEAD) return 1;
    return fits(a->q_descale_ptr, tokens * a->nhead_q - 1, 32, comparable) &&
           fits(a->k_descale_ptr, (double)a->num_total_pages * a->page_block_size * a->nhead_k - 1, 32, comparable) &&
           fits(a->v_descale_ptr, a->nhead_k - 1.0, 32, comparable);
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    attention_traits ft;
    const attention_args f = attention_of(t, a, &ft);
    const int bits = element_bits_of(t->data_type), is_linear = t->kv_memory_layout == TESSERA_KV_LINEAR;
    const double size = a->page_block_size, rows = is_linear ? size : 1, tokens = (double)tokens_of(&ft, &f);
    double columns = 0;
    for (int32_t b = 0; b < a->batch; b++) columns = keys_of(t, a, b) > columns ? keys_of(t, a, b) : columns;
    int good = rows_fit(&ft, &f, columns, comparable) && scales_fit(t, a, tokens, comparable) &&
               fits(a->k_ptr,
                    last_of(a->num_total_pages, a->nhead_k, rows, is_linear ? a->hdim_q : size * a->hdim_q,
                            a->batch_stride_k, a->nhead_stride_k, a->stride_k),
                    bits, comparable) &&
               fits(a->v_ptr,
                    last_of(a->num_total_pages, a->nhead_k, rows, is_linear ? a->hdim_v : size * a->hdim_v,
                            a->batch_stride_v, a->nhead_stride_v, a->stride_v),
                    bits, comparable);
    if (t->has_dropout && a->s_randval)
        good &=
            fits(a->rand_val_ptr,
                 last_of(1, a->nhead_q, tokens, columns, 0, a->nhead_stride_randval, a->stride_randval), 8, comparable);
    if (t->has_dropout && a->drop_prefs)
        good &= fits(a->drop_seed_ptr, 0, 64, comparable) && fits(a->drop_offset_ptr, 0, 64, comparable);
    return good;
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    attention_traits ft;
    attention_args f = attention_of(t, a, &ft);
    static int32_t lengths[1024];
    for (int32_t b = 0; b < a->batch; b++) lengths[b] = keys_of(t, a, b);
    f.seqlen_k_ptr = lengths, f.seqstart_k_ptr = lengths;
    allow_rows(&ft, &f);
}

// ---- verdicts

void fuzz_describe(void) {
    attention_traits ft;
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    const attention_args f = attention_of(t, a, &ft);
    describe_attention(&ft, &f);
    fprintf(stderr, "  layout %d lookup %d pages %d of %d, max %d\n", (int)t->kv_memory_layout, (int)t->kv_lookup_table,
            a->num_total_pages, a->page_block_size, a->max_seqlen_k);
}

struct cache {
    const traits_t *traits;
    const args_t *args;
};

static int64_t page_of(const struct cache *c, int32_t b, int32_t j) {
    const args_t *const a = c->args;
    const int64_t first = c->traits->kv_lookup_table == TESSERA_KV_VLLM_2D ? b * a->batch_stride_block_table
                                                                           : ((const int32_t *)a->kv_indptr)[b];
    return ((const int32_t *)a->kv_page_indices)[first + j / a->page_block_size];
}

static const void *find(const void *user, int is_v, int32_t b, int32_t g, int32_t j, int32_t d) {
    const struct cache *const c = user;
    const args_t *const a = c->args;
    const int64_t page = page_of(c, b, j), r = j % a->page_block_size, size = a->page_block_size;
    const int64_t x = piece_of(c->traits->data_type);
    int64_t at = is_v ? r * a->stride_v + d : r * a->stride_k + d;
    if (c->traits->kv_memory_layout != TESSERA_KV_LINEAR) {
        if (!is_v)
            at = d / x * size * x + r * x + d % x; // [hdim_q / x, P, x]
        else if (c->traits->kv_memory_layout == TESSERA_KV_VLLM)
            at = d * size + r; // [hdim_v, P]
        else
            at = r / x * a->hdim_v * x + d * x + r % x; // [P / x, hdim_v, x]
    }
    at += is_v ? page * a->batch_stride_v + g * a->nhead_stride_v : page * a->batch_stride_k + g * a->nhead_stride_k;
    return (const char *)(is_v ? a->v_ptr : a->k_ptr) + at * element_bits_of(c->traits->data_type) / 8;
}

// Scales as those of BLOCK with blocks of one token, [head][token].
struct scales {
    float *q, *k, *v;
};

static struct scales scales_of(const struct cache *c, const int32_t *lengths, int64_t tokens, int64_t keys) {
    const args_t *const a = c->args;
    const int is_page = c->traits->qscale_type == TESSERA_QSCALE_KV_BLOCK;
    const float *const q = a->q_descale_ptr, *const k = a->k_descale_ptr, *const v = a->v_descale_ptr;
    float *const all = malloc(sizeof *all * (size_t)(a->nhead_q * tokens + 2 * a->nhead_k * keys + 1));
    if (!all) fail("no memory for scales");
    const struct scales s = {all, all + a->nhead_q * tokens, all + a->nhead_q * tokens + a->nhead_k * keys};
    for (int32_t h = 0; h < a->nhead_q; h++)
        for (int64_t i = 0; i < tokens; i++) s.q[h * tokens + i] = q[is_page ? 0 : i * a->nhead_q + h];
    for (int32_t g = 0; g < a->nhead_k; g++) {
        int64_t to = g * keys;
        for (int32_t b = 0; b < a->batch; b++)
            for (int32_t j = 0; j < lengths[b]; j++, to++) {
                const int64_t page = page_of(c, b, j), row = page * a->page_block_size + j % a->page_block_size;
                const int64_t of_page = page * a->nblock_stride_kv_block_descale + g * a->nhead_stride_kv_block_descale;
                s.k[to] = k[is_page ? of_page : row * a->nhead_k + g];
                s.v[to] = v[is_page ? of_page : g];
            }
    }
    return s;
}

static void compare(const traits_t *t, const args_t *a) {
    static int32_t lengths[1024];
    attention_traits ft;
    attention_args f = attention_of(t, a, &ft);
    const struct cache cache = {t, a};
    const found_keys keys = {lengths, (size_t)element_bits_of(t->data_type) / 8, find, &cache};
    for (int32_t b = 0; b < a->batch; b++) lengths[b] = keys_of(t, a, b);
    void *const found = put_in_order(&keys, &ft, &f);
    if (!found) fail("no memory for keys");
    struct scales scales = {0};
    if (t->qscale_type == TESSERA_QSCALE_KV_BLOCK || t->qscale_type == TESSERA_QSCALE_TOKEN_HEAD) {
        const int64_t tokens = tokens_of(&ft, &f), all = ((const int32_t *)f.seqstart_k_ptr)[a->batch];
        scales = scales_of(&cache, lengths, tokens, all);
        ft.qscale_type = TESSERA_QSCALE_BLOCK;
        f.block_scale_size_q = f.block_scale_size_kv = 1;
        f.block_scale_seqstart_q_ptr = a->seqstart_q_ptr, f.block_scale_seqstart_k_ptr = f.seqstart_k_ptr;
        f.q_descale_ptr = scales.q, f.k_descale_ptr = scales.k, f.v_descale_ptr = scales.v;
        f.nhead_stride_q_descale = tokens, f.nhead_stride_k_descale = f.nhead_stride_v_descale = all;
    }
    compare_rows(&ft, &f);
    free(found), free(scales.q);
}

// ---- one iteration

FUZZ_PROGRAM(fmha_batch_prefill)
