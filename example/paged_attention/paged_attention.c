// SPDX-License-Identifier: MIT
// tile_example_paged_attention: decodes over pages, as vLLM and AITER do it, and verifies every row.
#include <math.h>
#include <string.h>

#include "elements.h"
#include "json.h"
#include "paged_attention_reference.h"
#include "program.h"
#include "random.h"
#include "tessera/turbo4.h"

typedef struct options {
    example_options common;
    int32_t b, h, h_k, ctx, varlen, qlen, mixed, d, d_v, block_size, window, alibi, sink, lse, slot, num_splits;
    float softcap;
    const char *prec, *kv_cache_dtype, *kv_scale, *kv_layout;
} options;

// ---- arguments

#define OPTION(name) #name, EXAMPLE_INTEGER, offsetof(options, name), 0
#define FLAG(name) #name, EXAMPLE_FLAG, offsetof(options, name), 0
#define WORD(name) #name, EXAMPLE_TEXT, offsetof(options, name), 0
static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1", "verification against the fp64 reference: 0 none, 1 all"},
    {OPTION(b), "2", "number of sequences"},
    {OPTION(h), "8", "heads of q"},
    {OPTION(h_k), "-1", "heads of k and v, a divisor of h; -1: h"},
    {OPTION(ctx), "1024", "the most keys of a sequence, those of its queries included"},
    {FLAG(varlen), "0", "1: other sequences than the first have fewer keys, by -seed"},
    {OPTION(qlen), "1", "queries of a sequence, the last of which sees all keys"},
    {FLAG(mixed), "0",
     "1: queries are found by offsets, and each second sequence is in prefill, with qlen + 1 of them"},
    {OPTION(d), "128", "head dim of q and k, 1 to 512"},
    {OPTION(d_v), "-1", "head dim of v, 1 to 512; -1: d"},
    {WORD(prec), "bf16", "type of q and o: fp32, fp16 or bf16"},
    {WORD(kv_cache_dtype), "auto", "type of k and v: auto (prec), fp8_e4m3, int8 or turbo4 (4 bits)"},
    {WORD(kv_scale), "none",
     "scales of a quantised cache: none, tensor, page (and head) or token (and head); norms of turbo4: none (in slots) "
     "or token (apart)"},
    {OPTION(slot), "-1", "bytes of a slot of turbo4; -1: no more than it needs"},
    {WORD(kv_layout), "nhd",
     "a page's: nhd [P,h_k,d], hnd [h_k,P,d], vllm k [h_k,d/x,P,x] v [h_k,d,P], vectorized v [h_k,P/x,d,x]"},
    {OPTION(block_size), "16", "keys of a page, a power of two"},
    {OPTION(window), "0", "the last keys that a query sees; 0: all"},
    {"softcap", EXAMPLE_REAL, offsetof(options, softcap), 0, "0", "soft cap of scores; 0: none"},
    {FLAG(alibi), "0", "1: alibi's bias"},
    {FLAG(sink), "0", "1: a learned logit for each head in the denominator"},
    {FLAG(lse), "0", "1: the logarithm of the denominator is stored"},
    {OPTION(num_splits), "0", "parts of each sequence's keys, up to 128; 0: as many as pay"},
    EXAMPLE_KNAME("1"),
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939", "seed of inputs and lengths; 0: another every time"},
    EXAMPLE_TIMING_AND_JSON("paged_attention.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    options *o = values;
    const struct {
        const char *name;
        int32_t value, least;
    } least[] = {
        {"b", o->b, 1}, {"h", o->h, 1}, {"ctx", o->ctx, 0}, {"qlen", o->qlen, 0}, {"block_size", o->block_size, 1}};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        if (least[i].value < least[i].least)
            return example_refuse(message, size, "-%s=%d: at least %d", least[i].name, least[i].value, least[i].least);
    if (o->h_k == -1) o->h_k = o->h;
    if (o->d_v == -1) o->d_v = o->d;
    return 0;
}

