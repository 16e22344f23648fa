// SPDX-License-Identifier: MIT
// Makes a problem from options: checks them and fills traits and args.
#include "fmha_fwd_problem.h"
#include "fmha_fwd_arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- checks of options that the library does not see -----------------------------------------------------------------

static example_outcome read_texts(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (tessera_fmha_dtype_from_string(o->prec, &p->dtype) != TESSERA_SUCCESS)
        return EXAMPLE_WRONG("-prec=%s: fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8 or mxfp4", o->prec);
    if (fmha_fwd_read_mask(o->mask, &p->mask))
        return EXAMPLE_WRONG("-mask=%s: 0, 1 or t, 2 or b, t:l,r[,sink], b:l,r[,sink], xt:w, xb:w or g:y,x", o->mask);
    if (fmha_fwd_read_bias(o->bias, &p->bias))
        return EXAMPLE_WRONG("-bias=%s: n, e, e:1, e:2, a or a:1 (or 0, 1, 2 for n, e, a)", o->bias);
    if (fmha_fwd_read_qscale(o->qscale, &p->qscale))
        return EXAMPLE_WRONG("-qscale=%s: n, pt, bs, kvbs, mx or th (or 0 to 5)", o->qscale);
    if (fmha_fwd_read_init(o->init, &p->init))
        return EXAMPLE_WRONG("-init=%s: ui, ni, uf, nf, tf, 3 or uf:q (or 0, 1, 2 for ui, uf, tf)", o->init);
    if (strcmp(o->vlayout, "r") != 0 && strcmp(o->vlayout, "c") != 0)
        return EXAMPLE_WRONG("-vlayout=%s: r (seqlen x hdim) or c (hdim x seqlen)", o->vlayout);
    return EXAMPLE_OK;
}

static example_outcome check_scales(const fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *o = &p->options;
    int mx = p->dtype == TESSERA_FMHA_MXFP8 || p->dtype == TESSERA_FMHA_MXFP4;
    int fp8 = p->dtype == TESSERA_FMHA_FP8 || p->dtype == TESSERA_FMHA_FP8BF16 || p->dtype == TESSERA_FMHA_FP8FP32;
    if (!fp8 && fmha_fwd_scales_rows(p))
        return EXAMPLE_WRONG("-qscale=%s with -prec=%s: scales of the rows of K and V are for fp8, fp8bf16 and "
                             "fp8fp32 with -api=batch_prefill",
                             o->qscale, o->prec);
    if (mx != (p->qscale == TESSERA_QSCALE_MX))
        return EXAMPLE_WRONG("-qscale=%s with -prec=%s: mx for mxfp8 and mxfp4, and for them alone", o->qscale,
                             o->prec);
    if (!fp8 && (p->qscale == TESSERA_QSCALE_PER_TENSOR || p->qscale == TESSERA_QSCALE_BLOCK))
        return EXAMPLE_WRONG("-qscale=%s with -prec=%s: pt and bs are for fp8, fp8bf16 and fp8fp32", o->qscale,
                             o->prec);
    if (p->init == INIT_RANGE && (p->dtype == TESSERA_FMHA_FP32 || p->dtype == TESSERA_FMHA_BF16))
        return EXAMPLE_WRONG(
            "-init=%s with -prec=%s: products of the type's whole range overflow fp32; ui, ni, uf, nf or tf", o->init,
            o->prec);
    if (o->logits_soft_cap > 0 && p->bias.type == TESSERA_BIAS_ELEMENTWISE)
        return EXAMPLE_WRONG("-logits_soft_cap=%g with -bias=%s: a soft cap goes with -bias=n or a",
                             (double)o->logits_soft_cap, o->bias);
    return EXAMPLE_OK;
}

// CK's "-1 means equal to" values, then ranges.
static example_outcome check_numbers(fmha_fwd_problem *p, example_result *result) {
    fmha_fwd_options *o = &p->options;
    if (o->h_k == -1) o->h_k = o->h;
    if (o->d_v == -1) o->d_v = o->d;
    if (o->common.v < 0 || o->common.v > 3) return EXAMPLE_WRONG("-v=%d: 0 to 3", o->common.v);
    if (o->mode != 0 && o->mode != 1) return EXAMPLE_WRONG("-mode=%d: 0 (batch) or 1 (group)", o->mode);
    if (o->b < 1) return EXAMPLE_WRONG("-b=%d: at least 1", o->b);
    if (o->h < 1) return EXAMPLE_WRONG("-h=%d: at least 1", o->h);
    if (o->h_k < 1 || o->h % o->h_k)
        return EXAMPLE_WRONG("-h_k=%d: a number that divides -h=%d, or -1 for the same", o->h_k, o->h);
    int even = p->dtype == TESSERA_FMHA_MXFP4;
    if (o->d < 1 || o->d > 512 || (even && o->d % 2))
        return EXAMPLE_WRONG("-d=%d: 1 to 512%s", o->d, even ? ", even" : "");
    if (o->d_v < 1 || o->d_v > 512 || (even && o->d_v % 2))
        return EXAMPLE_WRONG("-d_v=%d: 1 to 512%s, or -1 for -d", o->d_v, even ? ", even" : "");
    if (!(o->p_drop >= 0 && o->p_drop < 1))
        return EXAMPLE_WRONG("-p_drop=%g: at least 0 and less than 1", (double)o->p_drop);
    if (!(o->logits_soft_cap >= 0))
        return EXAMPLE_WRONG("-logits_soft_cap=%g: 0 (none) or more", (double)o->logits_soft_cap);
    return check_scales(p, result);
}

// --- traits and args -------------------------------------------------------------------------------------------------

