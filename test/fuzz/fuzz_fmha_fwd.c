// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_fwd with random traits and args, sensible ones and nonsense. None may crash; each
// returns a status, and writes only the outputs of a call that succeeds, which match the reference.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fmha_fwd_reference.h"
#include "fuzz.h"
#include "tessera/fmha_fwd.h"

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

static struct {
    traits_t traits;
    uint8_t traits_tail[64];
    args_t args;
    uint8_t args_tail[64];
} call, call_before;

static int storage_bits(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP32                                 ? 32
           : dtype == TESSERA_FMHA_FP16 || dtype == TESSERA_FMHA_BF16 ? 16
           : dtype == TESSERA_FMHA_MXFP4                              ? 4
                                                                      : 8;
}
static int output_bytes(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP8                                                                   ? 1
           : dtype == TESSERA_FMHA_FP16 || dtype == TESSERA_FMHA_BF16 || dtype == TESSERA_FMHA_FP8BF16 ? 2
                                                                                                       : 4;
}

// The shape of calls: few rows of wide heads, few rows and keys that are cut into parts, or a bit of everything.
static enum { USUAL, WIDE, LONG } shape;

static void choose_traits(traits_t *t) {
    shape = chance(8) ? WIDE : chance(8) ? LONG : USUAL;
    const traits_t plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    *t = plain;
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_DTYPE_COUNT);
    const int32_t most = shape == WIDE ? 512 : shape == LONG ? 24 : 48;
    t->hdim_q = between(1, most);
    t->hdim_v = between(1, most);
    if (t->data_type == TESSERA_FMHA_MXFP4) {
        t->hdim_q += t->hdim_q % 2;
        t->hdim_v += t->hdim_v % 2;
    }
    t->is_group_mode = (int32_t)below(2);
    t->is_v_rowmajor = (int32_t)below(2);
    t->mask_type = (tessera_mask)below(TESSERA_MASK_COUNT);
    t->bias_type = (tessera_bias)below(TESSERA_BIAS_COUNT);
    t->has_logits_soft_cap = t->bias_type != TESSERA_BIAS_ELEMENTWISE && chance(3);
    t->has_lse = (int32_t)below(2);
    t->has_dropout = chance(3);
    t->skip_min_seqlen_q = t->is_group_mode && chance(4);
    t->has_sink = chance(3);
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

static void choose_numbers(const traits_t *t, args_t *a) {
    a->scale_s = (float)uniform(-1, 1) / sqrtf((float)t->hdim_q);
    a->logits_soft_cap = (float)uniform(0.5, 50);
    a->window_size_left = between(-1, 90), a->window_size_right = between(-1, 90);
    a->sink_size = chance(2) ? between(0, 90) : 0;
    a->min_seqlen_q = between(0, 30);
    a->p_drop = (float)uniform(0, 0.9);
    a->s_randval = (int32_t)below(2), a->drop_prefs = (int32_t)below(2);
    a->drop_seed = below(1u << 31), a->drop_offset = below(1u << 31);
}

