// SPDX-License-Identifier: MIT
// From options to a problem: checks them, settles lengths, lays all buffers out in one arena with guard zones between
// them, and fills traits, args and inputs.
#include "fmha_fwd_problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define POISON(address, bytes) ((void)0)
#define UNPOISON(address, bytes) ((void)0)
#endif

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

const char *fmha_fwd_buffer_name(fmha_fwd_buffer_id id) {
    static const char *const names[BUFFER_COUNT] = {
        "q",
        "k",
        "v",
        "bias",
        "q_descale",
        "k_descale",
        "v_descale",
        "seqstart_q",
        "seqstart_k",
        "seqlen_q",
        "seqlen_k",
        "cu_seqlen_q",
        "cu_seqlen_k",
        "block_scale_seqstart_q",
        "block_scale_seqstart_k",
        "seqstart_v_scale",
        "sink",
        "drop_seed",
        "drop_offset",
        "o",
        "lse",
        "rand_val",
    };
    return names[id];
}

// --- checks of what the library does not see -------------------------------------------------------------------------

#define WRONG(...) fmha_fwd_fail(result, FMHA_FWD_WRONG_ARGUMENT, __VA_ARGS__)

static fmha_fwd_outcome read_texts(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (tessera_dtype_from_string(o->prec, &p->dtype) != TESSERA_SUCCESS)
        return WRONG("-prec=%s: fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8 or mxfp4", o->prec);
    if (fmha_fwd_read_mask(o->mask, &p->mask))
        return WRONG("-mask=%s: 0, 1 or t, 2 or b, t:l,r[,sink], b:l,r[,sink], xt:w, xb:w or g:y,x", o->mask);
    if (fmha_fwd_read_bias(o->bias, &p->bias))
        return WRONG("-bias=%s: n, e, e:1, e:2, a or a:1 (or 0, 1, 2 for n, e, a)", o->bias);
    if (fmha_fwd_read_qscale(o->qscale, &p->qscale))
        return WRONG("-qscale=%s: n, pt, bs or mx (or 0, 1, 2, 4)", o->qscale);
    if (fmha_fwd_read_init(o->init, &p->init))
        return WRONG("-init=%s: ui, ni, uf, nf, tf, 3 or uf:q (or 0, 1, 2 for ui, uf, tf)", o->init);
    if (strcmp(o->vlayout, "r") != 0 && strcmp(o->vlayout, "c") != 0)
        return WRONG("-vlayout=%s: r (seqlen x hdim) or c (hdim x seqlen)", o->vlayout);
    return FMHA_FWD_OK;
}

static fmha_fwd_outcome check_scales(const fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    int mx = p->dtype == TESSERA_MXFP8 || p->dtype == TESSERA_MXFP4;
    int fp8 = p->dtype == TESSERA_FP8 || p->dtype == TESSERA_FP8BF16 || p->dtype == TESSERA_FP8FP32;
    if (p->qscale == TESSERA_QSCALE_KV_BLOCK)
        return WRONG("-qscale=%s: scales of pages of K and V belong to batch_prefill; here n, pt, bs or mx", o->qscale);
    if (mx != (p->qscale == TESSERA_QSCALE_MX))
        return WRONG("-qscale=%s with -prec=%s: mx for mxfp8 and mxfp4, and for them alone", o->qscale, o->prec);
    if (!fp8 && (p->qscale == TESSERA_QSCALE_PER_TENSOR || p->qscale == TESSERA_QSCALE_BLOCK))
        return WRONG("-qscale=%s with -prec=%s: pt and bs are for fp8, fp8bf16 and fp8fp32", o->qscale, o->prec);
    if (p->init == INIT_RANGE && (p->dtype == TESSERA_FP32 || p->dtype == TESSERA_BF16))
        return WRONG("-init=%s with -prec=%s: products of the type's whole range overflow fp32; ui, ni, uf, nf or tf",
                     o->init, o->prec);
    if (o->logits_soft_cap > 0 && p->bias.type != TESSERA_BIAS_NONE)
        return WRONG("-logits_soft_cap=%g with -bias=%s: a soft cap goes with -bias=n only", (double)o->logits_soft_cap,
                     o->bias);
    return FMHA_FWD_OK;
}

