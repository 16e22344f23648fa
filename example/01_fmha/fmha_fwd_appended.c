// SPDX-License-Identifier: MIT
// New keys of a problem with a cache, which its call appends before it attends, and the rotation of them and of the
// queries. What attention's reference reads is rotated here, in fp64; the cache is compared with what was put into it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "appendkv_reference.h"
#include "fmha_fwd_problem.h"
#include "random.h"

int fmha_fwd_appends(const fmha_fwd_problem *p) { return p->options.s_knew != 0 || p->options.rotary_dim != 0; }

// As in CK, -s_k includes the new keys, of which there are 1 to -s by -seed where -s_knew says no number.
example_outcome fmha_fwd_settle_appended(fmha_fwd_problem *p, example_result *result) {
    fmha_fwd_options *const o = &p->options;
    uint64_t state = p->base.seed;
    if (!fmha_fwd_appends(p)) return EXAMPLE_OK;
    if (o->mode) return EXAMPLE_WRONG("-s_knew=%d -rotary_dim=%d: in batch mode (-mode=0)", o->s_knew, o->rotary_dim);
    if (p->api == FMHA_BATCH_PREFILL) return EXAMPLE_WRONG("-api=batch_prefill: it does not append");
    if (o->s_knew < 0) {
        const int32_t most = o->s < p->max_seqlen_k ? o->s : p->max_seqlen_k;
        o->s_knew = most ? 1 + (int32_t)(example_random(&state) % (uint64_t)most) : 0;
    }
    if (o->s_knew > p->max_seqlen_k)
        return EXAMPLE_WRONG("-s_knew=%d: at most -s_k, %d, which includes them", o->s_knew, p->max_seqlen_k);
    p->appended.before = p->max_seqlen_k - o->s_knew;
    p->appended.rope = !o->rotary_dim          ? TESSERA_ROPE_NONE
                       : o->rotary_interleaved ? TESSERA_ROPE_INTERLEAVED
                                               : TESSERA_ROPE_HALF;
    return EXAMPLE_OK;
}

static fmha_fwd_strides lie(const fmha_fwd_options *o, int64_t columns) {
    if (o->iperm) return (fmha_fwd_strides){o->h_k * o->s_knew * columns, o->s_knew * columns, columns};
    return (fmha_fwd_strides){o->h_k * o->s_knew * columns, columns, o->h_k * columns};
}

void fmha_fwd_lay_out_appended(fmha_fwd_problem *p) {
    const fmha_fwd_options *const o = &p->options;
    fmha_fwd_appended *const x = &p->appended;
    const int32_t bits = element_bits(fmha_fwd_input_element(p->dtype, p->fp8));
    if (!fmha_fwd_appends(p)) return;
    x->of_knew = lie(o, o->d);
    x->of_vnew = lie(o, o->d_v);
    x->positions = p->max_seqlen_k > x->before + o->s ? p->max_seqlen_k : x->before + o->s;
    example_use(&p->base, BUFFER_KNEW, example_times(o->b, x->of_knew.block), bits);
    example_use(&p->base, BUFFER_VNEW, example_times(o->b, x->of_vnew.block), bits);
    if (!o->rotary_dim) return;
    example_use(&p->base, BUFFER_COS, example_times(x->positions, o->rotary_dim / 2), bits);
    example_use(&p->base, BUFFER_SIN, example_times(x->positions, o->rotary_dim / 2), bits);
}

// ---- the call as the reference of the append has it

#define STRIDES(s) (s).block, (s).head, (s).row

static appendkv_call call_of(const fmha_fwd_problem *p) {
    const fmha_fwd_options *const o = &p->options;
    const tessera_fmha_fwd_args *const a = &p->args;
    const example_problem *const base = &p->base;
    return (appendkv_call){
        .type = fmha_fwd_input_element(p->dtype, p->fp8),
        .rope = p->appended.rope,
        .batch = o->b,
        .heads_q = o->h,
        .heads_k = o->h_k,
        .added = o->s_knew,
        .rotary_dim = o->rotary_dim,
        .positions_differ = p->mask.type != TESSERA_MASK_NONE,
        .keys_before = example_pointer(base, BUFFER_KEYS),
        .pages = example_pointer(base, BUFFER_TABLE),
        .page_size = o->page_block_size,
        .table_stride = p->cache.columns,
        .cache_of = example_pointer(base, BUFFER_CACHE_INDEX),
        .q = {example_pointer(base, BUFFER_Q), a->batch_stride_q, a->nhead_stride_q, a->stride_q, o->d},
        .knew = {example_pointer(base, BUFFER_KNEW), STRIDES(p->appended.of_knew), o->d},
        .vnew = {example_pointer(base, BUFFER_VNEW), STRIDES(p->appended.of_vnew), o->d_v},
        .cos = example_pointer(base, BUFFER_COS),
        .sin = example_pointer(base, BUFFER_SIN),
    };
}

// ---- inputs

static void fill_angles(const fmha_fwd_problem *p, tessera_type type) {
    uint64_t state = p->base.seed + BUFFER_COS;
    const int64_t count = (int64_t)p->appended.positions * (p->options.rotary_dim / 2);
    for (int64_t n = 0; n < count; n++) {
        const double angle = example_uniform(&state, 0, 6.283185307179586);
        element_store(type, example_pointer(&p->base, BUFFER_COS), n, cos(angle));
        element_store(type, example_pointer(&p->base, BUFFER_SIN), n, sin(angle));
    }
}

