// SPDX-License-Identifier: MIT
// tile_example_mla_prefill: attention of multi-head latent attention's prefill, and its verification.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fmha_fwd_reference.h"
#include "json.h"
#include "program.h"
#include "random.h"
#include "tessera/mla_prefill.h"

typedef struct options {
    example_options common;
    int32_t mode, b, h, h_k, s, s_k, iperm, share, joined, lse, misalign;
    const char *prec, *mask;
} options;

// ---- arguments

#define OPTION(name) #name, EXAMPLE_INTEGER, offsetof(options, name), 0
#define FLAG(name) #name, EXAMPLE_FLAG, offsetof(options, name), 0
#define TEXT(name) #name, EXAMPLE_TEXT, offsetof(options, name), 0
static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1", "verification against the fp64 reference: 0 none, 1 all"},
    {FLAG(mode), "0", "0: batch, sequences of one length; 1: group, of lengths up to -s and -s_k, by -seed"},
    {OPTION(b), "1", "number of sequences"},
    {OPTION(h), "16", "heads of q"},
    {OPTION(h_k), "-1", "heads of k and v, a divisor of h; -1: h"},
    {OPTION(s), "512", "queries of a sequence"},
    {OPTION(s_k), "-1", "keys of a sequence; -1: s"},
    {FLAG(iperm), "0", "tensors lie as 1: b*h*s*d, 0: b*s*h*d"},
    {FLAG(share), "1", "1: heads share the rotated part of keys"},
    {FLAG(joined), "0", "1: both parts of keys lie in one piece, of each head"},
    {TEXT(prec), "bf16", "bf16, or fp8bf16: e4m3 with descales, of which o is bf16"},
    {TEXT(mask), "b", "0 or n: none; t, b: causal, top-left, bottom-right"},
    {FLAG(lse), "0", "1: store lse"},
    {OPTION(misalign), "0", "elements by which every tensor begins behind a multiple of 64 bytes"},
    EXAMPLE_KNAME("1"),
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939", "seed of inputs and lengths; 0: another every time"},
    EXAMPLE_TIMING_AND_JSON("mla_prefill.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    options *o = values;
    if (o->h_k == -1) o->h_k = o->h;
    if (o->s_k == -1) o->s_k = o->s;
    if (o->joined) o->share = 0;
    if (o->b < 1) return example_refuse(message, size, "-b=%d: at least 1", o->b);
    if (o->h < 1) return example_refuse(message, size, "-h=%d: at least 1", o->h);
    if (o->h_k < 1 || o->h % o->h_k) return example_refuse(message, size, "-h_k=%d: a divisor of -h", o->h_k);
    if (o->s < 0) return example_refuse(message, size, "-s=%d: at least 0", o->s);
    if (o->s_k < 0) return example_refuse(message, size, "-s_k=%d: at least 0", o->s_k);
    if (o->misalign < 0) return example_refuse(message, size, "-misalign=%d: at least 0", o->misalign);
    return 0;
}

static const example_arguments arguments = {
    .does = "Attends to keys of two parts, as multi-head latent attention's prefill does, times it and checks it.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(options),
    .settle = settle_arguments,
};

// ---- tensors

enum { Q, K, K_ROPE, V, Q_DESCALE, K_DESCALE, V_DESCALE, SEQSTART_Q, SEQSTART_K, O, LSE, TENSORS };

#define POINTER(name) #name, offsetof(tessera_mla_prefill_args, name##_ptr)
static const example_tensor tensors[TENSORS] = {
    [Q] = {POINTER(q)},
    [K] = {POINTER(k)},
    [K_ROPE] = {POINTER(k_rope)},
    [V] = {POINTER(v)},
    [Q_DESCALE] = {POINTER(q_descale)},
    [K_DESCALE] = {POINTER(k_descale)},
    [V_DESCALE] = {POINTER(v_descale)},
    [SEQSTART_Q] = {POINTER(seqstart_q)},
    [SEQSTART_K] = {POINTER(seqstart_k)},
    [O] = {POINTER(o)},
    [LSE] = {POINTER(lse)},
};

