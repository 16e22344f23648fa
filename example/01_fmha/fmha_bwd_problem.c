// SPDX-License-Identifier: MIT
// Makes a problem: a forward problem of the same arguments, which is run, and the gradients beside it.
#include "fmha_bwd_problem.h"

#include <stdlib.h>
#include <string.h>

#include "random.h"

// ---- traits and args

static void set_traits(fmha_bwd_problem *p) {
    const fmha_fwd_problem *f = p->forward;
    const tessera_fmha_fwd_args *a = &f->args;
    p->traits = tessera_fmha_bwd_traits_init();
    tessera_fmha_bwd_traits *t = &p->traits;
    t->is_group_mode = f->options.mode;
    t->seqlen_q = (int32_t)f->shape_seqlen_q;
    t->seqlen_k = (int32_t)f->shape_seqlen_k;
    t->batch = a->batch;
    t->max_seqlen_q = f->max_seqlen_q;
    t->max_seqlen_k = f->max_seqlen_k;
    for (int32_t b = 0; b < a->batch; b++) // rooms, by which the workspace's worst case is found
        if (f->room_k[b] > t->max_seqlen_k) t->max_seqlen_k = f->room_k[b];
    t->hdim_q = a->hdim_q, t->hdim_v = a->hdim_v, t->nhead_q = a->nhead_q, t->nhead_k = a->nhead_k;
    t->data_type = f->dtype;
    t->mask_type = a->mask_type;
    t->bias_type = f->bias.type;
    t->has_dbias = p->arguments.dbias;
    t->has_dropout = f->options.p_drop > 0;
    t->is_deterministic = p->arguments.deterministic;
    t->has_logits_soft_cap = f->options.logits_soft_cap > 0;
    t->is_dkv_reduced = p->arguments.dkv_heads[0] == 'k';
    if (t->is_group_mode) {
        t->seqstart_qs = example_pointer(&f->base, BUFFER_SEQSTART_Q);
        t->seqstart_ks = example_pointer(&f->base, BUFFER_SEQSTART_K);
    }
}

static void set_args(fmha_bwd_problem *p) {
    const tessera_fmha_fwd_args *f = &p->forward->args;
    const tessera_fmha_bwd_traits *t = &p->traits;
    tessera_fmha_bwd_args *a = &p->args;
    *a = tessera_fmha_bwd_args_init();
    a->seqlen_q = t->seqlen_q, a->seqlen_k = t->seqlen_k, a->batch = t->batch;
    a->max_seqlen_q = t->max_seqlen_q, a->max_seqlen_k = t->max_seqlen_k;
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->nhead_q = t->nhead_q, a->nhead_k = t->nhead_k;
    a->scale = f->scale_s;
    a->logits_soft_cap = f->logits_soft_cap;
    a->window_size_left = f->window_size_left, a->window_size_right = f->window_size_right;
    a->sink_size = f->sink_size;
    a->mask_type = f->mask_type;
    a->p_drop = f->p_drop;
    a->drop_prefs = f->drop_prefs, a->drop_seed = f->drop_seed, a->drop_offset = f->drop_offset;
#define SAME(to, from)                                                                                                 \
    a->batch_stride_##to = f->batch_stride_##from, a->nhead_stride_##to = f->nhead_stride_##from,                      \
    a->stride_##to = f->stride_##from
    SAME(q, q), SAME(k, k), SAME(v, v), SAME(o, o), SAME(do, o), SAME(dq, q), SAME(bias, bias);
#undef SAME
    a->batch_stride_lsed = f->batch_stride_lse, a->nhead_stride_lsed = f->nhead_stride_lse;
}

static example_outcome settle(example_problem *base, const void *arguments, example_result *result) {
    fmha_bwd_problem *p = (fmha_bwd_problem *)base;
    example_problem *forward;
    p->arguments = *(const fmha_bwd_arguments *)arguments;
    base->options = &((const fmha_bwd_arguments *)arguments)->forward.options.common;
    example_options *common = &p->arguments.forward.options.common;
    common->warmup = 0, common->repeat = 1, common->v = 0, common->instance = NULL, common->seed = (uint32_t)base->seed;
    if (example_build(&fmha_fwd_program, &p->arguments.forward, &forward, result)) return result->outcome;
    p->forward = (fmha_fwd_problem *)forward;
    base->traits = &p->traits;
    base->args = &p->args;
    base->misalign = p->arguments.forward.options.misalign;
    snprintf(base->sizes, sizeof base->sizes, "%s", forward->sizes);
    set_traits(p);
    set_args(p);
    return EXAMPLE_OK;
}

