// SPDX-License-Identifier: MIT
// Sizes, strides and buffers of the tensors.
#include <string.h>

#include "fmha_fwd_problem.h"

static int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

static void use(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int64_t elements, int32_t bits) {
    example_use(&p->base, (int)id, elements, bits);
}

// A tensor of tokens [batch, head, token, column], or [batch, token, head, column].
static void use_tokens(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int permuted, int64_t heads, int64_t tokens,
                       int64_t columns, int32_t bits, int64_t *batch_stride, int64_t *nhead_stride, int64_t *stride) {
    *batch_stride = example_times(example_times(heads, tokens), columns);
    *nhead_stride = permuted ? example_times(tokens, columns) : columns;
    *stride = permuted ? columns : example_times(heads, columns);
    use(p, id, example_times(p->shape_batch, *batch_stride), bits);
}

static void use_qkvo(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    int32_t in = element_bits(fmha_fwd_input_element(p->dtype, p->fp8));
    int32_t out = element_bits(fmha_fwd_output_element(p->dtype, p->fp8));
    int32_t multiple = o->pad_columns ? 512 / in : in < 8 ? 2 : 1; // mxfp4 strides are even
    use_tokens(p, BUFFER_Q, o->iperm, o->h, p->shape_seqlen_q, o->d, in, &a->batch_stride_q, &a->nhead_stride_q,
               &a->stride_q);
    use_tokens(p, BUFFER_K, o->iperm, o->h_k, p->shape_seqlen_k, o->d, in, &a->batch_stride_k, &a->nhead_stride_k,
               &a->stride_k);
    // In column-major order a row is a column of the head.
    if (p->traits.is_v_rowmajor)
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, p->shape_seqlen_k, o->d_v, in, &a->batch_stride_v, &a->nhead_stride_v,
                   &a->stride_v);
    else
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, o->d_v, ceil_div(p->shape_seqlen_k, multiple) * multiple, in,
                   &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    use_tokens(p, BUFFER_O, o->operm, o->h, p->shape_seqlen_q, o->d_v, out, &a->batch_stride_o, &a->nhead_stride_o,
               &a->stride_o);
    if (o->lse) {
        int64_t unused;
        use_tokens(p, BUFFER_LSE, 1, o->h, p->shape_seqlen_q, 1, 32, &a->batch_stride_lse, &a->nhead_stride_lse,
                   &unused);
    }
}

// Elementwise: [1, 1, s, s], [1, h, s, s] or [b, h, s, s] by rank, permuted as the inputs are. Alibi: [1, h] or [b, h].
static void use_bias(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (p->bias.type == TESSERA_BIAS_ALIBI) {
        use(p, BUFFER_BIAS, example_times(p->bias.rank ? o->b : 1, o->h), 32);
        a->stride_bias = p->bias.rank ? o->h : 0;
    } else if (p->bias.type == TESSERA_BIAS_ELEMENTWISE) {
        int64_t heads = p->bias.rank ? o->h : 1;
        use_tokens(p, BUFFER_BIAS, o->iperm, heads, p->shape_seqlen_q, p->columns,
                   element_bits(fmha_fwd_bias_element(p->dtype)), &a->batch_stride_bias, &a->nhead_stride_bias,
                   &a->stride_bias);
        if (p->bias.rank < 2) {
            p->base.buffers[BUFFER_BIAS].bytes =
                example_times(a->batch_stride_bias, p->base.buffers[BUFFER_BIAS].element_bytes);
            a->batch_stride_bias = 0;
        }
        if (p->bias.rank < 1) a->nhead_stride_bias = 0;
    }
}

// Counts the blocks of `size` tokens of all sequences, and sets the first block of each for group mode.
static int64_t sum_of_blocks(const fmha_fwd_problem *p, const int32_t *lengths, int32_t size, int32_t *starts) {
    int64_t sum = 0;
    for (int32_t b = 0; b < p->options.b; b++) {
        if (starts) starts[b] = (int32_t)sum;
        sum += ceil_div(lengths[b], size);
    }
    if (starts) starts[p->options.b] = (int32_t)sum;
    return sum;
}

enum { BLOCK_SCALE_SIZE = 128, MX_SIZE = 32 };