static const example_arguments arguments = {
    .does = "Decodes over pages of keys and values, times it and checks every row.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(options),
    .settle = settle_arguments,
};

// ---- tensors

enum { Q, K, V, K_SCALE, V_SCALE, CENTROIDS, SLOPES, SINK, SEQSTART_Q, SEQLEN_K, BLOCK_TABLE, O, LSE, TENSORS };

#define POINTER(name) #name, offsetof(tessera_paged_attention_args, name##_ptr)
static const example_tensor tensors[TENSORS] = {
    [Q] = {POINTER(q)},
    [K] = {POINTER(k)},
    [V] = {POINTER(v)},
    [K_SCALE] = {POINTER(k_scale)},
    [V_SCALE] = {POINTER(v_scale)},
    [CENTROIDS] = {POINTER(centroids)},
    [SLOPES] = {POINTER(alibi_slopes)},
    [SINK] = {POINTER(sink)},
    [SEQSTART_Q] = {POINTER(seqstart_q)},
    [SEQLEN_K] = {POINTER(seqlen_k)},
    [BLOCK_TABLE] = {POINTER(block_table)},
    [O] = {POINTER(o)},
    [LSE] = {POINTER(lse)},
};

typedef enum scaling { SCALING_NONE, SCALING_TENSOR, SCALING_PAGE, SCALING_TOKEN, SCALINGS } scaling;
static const char *const scalings[SCALINGS] = {"none", "tensor", "page", "token"};
typedef enum layout { NHD, HND, VLLM, VECTORIZED, LAYOUTS } layout;
static const char *const layouts[LAYOUTS] = {"nhd", "hnd", "vllm", "vectorized"};

typedef struct problem {
    example_problem base;
    options options;
    tessera_paged_attention_traits traits;
    tessera_paged_attention_args args;
    tessera_type type, cached; // of q and o, and of k and v
    scaling scaling;
    layout layout;
    // What the verification found.
    int64_t checked, wrong;
    double max_error, worst;
    char first[160];
} problem;

// Pages of the cache that no sequence has, so that the order of the others may be any.
enum { SPARE = 2 };

static int word_of(const char *const *words, int count, const char *text) {
    for (int i = 0; i < count; i++)
        if (!strcmp(words[i], text)) return i;
    return -1;
}

static example_outcome settle_words(problem *p, example_result *result) {
    static const tessera_type types[] = {TESSERA_TYPE_FP32, TESSERA_TYPE_FP16, TESSERA_TYPE_BF16};
    static const tessera_type cached[TESSERA_KV_CACHE_DTYPE_COUNT] = {
        [TESSERA_KV_FP8_E4M3] = TESSERA_TYPE_E4M3,
        [TESSERA_KV_INT8] = TESSERA_TYPE_INT8,
        [TESSERA_KV_TURBO4] = TESSERA_TYPE_INT8, // of two numbers, or a byte of a norm
    };
    const options *o = &p->options;
    tessera_paged_attention_traits *const t = &p->traits;
    const int scale = word_of(scalings, SCALINGS, o->kv_scale), place = word_of(layouts, LAYOUTS, o->kv_layout);
    if (tessera_fmha_dtype_from_string(o->prec, &t->data_type) != TESSERA_SUCCESS || t->data_type > TESSERA_FMHA_BF16)
        return EXAMPLE_WRONG("-prec=%s: fp32, fp16 or bf16", o->prec);
    if (tessera_kv_cache_dtype_from_string(o->kv_cache_dtype, &t->kv_cache_dtype) != TESSERA_SUCCESS)
        return EXAMPLE_WRONG("-kv_cache_dtype=%s: auto, fp8_e4m3, int8 or turbo4", o->kv_cache_dtype);
    if (scale < 0) return EXAMPLE_WRONG("-kv_scale=%s: none, tensor, page or token", o->kv_scale);
    if (t->kv_cache_dtype == TESSERA_KV_TURBO4 && scale != SCALING_NONE && scale != SCALING_TOKEN)
        return EXAMPLE_WRONG("-kv_scale=%s: norms of turbo4 lie in slots (none) or apart (token)", o->kv_scale);
    if (place < 0) return EXAMPLE_WRONG("-kv_layout=%s: nhd, hnd, vllm or vectorized", o->kv_layout);
    p->type = types[t->data_type];
    p->cached = t->kv_cache_dtype == TESSERA_KV_AUTO ? p->type : cached[t->kv_cache_dtype];
    p->scaling = (scaling)scale;
    p->layout = (layout)place;
    t->kv_memory_layout = p->layout == VLLM         ? TESSERA_KV_VLLM
                          : p->layout == VECTORIZED ? TESSERA_KV_VECTORIZED
                                                    : TESSERA_KV_LINEAR;
    return EXAMPLE_OK;
}

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    tessera_paged_attention_traits *const t = &p->traits;
    p->options = *(const options *)values;
    base->options = &o->common;
    base->traits = t;
    base->args = &p->args;
    p->args = tessera_paged_attention_args_init(); // before -instance names one
    *t = tessera_paged_attention_traits_init();
    if (settle_words(p, result)) return result->outcome;
    t->hdim_q = o->d, t->hdim_v = o->d_v;
    t->is_group_mode = o->mixed;
    t->has_logits_soft_cap = o->softcap != 0;
    t->bias_type = o->alibi ? TESSERA_BIAS_ALIBI : TESSERA_BIAS_NONE;
    t->has_lse = o->lse;
    t->has_sink = o->sink;
    snprintf(base->sizes, sizeof base->sizes, "-b=%d -ctx=%d -d=%d", o->b, o->ctx, o->d);
    return EXAMPLE_OK;
}