typedef struct problem {
    example_problem base;
    options options;
    tessera_mla_prefill_traits traits;
    tessera_mla_prefill_args args;
    tessera_type type;   // of q, k and v
    double error, ratio; // greatest, and over what is allowed
    pthread_mutex_t lock;
} problem;

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    p->options = *(const options *)values;
    base->options = &o->common;
    base->traits = &p->traits;
    base->args = &p->args;
    base->misalign = o->misalign;
    p->traits = tessera_mla_prefill_traits_init();
    p->args = tessera_mla_prefill_args_init(); // before -instance names one
    if (tessera_fmha_dtype_from_string(o->prec, &p->traits.data_type) != TESSERA_SUCCESS ||
        (p->traits.data_type != TESSERA_FMHA_BF16 && p->traits.data_type != TESSERA_FMHA_FP8BF16))
        return EXAMPLE_WRONG("-prec=%s: bf16 or fp8bf16", o->prec);
    const char *const masks = "0ntb", *const mask = strchr(masks, *o->mask);
    if (!*o->mask || o->mask[1] || !mask) return EXAMPLE_WRONG("-mask=%s: 0, n, t or b", o->mask);
    const tessera_mask types[] = {TESSERA_MASK_NONE, TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT,
                                  TESSERA_MASK_BOTTOM_RIGHT};
    p->traits.mask_type = types[mask - masks];
    const int fp8 = p->traits.data_type == TESSERA_FMHA_FP8BF16;
    p->type = fp8 ? TESSERA_TYPE_E4M3 : TESSERA_TYPE_BF16;
    p->traits.qscale_type = fp8 ? TESSERA_QSCALE_PER_TENSOR : TESSERA_QSCALE_NONE;
    p->traits.is_group_mode = o->mode;
    p->traits.has_lse = o->lse;
    snprintf(base->sizes, sizeof base->sizes, "-b=%d -h=%d -s=%d -s_k=%d", o->b, o->h, o->s, o->s_k);
    return EXAMPLE_OK;
}