static void choose_args(const traits_t *t, args_t *a) {
    *a = tessera_fmha_fwd_args_init();
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->mask_type = t->mask_type;
    a->batch = shape == LONG ? 1 : between(1, LENGTHS - 1), a->nhead_k = shape == LONG ? 1 : between(1, 2);
    a->nhead_q = a->nhead_k * between(1, 3);
    const int32_t sq = between(0, shape == USUAL ? 32 : 5), sk = between(0, shape == USUAL  ? 60
                                                                            : shape == WIDE ? 10
                                                                                            : 1300);
    a->seqlen_q = sq, a->seqlen_k = sk;
    const struct side q = {room(SEQSTART_Q),   room(SEQLEN_Q),   room(CU_SEQLEN_Q),
                           &a->seqstart_q_ptr, &a->seqlen_q_ptr, &a->cu_seqlen_q_ptr},
                      k = {room(SEQSTART_K),   room(SEQLEN_K),   room(CU_SEQLEN_K),
                           &a->seqstart_k_ptr, &a->seqlen_k_ptr, &a->cu_seqlen_k_ptr};
    const int is_even = t->data_type == TESSERA_FMHA_MXFP4; // so that column-major v begins at whole bytes
    a->max_seqlen_q = choose_side(&q, a->batch, t->is_group_mode, sq, is_even);
    choose_side(&k, a->batch, t->is_group_mode, sk, is_even);
    const int64_t tokens_q = t->is_group_mode ? q.starts[a->batch] : sq;
    const int64_t tokens_k = t->is_group_mode ? k.starts[a->batch] : sk;
    int64_t unused;
    choose_strides(a->nhead_q, tokens_q, t->hdim_q, &a->batch_stride_q, &a->nhead_stride_q, &a->stride_q);
    choose_strides(a->nhead_k, tokens_k, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(a->nhead_k, t->is_v_rowmajor ? tokens_k : t->hdim_v, t->is_v_rowmajor ? t->hdim_v : tokens_k,
                   &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    choose_strides(a->nhead_q, tokens_q, t->hdim_v, &a->batch_stride_o, &a->nhead_stride_o, &a->stride_o);
    choose_strides(a->nhead_q, tokens_q, sk, &a->batch_stride_randval, &a->nhead_stride_randval, &a->stride_randval);
    choose_strides(a->nhead_q, 1, tokens_q, &a->batch_stride_lse, &a->nhead_stride_lse, &unused);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        a->stride_bias = chance(2) ? 0 : a->nhead_q;
    else
        choose_strides(a->nhead_q, tokens_q, sk, &a->batch_stride_bias, &a->nhead_stride_bias, &a->stride_bias);
    if (chance(4)) a->nhead_stride_bias = a->batch_stride_bias = 0;
    if (chance(8)) a->nhead_stride_k = a->nhead_stride_v = 0;
    a->q_ptr = room(Q), a->k_ptr = room(K), a->v_ptr = room(V), a->bias_ptr = room(BIAS),
    a->sink_ptr = chance(2) ? room(SINK) : NULL;
    a->drop_seed_ptr = room(DROP_SEED), a->drop_offset_ptr = room(DROP_OFFSET);
    a->o_ptr = room(O), a->lse_ptr = room(LSE), a->rand_val_ptr = room(RAND_VAL);
    choose_numbers(t, a);
    choose_scales(t, a, tokens_q, tokens_k);
}

// ---- inputs

static void fill_inputs(const traits_t *t) {
    static const enum pattern elements[TESSERA_FMHA_DTYPE_COUNT] = {FP32, FP16, BF16, E4M3, E4M3, E4M3, E4M3, E2M1};
    const enum pattern element = elements[t->data_type];
    fill_room(Q, element), fill_room(K, element), fill_room(V, element);
    fill_room(BIAS, t->bias_type == TESSERA_BIAS_ALIBI ? SLOPES : element == FP16 || element == BF16 ? element : FP32);
    for (int n = Q_DESCALE; n <= V_DESCALE; n++) fill_room(n, t->qscale_type == TESSERA_QSCALE_MX ? E8M0 : FP32);
    fill_room(SINK, FP32);
    *(uint64_t *)room(DROP_SEED) = 1234567890123, *(uint64_t *)room(DROP_OFFSET) = 77;
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    int32_t *const fields = &t->hdim_q; // enums and int32 alike, to the end
    const uint32_t count = (uint32_t)((sizeof *t - offsetof(traits_t, hdim_q)) / sizeof *fields);
    fields[below(count)] = chance(2) ? odd_int() : between(0, 9);
}

static void spoil_args(args_t *a) {
    static const size_t integers[] = {offsetof(args_t, seqlen_q),
                                      offsetof(args_t, seqlen_k),
                                      offsetof(args_t, max_seqlen_q),
                                      offsetof(args_t, hdim_q),
                                      offsetof(args_t, hdim_v),
                                      offsetof(args_t, nhead_q),
                                      offsetof(args_t, nhead_k),
                                      offsetof(args_t, window_size_left),
                                      offsetof(args_t, window_size_right),
                                      offsetof(args_t, sink_size),
                                      offsetof(args_t, mask_type),
                                      offsetof(args_t, min_seqlen_q),
                                      offsetof(args_t, s_randval),
                                      offsetof(args_t, drop_prefs),
                                      offsetof(args_t, block_scale_size_q),
                                      offsetof(args_t, block_scale_size_kv)};
    static const size_t floats[] = {offsetof(args_t, scale_s), offsetof(args_t, logits_soft_cap),
                                    offsetof(args_t, p_drop)};
    char *const base = (char *)a;
    switch (below(6)) {
    case 0:
        *(int32_t *)(void *)(base + integers[below(sizeof integers / sizeof *integers)]) = odd_int();
        break;
    case 1:
        *(float *)(void *)(base + floats[below(sizeof floats / sizeof *floats)]) = odd_float();
        break;
    case 2: { // the strides lie side by side
        int64_t *const strides = &a->stride_q;
        const uint32_t count =
            (uint32_t)((offsetof(args_t, window_size_left) - offsetof(args_t, stride_q)) / sizeof *strides);
        strides[below(count)] = odd_stride();
        break;
    }
    case 3:
        *pointer_at(a, pointers[below(POINTERS)]) = odd_pointer();
        break;
    case 4:
        a->batch = chance(2) ? between(-1, 200) : INT32_MIN;
        break; // the rooms hold the lengths of so many
    default:
        ((int32_t *)room(between(SEQSTART_Q, SEQSTART_V_SCALE)))[below(LENGTHS)] = odd_int();
    }
}

// ---- what the call may touch

// Whether everything that a successful call may read or write lies in the rooms. The library is not used to find out.
static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int group = t->is_group_mode;
    const double batches = group ? 1 : a->batch, bits = storage_bits(t->data_type);
    const int32_t *const q = a->seqstart_q_ptr, *const k = a->seqstart_k_ptr;
    const double tokens_q = group ? q[a->batch] : a->seqlen_q, tokens_k = group ? k[a->batch] : a->seqlen_k;
    const double bias_bits = bits == 16 ? 16 : 32;
    double columns = group ? 0 : a->seqlen_k;
    for (int32_t b = 0; b < a->batch; b++) columns = fmax(columns, fmha_fwd_sequence_of(t, a, b).seqlen_k);
    const double v_rows = t->is_v_rowmajor ? tokens_k : a->hdim_v, v_inner = t->is_v_rowmajor ? a->hdim_v : tokens_k;
#define LAST(x, heads, rows, inner)                                                                                    \
    last_of(batches, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x)
    int good = fits(a->q_ptr, LAST(q, a->nhead_q, tokens_q, a->hdim_q), bits, comparable) &&
               fits(a->k_ptr, LAST(k, a->nhead_k, tokens_k, a->hdim_q), bits, comparable) &&
               fits(a->v_ptr, LAST(v, a->nhead_k, v_rows, v_inner), bits, comparable) &&
               fits(a->o_ptr, LAST(o, a->nhead_q, tokens_q, a->hdim_v), 8 * output_bytes(t->data_type), comparable);
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
        good &= fits(a->bias_ptr, LAST(bias, a->nhead_q, tokens_q, columns), bias_bits, comparable);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        good &= fits(a->bias_ptr, last_of(a->batch, 1, 1, a->nhead_q, a->stride_bias, 0, 0), 32, comparable);
    if (t->has_lse)
        good &= fits(a->lse_ptr, last_of(batches, a->nhead_q, 1, tokens_q, a->batch_stride_lse, a->nhead_stride_lse, 0),
                     32, comparable);
    if (t->has_dropout && a->s_randval)
        good &= fits(a->rand_val_ptr, LAST(randval, a->nhead_q, tokens_q, columns), 8, comparable);
    if (t->has_sink && a->sink_ptr) good &= fits(a->sink_ptr, a->nhead_q - 1, 32, comparable);
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

static void allow_outputs(const traits_t *t, const args_t *a) {
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++) {
                const fmha_fwd_row row = {b, h, i};
                allow(fmha_fwd_o_row(t, a, row), (int64_t)a->hdim_v * output_bytes(t->data_type));
                if (t->has_lse) allow(fmha_fwd_lse_of(t, a, row), 4);
                if (t->has_dropout && a->s_randval && s.seqlen_k > 0) // without keys the strides are nonsense
                    allow((const uint8_t *)a->rand_val_ptr + (t->is_group_mode ? 0 : b * a->batch_stride_randval) +
                              h * a->nhead_stride_randval + (s.token_q + i) * a->stride_randval,
                          s.seqlen_k);
            }
    }
}

