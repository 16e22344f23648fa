// SPDX-License-Identifier: MIT
#include "attention.h"

#include <math.h>
#include <stdio.h>

// ---- choices

enum shape choose_shape(void) { return chance(8) ? WIDE : chance(8) ? LONG : chance(8) ? TALL : USUAL; }

int32_t most_queries(enum shape shape) { return shape == USUAL ? 32 : shape == TALL ? 280 : 5; }
int32_t most_keys(enum shape shape) {
    static const int32_t keys[] = {[USUAL] = 60, [WIDE] = 10, [LONG] = 1000, [TALL] = 40};
    return shape == LONG && on.is_gpu ? 400 : keys[shape];
}

int32_t most_rows(int32_t hdim_q, int32_t hdim_v, int32_t heads) {
    const int32_t widest = hdim_q > hdim_v ? hdim_q : hdim_v;
    return 60000 / (heads * ((widest + 15) / 16 * 16 + 32));
}

int element_bits_of(tessera_fmha_dtype dtype) { return element_bits(fmha_fwd_input_element(dtype, on.fp8)); }

enum pattern element_pattern(tessera_fmha_dtype dtype) {
    static const enum pattern patterns[TESSERA_FMHA_DTYPE_COUNT] = {FP32, FP16, BF16, E4M3, E4M3, E4M3, E4M3, E2M1};
    return patterns[dtype] == E4M3 && dtype != TESSERA_FMHA_MXFP8 && on.fp8 == TESSERA_E4M3FNUZ ? E4M3FNUZ
                                                                                                : patterns[dtype];
}

enum pattern bias_pattern(const attention_traits *t) {
    const enum pattern element = element_pattern(t->data_type);
    return t->bias_type == TESSERA_BIAS_ALIBI ? SLOPES : element == FP16 || element == BF16 ? element : FP32;
}

void choose_attention(attention_traits *t, enum shape shape) {
    const int32_t most = shape == WIDE ? (on.is_gpu ? 256 : 512) : shape == USUAL ? 48 : 24;
    const int bits = element_bits_of(t->data_type);
    t->hdim_q = choose_hdim(most, bits), t->hdim_v = choose_hdim(most, bits);
    t->is_group_mode = (int32_t)below(2), t->is_v_rowmajor = 1;
    t->mask_type = (tessera_mask)below(TESSERA_MASK_COUNT);
    t->bias_type = (tessera_bias)below(TESSERA_BIAS_COUNT);
    t->has_logits_soft_cap = t->bias_type != TESSERA_BIAS_ELEMENTWISE && chance(3);
    t->has_lse = (int32_t)below(2), t->has_sink = chance(3);
    if (t->data_type >= TESSERA_FMHA_FP8) t->qscale_type = (tessera_qscale)below(2); // no, pt
}

void choose_numbers(const attention_traits *t, attention_args *a, enum shape shape) {
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->mask_type = t->mask_type;
    const int is_one = shape == LONG || shape == TALL;
    a->batch = is_one ? 1 : between(1, LENGTHS - 1), a->nhead_k = is_one ? 1 : between(1, 2);
    a->nhead_q = a->nhead_k * between(1, shape == TALL ? 2 : 3);
    a->scale_s = (float)uniform(-1, 1) / sqrtf((float)t->hdim_q);
    a->logits_soft_cap = (float)uniform(0.5, 50);
    a->window_size_left = between(-1, 90), a->window_size_right = between(-1, 90);
    a->sink_size = chance(2) ? between(0, 90) : 0;
}

void choose_dropout(attention_args *a, int seed, int offset) {
    a->p_drop = (float)uniform(0, 0.9);
    a->s_randval = (int32_t)below(2), a->drop_prefs = (int32_t)below(2);
    a->drop_seed = below(1u << 31), a->drop_offset = below(1u << 31);
    a->drop_seed_ptr = room(seed), a->drop_offset_ptr = room(offset);
}

