// SPDX-License-Identifier: MIT
// From options to a problem: checks them and fills traits and args.
#include "fmha_fwd_problem.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tessera/kernel/fmha_fwd.h"

fmha_fwd_outcome fmha_fwd_fail(fmha_fwd_result *result, fmha_fwd_outcome outcome, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(result->message, sizeof result->message, format, values);
    va_end(values);
    return result->outcome = outcome;
}

fmha_fwd_outcome fmha_fwd_fail_status(fmha_fwd_result *result, tessera_status status, const char *call) {
    fmha_fwd_outcome outcome = status == TESSERA_ERROR_INVALID_ARGUMENT ? FMHA_FWD_WRONG_ARGUMENT
                               : status == TESSERA_ERROR_NO_INSTANCE    ? FMHA_FWD_NO_INSTANCE
                                                                        : FMHA_FWD_DEVICE_ERROR;
    const char *reason = tessera_last_error();
    fmha_fwd_fail(result, outcome, "%s: %s", call, *reason ? reason : tessera_status_string(status));
    result->status = status;
    return outcome;
}

// --- checks of what the library does not see -------------------------------------------------------------------------

static fmha_fwd_outcome read_texts(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (tessera_fmha_dtype_from_string(o->prec, &p->dtype) != TESSERA_SUCCESS)
        return FMHA_FWD_WRONG("-prec=%s: fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8 or mxfp4", o->prec);
    if (fmha_fwd_read_mask(o->mask, &p->mask))
        return FMHA_FWD_WRONG("-mask=%s: 0, 1 or t, 2 or b, t:l,r[,sink], b:l,r[,sink], xt:w, xb:w or g:y,x", o->mask);
    if (fmha_fwd_read_bias(o->bias, &p->bias))
        return FMHA_FWD_WRONG("-bias=%s: n, e, e:1, e:2, a or a:1 (or 0, 1, 2 for n, e, a)", o->bias);
    if (fmha_fwd_read_qscale(o->qscale, &p->qscale))
        return FMHA_FWD_WRONG("-qscale=%s: n, pt, bs or mx (or 0, 1, 2, 4)", o->qscale);
    if (fmha_fwd_read_init(o->init, &p->init))
        return FMHA_FWD_WRONG("-init=%s: ui, ni, uf, nf, tf, 3 or uf:q (or 0, 1, 2 for ui, uf, tf)", o->init);
    if (strcmp(o->vlayout, "r") != 0 && strcmp(o->vlayout, "c") != 0)
        return FMHA_FWD_WRONG("-vlayout=%s: r (seqlen x hdim) or c (hdim x seqlen)", o->vlayout);
    return FMHA_FWD_OK;
}

static fmha_fwd_outcome check_scales(const fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    int mx = p->dtype == TESSERA_FMHA_MXFP8 || p->dtype == TESSERA_FMHA_MXFP4;
    int fp8 = p->dtype == TESSERA_FMHA_FP8 || p->dtype == TESSERA_FMHA_FP8BF16 || p->dtype == TESSERA_FMHA_FP8FP32;
    if (p->qscale == TESSERA_QSCALE_KV_BLOCK)
        return FMHA_FWD_WRONG("-qscale=%s: scales of pages of K and V belong to batch_prefill; here n, pt, bs or mx",
                              o->qscale);
    if (mx != (p->qscale == TESSERA_QSCALE_MX))
        return FMHA_FWD_WRONG("-qscale=%s with -prec=%s: mx for mxfp8 and mxfp4, and for them alone", o->qscale,
                              o->prec);
    if (!fp8 && (p->qscale == TESSERA_QSCALE_PER_TENSOR || p->qscale == TESSERA_QSCALE_BLOCK))
        return FMHA_FWD_WRONG("-qscale=%s with -prec=%s: pt and bs are for fp8, fp8bf16 and fp8fp32", o->qscale,
                              o->prec);
    if (p->init == INIT_RANGE && (p->dtype == TESSERA_FMHA_FP32 || p->dtype == TESSERA_FMHA_BF16))
        return FMHA_FWD_WRONG(
            "-init=%s with -prec=%s: products of the type's whole range overflow fp32; ui, ni, uf, nf or tf", o->init,
            o->prec);
    if (o->logits_soft_cap > 0 && p->bias.type != TESSERA_BIAS_NONE)
        return FMHA_FWD_WRONG("-logits_soft_cap=%g with -bias=%s: a soft cap goes with -bias=n only",
                              (double)o->logits_soft_cap, o->bias);
    return FMHA_FWD_OK;
}