// Tokens of a block of q, and of k and v.
static void set_block_sizes(fmha_fwd_problem *p) {
    const fmha_fwd_options *const o = &p->options;
    tessera_fmha_fwd_args *const a = &p->args;
    a->block_scale_size_q = o->block_scale_size_q ? o->block_scale_size_q : BLOCK_SCALE_SIZE;
    a->block_scale_size_kv = o->block_scale_size_kv ? o->block_scale_size_kv : BLOCK_SCALE_SIZE;
    if (p->qscale == TESSERA_QSCALE_KV_BLOCK) a->block_scale_size_kv = o->page_block_size;
    if (p->qscale == TESSERA_QSCALE_TOKEN_HEAD) a->block_scale_size_q = a->block_scale_size_kv = 1;
}

static void use_descales(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (p->qscale == TESSERA_QSCALE_PER_TENSOR)
        for (fmha_fwd_buffer_id id = BUFFER_Q_DESCALE; id <= BUFFER_V_DESCALE; id++) use(p, id, 1, 32);
    if (p->traits.qscale_type == TESSERA_QSCALE_BLOCK) {
        int64_t unused, q, k;
        set_block_sizes(p);
        const int32_t size_q = a->block_scale_size_q, size_k = a->block_scale_size_kv;
        q = o->mode ? sum_of_blocks(p, p->seqlen_q, size_q, NULL) : ceil_div(p->room_q[0], size_q);
        k = o->mode ? sum_of_blocks(p, p->seqlen_k, size_k, NULL) : ceil_div(p->room_k[0], size_k);
        use_tokens(p, BUFFER_Q_DESCALE, 1, o->h, q, 1, 32, &a->batch_stride_q_descale, &a->nhead_stride_q_descale,
                   &unused);
        use_tokens(p, BUFFER_K_DESCALE, 1, o->h_k, k, 1, 32, &a->batch_stride_k_descale, &a->nhead_stride_k_descale,
                   &unused);
        use_tokens(p, BUFFER_V_DESCALE, 1, o->h_k, k, 1, 32, &a->batch_stride_v_descale, &a->nhead_stride_v_descale,
                   &unused);
    }
    if (p->qscale == TESSERA_QSCALE_MX) {
        int64_t columns = ceil_div(o->d, MX_SIZE);
        int64_t v = o->mode ? sum_of_blocks(p, p->seqlen_k, MX_SIZE, NULL) : ceil_div(p->room_k[0], MX_SIZE);
        use_tokens(p, BUFFER_Q_DESCALE, o->iperm, o->h, p->shape_seqlen_q, columns, 8, &a->batch_stride_q_descale,
                   &a->nhead_stride_q_descale, &a->stride_q_descale);
        use_tokens(p, BUFFER_K_DESCALE, o->iperm, o->h_k, p->shape_seqlen_k, columns, 8, &a->batch_stride_k_descale,
                   &a->nhead_stride_k_descale, &a->stride_k_descale);
        use_tokens(p, BUFFER_V_DESCALE, o->iperm, o->h_k, o->d_v, v, 8, &a->batch_stride_v_descale,
                   &a->nhead_stride_v_descale, &a->stride_v_descale);
    }
}

static void use_lengths(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    int padded_q = o->s_qpad_list || o->s_qpad > 0, padded_k = o->s_kpad_list || o->s_kpad > 0;
    for (int32_t b = 0; b < o->b; b++) padded_k |= p->room_k[b] != p->seqlen_k[b];
    if (o->mode) {
        use(p, BUFFER_SEQSTART_Q, (int64_t)o->b + 1, 32);
        use(p, BUFFER_SEQSTART_K, (int64_t)o->b + 1, 32);
        int cumulative = o->cu_seqlen != 0;
        if (padded_q) use(p, cumulative ? BUFFER_CU_SEQLEN_Q : BUFFER_SEQLEN_Q, (int64_t)o->b + cumulative, 32);
        if (padded_k) use(p, cumulative ? BUFFER_CU_SEQLEN_K : BUFFER_SEQLEN_K, (int64_t)o->b + cumulative, 32);
        if (p->traits.qscale_type == TESSERA_QSCALE_BLOCK) {
            use(p, BUFFER_BLOCK_START_Q, (int64_t)o->b + 1, 32);
            use(p, BUFFER_BLOCK_START_K, (int64_t)o->b + 1, 32);
        }
        if (p->qscale == TESSERA_QSCALE_MX) use(p, BUFFER_V_SCALE_START, (int64_t)o->b + 1, 32);
    } else {
        if (o->q_eff_lens) use(p, BUFFER_CU_SEQLEN_Q, (int64_t)o->b + 1, 32);
        if (o->kv_eff_lens) use(p, BUFFER_CU_SEQLEN_K, (int64_t)o->b + 1, 32);
    }
}