static int32_t queries_of(const options *o, int32_t b) { return o->mixed && b % 2 ? o->qlen + 1 : o->qlen; }

static int is_turbo4(const problem *p) { return p->traits.kv_cache_dtype == TESSERA_KV_TURBO4; }

// What strides of the cache count: elements of a row, or bytes of a slot.
static int32_t row_of(const problem *p, int32_t hdim) {
    if (!is_turbo4(p)) return hdim;
    return p->options.slot > 0 ? p->options.slot : hdim / 2 + (p->scaling == SCALING_NONE ? 2 : 0);
}

static void lay_out_scales(problem *p) {
    tessera_paged_attention_args *a = &p->args;
    const int64_t pages = a->num_total_pages, rows = p->scaling == SCALING_TOKEN ? a->page_block_size : 1;
    const int64_t count = p->scaling == SCALING_TENSOR ? 1 : example_times(pages, example_times(rows, a->nhead_k));
    if (p->scaling == SCALING_NONE) return;
    const int32_t bits = is_turbo4(p) ? 16 : 32;
    example_use(&p->base, K_SCALE, count, bits);
    example_use(&p->base, V_SCALE, count, bits);
    if (p->scaling == SCALING_TENSOR) return;
    a->nhead_stride_k_scale = a->nhead_stride_v_scale = 1;
    a->batch_stride_k_scale = a->batch_stride_v_scale = example_times(rows, a->nhead_k);
    if (p->scaling == SCALING_TOKEN) a->stride_k_scale = a->stride_v_scale = a->nhead_k;
}

static void lay_out_cache(problem *p) {
    const options *o = &p->options;
    tessera_paged_attention_args *a = &p->args;
    const int32_t bits = element_bits(p->cached), row_k = row_of(p, o->d), row_v = row_of(p, o->d_v);
    const int64_t row_heads = p->layout == NHD ? o->h_k : 1, head_rows = p->layout == NHD ? 1 : o->block_size;
    a->stride_k = example_times(row_heads, row_k), a->stride_v = example_times(row_heads, row_v);
    a->nhead_stride_k = example_times(head_rows, row_k), a->nhead_stride_v = example_times(head_rows, row_v);
    a->batch_stride_k = example_times(example_times(o->h_k, o->block_size), row_k);
    a->batch_stride_v = example_times(example_times(o->h_k, o->block_size), row_v);
    example_use(&p->base, K, example_times(a->num_total_pages, a->batch_stride_k), bits);
    example_use(&p->base, V, example_times(a->num_total_pages, a->batch_stride_v), bits);
}