static void destroy(example_problem *base) {
    fmha_bwd_problem *p = (fmha_bwd_problem *)base;
    if (p->forward) example_destroy(&p->forward->base);
}

// ---- buffers

// Those that are the forward problem's, as they are.
static const struct {
    fmha_bwd_buffer_id to;
    fmha_fwd_buffer_id from;
} copied[] = {{BWD_Q, BUFFER_Q},
              {BWD_K, BUFFER_K},
              {BWD_V, BUFFER_V},
              {BWD_BIAS, BUFFER_BIAS},
              {BWD_SEQSTART_Q, BUFFER_SEQSTART_Q},
              {BWD_SEQSTART_K, BUFFER_SEQSTART_K},
              {BWD_SEQLEN_Q, BUFFER_SEQLEN_Q},
              {BWD_SEQLEN_K, BUFFER_SEQLEN_K},
              {BWD_CU_SEQLEN_Q, BUFFER_CU_SEQLEN_Q},
              {BWD_CU_SEQLEN_K, BUFFER_CU_SEQLEN_K},
              {BWD_SINK, BUFFER_SINK},
              {BWD_DROP_SEED, BUFFER_DROP_SEED},
              {BWD_DROP_OFFSET, BUFFER_DROP_OFFSET},
              {BWD_O, BUFFER_O},
              {BWD_LSE, BUFFER_LSE},
              {BWD_DO, BUFFER_O},  // of the same sizes
              {BWD_D, BUFFER_LSE}, //
              {BWD_DQ, BUFFER_Q}};

static void use_like(fmha_bwd_problem *p, fmha_bwd_buffer_id to, fmha_fwd_buffer_id from) {
    const example_buffer *buffer = &p->forward->base.buffers[from];
    if (!buffer->used) return;
    example_use(&p->base, (int)to, buffer->bytes / buffer->element_bytes, buffer->element_bytes * 8);
}

// [batch, head, row, column], or [batch, row, head, column].
static void use_rows(fmha_bwd_problem *p, fmha_bwd_buffer_id id, int permuted, int64_t heads, int64_t rows,
                     int64_t columns, int32_t bits, int64_t strides[3]) {
    strides[0] = example_times(example_times(heads, rows), columns);
    strides[1] = permuted ? example_times(rows, columns) : columns;
    strides[2] = permuted ? columns : example_times(heads, columns);
    example_use(&p->base, (int)id, example_times(p->forward->shape_batch, strides[0]), bits);
}

enum { RANDVAL_LIMIT = 1 << 30 }; // bytes of dropout; beyond this they are checked only through gradients

static void use_gradients(fmha_bwd_problem *p) {
    const fmha_fwd_problem *f = p->forward;
    tessera_fmha_bwd_args *a = &p->args;
    const int32_t bits = element_bits(fmha_bwd_element(p->traits.data_type)), iperm = f->options.iperm;
    const int64_t heads = p->traits.is_dkv_reduced ? a->nhead_k : a->nhead_q, rows = f->shape_seqlen_q;
    const int64_t columns = f->columns;
    int64_t s[3];
#define USE(id, x, heads, rows, columns, bits, permuted)                                                               \
    use_rows(p, id, permuted, heads, rows, columns, bits, s), a->batch_stride_##x = s[0], a->nhead_stride_##x = s[1],  \
                                                              a->stride_##x = s[2]
    USE(BWD_DK, dk, heads, f->shape_seqlen_k, a->hdim_q, bits, iperm);
    USE(BWD_DV, dv, heads, f->shape_seqlen_k, a->hdim_v, bits, iperm);
    if (p->traits.has_dbias) USE(BWD_DBIAS, dbias, a->nhead_q, rows, columns, bits, iperm);
    const int64_t bytes = example_times(example_times(f->shape_batch, a->nhead_q), example_times(rows, columns));
    if (p->traits.has_dropout && p->base.options->v && bytes >= 0 && bytes <= RANDVAL_LIMIT) {
        p->traits.is_store_randval = 1;
        USE(BWD_RANDVAL, randval, a->nhead_q, rows, columns, 8, 1);
    }
#undef USE
    if (p->forward->options.init_sink) example_use(&p->base, BWD_D_SINK, a->nhead_q, 32);
}

example_outcome fmha_bwd_lay_out(example_problem *base, example_result *result) {
    fmha_bwd_problem *p = (fmha_bwd_problem *)base;
    const tessera_fmha_bwd_instance *instance;
    for (size_t n = 0; n < sizeof copied / sizeof *copied; n++) use_like(p, copied[n].to, copied[n].from);
    use_gradients(p);
    // Where no instance serves the problem, the launch will say why; the forward pass need not run for that.
    if (tessera_fmha_bwd_select(tessera_device_get_facts(base->device), &p->traits, &p->args, &instance))
        return EXAMPLE_OK;
    return example_launch(&p->forward->base, result);
}