// Sets the strides of all sequences' heads and rows; returns the elements.
static int64_t lie(const options *o, int64_t heads, int64_t rows, int64_t columns, int64_t *batch, int64_t *head,
                   int64_t *row) {
    const int64_t room = o->mode ? example_times(o->b, rows) : rows;
    *row = o->iperm ? columns : example_times(heads, columns);
    *head = o->iperm ? example_times(room, columns) : columns;
    *batch = example_times(example_times(heads, rows), columns);
    return example_times(o->b, *batch);
}
#define LIE(x, heads, rows, columns)                                                                                   \
    lie(o, heads, rows, columns, &a->batch_stride_##x, &a->nhead_stride_##x, &a->stride_##x)

static example_outcome lay_out(example_problem *base, example_result *result) {
    problem *p = (problem *)base;
    const options *o = &p->options;
    tessera_mla_prefill_args *a = &p->args;
    const int32_t bits = element_bits(p->type);
    int64_t row;
    (void)result;
    a->batch = o->b, a->nhead_q = o->h, a->nhead_k = o->h_k;
    a->seqlen_q = a->max_seqlen_q = o->s, a->seqlen_k = o->s_k;
    a->scale_s = 0.0721687836F; // 1 / sqrt(192)
    example_use(base, Q, LIE(q, o->h, o->s, TESSERA_MLA_QK), bits);
    example_use(base, K, LIE(k, o->h_k, o->s_k, o->joined ? TESSERA_MLA_QK : TESSERA_MLA_NOPE), bits);
    example_use(base, V, LIE(v, o->h_k, o->s_k, TESSERA_MLA_V), bits);
    example_use(base, O, LIE(o, o->h, o->s, TESSERA_MLA_V), 16);
    if (!o->joined) {
        example_use(base, K_ROPE, LIE(k_rope, o->share ? 1 : o->h_k, o->s_k, TESSERA_MLA_ROPE), bits);
        if (o->share) a->nhead_stride_k_rope = 0;
    }
    if (o->joined) {
        a->stride_k_rope = a->stride_k;
        a->nhead_stride_k_rope = a->nhead_stride_k;
        a->batch_stride_k_rope = a->batch_stride_k;
    }
    if (o->lse) {
        options rows = *o;
        rows.iperm = 1;
        example_use(base, LSE, lie(&rows, o->h, o->s, 1, &a->batch_stride_lse, &a->nhead_stride_lse, &row), 32);
    }
    for (int descale = Q_DESCALE; descale <= V_DESCALE && p->type == TESSERA_TYPE_E4M3; descale++)
        example_use(base, descale, 1, 32);
    if (o->mode) example_use(base, SEQSTART_Q, o->b + 1, 32), example_use(base, SEQSTART_K, o->b + 1, 32);
    return EXAMPLE_OK;
}

static void point(const example_problem *base, void *args) {
    const problem *p = (const problem *)base;
    tessera_mla_prefill_args *a = args;
    if (p->options.joined) a->k_rope_ptr = (const char *)a->k_ptr + TESSERA_MLA_NOPE * element_bits(p->type) / 8;
}

// ---- inputs

// The first sequence is the longest.
static void put_starts(const problem *p, int tensor, int32_t most) {
    int32_t *const starts = example_pointer(&p->base, tensor);
    uint64_t state = p->base.seed + (uint64_t)tensor;
    starts[0] = 0;
    for (int32_t b = 0; b < p->options.b; b++)
        starts[b + 1] = starts[b] + (b == 0 ? most : (int32_t)(example_random(&state) % (uint64_t)(most + 1)));
}

static void put(example_problem *base) {
    problem *p = (problem *)base;
    if (p->options.mode) put_starts(p, SEQSTART_Q, p->options.s), put_starts(p, SEQSTART_K, p->options.s_k);
}

static void fill(example_problem *base) {
    const problem *p = (const problem *)base;
    static const int filled[] = {Q, K, K_ROPE, V};
    static const float descales[] = {0.02F, 0.03F, 0.01F};
    const double most = p->type == TESSERA_TYPE_E4M3 ? 100 : 2;
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++) {
        uint64_t state = base->seed * TENSORS + (uint64_t)filled[i];
        if (!base->buffers[filled[i]].used) continue;
        const int64_t count = base->buffers[filled[i]].bytes / (element_bits(p->type) / 8);
        for (int64_t n = 0; n < count; n++)
            element_store(p->type, example_pointer(base, filled[i]), n, example_uniform(&state, -most, most));
    }
    for (int i = 0; i < 3 && base->buffers[Q_DESCALE].used; i++)
        *(float *)example_pointer(base, Q_DESCALE + i) = descales[i];
}

// ---- the same call of fmha_fwd, which has a reference

