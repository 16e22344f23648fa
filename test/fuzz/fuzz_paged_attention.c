// SPDX-License-Identifier: MIT
// Calls the public functions of paged_attention with random traits and args, sensible ones and nonsense: any tables,
// lengths, layouts of pages and types of caches. None may crash; each returns a status, and writes only the outputs of
// a call that succeeds, which match the reference.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "elements.h"
#include "fuzz.h"
#include "paged_attention_reference.h"
#include "tessera/kernel/paged_attention.h"

const char fuzz_name[] = "fuzz_paged_attention";

typedef tessera_paged_attention_args args_t;
typedef tessera_paged_attention_traits traits_t;

// The rooms, and the pointers of args to them.
enum {
    Q,
    K,
    V,
    K_SCALE,
    V_SCALE,
    CENTROIDS,
    SLOPES_, // of alibi
    SINK,
    SEQSTART_Q, // from here on int32
    SEQLEN_K,
    BLOCK_TABLE,
    O, // from here on outputs
    LSE,
    POINTERS
};
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [K_SCALE] = offsetof(args_t, k_scale_ptr),
    [V_SCALE] = offsetof(args_t, v_scale_ptr),
    [CENTROIDS] = offsetof(args_t, centroids_ptr),
    [SLOPES_] = offsetof(args_t, alibi_slopes_ptr),
    [SINK] = offsetof(args_t, sink_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [BLOCK_TABLE] = offsetof(args_t, block_table_ptr),
    [O] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
};

// ---- a sensible call

FUZZ_CALL;

static int bytes_of(const traits_t *t) { return t->data_type == TESSERA_FMHA_FP32 ? 4 : 2; }
// Of an element of the cache.
static int cache_bytes(const traits_t *t) { return t->kv_cache_dtype == TESSERA_KV_AUTO ? bytes_of(t) : 1; }

// The shape of calls: wide heads and few keys, or a bit of everything.
static enum { USUAL, WIDE } shape;

static void choose_traits(traits_t *t) {
    shape = chance(8) ? WIDE : USUAL;
    *t = tessera_paged_attention_traits_init();
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_BF16 + 1);
    t->kv_cache_dtype = (tessera_kv_cache_dtype)below(TESSERA_KV_CACHE_DTYPE_COUNT);
    t->kv_memory_layout =
        t->kv_cache_dtype == TESSERA_KV_TURBO4 ? TESSERA_KV_LINEAR : (tessera_kv_layout)below(TESSERA_KV_LAYOUT_COUNT);
    // Pieces of pages have 16 bytes, a byte of turbo4 two numbers.
    const int32_t piece = 16 / cache_bytes(t), most = shape == USUAL ? 64 : on.is_gpu ? 256 : 512;
    const int32_t on_gpu = t->kv_cache_dtype == TESSERA_KV_AUTO ? 8 : 16;
    const int32_t unit = on.is_gpu ? on_gpu : t->kv_cache_dtype == TESSERA_KV_TURBO4 ? 2 : 1;
    const int32_t of_q = t->kv_memory_layout == TESSERA_KV_LINEAR || unit > piece ? unit : piece,
                  of_v = t->kv_memory_layout != TESSERA_KV_VECTORIZED || unit > piece ? unit : piece;
    t->hdim_q = of_q * between(1, most / of_q), t->hdim_v = of_v * between(1, most / of_v);
    if (on.is_gpu && t->kv_cache_dtype == TESSERA_KV_TURBO4) t->hdim_v = t->hdim_q;
    t->is_group_mode = (int32_t)below(2);
    t->has_logits_soft_cap = chance(3);
    t->bias_type = chance(3) ? TESSERA_BIAS_ALIBI : TESSERA_BIAS_NONE;
    t->has_lse = (int32_t)below(2), t->has_sink = chance(3);
}

// Strides of a tensor of pages in one of two orders of rows and heads; `row` elements of `even` more than they need.
static void choose_pages(const traits_t *t, const args_t *a, int32_t numbers, int64_t *page, int64_t *head,
                         int64_t *row) {
    const int is_turbo4 = t->kv_cache_dtype == TESSERA_KV_TURBO4;
    if (t->kv_memory_layout == TESSERA_KV_LINEAR) {
        // A norm of two bytes is behind the numbers of turbo4.
        choose_strides(a->nhead_k, a->page_block_size, is_turbo4 ? numbers / 2 + 2 : numbers, page, head, row);
        return;
    }
    *row = odd_stride(); // which nobody reads
    *head = (int64_t)a->page_block_size * numbers + (chance(3) ? 16 * between(0, 2) : 0);
    *page = *head * a->nhead_k + (chance(3) ? 16 * between(0, 2) : 0);
}

