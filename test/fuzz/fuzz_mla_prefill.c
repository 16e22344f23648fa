// SPDX-License-Identifier: MIT
// Calls the public functions of mla_prefill with random traits and args, sensible ones and nonsense: keys in one piece,
// in two tensors, and with a rope that heads share. None may crash; each returns a status, and writes only the outputs
// of a call that succeeds, which match the reference.
#include <stdio.h>
#include <stdlib.h>

#include "attention.h"
#include "found_keys.h"
#include "tessera/kernel/mla_prefill.h"

const char fuzz_name[] = "fuzz_mla_prefill";

typedef tessera_mla_prefill_args args_t;
typedef tessera_mla_prefill_traits traits_t;

// The rooms, and the pointers of args to them.
enum { Q, K, K_ROPE, V, Q_DESCALE, K_DESCALE, V_DESCALE, SEQSTART_Q, SEQSTART_K, O, LSE, POINTERS };
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [K] = offsetof(args_t, k_ptr),
    [K_ROPE] = offsetof(args_t, k_rope_ptr),
    [V] = offsetof(args_t, v_ptr),
    [Q_DESCALE] = offsetof(args_t, q_descale_ptr),
    [K_DESCALE] = offsetof(args_t, k_descale_ptr),
    [V_DESCALE] = offsetof(args_t, v_descale_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [SEQSTART_K] = offsetof(args_t, seqstart_k_ptr),
    [O] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
};

FUZZ_CALL;

// ---- a sensible call

static void choose_traits(traits_t *t) {
    *t = tessera_mla_prefill_traits_init();
    t->data_type = on.is_gpu || chance(2) ? TESSERA_FMHA_FP8BF16 : TESSERA_FMHA_BF16;
    t->is_group_mode = (int32_t)below(2);
    t->mask_type = (tessera_mask)below(TESSERA_MASK_GENERIC);
    t->has_lse = (int32_t)below(2);
    if (t->data_type == TESSERA_FMHA_FP8BF16) t->qscale_type = (tessera_qscale)below(2); // no, pt
}

// The call as one of fmha_fwd. Its keys are in one piece.
static attention_args attention_of(const traits_t *t, const args_t *a, attention_traits *ft) {
    attention_args f = tessera_fmha_fwd_args_init();
    const attention_traits plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    *ft = plain;
    ft->hdim_q = f.hdim_q = TESSERA_MLA_QK, ft->hdim_v = f.hdim_v = TESSERA_MLA_V;
    ft->data_type = t->data_type, ft->is_group_mode = t->is_group_mode, ft->mask_type = f.mask_type = t->mask_type;
    ft->has_lse = t->has_lse, ft->qscale_type = t->qscale_type;
    if (t->mask_type != TESSERA_MASK_NONE) f.window_size_right = 0; // causal
    f.q_ptr = a->q_ptr, f.o_ptr = a->o_ptr, f.lse_ptr = a->lse_ptr;
    f.q_descale_ptr = a->q_descale_ptr, f.k_descale_ptr = a->k_descale_ptr, f.v_descale_ptr = a->v_descale_ptr;
    f.seqstart_q_ptr = a->seqstart_q_ptr, f.seqstart_k_ptr = a->seqstart_k_ptr;
    f.seqlen_q = a->seqlen_q, f.seqlen_k = a->seqlen_k, f.batch = a->batch, f.max_seqlen_q = a->max_seqlen_q;
    f.nhead_q = a->nhead_q, f.nhead_k = a->nhead_k, f.scale_s = a->scale_s;
    f.stride_q = a->stride_q, f.nhead_stride_q = a->nhead_stride_q, f.batch_stride_q = a->batch_stride_q;
    f.stride_o = a->stride_o, f.nhead_stride_o = a->nhead_stride_o, f.batch_stride_o = a->batch_stride_o;
    f.nhead_stride_lse = a->nhead_stride_lse, f.batch_stride_lse = a->batch_stride_lse;
    return f;
}