// ---- verdicts

void fuzz_describe(void) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr,
            "  dtype %d d %d/%d group %d vrow %d cap %d mask %d bias %d lse %d drop %d qscale %d skip %d sink %d\n",
            (int)t->data_type, t->hdim_q, t->hdim_v, t->is_group_mode, t->is_v_rowmajor, t->has_logits_soft_cap,
            (int)t->mask_type, (int)t->bias_type, t->has_lse, t->has_dropout, (int)t->qscale_type, t->skip_min_seqlen_q,
            t->has_sink);
    fprintf(stderr, "  b %d h %d/%d s %d/%d max %d window %d,%d sink %d scale %g cap %g p %g\n", a->batch, a->nhead_q,
            a->nhead_k, a->seqlen_q, a->seqlen_k, a->max_seqlen_q, a->window_size_left, a->window_size_right,
            a->sink_size, (double)a->scale_s, (double)a->logits_soft_cap, (double)a->p_drop);
}

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const struct {
        const traits_t *traits;
        const args_t *args;
    } *const c = user;
    (void)index;
    const tessera_fmha_dtype dtype = c->traits->data_type;
    const fmha_fwd_tolerance tolerance = fmha_fwd_tolerance_of(dtype, "cpu");
    double error = 0;
    if (!(fmha_fwd_compare_row(fmha_fwd_output_element(dtype, TESSERA_E4M3FN), fmha_fwd_o_row(c->traits, c->args, *row),
                               want, c->args->hdim_v, &tolerance, &error) <= 1))
        fail("o differs from the reference");
    if (c->traits->has_lse &&
        !(fmha_fwd_compare_lse(*fmha_fwd_lse_of(c->traits, c->args, *row), want, &tolerance, &error) <= 1))
        fail("lse differs from the reference");
    counts.rows++;
}