// Scales of the tensor, of pages and heads, or of rows.
static void choose_scales(const args_t *a, int is_norm, int64_t *page, int64_t *head, int64_t *row) {
    const uint32_t kind = is_norm ? 2 : below(3);
    *page = *head = *row = 0;
    if (kind == 1) *head = 1, *page = a->nhead_k;
    if (kind == 2) choose_strides(a->nhead_k, a->page_block_size, 1, page, head, row);
}

static void choose_cache(const traits_t *t, args_t *a) {
    const int is_turbo4 = t->kv_cache_dtype == TESSERA_KV_TURBO4;
    const int rows = shape == WIDE ? 16 : 128; // that the rooms hold
    const int32_t piece = t->kv_memory_layout == TESSERA_KV_VECTORIZED          ? 16 / cache_bytes(t)
                          : t->kv_memory_layout == TESSERA_KV_VLLM && on.is_gpu ? 8
                                                                                : 1;
    do a->page_block_size = 1 << between(0, 5);
    while (a->page_block_size > rows || a->page_block_size < piece);
    a->num_total_pages = between(1, rows / a->page_block_size);
    a->max_seqlen_k = between(0, shape == WIDE ? 20 : 300);
    choose_pages(t, a, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_pages(t, a, t->hdim_v, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    if (is_turbo4) a->centroids_ptr = room(CENTROIDS);
    if (t->kv_cache_dtype == TESSERA_KV_AUTO || chance(3)) return;
    a->k_scale_ptr = room(K_SCALE), a->v_scale_ptr = room(V_SCALE);
    choose_scales(a, is_turbo4, &a->batch_stride_k_scale, &a->nhead_stride_k_scale, &a->stride_k_scale);
    choose_scales(a, is_turbo4, &a->batch_stride_v_scale, &a->nhead_stride_v_scale, &a->stride_v_scale);
}

static void choose_sequences(const traits_t *t, args_t *a) {
    int32_t *const starts = room(SEQSTART_Q), *const keys = room(SEQLEN_K), *const table = room(BLOCK_TABLE);
    const int32_t columns = (a->max_seqlen_k + a->page_block_size - 1) / a->page_block_size;
    a->batch_stride_block_table = columns + between(0, 3);
    starts[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        starts[b + 1] = starts[b] + between(0, a->max_seqlen_q + 1); // one more: a sequence in prefill
        keys[b] = chance(6) ? 0 : between(0, a->max_seqlen_k);
        for (int32_t page = 0; page < columns; page++) // entries behind the last page may be anything
            table[b * a->batch_stride_block_table + page] =
                page * a->page_block_size < keys[b] ? (int32_t)below((uint32_t)a->num_total_pages) : odd_int();
    }
    a->seqlen_k_ptr = keys, a->block_table_ptr = table;
    if (t->is_group_mode) a->seqstart_q_ptr = starts;
}

static void choose_args(const traits_t *t, args_t *a) {
    *a = tessera_paged_attention_args_init();
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v;
    a->batch = between(1, LENGTHS - 1), a->nhead_k = between(1, 2), a->nhead_q = a->nhead_k * between(1, 5);
    a->max_seqlen_q = between(0, 4);
    choose_cache(t, a);
    choose_sequences(t, a);
    const int64_t tokens = t->is_group_mode ? ((int32_t *)room(SEQSTART_Q))[a->batch] : a->max_seqlen_q;
    int64_t unused;
    choose_strides(a->nhead_q, tokens, t->hdim_q, &a->batch_stride_q, &a->nhead_stride_q, &a->stride_q);
    choose_strides(a->nhead_q, tokens, t->hdim_v, &a->batch_stride_o, &a->nhead_stride_o, &a->stride_o);
    choose_strides(a->nhead_q, 1, tokens, &a->batch_stride_lse, &a->nhead_stride_lse, &unused);
    const int bytes = bytes_of(t);
    a->q_ptr = odd_room(Q, bytes), a->o_ptr = odd_room(O, bytes), a->lse_ptr = odd_room(LSE, 4);
    a->k_ptr = odd_room(K, cache_bytes(t)), a->v_ptr = odd_room(V, cache_bytes(t));
    a->alibi_slopes_ptr = odd_room(SLOPES_, 4), a->sink_ptr = odd_room(SINK, 4);
    a->sliding_window = chance(3) ? between(1, 90) : 0;
    a->num_splits = chance(2) ? between(1, 128) : 0;
    a->scale_s = (float)(uniform(-1, 1) / sqrt(t->hdim_q) / (t->kv_cache_dtype == TESSERA_KV_INT8 ? 64 : 1));
    a->logits_soft_cap = (float)uniform(0.5, 50);
}

// ---- inputs

// Norms of turbo4 behind the numbers of rows: 0.25 to 1.
static void write_norms(const args_t *a, const void *slots, int32_t numbers, int64_t page, int64_t head, int64_t row) {
    for (int32_t p = 0; p < a->num_total_pages; p++)
        for (int32_t h = 0; h < a->nhead_k; h++)
            for (int32_t r = 0; r < a->page_block_size; r++) {
                const uint16_t norm = element_encode_fp16(0.25 + 0.75 / (1 + (p + h + r) % 5));
                memcpy((char *)(uintptr_t)slots + p * page + h * head + r * row + numbers / 2, &norm, sizeof norm);
            }
}

// Sometimes NaN and infinities: in q and k, or where queries see all keys in v and the scales of its rows. Where all
// scores are -inf nothing is said of v; nor whether one scale of all v meets it before or after sums.
static void choose_special(const traits_t *t, const args_t *a, enum pattern q, enum pattern cached) {
    const enum pattern scale = t->kv_cache_dtype == TESSERA_KV_TURBO4 ? FP16 : FP32;
    const int32_t rows = between(1, 12), has_numbers = cached != E2M1; // which are not any bytes
    if (!chance(8)) return;
    if (chance(2)) {
        if (chance(2)) sprinkle(Q, a->q_ptr, q, rows * t->hdim_q);
        if (chance(2) && has_numbers) sprinkle(K, a->k_ptr, cached, rows * t->hdim_q);
        if (chance(2) && a->k_scale_ptr) sprinkle(K_SCALE, a->k_scale_ptr, scale, rows);
        return;
    }
    if (a->max_seqlen_q > 1 || a->sliding_window) return;
    if (has_numbers) sprinkle(V, a->v_ptr, cached, rows * t->hdim_v);
    if (a->v_scale_ptr && a->stride_v_scale > 0) sprinkle(V_SCALE, a->v_scale_ptr, scale, rows);
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    static const enum pattern elements[] = {FP32, FP16, BF16};
    const enum pattern cached[TESSERA_KV_CACHE_DTYPE_COUNT] = {
        [TESSERA_KV_AUTO] = elements[t->data_type],
        [TESSERA_KV_FP8_E4M3] = E4M3,
        [TESSERA_KV_INT8] = E2M1, // any bytes
        [TESSERA_KV_TURBO4] = E2M1,
    };
    const int is_turbo4 = t->kv_cache_dtype == TESSERA_KV_TURBO4;
    fill_room(Q, elements[t->data_type]);
    fill_room(K, cached[t->kv_cache_dtype]), fill_room(V, cached[t->kv_cache_dtype]);
    fill_room(K_SCALE, is_turbo4 ? FP16 : FP32), fill_room(V_SCALE, is_turbo4 ? FP16 : FP32);
    fill_room(CENTROIDS, FP32), fill_room(SLOPES_, SLOPES), fill_room(SINK, FP32);
    choose_special(t, a, elements[t->data_type], cached[t->kv_cache_dtype]);
    if (!is_turbo4 || a->k_scale_ptr) return;
    write_norms(a, a->k_ptr, t->hdim_q, a->batch_stride_k, a->nhead_stride_k, a->stride_k);
    write_norms(a, a->v_ptr, t->hdim_v, a->batch_stride_v, a->nhead_stride_v, a->stride_v);
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, has_sink); // enums and int32 alike
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, batch, sliding_window),
        RUN(FLOATS, args_t, scale_s, logits_soft_cap),
        RUN(STRIDES, args_t, batch_stride_block_table, batch_stride_v_scale),
        RUN(INTS, args_t, num_splits, num_splits),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, BLOCK_TABLE)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, hdim_v, 0),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, max_seqlen_q, -1),
    WRONG(0, args_t, max_seqlen_k, -1),
    WRONG(0, args_t, num_total_pages, -1),
    WRONG(0, args_t, page_block_size, 0),
    WRONG(0, args_t, page_block_size, 24),
    WRONG(0, args_t, page_block_size, 131072),
    WRONG(0, args_t, sliding_window, -1),
    WRONG(0, args_t, num_splits, 129),
    WRONG(0, args_t, num_splits, -1),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_FP8),
    WRONG(1, traits_t, kv_cache_dtype, TESSERA_KV_CACHE_DTYPE_COUNT),
    WRONG(1, traits_t, kv_memory_layout, -1),
    WRONG(1, traits_t, is_group_mode, 2),
    WRONG(1, traits_t, bias_type, TESSERA_BIAS_ELEMENTWISE),
};

