// SPDX-License-Identifier: MIT
// CK's line up to the kernel's name, and the members of CK's JSON.
#include "fmha_fwd_report.h"
#include "json.h"

static const char *layout_of(const fmha_fwd_problem *p) {
    static const char *const names[2][2] = {{"bshd", "bshd-bhsd"}, {"bhsd-bshd", "bhsd"}};
    return names[p->options.iperm != 0][p->options.operm != 0];
}

static const char *mode_of(const fmha_fwd_problem *p) { return p->options.mode ? "group" : "batch"; }

static int padded_k(const fmha_fwd_problem *p) { return p->options.s_kpad_list || p->options.s_kpad > 0; }
static int padded_q(const fmha_fwd_problem *p) { return p->options.s_qpad_list || p->options.s_qpad > 0; }

static int32_t first_length(const fmha_fwd_problem *p, int32_t batch_mode, const int32_t *lengths) {
    return p->options.mode ? lengths[0] : batch_mode;
}

void fmha_fwd_print_shape(const fmha_fwd_problem *p, int room_k, FILE *file) {
    const fmha_fwd_options *o = &p->options;
    fprintf(file, "[%s|%s|%s] b:%d, h:%d/%d, s:%d/%d", o->prec, mode_of(p), layout_of(p), o->b, o->h, o->h_k,
            first_length(p, o->s, p->seqlen_q), first_length(p, o->s_k, p->seqlen_k));
    if (room_k && padded_k(p)) fprintf(file, "(%d)", p->room_k[0]);
    fprintf(file, ", d:%d/%d", o->d, o->d_v);
}

void fmha_fwd_print_list(const char *name, const int32_t *values, int32_t count, FILE *file) {
    fprintf(file, ", %s:[", name);
    for (int32_t n = 0; n < count; n++) fprintf(file, n ? ",%d" : "%d", values[n]);
    fputs("]", file);
}

void fmha_fwd_print_mask(const fmha_fwd_mask *mask, FILE *file) {
    static const char letters[TESSERA_MASK_COUNT] = {'n', 't', 'b', 'g'};
    if (mask->type == TESSERA_MASK_NONE)
        fputs(", mask:n", file);
    else
        fprintf(file, ", mask:%c(%d:%d)", letters[mask->type], mask->left, mask->right);
}

void fmha_fwd_print_bias(const fmha_fwd_bias *bias, FILE *file) {
    static const char *const names[TESSERA_BIAS_COUNT] = {"n", "e", "alibi"};
    fprintf(file, ", bias:%s", names[bias->type]);
    if (bias->rank) fprintf(file, "[%d]", bias->rank);
}

void fmha_fwd_print(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    static const char *const scales[TESSERA_QSCALE_COUNT] = {"n", "pt", "bs", "kvbs", "mx", "th"};
    const fmha_fwd_options *o = &p->options;
    fmha_fwd_print_shape(p, 1, file);
    fprintf(file, ", scale_s:%g", (double)p->args.scale_s);
    fmha_fwd_print_bias(&p->bias, file);
    fprintf(file, ", p_drop:%g, lse:%d, qscale:%s", (double)o->p_drop, o->lse != 0, scales[p->qscale]);
    fmha_fwd_print_mask(&p->mask, file);
    fprintf(file, ", v:%s", o->vlayout);
    if (o->mode) {
        fmha_fwd_print_list("q_logical", p->seqlen_q, o->b, file);
        if (padded_q(p)) fmha_fwd_print_list("q_padded", p->room_q, o->b, file);
        fmha_fwd_print_list("k_logical", p->seqlen_k, o->b, file);
        if (padded_k(p)) fmha_fwd_print_list("k_padded", p->room_k, o->b, file);
    }
    if (o->q_eff_lens) fmha_fwd_print_list("q_eff", o->q_eff_lens, o->b, file);
    if (o->kv_eff_lens) fmha_fwd_print_list("kv_eff", o->kv_eff_lens, o->b, file);
    fmha_fwd_print_cache(p, file);
}

void fmha_fwd_put_heads(const fmha_fwd_problem *p, FILE *file) {
    example_put_integer(file, "batch", p->options.b);
    example_put_integer(file, "nhead", p->options.h);
    example_put_integer(file, "nhead_k", p->options.h_k);
}

void fmha_fwd_put_seqlens(const fmha_fwd_problem *p, FILE *file) {
    example_put_integer(file, "seqlen_q", first_length(p, p->options.s, p->seqlen_q));
    example_put_integer(file, "seqlen_k", first_length(p, p->options.s_k, p->seqlen_k));
}

void fmha_fwd_put_bias(const fmha_fwd_bias *bias, FILE *file) {
    static const char *const names[TESSERA_BIAS_COUNT] = {"no_bias", "elementwise_bias", "alibi"};
    example_put_text(file, "bias", names[bias->type]);
}

void fmha_fwd_put_json(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    static const char *const scales[TESSERA_QSCALE_COUNT] = {"no_scale",      "pertensor", "blockscale",
                                                             "kv_blockscale", "mx",        "pertokenhead"};
    const fmha_fwd_options *o = &p->options;
    example_put_text(file, "prec", o->prec);
    example_put_text(file, "mode", mode_of(p));
    example_put_text(file, "io_layout", layout_of(p));
    fmha_fwd_put_heads(p, file);
    fmha_fwd_put_seqlens(p, file);
    example_put_integer(file, "seqlen_kpads", padded_k(p) ? p->room_k[0] : -1);
    example_put_integer(file, "hdim_q", o->d);
    example_put_integer(file, "hdim_v", o->d_v);
    example_put_number(file, "scale_s", (double)p->args.scale_s);
    example_put_number(file, "p_drop", (double)o->p_drop);
    example_put_bool(file, "lse", o->lse != 0);
    example_put_text(file, "qscale", scales[p->qscale]);
    fmha_fwd_put_bias(&p->bias, file);
    example_put_text(file, "vlayout", o->vlayout);
    example_put_text(file, "mask", o->mask);
}

void fmha_fwd_put_error(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    example_put_number(file, "max_error", p->max_error);
    example_put_number(file, "max_error_over_bound", p->max_error_ratio);
    example_put_number(file, "max_lse_error", p->max_lse_error);
}
