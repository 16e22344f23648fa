// SPDX-License-Identifier: MIT
// CK's line and CK's JSON, and whether the line arrived.
#include "fmha_fwd_problem.h"

#include <errno.h>
#include <string.h>

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

void fmha_fwd_print_problem(const fmha_fwd_problem *p, FILE *file) {
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

// JSON has no infinity or NaN.
static void put_number(FILE *file, const char *key, double value) {
    if (value - value == 0)
        fprintf(file, "  \"%s\": %.9g,\n", key, value);
    else
        fprintf(file, "  \"%s\": null,\n", key);
}

static void put_integer(FILE *file, const char *key, int64_t value) {
    fprintf(file, "  \"%s\": %lld,\n", key, (long long)value);
}

static void put_bool(FILE *file, const char *key, int value) {
    fprintf(file, "  \"%s\": %s,\n", key, value ? "true" : "false");
}

static void put_text(FILE *file, const char *key, const char *value) {
    fprintf(file, "  \"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fprintf(file, "\\%c", *value);
        else if ((unsigned char)*value < ' ')
            fprintf(file, "\\u%04x", *value);
        else
            fputc(*value, file);
    }
    fputs("\",\n", file);
}

static void put_problem(FILE *file, const fmha_fwd_problem *p) {
    static const char *const scales[TESSERA_QSCALE_COUNT] = {"no_scale", "pertensor", "blockscale", "kv_blockscale",
                                                             "mx"};
    static const char *const biases[TESSERA_BIAS_COUNT] = {"no_bias", "elementwise_bias", "alibi"};
    const fmha_fwd_options *o = &p->options;
    put_text(file, "name", "fmha_fwd");
    put_text(file, "prec", o->prec);
    put_text(file, "mode", mode_of(p));
    put_text(file, "io_layout", layout_of(p));
    put_integer(file, "batch", o->b);
    put_integer(file, "nhead", o->h);
    put_integer(file, "nhead_k", o->h_k);
    put_integer(file, "seqlen_q", first_length(p, o->s, p->seqlen_q));
    put_integer(file, "seqlen_k", first_length(p, o->s_k, p->seqlen_k));
    put_integer(file, "seqlen_kpads", padded_k(p) ? p->room_k[0] : -1);
    put_integer(file, "hdim_q", o->d);
    put_integer(file, "hdim_v", o->d_v);
    put_number(file, "scale_s", (double)p->args.scale_s);
    put_number(file, "p_drop", (double)o->p_drop);
    put_bool(file, "lse", o->lse != 0);
    put_text(file, "qscale", scales[p->qscale]);
    put_text(file, "bias", biases[p->bias.type]);
    put_text(file, "vlayout", o->vlayout);
    put_text(file, "mask", o->mask);
    put_text(file, "device", tessera_device_name(p->device));
}

static void put_result(FILE *file, const fmha_fwd_result *r) {
    static const char *const verdicts[] = {"skipped", "pass", "fail"};
    put_text(file, "kernel", r->short_name);
    put_text(file, "ck_name", r->ck_name);
    put_text(file, "verification", verdicts[r->verification]);
    put_integer(file, "rows", r->rows);
    put_integer(file, "rows_verified", r->rows_checked);
    if (r->verification != FMHA_FWD_NOT_VERIFIED) {
        put_number(file, "max_error", r->max_error);
        put_number(file, "max_error_over_bound", r->max_error_ratio);
        put_number(file, "max_lse_error", r->max_lse_error);
    }
    put_text(file, "message", r->message);
    put_integer(file, "runs", r->runs);
    if (r->simulated)
        fprintf(file, "  \"simulation\": {\"host_seconds\": %.9g}\n", r->time_ms / 1e3);
    else
        fprintf(file, "  \"perf\": {\"time\": %.9g, \"tflops\": %.9g, \"gb/s\": %.9g}\n", r->time_ms, r->tflops,
                r->gbps);
}

int fmha_fwd_exit_code(const char *program, int outcome) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return outcome;
    fprintf(stderr, "%s: standard output cannot be written: %s\n", program, strerror(errno ? errno : EIO));
    return outcome ? outcome : FMHA_FWD_DEVICE_ERROR;
}

int fmha_fwd_write_json(const fmha_fwd_problem *p, const fmha_fwd_result *result, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fputs("{\n", file);
    put_problem(file, p);
    put_result(file, result);
    fputs("}\n", file);
    int failed = ferror(file), error = errno;
    if (fclose(file) != 0) return -1;
    errno = error;
    return failed ? -1 : 0;
}
