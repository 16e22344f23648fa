// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_fwd with random traits and args, sensible ones and nonsense. None may crash; each
// returns a status, and writes only the outputs of a call that succeeds, which match the reference.
#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "tessera/kernel/fmha_fwd.h"

const char fuzz_name[] = "fuzz_fmha_fwd";

typedef tessera_fmha_fwd_args args_t;
typedef tessera_fmha_fwd_traits traits_t;

// The rooms, and the pointers of args to them.
enum {
    Q,
    K,
    V,
    BIAS,
    Q_DESCALE,
    K_DESCALE,
    V_DESCALE,
    SINK,
    DROP_SEED,
    DROP_OFFSET,
    SEQSTART_Q, // from here on int32 lengths
    SEQSTART_K,
    SEQLEN_Q,
    SEQLEN_K,
    CU_SEQLEN_Q,
    CU_SEQLEN_K,
    BLOCK_SCALE_SEQSTART_Q,
    BLOCK_SCALE_SEQSTART_K,
    SEQSTART_V_SCALE,
    O, // from here on outputs
    LSE,
    RAND_VAL,
    POINTERS
};
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [BIAS] = offsetof(args_t, bias_ptr),
    [Q_DESCALE] = offsetof(args_t, q_descale_ptr),
    [K_DESCALE] = offsetof(args_t, k_descale_ptr),
    [V_DESCALE] = offsetof(args_t, v_descale_ptr),
    [SINK] = offsetof(args_t, sink_ptr),
    [DROP_SEED] = offsetof(args_t, drop_seed_ptr),
    [DROP_OFFSET] = offsetof(args_t, drop_offset_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [SEQSTART_K] = offsetof(args_t, seqstart_k_ptr),
    [SEQLEN_Q] = offsetof(args_t, seqlen_q_ptr),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [CU_SEQLEN_Q] = offsetof(args_t, cu_seqlen_q_ptr),
    [CU_SEQLEN_K] = offsetof(args_t, cu_seqlen_k_ptr),
    [BLOCK_SCALE_SEQSTART_Q] = offsetof(args_t, block_scale_seqstart_q_ptr),
    [BLOCK_SCALE_SEQSTART_K] = offsetof(args_t, block_scale_seqstart_k_ptr),
    [SEQSTART_V_SCALE] = offsetof(args_t, seqstart_v_scale_ptr),
    [O] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
    [RAND_VAL] = offsetof(args_t, rand_val_ptr),
};

// ---- a sensible call

FUZZ_CALL;

static enum shape shape;

static void choose_traits(traits_t *t) {
    const traits_t plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    shape = choose_shape();
    *t = plain;
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_DTYPE_COUNT);
    choose_attention(t, shape);
    if (t->data_type == TESSERA_FMHA_MXFP4) {
        t->hdim_q += t->hdim_q % 2;
        t->hdim_v += t->hdim_v % 2;
    }
    t->is_v_rowmajor = (int32_t)below(2);
    t->has_dropout = chance(3);
    t->skip_min_seqlen_q = t->is_group_mode && chance(4);
    if (t->data_type >= TESSERA_FMHA_FP8) t->qscale_type = (tessera_qscale)below(3); // no, pt, bs
    if (t->data_type >= TESSERA_FMHA_MXFP8) t->qscale_type = TESSERA_QSCALE_MX;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void choose_scales(const traits_t *t, args_t *a, int64_t tokens_q, int64_t tokens_k) {
    int64_t unused;
    if (t->qscale_type == TESSERA_QSCALE_NONE) return;
    a->q_descale_ptr = room(Q_DESCALE), a->k_descale_ptr = room(K_DESCALE), a->v_descale_ptr = room(V_DESCALE);
    if (t->qscale_type == TESSERA_QSCALE_BLOCK) {
        a->block_scale_size_q = between(1, 40), a->block_scale_size_kv = between(1, 40);
        const int64_t q = ceil_div(tokens_q, a->block_scale_size_q) + a->batch,
                      k = ceil_div(tokens_k, a->block_scale_size_kv) + a->batch;
        choose_strides(a->nhead_q, 1, q, &a->batch_stride_q_descale, &a->nhead_stride_q_descale, &unused);
        choose_strides(a->nhead_k, 1, k, &a->batch_stride_k_descale, &a->nhead_stride_k_descale, &unused);
        a->batch_stride_v_descale = a->batch_stride_k_descale, a->nhead_stride_v_descale = a->nhead_stride_k_descale;
    }
    if (t->qscale_type == TESSERA_QSCALE_MX) {
        choose_strides(a->nhead_q, tokens_q, ceil_div(t->hdim_q, 32), &a->batch_stride_q_descale,
                       &a->nhead_stride_q_descale, &a->stride_q_descale);
        choose_strides(a->nhead_k, tokens_k, ceil_div(t->hdim_q, 32), &a->batch_stride_k_descale,
                       &a->nhead_stride_k_descale, &a->stride_k_descale);
        choose_strides(a->nhead_k, t->hdim_v, ceil_div(tokens_k, 32) + a->batch, &a->batch_stride_v_descale,
                       &a->nhead_stride_v_descale, &a->stride_v_descale);
    }
    if (!t->is_group_mode) return;
    int32_t *const q = room(BLOCK_SCALE_SEQSTART_Q), *const k = room(BLOCK_SCALE_SEQSTART_K),
                   *const v = room(SEQSTART_V_SCALE);
    a->block_scale_seqstart_q_ptr = q, a->block_scale_seqstart_k_ptr = k, a->seqstart_v_scale_ptr = v;
    q[0] = k[0] = v[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        q[b + 1] = q[b] + (int32_t)ceil_div(s.seqlen_q, a->block_scale_size_q ? a->block_scale_size_q : 32);
        k[b + 1] = k[b] + (int32_t)ceil_div(s.seqlen_k, a->block_scale_size_kv ? a->block_scale_size_kv : 32);
        v[b + 1] = v[b] + (int32_t)ceil_div(s.seqlen_k, 32);
    }
}