// CK's "-1 means equal to" values, then ranges.
static fmha_fwd_outcome check_numbers(fmha_fwd_problem *p, fmha_fwd_result *result) {
    fmha_fwd_options *o = &p->options;
    if (o->h_k == -1) o->h_k = o->h;
    if (o->d_v == -1) o->d_v = o->d;
    if (o->v < 0 || o->v > 3) return WRONG("-v=%d: 0 to 3", o->v);
    if (o->mode != 0 && o->mode != 1) return WRONG("-mode=%d: 0 (batch) or 1 (group)", o->mode);
    if (o->b < 1) return WRONG("-b=%d: at least 1", o->b);
    if (o->h < 1) return WRONG("-h=%d: at least 1", o->h);
    if (o->h_k < 1 || o->h % o->h_k)
        return WRONG("-h_k=%d: a number that divides -h=%d, or -1 for the same", o->h_k, o->h);
    int even = p->dtype == TESSERA_MXFP4;
    if (o->d < 1 || o->d > 512 || (even && o->d % 2)) return WRONG("-d=%d: 1 to 512%s", o->d, even ? ", even" : "");
    if (o->d_v < 1 || o->d_v > 512 || (even && o->d_v % 2))
        return WRONG("-d_v=%d: 1 to 512%s, or -1 for -d", o->d_v, even ? ", even" : "");
    if (!(o->p_drop >= 0 && o->p_drop < 1)) return WRONG("-p_drop=%g: at least 0 and less than 1", (double)o->p_drop);
    if (!(o->logits_soft_cap >= 0)) return WRONG("-logits_soft_cap=%g: 0 (none) or more", (double)o->logits_soft_cap);
    if (!(o->scale_s - o->scale_s == 0)) return WRONG("-scale_s=%g: a finite number", (double)o->scale_s);
    if (o->warmup < 0) return WRONG("-warmup=%d: 0 or more", o->warmup);
    if (o->repeat < 1) return WRONG("-repeat=%d: at least 1", o->repeat);
    return check_scales(p, result);
}

// --- lengths ---------------------------------------------------------------------------------------------------------

// Rooms of one side: the pads where given, else 0.
static fmha_fwd_outcome settle_rooms(fmha_fwd_problem *p, const char *name, int32_t pad, const int32_t *list,
                                     int32_t *rooms, fmha_fwd_result *result) {
    if (list && !p->options.mode) return WRONG("-%s: one value in batch mode (-mode=0)", name);
    for (int32_t b = 0; b < p->options.b; b++) {
        int32_t room = list ? list[b] : pad;
        if (room == 0 || room < -1) return WRONG("-%s=%d: at least the sequence's length, or -1 for none", name, room);
        rooms[b] = room > 0 ? room : 0;
    }
    return FMHA_FWD_OK;
}

// Logical lengths of one side from a list, by drawing, or all alike. `rooms` caps what is drawn.
static fmha_fwd_outcome settle_lengths(fmha_fwd_problem *p, const char *name, int32_t mean, const int32_t *list,
                                       int32_t least, const int32_t *rooms, uint64_t salt, int32_t *lengths,
                                       fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (list && !o->mode) return WRONG("-%s: one length in batch mode (-mode=0); see -q_eff_lens, -kv_eff_lens", name);
    if (o->mode && !list && (int64_t)mean * o->b > INT32_MAX)
        return WRONG("-%s=%d: -b=%d sequences of that mean are longer than %d in all", name, mean, o->b, INT32_MAX);
    if (!list && mean < least) return WRONG("-%s=%d: at least %d", name, mean, least);
    for (int32_t b = 0; b < o->b; b++) {
        lengths[b] = list ? list[b] : mean;
        if (lengths[b] < 0) return WRONG("-%s: length %d of sequence %d is less than 0", name, lengths[b], b);
        if (rooms[b] && lengths[b] > rooms[b])
            return WRONG("-%s: length %d of sequence %d does not fit its pad of %d", name, lengths[b], b, rooms[b]);
    }
    if (o->mode && !list) fmha_fwd_draw_lengths(p->seed + salt, o->b, mean, rooms, lengths);
    return FMHA_FWD_OK;
}