// ---- what the call may touch

// The last element of a tensor of pages, each of its own kind of rows.
static double last_of_pages(const traits_t *t, const args_t *a, int32_t numbers, int64_t page, int64_t head,
                            int64_t row) {
    const double rows = a->page_block_size, is_turbo4 = t->kv_cache_dtype == TESSERA_KV_TURBO4;
    if (t->kv_memory_layout == TESSERA_KV_LINEAR)
        return last_of(a->num_total_pages, a->nhead_k, rows, is_turbo4 ? numbers / 2 + 2 : numbers, page, head, row);
    return last_of(a->num_total_pages, a->nhead_k, 1, rows * numbers, page, head, 0);
}

// Whether the arrays of lengths and pages, which the check reads, lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    (void)t;
    if (a->batch < 1 || a->page_block_size < 1) return 1;
    const double columns = ceil((double)a->max_seqlen_k / a->page_block_size);
    return (!a->seqlen_k_ptr || fits(a->seqlen_k_ptr, a->batch - 1, 32, &unused)) &&
           (!a->seqstart_q_ptr || fits(a->seqstart_q_ptr, a->batch, 32, &unused)) &&
           (!a->block_table_ptr || (a->batch > 1 && a->batch_stride_block_table < 0) ||
            fits(a->block_table_ptr, last_of(a->batch, 1, 1, columns, a->batch_stride_block_table, 0, 0), 32, &unused));
}

