// SPDX-License-Identifier: MIT
// tile_example_kv_cache: appends to the caches of sequences, as CK's tile_example_fmha_fwd does before attention, and
// verifies the whole cache.
#include <stdlib.h>
#include <string.h>

#include "appendkv_reference.h"
#include "elements.h"
#include "json.h"
#include "program.h"
#include "random.h"
#include "tessera/fmha_fwd_appendkv.h"

typedef struct options {
    example_options common;
    int32_t b, h, h_k, s, s_k, s_knew, d, d_v, iperm, causal, page_block_size, cache_batch_idx;
    int32_t rotary_dim, rotary_interleaved, pad, misalign;
    const char *prec;
} options;

// ---- arguments

#define OPTION(name) #name, EXAMPLE_INTEGER, offsetof(options, name), 0
#define FLAG(name) #name, EXAMPLE_FLAG, offsetof(options, name), 0
static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1", "verification against the fp64 reference: 0 none, 1 all"},
    {OPTION(b), "2", "number of sequences"},
    {OPTION(h), "8", "heads of q"},
    {OPTION(h_k), "-1", "heads of k and v, a divisor of h; -1: h"},
    {OPTION(s), "1", "queries of a sequence, which -rotary_dim rotates"},
    {OPTION(s_k), "1024", "the most keys of a sequence, new ones included; others have fewer, by -seed"},
    {OPTION(s_knew), "1", "new keys of a sequence; -1: by -seed, up to -s"},
    {OPTION(d), "128", "head dim of q and k, 1 to 512"},
    {OPTION(d_v), "-1", "head dim of v, 1 to 512; -1: d"},
    {FLAG(iperm), "1", "tensors lie as 1: b*h*s*d, 0: b*s*h*d"},
    {"prec", EXAMPLE_TEXT, offsetof(options, prec), 0, "fp16", "fp32, fp16, bf16, fp8, fp8bf16 or fp8fp32"},
    {FLAG(causal), "0", "1: each query has a position of its own; 0: all that of the first"},
    {OPTION(page_block_size), "0", "keys of a page; 0: the cache has no pages"},
    {FLAG(cache_batch_idx), "0", "1: the sequences lie in the cache in another order, without pages"},
    {OPTION(rotary_dim), "0", "elements of a row that are rotated, a multiple of 16; 0: none"},
    {FLAG(rotary_interleaved), "1", "rotated together are 1: neighbours, 0: elements half of rotary_dim apart"},
    {OPTION(pad), "0", "elements between the rows of every tensor"},
    {OPTION(misalign), "0", "elements by which every tensor begins behind a multiple of 64 bytes"},
    EXAMPLE_KNAME("1"),
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939", "seed of inputs and lengths; 0: another every time"},
    EXAMPLE_TIMING_AND_JSON("kv_cache.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    options *o = values;
    const struct {
        const char *name;
        int32_t value, least;
    } least[] = {{"b", o->b, 1},
                 {"h", o->h, 1},
                 {"s", o->s, 0},
                 {"s_k", o->s_k, 0},
                 {"s_knew", o->s_knew, -1},
                 {"page_block_size", o->page_block_size, 0},
                 {"pad", o->pad, 0},
                 {"misalign", o->misalign, 0},
                 {"rotary_dim", o->rotary_dim, 0}};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        if (least[i].value < least[i].least) {
            snprintf(message, size, "-%s=%d: at least %d", least[i].name, least[i].value, least[i].least);
            return -1;
        }
    if (o->h_k == -1) o->h_k = o->h;
    if (o->d_v == -1) o->d_v = o->d;
    if (o->page_block_size && o->cache_batch_idx) {
        snprintf(message, size, "-cache_batch_idx=1: without -page_block_size, whose table finds pages");
        return -1;
    }
    if (o->s_knew > o->s_k) {
        snprintf(message, size, "-s_knew=%d: at most -s_k, %d, which includes them", o->s_knew, o->s_k);
        return -1;
    }
    return 0;
}

static const example_arguments arguments = {
    .does = "Appends keys and values to a cache, rotates them and queries, times it and checks the whole cache.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(options),
    .settle = settle_arguments,
};

// ---- tensors

enum { Q, KNEW, VNEW, COS, SIN, SEQLEN_K, BLOCK_TABLE, CACHE_BATCH_IDX, Q_ROTATED, K, V, TENSORS };