static fmha_fwd_outcome apply_effective(fmha_fwd_problem *p, const char *name, const int32_t *list, int32_t *lengths,
                                        fmha_fwd_result *result) {
    if (!list) return FMHA_FWD_OK;
    if (p->options.mode) return WRONG("-%s: for batch mode; with -mode=1 use -s, -s_k, -s_qpad and -s_kpad", name);
    for (int32_t b = 0; b < p->options.b; b++) {
        if (list[b] < 0 || list[b] > lengths[b])
            return WRONG("-%s: %d of sequence %d is not between 0 and its length of %d", name, list[b], b, lengths[b]);
        lengths[b] = list[b];
    }
    return FMHA_FWD_OK;
}

// Sums of group mode are int32 in the API.
static fmha_fwd_outcome settle_shape(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    int64_t total_q = 0, total_k = 0;
    for (int32_t b = 0; b < o->b; b++) {
        if (!p->room_q[b]) p->room_q[b] = p->seqlen_q[b];
        if (!p->room_k[b]) p->room_k[b] = p->seqlen_k[b];
        // A byte of mxfp4 holds two keys of v in column-major order, both of one sequence.
        if (o->mode && p->dtype == TESSERA_MXFP4 && o->vlayout[0] == 'c') p->room_k[b] += p->room_k[b] % 2;
        if (p->seqlen_q[b] > p->max_seqlen_q) p->max_seqlen_q = p->seqlen_q[b];
        if (p->seqlen_k[b] > p->max_seqlen_k) p->max_seqlen_k = p->seqlen_k[b];
        total_q += p->room_q[b];
        total_k += p->room_k[b];
    }
    if (o->mode && (total_q > INT32_MAX || total_k > INT32_MAX))
        return WRONG("-b=%d sequences have %" PRId64 " queries and %" PRId64 " keys in all: at most %d of each", o->b,
                     total_q, total_k, INT32_MAX);
    p->shape_batch = o->mode ? 1 : o->b;
    p->shape_seqlen_q = o->mode ? total_q : p->room_q[0];
    p->shape_seqlen_k = o->mode ? total_k : p->room_k[0];
    return FMHA_FWD_OK;
}

static fmha_fwd_outcome settle(fmha_fwd_problem *p, fmha_fwd_result *result) {
    fmha_fwd_options *o = &p->options;
    if (!o->s_k_list && o->s_k == -1) {
        o->s_k_list = o->s_list;
        o->s_k = o->s;
    }
    if (settle_rooms(p, "s_qpad", o->s_qpad, o->s_qpad_list, p->room_q, result) ||
        settle_rooms(p, "s_kpad", o->s_kpad, o->s_kpad_list, p->room_k, result))
        return result->outcome;
    // Keys "equal to s" stay so when lengths are drawn, which then must fit both pads.
    int same = o->mode && !o->s_list && !o->s_k_list && o->s_k == o->s;
    int32_t *caps = p->seqlen_k; // until the keys' lengths are settled
    for (int32_t b = 0; b < o->b; b++)
        caps[b] = same && p->room_k[b] && (!p->room_q[b] || p->room_k[b] < p->room_q[b]) ? p->room_k[b] : p->room_q[b];
    if (settle_lengths(p, "s", o->s, o->s_list, 1, caps, 0, p->seqlen_q, result)) return result->outcome;
    if (same) o->s_k_list = p->seqlen_q;
    if (settle_lengths(p, "s_k", o->s_k, o->s_k_list, 0, p->room_k, 1, p->seqlen_k, result)) return result->outcome;
    // The tensors keep the room of the whole length; only the logical one shrinks.
    if (!o->mode) {
        if (!p->room_q[0]) p->room_q[0] = o->s;
        if (!p->room_k[0]) p->room_k[0] = o->s_k;
    }
    if (apply_effective(p, "q_eff_lens", o->q_eff_lens, p->seqlen_q, result) ||
        apply_effective(p, "kv_eff_lens", o->kv_eff_lens, p->seqlen_k, result))
        return result->outcome;
    return settle_shape(p, result);
}