static void say_as_fmha_fwd(const problem *p, tessera_fmha_fwd_traits *t, tessera_fmha_fwd_args *a) {
    const tessera_mla_prefill_args *from = &p->args;
    *t = tessera_fmha_fwd_traits_init();
    *a = tessera_fmha_fwd_args_init();
    t->hdim_q = a->hdim_q = TESSERA_MLA_QK, t->hdim_v = a->hdim_v = TESSERA_MLA_V;
    t->data_type = p->traits.data_type, t->is_group_mode = p->traits.is_group_mode, t->has_lse = p->traits.has_lse;
    t->mask_type = a->mask_type = p->traits.mask_type, t->qscale_type = p->traits.qscale_type;
    if (t->mask_type != TESSERA_MASK_NONE) a->window_size_right = 0;
    a->q_ptr = from->q_ptr, a->v_ptr = from->v_ptr, a->o_ptr = from->o_ptr, a->lse_ptr = from->lse_ptr;
    a->q_descale_ptr = from->q_descale_ptr, a->k_descale_ptr = from->k_descale_ptr;
    a->v_descale_ptr = from->v_descale_ptr;
    a->seqstart_q_ptr = from->seqstart_q_ptr, a->seqstart_k_ptr = from->seqstart_k_ptr;
    a->seqlen_q = from->seqlen_q, a->seqlen_k = from->seqlen_k, a->max_seqlen_q = from->max_seqlen_q;
    a->batch = from->batch, a->nhead_q = from->nhead_q, a->nhead_k = from->nhead_k, a->scale_s = from->scale_s;
    a->stride_q = from->stride_q, a->nhead_stride_q = from->nhead_stride_q, a->batch_stride_q = from->batch_stride_q;
    a->stride_v = from->stride_v, a->nhead_stride_v = from->nhead_stride_v, a->batch_stride_v = from->batch_stride_v;
    a->stride_o = from->stride_o, a->nhead_stride_o = from->nhead_stride_o, a->batch_stride_o = from->batch_stride_o;
    a->nhead_stride_lse = from->nhead_stride_lse, a->batch_stride_lse = from->batch_stride_lse;
    a->stride_k = TESSERA_MLA_QK;
    a->nhead_stride_k = (int64_t)from->seqlen_k * (t->is_group_mode ? from->batch : 1) * TESSERA_MLA_QK;
    a->batch_stride_k = from->nhead_k * a->nhead_stride_k;
}

// Keys in one piece, as `a` says.
static void *join(const problem *p, const tessera_fmha_fwd_args *a) {
    const tessera_mla_prefill_args *from = &p->args;
    const size_t size = (size_t)element_bits(p->type) / 8;
    const int32_t blocks = p->options.mode ? 1 : a->batch;
    const int64_t rows = a->nhead_stride_k / TESSERA_MLA_QK;
    char *const all = malloc((size_t)(blocks * a->batch_stride_k) * size + 1);
    if (!all) abort();
    for (int32_t b = 0; b < blocks; b++)
        for (int32_t g = 0; g < a->nhead_k; g++)
            for (int64_t j = 0; j < rows; j++) {
                char *const to = all + (size_t)(b * a->batch_stride_k + g * a->nhead_stride_k + j * a->stride_k) * size;
                const int64_t k = b * from->batch_stride_k + g * from->nhead_stride_k + j * from->stride_k;
                const int64_t rope =
                    b * from->batch_stride_k_rope + g * from->nhead_stride_k_rope + j * from->stride_k_rope;
                memcpy(to, (const char *)from->k_ptr + (size_t)k * size, TESSERA_MLA_NOPE * size);
                memcpy(to + TESSERA_MLA_NOPE * size, (const char *)from->k_rope_ptr + (size_t)rope * size,
                       TESSERA_MLA_ROPE * size);
            }
    return all;
}

// ---- work, verification, output

static void count_work(const example_problem *base, example_result *result) {
    const problem *p = (const problem *)base;
    const double size = element_bits(p->type) / 8.0;
    tessera_fmha_fwd_traits t;
    tessera_fmha_fwd_args a;
    double pairs = 0, queries = 0, keys = 0;
    say_as_fmha_fwd(p, &t, &a);
    for (int32_t b = 0; b < a.batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(&t, &a, b);
        for (int32_t i = 0; i < s.seqlen_q; i++) pairs += fmha_fwd_keys_seen(&a, s.seqlen_q, s.seqlen_k, i);
        queries += s.seqlen_q;
        keys += s.seqlen_k;
    }
    result->rows = (int64_t)(queries * a.nhead_q);
    result->flop = 2.0 * a.nhead_q * pairs * (TESSERA_MLA_QK + TESSERA_MLA_V);
    result->bytes = a.nhead_q * queries * (size * TESSERA_MLA_QK + 2 * TESSERA_MLA_V) +
                    a.nhead_k * keys * size * (TESSERA_MLA_NOPE + TESSERA_MLA_V) +
                    (p->options.share ? 1 : a.nhead_k) * keys * size * TESSERA_MLA_ROPE;
}