// Whether everything that a successful call may read or write lies in the rooms. The library is not used to find out.
static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int group = t->is_group_mode, bits = 8 * bytes_of(t), cached = 8 * cache_bytes(t);
    const int scale_bits = t->kv_cache_dtype == TESSERA_KV_TURBO4 ? 16 : 32;
    const double batches = group ? 1 : a->batch;
    const double tokens = group ? ((const int32_t *)a->seqstart_q_ptr)[a->batch] : a->max_seqlen_q;
#define LAST(x, inner)                                                                                                 \
    last_of(batches, a->nhead_q, tokens, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x)
#define LAST_SCALE(x)                                                                                                  \
    last_of(a->num_total_pages, a->nhead_k, a->page_block_size, 1, a->batch_stride_##x##_scale,                        \
            a->nhead_stride_##x##_scale, a->stride_##x##_scale)
    int good = fits(a->q_ptr, LAST(q, a->hdim_q), bits, comparable) &&
               fits(a->o_ptr, LAST(o, a->hdim_v), bits, comparable) &&
               fits(a->k_ptr, last_of_pages(t, a, a->hdim_q, a->batch_stride_k, a->nhead_stride_k, a->stride_k), cached,
                    comparable) &&
               fits(a->v_ptr, last_of_pages(t, a, a->hdim_v, a->batch_stride_v, a->nhead_stride_v, a->stride_v), cached,
                    comparable);
    if (a->k_scale_ptr) good &= fits(a->k_scale_ptr, LAST_SCALE(k), scale_bits, comparable);
    if (a->v_scale_ptr) good &= fits(a->v_scale_ptr, LAST_SCALE(v), scale_bits, comparable);
#undef LAST_SCALE
#undef LAST
    if (a->centroids_ptr) good &= fits(a->centroids_ptr, 15, 32, comparable);
    if (t->bias_type == TESSERA_BIAS_ALIBI) good &= fits(a->alibi_slopes_ptr, a->nhead_q - 1, 32, comparable);
    if (t->has_sink) good &= fits(a->sink_ptr, a->nhead_q - 1, 32, comparable);
    if (t->has_lse)
        good &= fits(a->lse_ptr, last_of(batches, a->nhead_q, 1, tokens, a->batch_stride_lse, a->nhead_stride_lse, 0),
                     32, comparable);
    return good;
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    for (int32_t b = 0; b < a->batch; b++)
        for (int32_t h = 0; h < a->nhead_q; h++)
            for (int32_t i = 0; i < paged_attention_queries(t, a, b); i++) {
                const fmha_fwd_row row = {b, h, i};
                allow(paged_attention_o_row(t, a, &row), (int64_t)a->hdim_v * bytes_of(t));
                if (t->has_lse) allow(paged_attention_lse_of(t, a, &row), 4);
            }
}