// --- layout ----------------------------------------------------------------------------------------------------------

static int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Product of sizes; negative once it overflows.
static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t times4(int64_t a, int64_t b, int64_t c, int64_t d) { return times(times(a, b), times(c, d)); }

static void use(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int64_t elements, int32_t bits) {
    int64_t all_bits = times(elements, bits);
    p->buffers[id] = (fmha_fwd_buffer){1, all_bits < 0 ? -1 : ceil_div(all_bits, 8), bits < 8 ? 1 : bits / 8, 0};
}

// A tensor of tokens [batch, head, token, column], or [batch, token, head, column].
static void use_tokens(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int permuted, int64_t heads, int64_t tokens,
                       int64_t columns, int32_t bits, int64_t *batch_stride, int64_t *nhead_stride, int64_t *stride) {
    *batch_stride = times(times(heads, tokens), columns);
    *nhead_stride = permuted ? times(tokens, columns) : columns;
    *stride = permuted ? columns : times(heads, columns);
    use(p, id, times(p->shape_batch, *batch_stride), bits);
}

static void use_qkvo(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    int32_t in = fmha_fwd_element_bits(fmha_fwd_input_element(p->dtype));
    int32_t out = fmha_fwd_element_bits(fmha_fwd_output_element(p->dtype));
    use_tokens(p, BUFFER_Q, o->iperm, o->h, p->shape_seqlen_q, o->d, in, &a->batch_stride_q, &a->nhead_stride_q,
               &a->stride_q);
    use_tokens(p, BUFFER_K, o->iperm, o->h_k, p->shape_seqlen_k, o->d, in, &a->batch_stride_k, &a->nhead_stride_k,
               &a->stride_k);
    // In column-major order a row is a column of the head. mxfp4 strides are even.
    if (p->traits.is_v_rowmajor)
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, p->shape_seqlen_k, o->d_v, in, &a->batch_stride_v, &a->nhead_stride_v,
                   &a->stride_v);
    else
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, o->d_v, p->shape_seqlen_k + (in < 8 ? p->shape_seqlen_k % 2 : 0), in,
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
        use(p, BUFFER_BIAS, times(p->bias.rank ? o->b : 1, o->h), 32);
        a->stride_bias = p->bias.rank ? o->h : 0;
    } else if (p->bias.type == TESSERA_BIAS_ELEMENTWISE) {
        int64_t heads = p->bias.rank ? o->h : 1;
        use_tokens(p, BUFFER_BIAS, o->iperm, heads, p->shape_seqlen_q, p->max_seqlen_k,
                   fmha_fwd_element_bits(fmha_fwd_bias_element(p->dtype)), &a->batch_stride_bias, &a->nhead_stride_bias,
                   &a->stride_bias);
        if (p->bias.rank < 2) {
            p->buffers[BUFFER_BIAS].bytes = times(a->batch_stride_bias, p->buffers[BUFFER_BIAS].element_bytes);
            a->batch_stride_bias = 0;
        }
        if (p->bias.rank < 1) a->nhead_stride_bias = 0;
    }
}

// Blocks of `size` that each sequence of a side has, one after the other; group mode's starts.
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

static void use_descales(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (p->qscale == TESSERA_QSCALE_PER_TENSOR)
        for (fmha_fwd_buffer_id id = BUFFER_Q_DESCALE; id <= BUFFER_V_DESCALE; id++) use(p, id, 1, 32);
    if (p->qscale == TESSERA_QSCALE_BLOCK) {
        int64_t unused, q, k;
        q = o->mode ? sum_of_blocks(p, p->seqlen_q, BLOCK_SCALE_SIZE, NULL) : ceil_div(p->room_q[0], BLOCK_SCALE_SIZE);
        k = o->mode ? sum_of_blocks(p, p->seqlen_k, BLOCK_SCALE_SIZE, NULL) : ceil_div(p->room_k[0], BLOCK_SCALE_SIZE);
        a->block_scale_size_q = a->block_scale_size_kv = BLOCK_SCALE_SIZE;
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
        if (p->qscale == TESSERA_QSCALE_BLOCK) {
            use(p, BUFFER_BLOCK_START_Q, (int64_t)o->b + 1, 32);
            use(p, BUFFER_BLOCK_START_K, (int64_t)o->b + 1, 32);
        }
        if (p->qscale == TESSERA_QSCALE_MX) use(p, BUFFER_V_SCALE_START, (int64_t)o->b + 1, 32);
    } else {
        if (o->q_eff_lens) use(p, BUFFER_CU_SEQLEN_Q, (int64_t)o->b + 1, 32);
        if (o->kv_eff_lens) use(p, BUFFER_CU_SEQLEN_K, (int64_t)o->b + 1, 32);
    }
}