// Compares every seventh row, starting with any of them.
static void compare(const traits_t *t, const args_t *a) {
    static fmha_fwd_row rows[512];
    int64_t count = 0, all = 0;
    const int64_t first = between(0, 6);
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++)
                if (all++ % 7 == first && count < 512) rows[count++] = (fmha_fwd_row){b, h, i};
    }
    struct {
        const traits_t *traits;
        const args_t *args;
    } user = {t, a};
    if (fmha_fwd_reference(t, a, TESSERA_E4M3FN, 0, rows, count, 1, check_row, &user) != 0)
        fail("the reference ran out of memory");
}

// ---- one iteration

FUZZ_DEFINE(fmha_fwd)

void fuzz_iterate(void) {
    memset(&call, 0, sizeof call);
    choose_traits(&call.traits);
    choose_args(&call.traits, &call.args);
    const int sensible = !chance(3);
    if (!sensible) spoil();
    if (call.traits.data_type < TESSERA_FMHA_DTYPE_COUNT) fill_inputs(&call.traits);
    begin_call();
    call_before = call;

    const tessera_device *const device = some_device();
    tessera_set_num_threads(between(1, 4));
    size_t bytes = 0;
    int succeeded = 0, comparable = 1;
    if (ask_all(device, sensible, &bytes)) {
        traits_t traits = TESSERA_FMHA_FWD_TRAITS_INIT;
        args_t args = tessera_fmha_fwd_args_init();
        read_struct(&traits, &call.traits, sizeof traits);
        read_struct(&args, &call.args, sizeof args);
        if (!traits.has_sink) args.sink_size = 0, args.sink_ptr = NULL; // which fmha_fwd_sees() does not know
        if (call.args.struct_size == sizeof call.args && bytes < 1 << 28 && all_fits(&traits, &args, &comparable)) {
            const tessera_status status = launch(device, bytes);
            succeeded = status == TESSERA_SUCCESS;
            if (!succeeded && status != TESSERA_ERROR_WORKSPACE) fail("check said success, the call did not");
            counts.launches += (uint64_t)succeeded;
            if (succeeded) allow_outputs(&traits, &args);
            if (succeeded && comparable) compare(&traits, &args);
        }
    }
    if (memcmp(&call, &call_before, sizeof call) != 0) fail("traits or args were written");
    end_call(succeeded);
}