static example_outcome lay_out(example_problem *base, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    tessera_paged_attention_args *a = &p->args;
    const int32_t bits = element_bits(p->type),
                  columns = (int32_t)(((int64_t)o->ctx + o->block_size - 1) / o->block_size);
    const int64_t pages = example_times(o->b, columns) + SPARE;
    int64_t tokens = 0;
    if (pages > INT32_MAX) return EXAMPLE_WRONG("-b=%d -ctx=%d: at most %d pages", o->b, o->ctx, INT32_MAX);
    for (int32_t b = 0; b < o->b; b++) tokens += queries_of(o, b);
    a->batch = o->b, a->nhead_q = o->h, a->nhead_k = o->h_k, a->hdim_q = o->d, a->hdim_v = o->d_v;
    a->max_seqlen_q = o->qlen, a->max_seqlen_k = o->ctx;
    a->num_total_pages = (int32_t)pages, a->page_block_size = o->block_size, a->batch_stride_block_table = columns;
    a->sliding_window = o->window, a->logits_soft_cap = o->softcap, a->num_splits = o->num_splits;
    a->scale_s = 1 / sqrtf((float)o->d);
    a->nhead_stride_q = o->d, a->stride_q = example_times(o->h, o->d), a->batch_stride_q = a->stride_q * o->qlen;
    a->nhead_stride_o = o->d_v, a->stride_o = example_times(o->h, o->d_v), a->batch_stride_o = a->stride_o * o->qlen;
    a->nhead_stride_lse = tokens, a->batch_stride_lse = o->qlen;
    lay_out_cache(p);
    lay_out_scales(p);
    if (is_turbo4(p)) example_use(base, CENTROIDS, 16, 32);
    example_use(base, Q, example_times(tokens, a->stride_q), bits);
    example_use(base, O, example_times(tokens, a->stride_o), bits);
    if (o->lse) example_use(base, LSE, example_times(tokens, o->h), 32);
    if (o->alibi) example_use(base, SLOPES, o->h, 32);
    if (o->sink) example_use(base, SINK, o->h, 32);
    if (o->mixed) example_use(base, SEQSTART_Q, o->b + 1, 32);
    example_use(base, SEQLEN_K, o->b, 32);
    if (columns) example_use(base, BLOCK_TABLE, example_times(o->b, columns), 32);
    return EXAMPLE_OK;
}

// ---- inputs

// Lengths, and pages in any order: what the library's check reads.
static void put(example_problem *base) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    int32_t *const starts = example_pointer(base, SEQSTART_Q), *const keys = example_pointer(base, SEQLEN_K);
    int32_t *const pages = example_pointer(base, BLOCK_TABLE);
    uint64_t state = base->seed;
    if (starts) starts[0] = 0;
    for (int32_t b = 0; b < o->b; b++) {
        if (starts) starts[b + 1] = starts[b] + queries_of(o, b);
        keys[b] = o->varlen && b > 0 ? (int32_t)(example_random(&state) % (uint64_t)(o->ctx + 1)) : o->ctx;
    }
    const int32_t count = p->args.num_total_pages - SPARE;
    for (int32_t i = 0; pages && i < count; i++) pages[i] = i + SPARE;
    for (int32_t i = count - 1; pages && i > 0; i--) {
        const int32_t other = (int32_t)(example_random(&state) % (uint64_t)(i + 1)), was = pages[i];
        pages[i] = pages[other];
        pages[other] = was;
    }
}