// Bytes of dropout are stored to be compared; beyond this they are checked through o alone.
static const int64_t RANDVAL_LIMIT = INT64_C(1) << 30;

static void use_dropout(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (o->drop_prefs) {
        use(p, BUFFER_DROP_SEED, 1, 64);
        use(p, BUFFER_DROP_OFFSET, 1, 64);
    }
    int64_t bytes = times4(p->shape_batch, o->h, p->shape_seqlen_q, p->max_seqlen_k);
    if (o->p_drop == 0 || o->v == 0 || bytes < 0 || bytes > RANDVAL_LIMIT) return;
    use_tokens(p, BUFFER_RANDVAL, 1, o->h, p->shape_seqlen_q, p->max_seqlen_k, 8, &a->batch_stride_randval,
               &a->nhead_stride_randval, &a->stride_randval);
    a->s_randval = 1;
}

// Bytes that this machine could give; infinite where it does not say.
static double memory_available(void) {
    double kilobytes = INFINITY;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes * 1024;
}

// Refuses what no machine, or this one, can hold.
static fmha_fwd_outcome check_memory(const fmha_fwd_options *o, double bytes, const char *what,
                                     fmha_fwd_result *result) {
    double available = memory_available();
    if (bytes >= 0x1p62)
        return WRONG("-b=%d -h=%d -s=%d -s_k=%d -d=%d: the bytes of %s overflow 64 bits", o->b, o->h, o->s, o->s_k,
                     o->d, what);
    if (bytes > available)
        return WRONG("-b=%d -h=%d -s=%d -s_k=%d -d=%d: %s take %.1f GB, and this machine has %.1f GB to give", o->b,
                     o->h, o->s, o->s_k, o->d, what, bytes / 1e9, available / 1e9);
    return FMHA_FWD_OK;
}

// Places the buffers one after the other, at least FMHA_FWD_GUARD bytes apart.
static fmha_fwd_outcome place(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    int64_t end = 0;
    for (int id = 0; id < BUFFER_COUNT; id++) {
        fmha_fwd_buffer *buffer = &p->buffers[id];
        if (id == BUFFER_O) p->input_bytes = end;
        if (!buffer->used) continue;
        if (buffer->bytes < 0 || buffer->bytes > INT64_MAX / BUFFER_COUNT / 2)
            return check_memory(o, INFINITY, fmha_fwd_buffer_name((fmha_fwd_buffer_id)id), result);
        buffer->offset = (end + FMHA_FWD_GUARD + 63) / 64 * 64 + (int64_t)o->misalign * buffer->element_bytes;
        end = buffer->offset + buffer->bytes + FMHA_FWD_GUARD;
    }
    p->arena_bytes = (end + 63) / 64 * 64;
    return check_memory(o, (double)p->arena_bytes, "the buffers", result);
}

// Guards hold their pattern, payloads the unwritten one.
static fmha_fwd_outcome allocate(fmha_fwd_problem *p, fmha_fwd_result *result) {
    p->arena = aligned_alloc(64, (size_t)p->arena_bytes);
    if (!p->arena)
        return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for %.1f GB of buffers",
                             (double)p->arena_bytes / 1e9);
    int64_t end = 0;
    for (int id = 0; id < BUFFER_COUNT; id++) {
        const fmha_fwd_buffer *buffer = &p->buffers[id];
        if (!buffer->used) continue;
        memset(p->arena + end, FMHA_FWD_GUARD_BYTE, (size_t)(buffer->offset - end));
        memset(p->arena + buffer->offset, FMHA_FWD_UNWRITTEN_BYTE, (size_t)buffer->bytes);
        end = buffer->offset + buffer->bytes;
    }
    memset(p->arena + end, FMHA_FWD_GUARD_BYTE, (size_t)(p->arena_bytes - end));
    return FMHA_FWD_OK;
}