#define POINTER(name) #name, offsetof(tessera_fmha_fwd_appendkv_args, name##_ptr)
static const example_tensor tensors[TENSORS] = {
    [Q] = {POINTER(q)},
    [KNEW] = {POINTER(knew)},
    [VNEW] = {POINTER(vnew)},
    [COS] = {POINTER(rotary_cos)},
    [SIN] = {POINTER(rotary_sin)},
    [SEQLEN_K] = {POINTER(seqlen_k)},
    [BLOCK_TABLE] = {POINTER(block_table)},
    [CACHE_BATCH_IDX] = {"cache_batch_idx", offsetof(tessera_fmha_fwd_appendkv_args, cache_batch_idx)},
    [Q_ROTATED] = {POINTER(q_rotated)},
    [K] = {POINTER(k)},
    [V] = {POINTER(v)},
};

typedef struct problem {
    example_problem base;
    options options;
    tessera_fmha_fwd_appendkv_traits traits;
    tessera_fmha_fwd_appendkv_args args;
    tessera_type type;
    int32_t spare; // sequences, or pages, of the cache that none of the call's is in
    appendkv_verdict verdict;
} problem;

// Sequences, or pages, of the cache beside those that are used: so that their order may be any.
enum { SPARE = 2 };

static int64_t pages_of_sequence(const options *o) {
    return ((int64_t)o->s_k + o->page_block_size - 1) / o->page_block_size;
}

// Rows that a sequence has room for, and sequences, or pages, that are used.
static int64_t room_of_sequence(const options *o) {
    return o->page_block_size ? pages_of_sequence(o) * o->page_block_size : o->s_k;
}
static int64_t blocks_in_use(const options *o) { return o->page_block_size ? o->b * pages_of_sequence(o) : o->b; }

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    tessera_fmha_dtype dtype;
    p->options = *(const options *)values;
    base->options = &o->common;
    base->traits = &p->traits;
    base->args = &p->args;
    p->args = tessera_fmha_fwd_appendkv_args_init(); // before -instance names one
    base->misalign = o->misalign;
    if (tessera_fmha_dtype_from_string(o->prec, &dtype) != TESSERA_SUCCESS || dtype >= TESSERA_FMHA_MXFP8)
        return EXAMPLE_WRONG("-prec=%s: fp32, fp16, bf16, fp8, fp8bf16 or fp8fp32", o->prec);
    static const tessera_type types[] = {TESSERA_TYPE_FP32, TESSERA_TYPE_FP16, TESSERA_TYPE_BF16};
    p->type = dtype <= TESSERA_FMHA_BF16 ? types[dtype] : TESSERA_TYPE_E4M3;
    if ((int64_t)o->s + o->s_k > INT32_MAX || room_of_sequence(o) > INT32_MAX || blocks_in_use(o) > INT32_MAX - SPARE)
        return EXAMPLE_WRONG("-b=%d -s=%d -s_k=%d -page_block_size=%d: positions, rows of a sequence and pages are at "
                             "most %d",
                             o->b, o->s, o->s_k, o->page_block_size, INT32_MAX - SPARE);
    uint64_t state = base->seed;
    if (o->s_knew == -1)
        p->options.s_knew = (int32_t)(example_random(&state) % (uint64_t)((o->s < o->s_k ? o->s : o->s_k) + 1));
    p->traits = tessera_fmha_fwd_appendkv_traits_init();
    p->traits.hdim_q = o->d, p->traits.hdim_v = o->d_v;
    p->traits.data_type = dtype;
    p->traits.rope_type = !o->rotary_dim          ? TESSERA_ROPE_NONE
                          : o->rotary_interleaved ? TESSERA_ROPE_INTERLEAVED
                                                  : TESSERA_ROPE_HALF;
    snprintf(base->sizes, sizeof base->sizes, "-b=%d -s_k=%d -d=%d", o->b, o->s_k, o->d);
    return EXAMPLE_OK;
}