typedef struct check {
    problem *problem;
    example_result *result;
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    fmha_fwd_tolerance tolerance;
} check;

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    check *c = user;
    problem *p = c->problem;
    double error = 0, lse_error = 0, lse = 0;
    (void)index;
    const double o = fmha_fwd_compare_row(TESSERA_TYPE_BF16, fmha_fwd_o_row(&c->traits, &c->args, *row), want,
                                          TESSERA_MLA_V, &c->tolerance, &error);
    if (c->traits.has_lse)
        lse = fmha_fwd_compare_lse(*fmha_fwd_lse_of(&c->traits, &c->args, *row), want, &c->tolerance, &lse_error);
    const double ratio = o > lse ? o : lse;
    pthread_mutex_lock(&p->lock);
    c->result->rows_checked++;
    if (error > p->error) p->error = error;
    if (ratio > 1 && ratio > p->ratio)
        example_fail(c->result, EXAMPLE_WRONG_RESULT,
                     "%s of sequence %d, head %d, query %d is wrong: off by %.3g times what is allowed",
                     o >= lse ? "o" : "lse", row->batch, row->head, row->query, ratio);
    if (ratio > p->ratio) p->ratio = ratio;
    pthread_mutex_unlock(&p->lock);
}

static fmha_fwd_row *list_rows(const check *c, int64_t count) {
    fmha_fwd_row *const rows = malloc(sizeof *rows * (size_t)(count + 1));
    int64_t n = 0;
    if (!rows) abort();
    for (int32_t b = 0; b < c->args.batch; b++) {
        const int32_t queries = fmha_fwd_sequence_of(&c->traits, &c->args, b).seqlen_q;
        for (int32_t h = 0; h < c->args.nhead_q; h++)
            for (int32_t i = 0; i < queries; i++) rows[n++] = (fmha_fwd_row){b, h, i};
    }
    return rows;
}

static example_outcome verify(example_problem *base, example_result *result) {
    check c = {.problem = (problem *)base, .result = result};
    say_as_fmha_fwd(c.problem, &c.traits, &c.args);
    c.tolerance = fmha_fwd_tolerance_of(c.traits.data_type, tessera_device_name(base->device));
    void *const keys = join(c.problem, &c.args);
    fmha_fwd_row *const rows = list_rows(&c, result->rows);
    c.args.k_ptr = keys;
    pthread_mutex_init(&c.problem->lock, NULL);
    const int failed = fmha_fwd_reference(&c.traits, &c.args, tessera_device_fp8_format(base->device), 0, rows,
                                          result->rows, example_threads(base), check_row, &c);
    pthread_mutex_destroy(&c.problem->lock);
    free(rows);
    free(keys);
    if (failed) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the reference");
    return result->outcome;
}

static void print(const example_problem *base, FILE *file) {
    const options *o = &((const problem *)base)->options;
    fprintf(file, "[%s|%s|%s] b:%d, h:%d/%d, s:%d/%d, d:192/128, mask:%s, rope:%s", o->prec,
            o->mode ? "group" : "batch", o->iperm ? "bhsd" : "bshd", o->b, o->h, o->h_k, o->s, o->s_k, o->mask,
            o->joined  ? "joined"
            : o->share ? "shared"
                       : "apart");
}

static void put_error(const example_problem *base, FILE *file) {
    example_put_number(file, "max_error", ((const problem *)base)->error);
    example_put_number(file, "max_error_ratio", ((const problem *)base)->ratio);
}

EXAMPLE_CALLS(mla_prefill)
const example_program mla_prefill_program = {
    .name = "tile_example_mla_prefill",
    .arguments = &arguments,
    .calls = &mla_prefill_calls,
    .tensors = tensors,
    .tensor_count = TENSORS,
    .first_output = O,
    .problem_bytes = sizeof(problem),
    .not_supported = " not supported!",
    .settle = settle,
    .lay_out = lay_out,
    .point = point,
    .put = put,
    .fill = fill,
    .count = count_work,
    .verify = verify,
    .print = print,
    .put_error = put_error,
};