// CK's "-1 means equal to" values, then ranges.
static fmha_fwd_outcome check_numbers(fmha_fwd_problem *p, fmha_fwd_result *result) {
    fmha_fwd_options *o = &p->options;
    if (o->h_k == -1) o->h_k = o->h;
    if (o->d_v == -1) o->d_v = o->d;
    if (o->v < 0 || o->v > 3) return FMHA_FWD_WRONG("-v=%d: 0 to 3", o->v);
    if (o->mode != 0 && o->mode != 1) return FMHA_FWD_WRONG("-mode=%d: 0 (batch) or 1 (group)", o->mode);
    if (o->b < 1) return FMHA_FWD_WRONG("-b=%d: at least 1", o->b);
    if (o->h < 1) return FMHA_FWD_WRONG("-h=%d: at least 1", o->h);
    if (o->h_k < 1 || o->h % o->h_k)
        return FMHA_FWD_WRONG("-h_k=%d: a number that divides -h=%d, or -1 for the same", o->h_k, o->h);
    int even = p->dtype == TESSERA_FMHA_MXFP4;
    if (o->d < 1 || o->d > 512 || (even && o->d % 2))
        return FMHA_FWD_WRONG("-d=%d: 1 to 512%s", o->d, even ? ", even" : "");
    if (o->d_v < 1 || o->d_v > 512 || (even && o->d_v % 2))
        return FMHA_FWD_WRONG("-d_v=%d: 1 to 512%s, or -1 for -d", o->d_v, even ? ", even" : "");
    if (!(o->p_drop >= 0 && o->p_drop < 1))
        return FMHA_FWD_WRONG("-p_drop=%g: at least 0 and less than 1", (double)o->p_drop);
    if (!(o->logits_soft_cap >= 0))
        return FMHA_FWD_WRONG("-logits_soft_cap=%g: 0 (none) or more", (double)o->logits_soft_cap);
    if (o->warmup < 0) return FMHA_FWD_WRONG("-warmup=%d: 0 or more", o->warmup);
    if (o->repeat < 1) return FMHA_FWD_WRONG("-repeat=%d: at least 1", o->repeat);
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
        .qscale_type = p->qscale,
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
    a->p_drop = o->p_drop;
    a->drop_prefs = o->drop_prefs != 0;
    a->drop_seed = o->drop_seed;
    a->drop_offset = o->drop_offset;
}

void fmha_fwd_set_pointers(const fmha_fwd_problem *p, void *at(const fmha_fwd_problem *, fmha_fwd_buffer_id),
                           tessera_fmha_fwd_args *a) {
    a->q_ptr = at(p, BUFFER_Q);
    a->k_ptr = at(p, BUFFER_K);
    a->v_ptr = at(p, BUFFER_V);
    a->bias_ptr = at(p, BUFFER_BIAS);
    a->q_descale_ptr = at(p, BUFFER_Q_DESCALE);
    a->k_descale_ptr = at(p, BUFFER_K_DESCALE);
    a->v_descale_ptr = at(p, BUFFER_V_DESCALE);
    a->rand_val_ptr = at(p, BUFFER_RANDVAL);
    a->lse_ptr = at(p, BUFFER_LSE);
    a->o_ptr = at(p, BUFFER_O);
    a->seqstart_q_ptr = at(p, BUFFER_SEQSTART_Q);
    a->seqstart_k_ptr = at(p, BUFFER_SEQSTART_K);
    a->seqlen_q_ptr = at(p, BUFFER_SEQLEN_Q);
    a->seqlen_k_ptr = at(p, BUFFER_SEQLEN_K);
    a->cu_seqlen_q_ptr = at(p, BUFFER_CU_SEQLEN_Q);
    a->cu_seqlen_k_ptr = at(p, BUFFER_CU_SEQLEN_K);
    a->block_scale_seqstart_q_ptr = at(p, BUFFER_BLOCK_START_Q);
    a->block_scale_seqstart_k_ptr = at(p, BUFFER_BLOCK_START_K);
    a->seqstart_v_scale_ptr = at(p, BUFFER_V_SCALE_START);
    a->sink_ptr = at(p, BUFFER_SINK);
    a->drop_seed_ptr = at(p, BUFFER_DROP_SEED);
    a->drop_offset_ptr = at(p, BUFFER_DROP_OFFSET);
}