// Random numbers up to `size`. Caches are large: theirs repeat, with a period that is odd.
static void fill_tensor(const problem *p, int tensor, tessera_type type, double size, double middle) {
    enum { PERIOD = (1 << 20) - 1 };
    const int64_t bytes = element_bits(type) / 8, count = p->base.buffers[tensor].bytes / bytes;
    const int64_t drawn = count < PERIOD ? count : PERIOD;
    uint64_t state = p->base.seed * TENSORS + (uint64_t)tensor;
    char *const to = example_pointer(&p->base, tensor);
    state = example_random(&state);
    for (int64_t i = 0; i < drawn; i++)
        element_store(type, to, i, middle + example_uniform(&state, (float)-size, (float)size));
    for (int64_t i = drawn; i < count; i += drawn)
        memcpy(to + i * bytes, to, (size_t)((count - i < drawn ? count - i : drawn) * bytes));
}

// Norms of rows of uniform numbers, about sqrt(hdim / 3), in the slots or apart; and the usual centroids, those of k.
static void fill_norms(problem *p) {
    const int64_t rows = example_times(p->args.num_total_pages, example_times(p->options.h_k, p->options.block_size));
    uint64_t state = p->base.seed;
    for (int x = 0; x < 2; x++) {
        const int32_t hdim = x ? p->options.d_v : p->options.d;
        char *const slots = example_pointer(&p->base, x ? V : K), *const apart =
                                                                      example_pointer(&p->base, x ? V_SCALE : K_SCALE);
        for (int64_t row = 0; row < rows; row++) {
            const float norm = sqrtf((float)hdim / 3) * (1 + example_uniform(&state, -0.1f, 0.1f));
            uint16_t half;
            element_store(TESSERA_TYPE_FP16, &half, 0, (double)norm);
            memcpy(apart ? apart + 2 * row : slots + row * row_of(p, hdim) + hdim / 2, &half, sizeof half);
        }
    }
    tessera_turbo4_codebook(p->options.d, example_pointer(&p->base, CENTROIDS));
}

static void fill(example_problem *base) {
    problem *p = (problem *)base;
    const double size = p->traits.kv_cache_dtype == TESSERA_KV_AUTO   ? 1
                        : p->scaling == SCALING_NONE && !is_turbo4(p) ? 2
                                                                      : 120;
    fill_tensor(p, Q, p->type, 1, 0);
    fill_tensor(p, K, p->cached, size, 0);
    fill_tensor(p, V, p->cached, size, 0);
    for (int scale = K_SCALE; scale <= V_SCALE; scale++)
        if (base->buffers[scale].used && !is_turbo4(p)) fill_tensor(p, scale, TESSERA_TYPE_FP32, 0.005, 0.01);
    if (is_turbo4(p)) fill_norms(p);
    float *const slopes = example_pointer(base, SLOPES);
    for (int32_t h = 0; slopes && h < p->options.h; h++)
        slopes[h] = exp2f(-8.0f * (float)(h + 1) / (float)p->options.h);
    if (base->buffers[SINK].used) fill_tensor(p, SINK, TESSERA_TYPE_FP32, 2, 0);
}

// ---- work, verification, output

// What k and v have of a token and head: numbers, and norms or a scale of its own.
static double bytes_of_token(const problem *p) {
    const double dims = p->options.d + p->options.d_v;
    return is_turbo4(p) ? dims / 2 + 4 : dims * element_bits(p->cached) / 8 + (p->scaling == SCALING_TOKEN ? 8 : 0);
}

// Rows of k and v that some query sees, once; q and o.
static void count_work(const example_problem *base, example_result *result) {
    const problem *p = (const problem *)base;
    const options *o = &p->options;
    const int32_t *const keys = example_pointer(base, SEQLEN_K);
    double seen = 0, pairs = 0, rows = 0;
    for (int32_t b = 0; b < o->b; b++) {
        const int32_t n = paged_attention_queries(&p->traits, &p->args, b);
        const int64_t most = o->window ? (int64_t)o->window + n - 1 : keys[b];
        const double some = n == 0 ? 0 : keys[b] < most ? keys[b] : (double)most;
        seen += some;
        pairs += some * n;
        rows += n;
    }
    const double dims = o->d + o->d_v;
    result->bytes = seen * o->h_k * bytes_of_token(p) + rows * o->h * dims * element_bits(p->type) / 8;
    result->flop = 2 * pairs * o->h * dims;
    result->rows = (int64_t)(rows * o->h);
}