// The most bytes of dropout that are stored and compared; beyond this they are checked only through o.
static const int64_t RANDVAL_LIMIT = INT64_C(1) << 30;

static void use_dropout(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (o->drop_prefs) {
        use(p, BUFFER_DROP_SEED, 1, 64);
        use(p, BUFFER_DROP_OFFSET, 1, 64);
    }
    int64_t bytes = example_times(example_times(p->shape_batch, o->h), example_times(p->shape_seqlen_q, p->columns));
    if (o->p_drop == 0 || o->common.v == 0 || p->api != FMHA_FWD_PLAIN || bytes < 0 || bytes > RANDVAL_LIMIT) return;
    use_tokens(p, BUFFER_RANDVAL, 1, o->h, p->shape_seqlen_q, p->columns, 8, &a->batch_stride_randval,
               &a->nhead_stride_randval, &a->stride_randval);
    a->s_randval = 1;
}

// Sets the NaN of FNUZ's e4m3, which differs from OCP's.
static void mark_fnuz(fmha_fwd_problem *p) {
    example_buffer *const b = p->base.buffers;
    if (fmha_fwd_input_element(p->dtype, p->fp8) == TESSERA_TYPE_E4M3FNUZ)
        b[BUFFER_Q].unwritten = b[BUFFER_K].unwritten = b[BUFFER_V].unwritten = 0x80;
    if (fmha_fwd_output_element(p->dtype, p->fp8) == TESSERA_TYPE_E4M3FNUZ) b[BUFFER_O].unwritten = 0x80;
}

example_outcome fmha_fwd_lay_out(example_problem *base, example_result *result) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    p->fp8 = tessera_device_fp8_format(base->device);
    use_qkvo(p);
    mark_fnuz(p);
    use_bias(p);
    use_descales(p);
    use_lengths(p);
    use_dropout(p);
    if (p->options.init_sink) use(p, BUFFER_SINK, p->options.h, 32);
    return fmha_fwd_lay_out_cache(p, result);
}

static void put_starts(fmha_fwd_problem *p, fmha_fwd_buffer_id id, const int32_t *lengths) {
    int32_t *starts = example_pointer(&p->base, id);
    if (!starts) return;
    starts[0] = 0;
    for (int32_t b = 0; b < p->options.b; b++) starts[b + 1] = starts[b] + lengths[b];
}

void fmha_fwd_put_lengths(example_problem *base) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    fmha_fwd_put_cache(p);
    put_starts(p, BUFFER_SEQSTART_Q, p->room_q);
    put_starts(p, BUFFER_SEQSTART_K, p->room_k);
    put_starts(p, BUFFER_CU_SEQLEN_Q, p->seqlen_q);
    put_starts(p, BUFFER_CU_SEQLEN_K, p->seqlen_k);
    size_t bytes = (size_t)p->options.b * sizeof(int32_t);
    if (p->args.seqlen_q_ptr) memcpy(example_pointer(&p->base, BUFFER_SEQLEN_Q), p->seqlen_q, bytes);
    if (p->args.seqlen_k_ptr) memcpy(example_pointer(&p->base, BUFFER_SEQLEN_K), p->seqlen_k, bytes);
    if (p->args.block_scale_seqstart_q_ptr)
        sum_of_blocks(p, p->seqlen_q, p->args.block_scale_size_q, example_pointer(&p->base, BUFFER_BLOCK_START_Q));
    if (p->args.block_scale_seqstart_k_ptr)
        sum_of_blocks(p, p->seqlen_k, p->args.block_scale_size_kv, example_pointer(&p->base, BUFFER_BLOCK_START_K));
    if (p->args.seqstart_v_scale_ptr)
        sum_of_blocks(p, p->seqlen_k, MX_SIZE, example_pointer(&p->base, BUFFER_V_SCALE_START));
    if (p->args.drop_prefs) {
        *(uint64_t *)example_pointer(&p->base, BUFFER_DROP_SEED) = p->options.drop_seed;
        *(uint64_t *)example_pointer(&p->base, BUFFER_DROP_OFFSET) = p->options.drop_offset;
    }
}