// --- traits and args -------------------------------------------------------------------------------------------------

static void *pointer(const fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    return p->buffers[id].used ? p->arena + p->buffers[id].offset : NULL;
}

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

static void set_pointers(fmha_fwd_problem *p) {
    tessera_fmha_fwd_args *a = &p->args;
    a->q_ptr = pointer(p, BUFFER_Q);
    a->k_ptr = pointer(p, BUFFER_K);
    a->v_ptr = pointer(p, BUFFER_V);
    a->bias_ptr = pointer(p, BUFFER_BIAS);
    a->q_descale_ptr = pointer(p, BUFFER_Q_DESCALE);
    a->k_descale_ptr = pointer(p, BUFFER_K_DESCALE);
    a->v_descale_ptr = pointer(p, BUFFER_V_DESCALE);
    a->rand_val_ptr = pointer(p, BUFFER_RANDVAL);
    a->lse_ptr = pointer(p, BUFFER_LSE);
    a->o_ptr = pointer(p, BUFFER_O);
    a->seqstart_q_ptr = pointer(p, BUFFER_SEQSTART_Q);
    a->seqstart_k_ptr = pointer(p, BUFFER_SEQSTART_K);
    a->seqlen_q_ptr = pointer(p, BUFFER_SEQLEN_Q);
    a->seqlen_k_ptr = pointer(p, BUFFER_SEQLEN_K);
    a->cu_seqlen_q_ptr = pointer(p, BUFFER_CU_SEQLEN_Q);
    a->cu_seqlen_k_ptr = pointer(p, BUFFER_CU_SEQLEN_K);
    a->block_scale_seqstart_q_ptr = pointer(p, BUFFER_BLOCK_START_Q);
    a->block_scale_seqstart_k_ptr = pointer(p, BUFFER_BLOCK_START_K);
    a->seqstart_v_scale_ptr = pointer(p, BUFFER_V_SCALE_START);
    a->sink_ptr = pointer(p, BUFFER_SINK);
    a->drop_seed_ptr = pointer(p, BUFFER_DROP_SEED);
    a->drop_offset_ptr = pointer(p, BUFFER_DROP_OFFSET);
}

static void put_starts(fmha_fwd_problem *p, fmha_fwd_buffer_id id, const int32_t *lengths) {
    int32_t *starts = pointer(p, id);
    if (!starts) return;
    starts[0] = 0;
    for (int32_t b = 0; b < p->options.b; b++) starts[b + 1] = starts[b] + lengths[b];
}

static void put_lengths(fmha_fwd_problem *p) {
    put_starts(p, BUFFER_SEQSTART_Q, p->room_q);
    put_starts(p, BUFFER_SEQSTART_K, p->room_k);
    put_starts(p, BUFFER_CU_SEQLEN_Q, p->seqlen_q);
    put_starts(p, BUFFER_CU_SEQLEN_K, p->seqlen_k);
    size_t bytes = (size_t)p->options.b * sizeof(int32_t);
    if (p->args.seqlen_q_ptr) memcpy(pointer(p, BUFFER_SEQLEN_Q), p->seqlen_q, bytes);
    if (p->args.seqlen_k_ptr) memcpy(pointer(p, BUFFER_SEQLEN_K), p->seqlen_k, bytes);
    if (p->args.block_scale_seqstart_q_ptr)
        sum_of_blocks(p, p->seqlen_q, BLOCK_SCALE_SIZE, pointer(p, BUFFER_BLOCK_START_Q));
    if (p->args.block_scale_seqstart_k_ptr)
        sum_of_blocks(p, p->seqlen_k, BLOCK_SCALE_SIZE, pointer(p, BUFFER_BLOCK_START_K));
    if (p->args.seqstart_v_scale_ptr) sum_of_blocks(p, p->seqlen_k, MX_SIZE, pointer(p, BUFFER_V_SCALE_START));
    if (p->args.drop_prefs) {
        *(uint64_t *)pointer(p, BUFFER_DROP_SEED) = p->options.drop_seed;
        *(uint64_t *)pointer(p, BUFFER_DROP_OFFSET) = p->options.drop_offset;
    }
}