// The instance that was asked for by its name.
static fmha_fwd_outcome find_instance(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const char *const name = p->options.instance;
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    if (!name || !*name) return FMHA_FWD_OK;
    for (uint32_t i = 0; i < table->row_count; i++)
        if (strcmp(name, tessera_row(table, i)->name) == 0)
            p->args.instance = (const tessera_fmha_fwd_instance *)tessera_row(table, i);
    if (p->args.instance) return FMHA_FWD_OK;
    return fmha_fwd_fail(result, FMHA_FWD_NO_INSTANCE, "-instance=%s: there is none; -explain=2 lists all", name);
}

static fmha_fwd_outcome build(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (read_texts(p, result) || check_numbers(p, result)) return result->outcome;
    p->seed = o->seed ? o->seed : (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
    if (fmha_fwd_settle_lengths(p, result)) return result->outcome;

    p->args = (tessera_fmha_fwd_args)TESSERA_FMHA_FWD_ARGS_INIT;
    set_traits(p);
    set_sizes(p);
    tessera_status status = tessera_device_open(o->device, &p->device);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "-device");
    p->fp8 = tessera_device_fp8_format(p->device);
    if (find_instance(p, result)) return result->outcome;
    if (fmha_fwd_lay_out(p, result)) return result->outcome;
    if (fmha_fwd_allocate(p, result)) return result->outcome;
    fmha_fwd_set_pointers(p, fmha_fwd_pointer, &p->args);
    fmha_fwd_put_lengths(p);
    status = tessera_fmha_fwd_check(&p->traits, &p->args);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_fmha_fwd_check");
    fmha_fwd_fill_inputs(p);
    if (o->v) p->input_sum = fmha_fwd_input_sum(p);
    fmha_fwd_guard(p);
    return FMHA_FWD_OK;
}

fmha_fwd_outcome fmha_fwd_build(const fmha_fwd_options *options, fmha_fwd_problem **problem, fmha_fwd_result *result) {
    memset(result, 0, sizeof *result);
    *problem = NULL;
    fmha_fwd_problem *p = calloc(1, sizeof *p);
    if (!p) return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory");
    p->options = *options;
    if (build(p, result) != FMHA_FWD_OK) {
        fmha_fwd_destroy(p);
        return result->outcome;
    }
    *problem = p;
    return FMHA_FWD_OK;
}

void fmha_fwd_destroy(fmha_fwd_problem *p) {
    if (!p) return;
    fmha_fwd_unguard(p);
    fmha_fwd_free_device_memory(p);
    free(p->seqlen_q), free(p->seqlen_k), free(p->room_q), free(p->room_k);
    free(p->arena);
    free(p->workspace);
    tessera_device_close(p->device);
    free(p);
}

tessera_fmha_fwd_traits *fmha_fwd_problem_traits(fmha_fwd_problem *p) { return &p->traits; }
tessera_fmha_fwd_args *fmha_fwd_problem_args(fmha_fwd_problem *p) { return &p->args; }
const tessera_device *fmha_fwd_problem_device(const fmha_fwd_problem *p) { return p->device; }