static void choose_keys(const traits_t *t, args_t *a) {
    int32_t *const starts = room(SEQSTART_K);
    a->seqlen_k = chance(6) ? 0 : between(0, 60);
    starts[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) starts[b + 1] = starts[b] + (chance(6) ? 0 : between(0, a->seqlen_k));
    if (t->is_group_mode) a->seqstart_k_ptr = starts;
    const int64_t tokens = t->is_group_mode ? starts[a->batch] : a->seqlen_k;
    const int bytes = element_bits_of(t->data_type) / 8;
    choose_strides(a->nhead_k, tokens, TESSERA_MLA_V, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    a->k_ptr = odd_room(K, bytes), a->v_ptr = odd_room(V, bytes);
    if (chance(3)) {
        choose_strides(a->nhead_k, tokens, TESSERA_MLA_QK, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
        a->k_rope_ptr = (const char *)a->k_ptr + TESSERA_MLA_NOPE * bytes;
        a->stride_k_rope = a->stride_k, a->nhead_stride_k_rope = a->nhead_stride_k;
        a->batch_stride_k_rope = a->batch_stride_k;
        return;
    }
    const int is_shared = (int)below(2);
    choose_strides(a->nhead_k, tokens, TESSERA_MLA_NOPE, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(is_shared ? 1 : a->nhead_k, tokens, TESSERA_MLA_ROPE, &a->batch_stride_k_rope,
                   &a->nhead_stride_k_rope, &a->stride_k_rope);
    if (is_shared) a->nhead_stride_k_rope = 0;
    a->k_rope_ptr = odd_room(K_ROPE, bytes);
}

static void choose_args(const traits_t *t, args_t *a) {
    *a = tessera_mla_prefill_args_init();
    attention_traits ft;
    attention_args f = attention_of(t, a, &ft);
    choose_numbers(&ft, &f, USUAL);
    choose_queries(&ft, &f, USUAL, room(SEQSTART_Q));
    f.q_ptr = odd_room(Q, element_bits_of(t->data_type) / 8), f.o_ptr = odd_room(O, 2), f.lse_ptr = odd_room(LSE, 4);
    while (tokens_of(&ft, &f) * (t->is_group_mode ? 1 : f.batch) * f.nhead_q > 500) // which the rooms hold
        f.nhead_q = f.nhead_k = 1, f.batch = 1;
    choose_rows(&ft, &f, 0);
    a->q_ptr = f.q_ptr, a->o_ptr = f.o_ptr, a->lse_ptr = f.lse_ptr, a->seqstart_q_ptr = f.seqstart_q_ptr;
    a->q_descale_ptr = room(Q_DESCALE), a->k_descale_ptr = room(K_DESCALE), a->v_descale_ptr = room(V_DESCALE);
    a->seqlen_q = f.seqlen_q, a->batch = f.batch, a->max_seqlen_q = f.max_seqlen_q;
    a->nhead_q = f.nhead_q, a->nhead_k = f.nhead_k, a->scale_s = f.scale_s;
    a->stride_q = f.stride_q, a->nhead_stride_q = f.nhead_stride_q, a->batch_stride_q = f.batch_stride_q;
    a->stride_o = f.stride_o, a->nhead_stride_o = f.nhead_stride_o, a->batch_stride_o = f.batch_stride_o;
    a->nhead_stride_lse = f.nhead_stride_lse, a->batch_stride_lse = f.batch_stride_lse;
    choose_keys(t, a);
}

static void fill_inputs(const traits_t *t, const args_t *a) {
    for (int n = Q; n <= V; n++) fill_room(n, element_pattern(t->data_type));
    for (int n = Q_DESCALE; n <= V_DESCALE; n++) fill_room(n, FP32);
    attention_traits f;
    (void)attention_of(t, a, &f);
    choose_special(&f, a->q_ptr, a->k_ptr, a->v_ptr, (const int[]){Q, K, V});
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, qscale_type);
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, seqlen_q, nhead_k),
        RUN(FLOATS, args_t, scale_s, scale_s),
        RUN(STRIDES, args_t, stride_q, batch_stride_lse),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, SEQSTART_K)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, -1),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(1, traits_t, hdim_q, 128),
    WRONG(1, traits_t, hdim_v, 192),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_FP8),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_FP16),
    WRONG(1, traits_t, mask_type, TESSERA_MASK_GENERIC),
    WRONG(1, traits_t, mask_type, -1),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_BLOCK),
};