static void choose_args(const traits_t *t, args_t *a) {
    *a = tessera_fmha_fwd_args_init();
    choose_numbers(t, a, shape);
    const int32_t sq = between(0, most_queries(shape)), sk = between(0, most_keys(shape));
    a->seqlen_q = sq, a->seqlen_k = sk;
    const struct side q = {room(SEQSTART_Q),   room(SEQLEN_Q),   room(CU_SEQLEN_Q),
                           &a->seqstart_q_ptr, &a->seqlen_q_ptr, &a->cu_seqlen_q_ptr},
                      k = {room(SEQSTART_K),   room(SEQLEN_K),   room(CU_SEQLEN_K),
                           &a->seqstart_k_ptr, &a->seqlen_k_ptr, &a->cu_seqlen_k_ptr};
    const int is_even = t->data_type == TESSERA_FMHA_MXFP4; // so that column-major v begins at whole bytes
    a->max_seqlen_q = choose_side(&q, a->batch, t->is_group_mode, sq, is_even);
    choose_side(&k, a->batch, t->is_group_mode, sk, is_even);
    const int64_t tokens_q = tokens_of(t, a), tokens_k = t->is_group_mode ? k.starts[a->batch] : sk;
    choose_rows(t, a, sk);
    choose_strides(a->nhead_k, tokens_k, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(a->nhead_k, t->is_v_rowmajor ? tokens_k : t->hdim_v, t->is_v_rowmajor ? t->hdim_v : tokens_k,
                   &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    choose_strides(a->nhead_q, tokens_q, sk, &a->batch_stride_randval, &a->nhead_stride_randval, &a->stride_randval);
    if (chance(8)) a->nhead_stride_k = a->nhead_stride_v = 0;
    const int bits = element_bits_of(t->data_type), bytes = bits < 8 ? 1 : bits / 8;
    a->q_ptr = odd_room(Q, bytes), a->k_ptr = odd_room(K, bytes), a->v_ptr = odd_room(V, bytes);
    a->bias_ptr = odd_room(BIAS, 4), a->sink_ptr = chance(2) ? odd_room(SINK, 4) : NULL;
    a->o_ptr = odd_room(O, 4), a->lse_ptr = odd_room(LSE, 4), a->rand_val_ptr = odd_room(RAND_VAL, 1);
    a->min_seqlen_q = between(0, 30);
    a->num_splits = on.is_gpu && chance(2) ? 0 : (int32_t)below(2);
    choose_dropout(a, DROP_SEED, DROP_OFFSET);
    choose_scales(t, a, tokens_q, tokens_k);
}

// ---- inputs

static void fill_inputs(const traits_t *t, const args_t *a) {
    const enum pattern element = element_pattern(t->data_type);
    fill_room(Q, element), fill_room(K, element), fill_room(V, element), fill_room(BIAS, bias_pattern(t));
    for (int n = Q_DESCALE; n <= V_DESCALE; n++) fill_room(n, t->qscale_type == TESSERA_QSCALE_MX ? E8M0 : FP32);
    fill_room(SINK, FP32);
    *(uint64_t *)room(DROP_SEED) = 1234567890123, *(uint64_t *)room(DROP_OFFSET) = 77;
    choose_special(t, a->q_ptr, a->k_ptr, a->v_ptr, (const int[]){Q, K, V});
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, has_sink); // enums and int32 alike
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, seqlen_q, nhead_k),
        RUN(FLOATS, args_t, scale_s, logits_soft_cap),
        RUN(STRIDES, args_t, stride_q, batch_stride_v_descale),
        RUN(INTS, args_t, window_size_left, min_seqlen_q),
        RUN(FLOATS, args_t, p_drop, p_drop),
        RUN(INTS, args_t, s_randval, drop_prefs),
        RUN(INTS, args_t, block_scale_size_q, block_scale_size_kv),
        RUN(INTS, args_t, num_splits, num_splits),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, SEQSTART_V_SCALE)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, hdim_v, 0),
    WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, nhead_k, -1),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, mask_type, TESSERA_MASK_COUNT),
    WRONG(0, args_t, num_splits, -1),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_DTYPE_COUNT),
    WRONG(1, traits_t, data_type, -1),
    WRONG(1, traits_t, mask_type, -1),
    WRONG(1, traits_t, bias_type, TESSERA_BIAS_COUNT),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_KV_BLOCK),
    WRONG(1, traits_t, qscale_type, TESSERA_QSCALE_TOKEN_HEAD),
};