void choose_queries(const attention_traits *t, attention_args *a, enum shape shape, int32_t *starts) {
    const int32_t most = between(0, most_queries(shape));
    a->seqlen_q = chance(3) ? 1 : most;
    if (!t->is_group_mode) return;
    starts[0] = a->max_seqlen_q = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t length = chance(6) ? 0 : chance(3) ? 1 : between(0, most);
        starts[b + 1] = starts[b] + length;
        a->max_seqlen_q = length > a->max_seqlen_q ? length : a->max_seqlen_q;
    }
    a->max_seqlen_q += chance(3) ? between(0, 9) : 0;
    a->seqstart_q_ptr = starts;
}

int64_t tokens_of(const attention_traits *t, const attention_args *a) {
    return t->is_group_mode ? ((const int32_t *)a->seqstart_q_ptr)[a->batch] : a->seqlen_q;
}

void choose_rows(const attention_traits *t, attention_args *a, int32_t columns) {
    const int64_t tokens = tokens_of(t, a);
    int64_t unused;
    choose_strides(a->nhead_q, tokens, t->hdim_q, &a->batch_stride_q, &a->nhead_stride_q, &a->stride_q);
    choose_strides(a->nhead_q, tokens, t->hdim_v, &a->batch_stride_o, &a->nhead_stride_o, &a->stride_o);
    choose_strides(a->nhead_q, 1, tokens, &a->batch_stride_lse, &a->nhead_stride_lse, &unused);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        a->stride_bias = chance(2) ? 0 : a->nhead_q;
    else
        choose_strides(a->nhead_q, tokens, columns, &a->batch_stride_bias, &a->nhead_stride_bias, &a->stride_bias);
    if (chance(4)) a->nhead_stride_bias = a->batch_stride_bias = 0;
}

void choose_special(const attention_traits *t, const void *q, const void *k, const void *v, const int rooms[3]) {
    const enum pattern pattern = element_pattern(t->data_type);
    const int32_t rows = between(1, 12);
    if (!chance(8)) return;
    if (chance(2)) {
        sprinkle(rooms[0], q, pattern, rows * t->hdim_q);
        if (chance(2)) sprinkle(rooms[1], k, pattern, rows * t->hdim_q);
    } else if (chance(2)) {
        sprinkle(rooms[1], k, pattern, rows * t->hdim_q);
    } else if (t->mask_type == TESSERA_MASK_NONE) {
        sprinkle(rooms[2], v, pattern, rows * t->hdim_v);
    }
}

// ---- what the call may touch

int rows_fit(const attention_traits *t, const attention_args *a, double columns, int *comparable) {
    const double batches = t->is_group_mode ? 1 : a->batch, tokens = (double)tokens_of(t, a), heads = a->nhead_q;
    const int bits = element_bits_of(t->data_type);
#define FITS(x, bits, inner)                                                                                           \
    fits(a->x##_ptr, last_of(batches, heads, tokens, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x),  \
         bits, comparable)
    int good =
        FITS(q, bits, a->hdim_q) && FITS(o, element_bits(fmha_fwd_output_element(t->data_type, on.fp8)), a->hdim_v);
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
        good &= FITS(bias, element_bits(fmha_fwd_bias_element(t->data_type)), columns);
#undef FITS
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        good &= fits(a->bias_ptr, last_of(a->batch, 1, 1, heads, a->stride_bias, 0, 0), 32, comparable);
    if (t->has_lse)
        good &= fits(a->lse_ptr, last_of(batches, heads, 1, tokens, a->batch_stride_lse, a->nhead_stride_lse, 0), 32,
                     comparable);
    if (t->has_sink && a->sink_ptr) good &= fits(a->sink_ptr, heads - 1, 32, comparable);
    if (t->qscale_type == TESSERA_QSCALE_PER_TENSOR)
        good &= fits(a->q_descale_ptr, 0, 32, comparable) && fits(a->k_descale_ptr, 0, 32, comparable) &&
                fits(a->v_descale_ptr, 0, 32, comparable);
    return good;
}

void allow_rows(const attention_traits *t, const attention_args *a) {
    const int64_t bytes = (int64_t)a->hdim_v * element_bits(fmha_fwd_output_element(t->data_type, on.fp8)) / 8;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++) {
                const fmha_fwd_row row = {b, h, i};
                allow(fmha_fwd_o_row(t, a, row), bytes);
                if (t->has_lse) allow(fmha_fwd_lse_of(t, a, row), 4);
                if (t->has_dropout && a->s_randval && s.seqlen_k > 0) // without keys the strides are nonsense
                    allow((const uint8_t *)a->rand_val_ptr + (t->is_group_mode ? 0 : b * a->batch_stride_randval) +
                              h * a->nhead_stride_randval + (s.token_q + i) * a->stride_randval,
                          s.seqlen_k);
            }
    }
}