// ---- verdicts

void fuzz_describe(void) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr, "  dtype %d kv %d layout %d d %d/%d group %d cap %d bias %d lse %d sink %d\n", (int)t->data_type,
            (int)t->kv_cache_dtype, (int)t->kv_memory_layout, t->hdim_q, t->hdim_v, t->is_group_mode,
            t->has_logits_soft_cap, (int)t->bias_type, t->has_lse, t->has_sink);
    fprintf(stderr, "  b %d h %d/%d max %d/%d pages %d of %d window %d splits %d scale %g cap %g scales %d\n", a->batch,
            a->nhead_q, a->nhead_k, a->max_seqlen_q, a->max_seqlen_k, a->num_total_pages, a->page_block_size,
            a->sliding_window, a->num_splits, (double)a->scale_s, (double)a->logits_soft_cap, a->k_scale_ptr != NULL);
}

struct compared {
    const traits_t *traits;
    const args_t *args;
};

static void fail_at(const struct compared *c, const fmha_fwd_row *row, const fmha_fwd_reference_row *want,
                    const char *what) {
    const tessera_type type = fmha_fwd_input_element(c->traits->data_type, TESSERA_FP8_NONE);
    const void *const o = paged_attention_o_row(c->traits, c->args, row);
    fprintf(stderr, "  sequence %d head %d query %d: lse should be %g, o:\n", row->batch, row->head, row->query,
            want->lse);
    for (int32_t d = 0; d < c->args->hdim_v; d++)
        fprintf(stderr, "    %2d: %g, should be %g\n", d, element_load(type, o, d), want->o[d]);
    fail(what);
}

static int is_query_infinite(const struct compared *c, const fmha_fwd_row *row) {
    const args_t *const a = c->args;
    const tessera_type type = fmha_fwd_input_element(c->traits->data_type, TESSERA_FP8_NONE);
    const int32_t *const starts = a->seqstart_q_ptr;
    const int64_t token = (c->traits->is_group_mode ? starts[row->batch] : 0) + row->query;
    const int64_t at = (c->traits->is_group_mode ? 0 : row->batch * a->batch_stride_q) + row->head * a->nhead_stride_q +
                       token * a->stride_q;
    int is = 0;
    for (int32_t d = 0; d < a->hdim_q; d++) is |= isinf(element_load(type, a->q_ptr, at + d)) != 0;
    return is;
}

static void check_row(void *user, int64_t number, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const struct compared *const c = user;
    const fmha_fwd_tolerance tolerance = fmha_fwd_tolerance_of(c->traits->data_type, on.name);
    const tessera_type type = fmha_fwd_input_element(c->traits->data_type, TESSERA_FP8_NONE);
    const void *o = paged_attention_o_row(c->traits, c->args, row);
    double error = 0;
    (void)number;
    if (c->traits->kv_cache_dtype != TESSERA_KV_AUTO && is_query_infinite(c, row)) return; // there may be NaN
    o = with_infinities(type, o, want->o, c->args->hdim_v);
    if (!(fmha_fwd_compare_row(type, o, want, c->args->hdim_v, &tolerance, &error) <= 1))
        fail_at(c, row, want, "o differs from the reference");
    if (c->traits->has_lse &&
        !(fmha_fwd_compare_lse(*paged_attention_lse_of(c->traits, c->args, row), want, &tolerance, &error) <= 1))
        fail_at(c, row, want, "lse differs from the reference");
    counts.rows++;
}

static void compare(const traits_t *t, const args_t *a) {
    struct compared compared = {t, a};
    if (paged_attention_reference(t, a, check_row, &compared) < 0) fail("the reference ran out of memory");
}

// ---- one iteration

FUZZ_PROGRAM(paged_attention)