// ---- what the call may touch

// Whether the arrays of lengths, which the check reads, lie in the rooms.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    (void)t;
    for (int n = SEQSTART_Q; n <= SEQSTART_V_SCALE && a->batch > 0; n++) {
        const void *const list = *pointer_at(a, pointers[n]);
        const int is_of_each = n == SEQLEN_Q || n == SEQLEN_K;
        if (list && !fits(list, a->batch - is_of_each, 32, &unused)) return 0;
    }
    return 1;
}

// Whether everything that a successful call may read or write lies in the rooms. The library is not used to find out.
static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int group = t->is_group_mode;
    const double batches = group ? 1 : a->batch, bits = element_bits_of(t->data_type);
    const double tokens_q = (double)tokens_of(t, a);
    const double tokens_k = group ? ((const int32_t *)a->seqstart_k_ptr)[a->batch] : a->seqlen_k;
    double columns = group ? 0 : a->seqlen_k;
    for (int32_t b = 0; b < a->batch; b++) columns = fmax(columns, fmha_fwd_sequence_of(t, a, b).seqlen_k);
    const double v_rows = t->is_v_rowmajor ? tokens_k : a->hdim_v, v_inner = t->is_v_rowmajor ? a->hdim_v : tokens_k;
#define LAST(x, heads, rows, inner)                                                                                    \
    last_of(batches, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x)
    int good = rows_fit(t, a, columns, comparable) &&
               fits(a->k_ptr, LAST(k, a->nhead_k, tokens_k, a->hdim_q), bits, comparable) &&
               fits(a->v_ptr, LAST(v, a->nhead_k, v_rows, v_inner), bits, comparable);
    if (t->has_dropout && a->s_randval)
        good &= fits(a->rand_val_ptr, LAST(randval, a->nhead_q, tokens_q, columns), 8, comparable);
    if (t->has_dropout && a->drop_prefs)
        good &= fits(a->drop_seed_ptr, 0, 64, comparable) && fits(a->drop_offset_ptr, 0, 64, comparable);
    const double far = ROOM / 4; // of scales, whose rooms hold more than sensible sizes need
    if (t->qscale_type == TESSERA_QSCALE_BLOCK) {
        good &= fits(a->q_descale_ptr,
                     last_of(batches, a->nhead_q, 1, fmin(tokens_q, far) + a->batch, a->batch_stride_q_descale,
                             a->nhead_stride_q_descale, 0),
                     32, comparable) &&
                fits(a->k_descale_ptr,
                     last_of(batches, a->nhead_k, 1, fmin(tokens_k, far) + a->batch, a->batch_stride_k_descale,
                             a->nhead_stride_k_descale, 0),
                     32, comparable) &&
                fits(a->v_descale_ptr,
                     last_of(batches, a->nhead_k, 1, fmin(tokens_k, far) + a->batch, a->batch_stride_v_descale,
                             a->nhead_stride_v_descale, 0),
                     32, comparable);
        for (int32_t b = 0; group && b < a->batch; b++)
            good &= ((const int32_t *)a->block_scale_seqstart_q_ptr)[b] < 4096 &&
                    ((const int32_t *)a->block_scale_seqstart_k_ptr)[b] < 4096;
    }
    if (t->qscale_type == TESSERA_QSCALE_MX) {
        good &= fits(a->q_descale_ptr, LAST(q_descale, a->nhead_q, tokens_q, 16), 8, comparable) &&
                fits(a->k_descale_ptr, LAST(k_descale, a->nhead_k, tokens_k, 16), 8, comparable) &&
                fits(a->v_descale_ptr, LAST(v_descale, a->nhead_k, a->hdim_v, tokens_k + a->batch), 8, comparable);
        for (int32_t b = 0; group && b < a->batch; b++) good &= ((const int32_t *)a->seqstart_v_scale_ptr)[b] < 4096;
    }
    return good;
#undef LAST
}

static void allow_outputs(const traits_t *t, const args_t *a) { allow_rows(t, a); }
static void compare(const traits_t *t, const args_t *a) { compare_rows(t, a); }
void fuzz_describe(void) { describe_attention(&call_before.traits, &call_before.args); }

FUZZ_PROGRAM(fmha_fwd)