// Sets the strides of `blocks` blocks of heads and rows; returns the elements.
static int64_t lie(const options *o, int64_t blocks, int64_t heads, int64_t rows, int64_t columns, int64_t *batch,
                   int64_t *head, int64_t *row) {
    const int64_t all = columns + o->pad;
    *row = o->iperm ? all : example_times(heads, all);
    *head = o->iperm ? example_times(rows, all) : all;
    *batch = example_times(example_times(heads, rows), all);
    return example_times(blocks, *batch);
}
#define LIE(x, blocks, heads, rows, columns)                                                                           \
    lie(o, blocks, heads, rows, columns, &a->batch_stride_##x, &a->nhead_stride_##x, &a->stride_##x)

static example_outcome lay_out(example_problem *base, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    tessera_fmha_fwd_appendkv_args *a = &p->args;
    const int32_t bits = element_bits(p->type), pages = o->page_block_size ? (int32_t)pages_of_sequence(o) : 0;
    (void)result;
    a->batch = o->b, a->nhead_q = o->h, a->nhead_k = o->h_k, a->hdim_q = o->d, a->hdim_v = o->d_v;
    a->seqlen_q = o->s, a->seqlen_knew = o->s_knew, a->has_mask = o->causal;
    a->rotary_dim = o->rotary_dim, a->rotary_rows = o->rotary_dim ? o->s_k + o->s : 0;
    a->page_block_size = o->page_block_size;
    a->max_seqlen_k = (int32_t)room_of_sequence(o);
    a->cache_blocks = (int32_t)blocks_in_use(o) + (o->cache_batch_idx || pages ? SPARE : 0);
    a->batch_stride_block_table = pages;
    const int32_t rows = pages ? o->page_block_size : o->s_k;
    example_use(base, KNEW, LIE(knew, o->b, o->h_k, o->s_knew, o->d), bits);
    example_use(base, VNEW, LIE(vnew, o->b, o->h_k, o->s_knew, o->d_v), bits);
    example_use(base, K, LIE(k, a->cache_blocks, o->h_k, rows, o->d), bits);
    example_use(base, V, LIE(v, a->cache_blocks, o->h_k, rows, o->d_v), bits);
    example_use(base, SEQLEN_K, o->b, 32);
    if (pages) example_use(base, BLOCK_TABLE, example_times(o->b, pages), 32);
    if (o->cache_batch_idx) example_use(base, CACHE_BATCH_IDX, o->b, 32);
    if (!o->rotary_dim) return EXAMPLE_OK;
    example_use(base, Q, LIE(q, o->b, o->h, o->s, o->d), bits);
    example_use(base, Q_ROTATED, LIE(q_rotated, o->b, o->h, o->s, o->d), bits);
    example_use(base, COS, example_times(a->rotary_rows, o->rotary_dim / 2), bits);
    example_use(base, SIN, example_times(a->rotary_rows, o->rotary_dim / 2), bits);
    return EXAMPLE_OK;
}

// ---- inputs

// The first `used` of the numbers 0 .. count - 1 in any order.
static void draw_order(uint64_t state, int32_t count, int32_t used, int32_t *out) {
    int32_t *all = malloc(sizeof *all * (size_t)count);
    if (!all) abort();
    for (int32_t i = 0; i < count; i++) all[i] = i;
    for (int32_t i = 0; i < used; i++) {
        const int32_t other = i + (int32_t)(example_random(&state) % (uint64_t)(count - i));
        out[i] = all[other];
        all[other] = all[i];
    }
    free(all);
}

// Lengths before the call: the first sequence is the longest.
static void put(example_problem *base) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    int32_t *const lengths = example_pointer(base, SEQLEN_K);
    uint64_t state = base->seed + SEQLEN_K;
    const int32_t most = o->s_k - o->s_knew;
    for (int32_t b = 0; b < o->b; b++)
        lengths[b] = b == 0 ? most : (int32_t)(example_random(&state) % (uint64_t)(most + 1));
    int32_t *const pages = example_pointer(base, BLOCK_TABLE), *const ids = example_pointer(base, CACHE_BATCH_IDX);
    if (pages) draw_order(base->seed + BLOCK_TABLE, p->args.cache_blocks, (int32_t)blocks_in_use(o), pages);
    if (ids) draw_order(base->seed + CACHE_BATCH_IDX, p->args.cache_blocks, o->b, ids);
}

static void fill_tensor(const problem *p, int tensor, void *to) {
    uint64_t state = p->base.seed * TENSORS + (uint64_t)tensor;
    const int64_t count = p->base.buffers[tensor].bytes / (element_bits(p->type) / 8);
    state = example_random(&state);
    for (int64_t i = 0; i < count; i++) element_store(p->type, to, i, example_uniform(&state, -1, 1));
}

static void fill(example_problem *base) {
    static const int filled[] = {Q, KNEW, VNEW, COS, SIN, K, V};
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++)
        if (base->buffers[filled[i]].used) fill_tensor((problem *)base, filled[i], example_pointer(base, filled[i]));
}