static void set_traits(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    p->traits = (tessera_fmha_fwd_traits){
        .struct_size = sizeof p->traits,
        .hdim_q = o->d,
        .hdim_v = o->d_v,
        .data_type = p->dtype,
        .is_group_mode = o->mode,
        .is_v_rowmajor = o->vlayout[0] == 'r',
        .has_logits_soft_cap = o->logits_soft_cap > 0,
        .mask_type = p->mask.type,
        .bias_type = p->bias.type,
        .has_lse = o->lse != 0,
        .has_dropout = o->p_drop > 0,
        .qscale_type = fmha_fwd_scales_rows(p) ? TESSERA_QSCALE_BLOCK : p->qscale,
        .skip_min_seqlen_q = o->min_seqlen_q > 0,
        .has_sink = p->mask.sink > 0 || o->init_sink != 0,
    };
}

static void set_sizes(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    a->seqlen_q = o->mode ? 0 : o->s;
    a->seqlen_k = o->mode ? 0 : o->s_k;
    a->batch = o->b;
    a->max_seqlen_q = p->max_seqlen_q;
    a->hdim_q = o->d;
    a->hdim_v = o->d_v;
    a->nhead_q = o->h;
    a->nhead_k = o->h_k;
    a->scale_s = o->scale_s != 0 ? o->scale_s : (float)(1 / sqrt((double)o->d));
    a->logits_soft_cap = o->logits_soft_cap;
    a->window_size_left = p->mask.left;
    a->window_size_right = p->mask.right;
    a->sink_size = p->mask.sink;
    a->mask_type = p->mask.type;
    a->min_seqlen_q = o->min_seqlen_q;
    a->num_splits = o->num_splits > 1 ? o->num_splits : 0;
    a->p_drop = o->p_drop;
    a->drop_prefs = o->drop_prefs != 0;
    a->drop_seed = o->drop_seed;
    a->drop_offset = o->drop_offset;
}

// ---- the program

static void name_sizes(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    snprintf(p->base.sizes, sizeof p->base.sizes, "-b=%d -h=%d -s=%d -s_k=%d -d=%d", o->b, o->h, o->s, o->s_k, o->d);
}

static example_outcome settle(example_problem *base, const void *arguments, example_result *result) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    const fmha_fwd_options *o = &p->options;
    p->options = *(const fmha_fwd_options *)arguments;
    base->options = &o->common;
    base->traits = &p->traits;
    base->args = &p->args;
    base->misalign = o->misalign;
    if (read_texts(p, result) || check_numbers(p, result)) return result->outcome;
    name_sizes(p);
    if (fmha_fwd_settle_lengths(p, result)) return result->outcome;
    name_sizes(p); // again, with those that were set now
    p->args = (tessera_fmha_fwd_args)TESSERA_FMHA_FWD_ARGS_INIT;
    set_traits(p);
    set_sizes(p);
    return fmha_fwd_settle_cache(p, result);
}

static void destroy(example_problem *base) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    free(p->seqlen_q), free(p->seqlen_k), free(p->room_q), free(p->room_k), free(p->appended.q);
}

EXAMPLE_CALLS(fmha_fwd)

#define TENSOR(name) #name, offsetof(tessera_fmha_fwd_args, name##_ptr)
static const example_tensor tensors[BUFFER_COUNT] = {
    [BUFFER_Q] = {TENSOR(q)},
    [BUFFER_K] = {TENSOR(k)},
    [BUFFER_V] = {TENSOR(v)},
    [BUFFER_BIAS] = {TENSOR(bias)},
    [BUFFER_Q_DESCALE] = {TENSOR(q_descale)},
    [BUFFER_K_DESCALE] = {TENSOR(k_descale)},
    [BUFFER_V_DESCALE] = {TENSOR(v_descale)},
    [BUFFER_SEQSTART_Q] = {TENSOR(seqstart_q)},
    [BUFFER_SEQSTART_K] = {TENSOR(seqstart_k)},
    [BUFFER_SEQLEN_Q] = {TENSOR(seqlen_q)},
    [BUFFER_SEQLEN_K] = {TENSOR(seqlen_k)},
    [BUFFER_CU_SEQLEN_Q] = {TENSOR(cu_seqlen_q)},
    [BUFFER_CU_SEQLEN_K] = {TENSOR(cu_seqlen_k)},
    [BUFFER_BLOCK_START_Q] = {TENSOR(block_scale_seqstart_q)},
    [BUFFER_BLOCK_START_K] = {TENSOR(block_scale_seqstart_k)},
    [BUFFER_V_SCALE_START] = {TENSOR(seqstart_v_scale)},
    [BUFFER_SINK] = {TENSOR(sink)},
    [BUFFER_DROP_SEED] = {TENSOR(drop_seed)},
    [BUFFER_DROP_OFFSET] = {TENSOR(drop_offset)},
    [BUFFER_O] = {TENSOR(o)},
    [BUFFER_LSE] = {TENSOR(lse)},
    [BUFFER_RANDVAL] = {TENSOR(rand_val)},
};

const example_program fmha_fwd_program = {
    .name = "tile_example_fmha_fwd",
    .arguments = &fmha_fwd_arguments_table,
    .calls = &fmha_fwd_calls,
    .tensors = tensors,
    .tensor_count = BUFFER_COUNT,
    .first_output = BUFFER_O,
    .problem_bytes = sizeof(fmha_fwd_problem),
    .not_supported = ", not supported yet",
    .settle = settle,
    .lay_out = fmha_fwd_lay_out,
    .put = fmha_fwd_put_lengths,
    .fill = fmha_fwd_fill_inputs,
    .destroy = destroy,
    .count = fmha_fwd_count,
    .verify = fmha_fwd_verify,
    .print = fmha_fwd_print,
    .put_json = fmha_fwd_put_json,
    .put_error = fmha_fwd_put_error,
};