// ---- what the call may touch

// Whether the arrays that the check reads lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    (void)t;
    return a->batch < 1 || ((!a->seqstart_q_ptr || fits(a->seqstart_q_ptr, a->batch, 32, &unused)) &&
                            (!a->seqstart_k_ptr || fits(a->seqstart_k_ptr, a->batch, 32, &unused)));
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    attention_traits ft;
    const attention_args f = attention_of(t, a, &ft);
    const int bits = element_bits_of(t->data_type);
    const double batches = t->is_group_mode ? 1 : a->batch;
    const double tokens = t->is_group_mode ? ((const int32_t *)a->seqstart_k_ptr)[a->batch] : a->seqlen_k;
#define FITS(x, of_pointer, inner)                                                                                     \
    fits(a->x##_ptr,                                                                                                   \
         last_of(batches, a->nhead_k, tokens, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x), bits,   \
         of_pointer)
    int anywhere; // in a room: k_rope may be inside of k
    return rows_fit(&ft, &f, 0, comparable) && FITS(k, comparable, TESSERA_MLA_NOPE) &&
           FITS(k_rope, &anywhere, TESSERA_MLA_ROPE) && FITS(v, comparable, TESSERA_MLA_V);
#undef FITS
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    attention_traits ft;
    const attention_args f = attention_of(t, a, &ft);
    allow_rows(&ft, &f);
}

// ---- verdicts

void fuzz_describe(void) {
    attention_traits ft;
    const args_t *const a = &call_before.args;
    const attention_args f = attention_of(&call_before.traits, a, &ft);
    describe_attention(&ft, &f);
    fprintf(stderr, "  rope %td bytes behind k, head stride %lld\n",
            (const char *)a->k_rope_ptr - (const char *)a->k_ptr, (long long)a->nhead_stride_k_rope);
}

struct keys {
    const traits_t *traits;
    const args_t *args;
};

static const void *find(const void *user, int is_v, int32_t b, int32_t g, int32_t j, int32_t d) {
    const struct keys *const c = user;
    const args_t *const a = c->args;
    const int is_group = c->traits->is_group_mode;
    const int64_t row = is_group ? ((const int32_t *)a->seqstart_k_ptr)[b] + j : j, batch = is_group ? 0 : b;
    const int64_t bytes = element_bits_of(c->traits->data_type) / 8;
    if (is_v)
        return (const char *)a->v_ptr +
               bytes * (batch * a->batch_stride_v + g * a->nhead_stride_v + row * a->stride_v + d);
    if (d < TESSERA_MLA_NOPE)
        return (const char *)a->k_ptr +
               bytes * (batch * a->batch_stride_k + g * a->nhead_stride_k + row * a->stride_k + d);
    return (const char *)a->k_rope_ptr + bytes * (batch * a->batch_stride_k_rope + g * a->nhead_stride_k_rope +
                                                  row * a->stride_k_rope + d - TESSERA_MLA_NOPE);
}

static void compare(const traits_t *t, const args_t *a) {
    static int32_t lengths[1024];
    attention_traits ft;
    attention_args f = attention_of(t, a, &ft);
    const struct keys all = {t, a};
    const found_keys keys = {lengths, (size_t)element_bits_of(t->data_type) / 8, find, &all};
    const int32_t *const starts = a->seqstart_k_ptr;
    for (int32_t b = 0; b < a->batch; b++) lengths[b] = t->is_group_mode ? starts[b + 1] - starts[b] : a->seqlen_k;
    void *const found = put_in_order(&keys, &ft, &f);
    if (!found) fail("no memory for keys");
    compare_rows(&ft, &f);
    free(found);
}

// ---- one iteration

FUZZ_PROGRAM(mla_prefill)