// Under AddressSanitizer nothing may even read the guard zones.
static void guard(const fmha_fwd_problem *p) {
    POISON(p->arena, (size_t)p->arena_bytes);
    for (int id = 0; id < BUFFER_COUNT; id++)
        if (p->buffers[id].used) UNPOISON(p->arena + p->buffers[id].offset, (size_t)p->buffers[id].bytes);
}

uint64_t fmha_fwd_input_sum(const fmha_fwd_problem *p) {
    UNPOISON(p->arena, (size_t)p->arena_bytes);
    uint64_t sums[4] = {1, 2, 3, 4}, sum = 0;
    int64_t n = 0;
    for (; n + 32 <= p->input_bytes; n += 32)
        for (int lane = 0; lane < 4; lane++) {
            uint64_t word;
            memcpy(&word, p->arena + n + lane * 8, sizeof word);
            sums[lane] = (sums[lane] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        }
    for (; n < p->input_bytes; n++) sum = (sum ^ p->arena[n]) * UINT64_C(0x9E3779B97F4A7C15);
    for (int lane = 0; lane < 4; lane++) sum = (sum ^ sums[lane] >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return sum;
}

static fmha_fwd_outcome build(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (read_texts(p, result) || check_numbers(p, result)) return result->outcome;
    p->seed = o->seed ? o->seed : (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
    // The lists of lengths come before sizes are exact, so that a wild -b must be caught by what q takes at least.
    double q = (double)o->b * o->h * (o->s_list ? 1 : o->s) * o->d / 2, all_lists = 4.0 * sizeof(int32_t) * o->b;
    if (check_memory(o, q + all_lists, "q and the lengths", result)) return result->outcome;
    size_t lists = (size_t)o->b * sizeof(int32_t);
    p->seqlen_q = calloc(1, lists), p->seqlen_k = calloc(1, lists);
    p->room_q = calloc(1, lists), p->room_k = calloc(1, lists);
    if (!p->seqlen_q || !p->seqlen_k || !p->room_q || !p->room_k)
        return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for the lengths of -b=%d sequences", o->b);
    if (settle(p, result)) return result->outcome;

    p->args = (tessera_fmha_fwd_args)TESSERA_FMHA_FWD_ARGS_INIT;
    set_traits(p);
    set_sizes(p);
    use_qkvo(p);
    use_bias(p);
    use_descales(p);
    use_lengths(p);
    use_dropout(p);
    if (o->init_sink) use(p, BUFFER_SINK, o->h, 32);
    if (place(p, result)) return result->outcome;

    tessera_status status = tessera_device_open(o->device, &p->device);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "-device");
    if (allocate(p, result)) return result->outcome;
    set_pointers(p);
    put_lengths(p);
    status = tessera_fmha_fwd_check(&p->traits, &p->args);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_fmha_fwd_check");
    fmha_fwd_fill_inputs(p);
    if (o->v) p->input_sum = fmha_fwd_input_sum(p);
    guard(p);
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
    if (p->arena) UNPOISON(p->arena, (size_t)p->arena_bytes);
    free(p->seqlen_q), free(p->seqlen_k), free(p->room_q), free(p->room_k);
    free(p->arena);
    free(p->workspace);
    tessera_device_close(p->device);
    free(p);
}

tessera_fmha_fwd_traits *fmha_fwd_problem_traits(fmha_fwd_problem *p) { return &p->traits; }
tessera_fmha_fwd_args *fmha_fwd_problem_args(fmha_fwd_problem *p) { return &p->args; }
const tessera_device *fmha_fwd_problem_device(const fmha_fwd_problem *p) { return p->device; }