// ---- work, verification, output

static void count_work(const example_problem *base, example_result *result) {
    const problem *p = (const problem *)base;
    const options *o = &p->options;
    const double keys = (double)o->b * o->s_knew * o->h_k, queries = o->rotary_dim ? (double)o->b * o->s * o->h : 0;
    result->bytes = 2 * (keys * (o->d + o->d_v) + queries * o->d) * element_bits(p->type) / 8;
    result->rows = (int64_t)(keys + queries);
}

#define TENSOR(n, x, width)                                                                                            \
    { example_pointer(base, n), a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x, width }

// What an output held before the call.
static appendkv_output output(const problem *p, int tensor, appendkv_tensor now) {
    const example_buffer *const buffer = &p->base.buffers[tensor];
    appendkv_output out = {now, NULL, buffer->used ? buffer->bytes : 0, tensors[tensor].name};
    if (!buffer->used) return out;
    out.before = malloc((size_t)buffer->bytes + 1);
    if (!out.before) abort();
    if (tensor == Q_ROTATED)
        memset(out.before, EXAMPLE_UNWRITTEN_BYTE, (size_t)buffer->bytes);
    else
        fill_tensor(p, tensor, out.before);
    return out;
}

static example_outcome verify(example_problem *base, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    const tessera_fmha_fwd_appendkv_args *a = &p->args;
    appendkv_call call = {.type = p->type,
                          .rope = p->traits.rope_type,
                          .batch = o->b,
                          .heads_q = o->h,
                          .heads_k = o->h_k,
                          .queries = o->s,
                          .added = o->s_knew,
                          .rotary_dim = o->rotary_dim,
                          .positions_differ = o->causal,
                          .keys_before = example_pointer(base, SEQLEN_K),
                          .pages = example_pointer(base, BLOCK_TABLE),
                          .page_size = o->page_block_size,
                          .table_stride = (int32_t)a->batch_stride_block_table,
                          .cache_of = example_pointer(base, CACHE_BATCH_IDX),
                          .q = TENSOR(Q, q, o->d),
                          .knew = TENSOR(KNEW, knew, o->d),
                          .vnew = TENSOR(VNEW, vnew, o->d_v),
                          .cos = example_pointer(base, COS),
                          .sin = example_pointer(base, SIN)};
    call.k = output(p, K, (appendkv_tensor)TENSOR(K, k, o->d));
    call.v = output(p, V, (appendkv_tensor)TENSOR(V, v, o->d_v));
    call.q_rotated = output(p, Q_ROTATED, (appendkv_tensor)TENSOR(Q_ROTATED, q_rotated, o->d));
    appendkv_check(&call, &p->verdict);
    free(call.k.before), free(call.v.before), free(call.q_rotated.before);
    result->rows_checked = result->rows;
    if (p->verdict.wrong) return example_fail(result, EXAMPLE_WRONG_RESULT, "%s", p->verdict.first);
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const options *o = &((const problem *)base)->options;
    fprintf(file, "[%s|%s] b:%d, h:%d/%d, s:%d, s_k:%d, s_knew:%d, d:%d/%d", o->prec, o->iperm ? "bhsd" : "bshd", o->b,
            o->h, o->h_k, o->s, o->s_k, o->s_knew, o->d, o->d_v);
    if (o->page_block_size) fprintf(file, ", page_block_size:%d", o->page_block_size);
    if (o->rotary_dim) fprintf(file, ", rotary_dim:%d(%s)", o->rotary_dim, o->rotary_interleaved ? "inter" : "half");
}

static void put_error(const example_problem *base, FILE *file) {
    const appendkv_verdict *verdict = &((const problem *)base)->verdict;
    example_put_integer(file, "elements_verified", verdict->checked);
    example_put_integer(file, "elements_wrong", verdict->wrong);
}

EXAMPLE_CALLS(fmha_fwd_appendkv)
const example_program appendkv_program = {
    .name = "tile_example_kv_cache",
    .arguments = &arguments,
    .calls = &fmha_fwd_appendkv_calls,
    .tensors = tensors,
    .tensor_count = TENSORS,
    .first_output = Q_ROTATED,
    .problem_bytes = sizeof(problem),
    .not_supported = " not supported!",
    .in_microseconds = 1,
    .settle = settle,
    .lay_out = lay_out,
    .put = put,
    .fill = fill,
    .count = count_work,
    .verify = verify,
    .print = print,
    .put_error = put_error,
};