// Rotates the row from element `at` of x on by the angles of `position` to element `end` of `to`.
static void rotate(const appendkv_call *c, const appendkv_tensor *x, int64_t at, int32_t position, void *to,
                   int64_t end) {
    for (int32_t column = 0; column < c->rotary_dim; column++)
        element_store(c->type, to, end + column, appendkv_rotated(c, x, at, position, column));
}

// Key j of all that are new becomes one of knew and vnew; the reference's is rotated.
static void take_key(fmha_fwd_problem *p, const appendkv_call *c, int32_t b, int32_t g, int32_t j) {
    const fmha_fwd_appended *const x = &p->appended;
    const tessera_fmha_fwd_args *const a = &p->args;
    const int64_t bytes = element_bits(c->type) / 8, row = x->before + j;
    char *const k = example_pointer(&p->base, BUFFER_K), *const v = example_pointer(&p->base, BUFFER_V);
    const int64_t of_k = b * a->batch_stride_k + g * a->nhead_stride_k + row * a->stride_k;
    const int64_t of_v = b * a->batch_stride_v + g * a->nhead_stride_v + row * a->stride_v;
    const int64_t knew = b * x->of_knew.block + g * x->of_knew.head + j * x->of_knew.row;
    const int64_t vnew = b * x->of_vnew.block + g * x->of_vnew.head + j * x->of_vnew.row;
    memcpy((char *)example_pointer(&p->base, BUFFER_KNEW) + knew * bytes, k + of_k * bytes,
           (size_t)(bytes * p->options.d));
    memcpy((char *)example_pointer(&p->base, BUFFER_VNEW) + vnew * bytes, v + of_v * bytes,
           (size_t)(bytes * p->options.d_v));
    rotate(c, &c->knew, knew, (int32_t)row, k, of_k);
}

static void rotate_queries(fmha_fwd_problem *p, const appendkv_call *c) {
    const size_t bytes = (size_t)p->base.buffers[BUFFER_Q].bytes;
    p->appended.q = malloc(bytes + 1);
    if (!p->appended.q) abort();
    memcpy(p->appended.q, c->q.begin, bytes);
    p->args.q_ptr = p->appended.q;
    for (int32_t b = 0; b < p->options.b; b++)
        for (int32_t h = 0; h < p->options.h; h++)
            for (int32_t i = 0; i < p->options.s; i++) {
                const int64_t at = b * c->q.block_stride + h * c->q.head_stride + i * c->q.row_stride;
                rotate(c, &c->q, at, p->appended.before + (c->positions_differ ? i : 0), p->appended.q, at);
            }
}

void fmha_fwd_fill_appended(fmha_fwd_problem *p) {
    if (!fmha_fwd_appends(p)) return;
    const appendkv_call call = call_of(p);
    if (p->options.rotary_dim) fill_angles(p, call.type);
    for (int32_t b = 0; b < p->options.b; b++)
        for (int32_t g = 0; g < p->options.h_k; g++)
            for (int32_t j = 0; j < p->options.s_knew; j++) take_key(p, &call, b, g, j);
    if (p->options.rotary_dim) rotate_queries(p, &call);
}

// ---- verification

static appendkv_output output(const fmha_fwd_problem *p, fmha_fwd_buffer_id id, fmha_fwd_strides s, int32_t columns,
                              void *before) {
    return (appendkv_output){{example_pointer(&p->base, (int)id), STRIDES(s), columns},
                             before,
                             p->base.buffers[id].bytes,
                             id == BUFFER_K_CACHE ? "k" : "v"};
}

example_outcome fmha_fwd_verify_appended(const fmha_fwd_problem *p, example_result *result) {
    const example_buffer *const k = &p->base.buffers[BUFFER_K_CACHE], *const v = &p->base.buffers[BUFFER_V_CACHE];
    appendkv_verdict verdict = {0};
    if (!fmha_fwd_appends(p)) return EXAMPLE_OK;
    void *const before[] = {malloc((size_t)k->bytes + 1), malloc((size_t)v->bytes + 1)};
    if (!before[0] || !before[1]) abort();
    memset(before[0], k->unwritten, (size_t)k->bytes);
    memset(before[1], v->unwritten, (size_t)v->bytes);
    fmha_fwd_put_keys(p, before[0], before[1]);
    appendkv_call call = call_of(p);
    call.k = output(p, BUFFER_K_CACHE, p->cache.of_k, p->options.d, before[0]);
    call.v = output(p, BUFFER_V_CACHE, p->cache.of_v, p->options.d_v, before[1]);
    appendkv_check(&call, &verdict);
    free(before[0]), free(before[1]);
    return verdict.wrong ? example_fail(result, EXAMPLE_WRONG_RESULT, "the cache after the append: %s", verdict.first)
                         : EXAMPLE_OK;
}

void fmha_fwd_print_appended(const fmha_fwd_problem *p, FILE *file) {
    const fmha_fwd_options *const o = &p->options;
    if (o->s_knew) fprintf(file, ", s_knew:%d", o->s_knew);
    if (o->rotary_dim) fprintf(file, ", rotary_dim:%d(%s)", o->rotary_dim, o->rotary_interleaved ? "inter" : "half");
}