static void copy(fmha_bwd_problem *p, fmha_bwd_buffer_id to, fmha_fwd_buffer_id from) {
    const example_buffer *buffer = &p->forward->base.buffers[from];
    if (!buffer->used) return;
    memcpy(example_pointer(&p->base, (int)to), example_pointer(&p->forward->base, (int)from), (size_t)buffer->bytes);
}

void fmha_bwd_put_lengths(example_problem *base) {
    for (size_t n = 0; n < sizeof copied / sizeof *copied; n++)
        if (copied[n].to >= BWD_SEQSTART_Q && copied[n].to <= BWD_CU_SEQLEN_K)
            copy((fmha_bwd_problem *)base, copied[n].to, copied[n].from);
}

// Rows of do within logical lengths.
static void fill_do(fmha_bwd_problem *p) {
    const tessera_fmha_bwd_args *a = &p->args;
    const tessera_type type = fmha_bwd_element(p->traits.data_type);
    uint64_t state = p->base.seed * BWD_COUNT + BWD_DO;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_bwd_sequence s = fmha_bwd_sequence_of(&p->traits, a, b);
        const int64_t batch = p->traits.is_group_mode ? 0 : b * a->batch_stride_do;
        for (int32_t h = 0; h < a->nhead_q; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++)
                for (int32_t d = 0; d < a->hdim_v; d++)
                    element_store(type, example_pointer(&p->base, BWD_DO),
                                  batch + h * a->nhead_stride_do + (s.token_q + i) * a->stride_do + d,
                                  example_uniform(&state, -1, 1));
    }
}

void fmha_bwd_fill_inputs(example_problem *base) {
    fmha_bwd_problem *p = (fmha_bwd_problem *)base;
    for (size_t n = 0; n < sizeof copied / sizeof *copied && copied[n].to != BWD_DO; n++)
        copy(p, copied[n].to, copied[n].from);
    fill_do(p);
}

EXAMPLE_CALLS(fmha_bwd)

#define TENSOR(name) #name, offsetof(tessera_fmha_bwd_args, name##_ptr)
static const example_tensor tensors[BWD_COUNT] = {
    [BWD_Q] = {TENSOR(q)},
    [BWD_K] = {TENSOR(k)},
    [BWD_V] = {TENSOR(v)},
    [BWD_BIAS] = {TENSOR(bias)},
    [BWD_SEQSTART_Q] = {TENSOR(seqstart_q)},
    [BWD_SEQSTART_K] = {TENSOR(seqstart_k)},
    [BWD_SEQLEN_Q] = {TENSOR(seqlen_q)},
    [BWD_SEQLEN_K] = {TENSOR(seqlen_k)},
    [BWD_CU_SEQLEN_Q] = {TENSOR(cu_seqlen_q)},
    [BWD_CU_SEQLEN_K] = {TENSOR(cu_seqlen_k)},
    [BWD_SINK] = {TENSOR(sink)},
    [BWD_DROP_SEED] = {TENSOR(drop_seed)},
    [BWD_DROP_OFFSET] = {TENSOR(drop_offset)},
    [BWD_O] = {TENSOR(o)},
    [BWD_LSE] = {TENSOR(lse)},
    [BWD_DO] = {TENSOR(do)},
    [BWD_D] = {TENSOR(d)},
    [BWD_DQ] = {TENSOR(dq)},
    [BWD_DK] = {TENSOR(dk)},
    [BWD_DV] = {TENSOR(dv)},
    [BWD_DBIAS] = {TENSOR(dbias)},
    [BWD_RANDVAL] = {TENSOR(rand_val)},
    [BWD_D_SINK] = {TENSOR(d_sink)},
};

const example_program fmha_bwd_program = {
    .name = "tile_example_fmha_bwd",
    .arguments = &fmha_bwd_arguments_table,
    .calls = &fmha_bwd_calls,
    .tensors = tensors,
    .tensor_count = BWD_COUNT,
    .first_output = BWD_D,
    .problem_bytes = sizeof(fmha_bwd_problem),
    .not_supported = ", not supported yet",
    .settle = settle,
    .lay_out = fmha_bwd_lay_out,
    .put = fmha_bwd_put_lengths,
    .fill = fmha_bwd_fill_inputs,
    .destroy = destroy,
    .count = fmha_bwd_count,
    .verify = fmha_bwd_verify,
    .print = fmha_bwd_print,
    .print_kernels = fmha_bwd_print_kernels,
    .put_json = fmha_bwd_put_json,
    .put_error = fmha_bwd_put_error,
};