typedef struct judgement {
    problem *p;
    fmha_fwd_tolerance tolerance;
} judgement;

static void visit(void *user, int64_t number, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const judgement *const j = user;
    problem *const p = j->p;
    const void *const o = paged_attention_o_row(&p->traits, &p->args, row);
    double ratio = fmha_fwd_compare_row(p->type, o, want, p->args.hdim_v, &j->tolerance, &p->max_error);
    (void)number;
    if (p->traits.has_lse) {
        double error = 0;
        const float *const lse = paged_attention_lse_of(&p->traits, &p->args, row);
        ratio = fmax(ratio, fmha_fwd_compare_lse(*lse, want, &j->tolerance, &error));
    }
    p->checked++;
    p->worst = fmax(p->worst, ratio);
    if (ratio <= 1) return;
    if (p->wrong++ == 0)
        snprintf(p->first, sizeof p->first, "sequence %d, head %d, query %d is %g times as far off as it may be",
                 row->batch, row->head, row->query, ratio);
}

// Tokens of sequences in prefill, of which nothing may be written.
static int are_left_alone(const problem *p) {
    const tessera_paged_attention_args *a = &p->args;
    const int64_t bytes = a->stride_o * element_bits(p->type) / 8;
    int64_t token = 0;
    for (int32_t b = 0; b < a->batch; token += queries_of(&p->options, b++)) {
        const int64_t count = queries_of(&p->options, b) > a->max_seqlen_q ? queries_of(&p->options, b) : 0;
        if (!example_all_bytes((const char *)a->o_ptr + token * bytes, count * bytes, EXAMPLE_UNWRITTEN_BYTE)) return 0;
    }
    return 1;
}

static example_outcome verify(example_problem *base, example_result *result) {
    problem *p = (problem *)base;
    judgement j = {p, fmha_fwd_tolerance_of(p->traits.data_type, tessera_device_name(base->device))};
    if (paged_attention_reference(&p->traits, &p->args, visit, &j) < 0)
        return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the reference");
    result->rows_checked = p->checked;
    if (!are_left_alone(p))
        return example_fail(result, EXAMPLE_WRONG_RESULT, "rows of o of a sequence in prefill are written");
    if (p->wrong) return example_fail(result, EXAMPLE_WRONG_RESULT, "%s", p->first);
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const options *o = &((const problem *)base)->options;
    fprintf(file, "[%s|%s|%s] b:%d, h:%d/%d, qlen:%d, ctx:%d, d:%d/%d, block_size:%d", o->prec, o->kv_cache_dtype,
            o->kv_layout, o->b, o->h, o->h_k, o->qlen, o->ctx, o->d, o->d_v, o->block_size);
    if (strcmp(o->kv_scale, "none")) fprintf(file, ", kv_scale:%s", o->kv_scale);
    if (o->window) fprintf(file, ", window:%d", o->window);
    fprintf(file, ", kv_bytes:%g", bytes_of_token((const problem *)base));
}

static void put_error(const example_problem *base, FILE *file) {
    const problem *p = (const problem *)base;
    example_put_number(file, "kv_bytes", bytes_of_token(p));
    example_put_integer(file, "rows_verified", p->checked);
    example_put_integer(file, "rows_wrong", p->wrong);
    example_put_number(file, "max_error", p->max_error);
    example_put_number(file, "worst_error_over_bound", p->worst);
}

TESSERA_API const tessera_table *tessera_fmha_fwd_get_table(void);
EXAMPLE_CALLS(paged_attention)
const example_program paged_attention_program = {
    .name = "tile_example_paged_attention",
    .arguments = &arguments,
    .calls = &paged_attention_calls,
    .get_attending = tessera_fmha_fwd_get_table,
    .attends = offsetof(tessera_paged_attention_args, attends),
    .tensors = tensors,
    .tensor_count = TENSORS,
    .first_output = O,
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