// ---- verdicts

void describe_attention(const attention_traits *t, const attention_args *a) {
    fprintf(stderr,
            "  dtype %d d %d/%d group %d vrow %d cap %d mask %d bias %d lse %d drop %d qscale %d skip %d sink %d\n",
            (int)t->data_type, t->hdim_q, t->hdim_v, t->is_group_mode, t->is_v_rowmajor, t->has_logits_soft_cap,
            (int)t->mask_type, (int)t->bias_type, t->has_lse, t->has_dropout, (int)t->qscale_type, t->skip_min_seqlen_q,
            t->has_sink);
    fprintf(stderr, "  b %d h %d/%d s %d/%d max %d window %d,%d sink %d scale %g cap %g p %g\n", a->batch, a->nhead_q,
            a->nhead_k, a->seqlen_q, a->seqlen_k, a->max_seqlen_q, a->window_size_left, a->window_size_right,
            a->sink_size, (double)a->scale_s, (double)a->logits_soft_cap, (double)a->p_drop);
}

struct compared {
    const attention_traits *traits;
    const attention_args *args;
};

static void fail_at(const fmha_fwd_row *row, double ratio, const char *what) {
    fprintf(stderr, "  sequence %d head %d query %d: %g times as far off as it may be\n", row->batch, row->head,
            row->query, ratio);
    fail(what);
}

// With dropout the bytes of the row, where they are stored.
static void check_bytes(const struct compared *c, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const attention_args *const a = c->args;
    if (!c->traits->has_dropout || !a->s_randval) return;
    const fmha_fwd_sequence s = fmha_fwd_sequence_of(c->traits, a, row->batch);
    const uint8_t *const bytes = (const uint8_t *)a->rand_val_ptr + row->head * a->nhead_stride_randval +
                                 (c->traits->is_group_mode ? 0 : row->batch * a->batch_stride_randval) +
                                 (s.token_q + row->query) * a->stride_randval;
    for (int32_t j = 0; j < s.seqlen_k; j++)
        if (bytes[j] != want->randval[j]) fail_at(row, INFINITY, "bytes of dropout differ from the reference");
}

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const struct compared *const c = user;
    const tessera_fmha_dtype dtype = c->traits->data_type;
    const fmha_fwd_tolerance tolerance = fmha_fwd_tolerance_of(dtype, on.name);
    double error = 0;
    (void)index;
    const tessera_type type = fmha_fwd_output_element(dtype, on.fp8);
    const void *const o = with_infinities(type, fmha_fwd_o_row(c->traits, c->args, *row), want->o, c->args->hdim_v);
    const double of_o = fmha_fwd_compare_row(type, o, want, c->args->hdim_v, &tolerance, &error);
    if (!(of_o <= 1)) fail_at(row, of_o, "o differs from the reference");
    const double of_lse =
        c->traits->has_lse ? fmha_fwd_compare_lse(*fmha_fwd_lse_of(c->traits, c->args, *row), want, &tolerance, &error)
                           : 0;
    if (!(of_lse <= 1)) fail_at(row, of_lse, "lse differs from the reference");
    check_bytes(c, row, want);
    counts.rows++;
}

void compare_rows(const attention_traits *t, const attention_args *a) {
    static fmha_fwd_row rows[512];
    int64_t count = 0, all = 0;
    const int64_t first = between(0, 6);
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++)
                if (all++ % 7 == first && count < 512) rows[count++] = (fmha_fwd_row){b, h, i};
    }
    // Of numbers that are no sinks, fmha_fwd_sees() would not know.
    attention_args known = *a;
    if (!t->has_sink) known.sink_size = 0, known.sink_ptr = NULL;
    struct compared user = {t, &known};
    if (fmha_fwd_reference(t, &known, on.fp8, fmha_fwd_cuts_products(t->data_type, on.name), rows, count, 1, check_row,
                           &user) != 0)
        fail("the reference ran out of memory");
}
