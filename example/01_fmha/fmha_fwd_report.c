// SPDX-License-Identifier: MIT
// CK's line up to the kernel's name, and the members of CK's JSON.
#include "fmha_fwd_problem.h"
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

static void print_list(FILE *file, const char *name, const int32_t *values, int32_t count) {
    fprintf(file, ", %s:[", name);
    for (int32_t n = 0; n < count; n++) fprintf(file, n ? ",%d" : "%d", values[n]);
    fputs("]", file);
}

static void print_mask(FILE *file, const fmha_fwd_mask *mask) {
    static const char letters[TESSERA_MASK_COUNT] = {'n', 't', 'b', 'g'};
    if (mask->type == TESSERA_MASK_NONE)
        fputs(", mask:n", file);
    else
        fprintf(file, ", mask:%c(%d:%d)", letters[mask->type], mask->left, mask->right);
}

static void print_bias(FILE *file, const fmha_fwd_bias *bias) {
    static const char *const names[TESSERA_BIAS_COUNT] = {"n", "e", "alibi"};
    fprintf(file, ", bias:%s", names[bias->type]);
    if (bias->rank) fprintf(file, "[%d]", bias->rank);
}

void fmha_fwd_print(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    static const char *const scales[TESSERA_QSCALE_COUNT] = {"n", "pt", "bs", "kvbs", "mx"};
    const fmha_fwd_options *o = &p->options;
    fprintf(file, "[%s|%s|%s] b:%d, h:%d/%d, s:%d/%d", o->prec, mode_of(p), layout_of(p), o->b, o->h, o->h_k,
            first_length(p, o->s, p->seqlen_q), first_length(p, o->s_k, p->seqlen_k));
    if (padded_k(p)) fprintf(file, "(%d)", p->room_k[0]);
    fprintf(file, ", d:%d/%d, scale_s:%g", o->d, o->d_v, (double)p->args.scale_s);
    print_bias(file, &p->bias);
    fprintf(file, ", p_drop:%g, lse:%d, qscale:%s", (double)o->p_drop, o->lse != 0, scales[p->qscale]);
    print_mask(file, &p->mask);
    fprintf(file, ", v:%s", o->vlayout);
    if (o->mode) {
        print_list(file, "q_logical", p->seqlen_q, o->b);
        if (padded_q(p)) print_list(file, "q_padded", p->room_q, o->b);
        print_list(file, "k_logical", p->seqlen_k, o->b);
        if (padded_k(p)) print_list(file, "k_padded", p->room_k, o->b);
    }
    if (o->q_eff_lens) print_list(file, "q_eff", o->q_eff_lens, o->b);
    if (o->kv_eff_lens) print_list(file, "kv_eff", o->kv_eff_lens, o->b);
}

void fmha_fwd_put_json(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    static const char *const scales[TESSERA_QSCALE_COUNT] = {"no_scale", "pertensor", "blockscale", "kv_blockscale",
                                                             "mx"};
    static const char *const biases[TESSERA_BIAS_COUNT] = {"no_bias", "elementwise_bias", "alibi"};
    const fmha_fwd_options *o = &p->options;
    example_put_text(file, "prec", o->prec);
    example_put_text(file, "mode", mode_of(p));
    example_put_text(file, "io_layout", layout_of(p));
    example_put_integer(file, "batch", o->b);
    example_put_integer(file, "nhead", o->h);
    example_put_integer(file, "nhead_k", o->h_k);
    example_put_integer(file, "seqlen_q", first_length(p, o->s, p->seqlen_q));
    example_put_integer(file, "seqlen_k", first_length(p, o->s_k, p->seqlen_k));
    example_put_integer(file, "seqlen_kpads", padded_k(p) ? p->room_k[0] : -1);
    example_put_integer(file, "hdim_q", o->d);
    example_put_integer(file, "hdim_v", o->d_v);
    example_put_number(file, "scale_s", (double)p->args.scale_s);
    example_put_number(file, "p_drop", (double)o->p_drop);
    example_put_bool(file, "lse", o->lse != 0);
    example_put_text(file, "qscale", scales[p->qscale]);
    example_put_text(file, "bias", biases[p->bias.type]);
    example_put_text(file, "vlayout", o->vlayout);
    example_put_text(file, "mask", o->mask);
}

void fmha_fwd_put_error(const example_problem *base, FILE *file) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    example_put_number(file, "max_error", p->max_error);
    example_put_number(file, "max_error_over_bound", p->max_error_ratio);
    example_put_number(file, "max_lse_error", p->max_lse_error);
}
