// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_bwd with random traits and args, sensible ones and nonsense, at once or by a
// launcher. None may crash; each returns a status, and writes only the outputs of a call that succeeds, which match the
// reference.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fmha_bwd_reference.h"
#include "fuzz.h"
#include "tessera/kernel/fmha_bwd.h"

const char fuzz_name[] = "fuzz_fmha_bwd";

typedef tessera_fmha_bwd_args args_t;
typedef tessera_fmha_bwd_traits traits_t;

// The rooms, and the pointers of args to them.
enum {
    Q,
    K,
    V,
    BIAS,
    O_,
    LSE,
    DO,
    SINK,
    DROP_SEED,
    DROP_OFFSET,
    SEQSTART_Q, // from here on int32 lengths
    SEQSTART_K,
    SEQLEN_Q,
    SEQLEN_K,
    CU_SEQLEN_Q,
    CU_SEQLEN_K,
    D, // from here on outputs
    RAND_VAL,
    DQ,
    DK,
    DV,
    DBIAS,
    D_SINK,
    POINTERS
};
static const size_t pointers[POINTERS] = {
    [Q] = offsetof(args_t, q_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [BIAS] = offsetof(args_t, bias_ptr),
    [O_] = offsetof(args_t, o_ptr),
    [LSE] = offsetof(args_t, lse_ptr),
    [DO] = offsetof(args_t, do_ptr),
    [SINK] = offsetof(args_t, sink_ptr),
    [DROP_SEED] = offsetof(args_t, drop_seed_ptr),
    [DROP_OFFSET] = offsetof(args_t, drop_offset_ptr),
    [SEQSTART_Q] = offsetof(args_t, seqstart_q_ptr),
    [SEQSTART_K] = offsetof(args_t, seqstart_k_ptr),
    [SEQLEN_Q] = offsetof(args_t, seqlen_q_ptr),
    [SEQLEN_K] = offsetof(args_t, seqlen_k_ptr),
    [CU_SEQLEN_Q] = offsetof(args_t, cu_seqlen_q_ptr),
    [CU_SEQLEN_K] = offsetof(args_t, cu_seqlen_k_ptr),
    [D] = offsetof(args_t, d_ptr),
    [RAND_VAL] = offsetof(args_t, rand_val_ptr),
    [DQ] = offsetof(args_t, dq_ptr),
    [DK] = offsetof(args_t, dk_ptr),
    [DV] = offsetof(args_t, dv_ptr),
    [DBIAS] = offsetof(args_t, dbias_ptr),
    [D_SINK] = offsetof(args_t, d_sink_ptr),
};

// ---- a sensible call

FUZZ_CALL;

// The shape of calls: few rows of wide heads, more rows than a tile has, or a bit of everything.
static enum { USUAL, WIDE, LONG } shape;

static void choose_traits(traits_t *t) {
    const int32_t wide[] = {48, on.is_gpu ? 256 : 512, 40};
    shape = chance(8) ? WIDE : chance(4) ? LONG : USUAL;
    *t = tessera_fmha_bwd_traits_init();
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_BF16 + 1);
    t->hdim_q = choose_hdim(wide[shape], 16), t->hdim_v = choose_hdim(wide[shape], 16);
    t->batch = shape == LONG ? 1 : between(1, LENGTHS - 1), t->nhead_k = shape == LONG ? 1 : between(1, 2);
    t->nhead_q = t->nhead_k * between(1, shape == LONG ? 2 : 3);
    t->is_group_mode = (int32_t)below(2);
    t->mask_type = (tessera_mask)below(TESSERA_MASK_COUNT);
    t->bias_type = (tessera_bias)below(TESSERA_BIAS_COUNT);
    t->has_dbias = t->bias_type == TESSERA_BIAS_ELEMENTWISE && chance(2);
    t->has_dropout = chance(3), t->is_store_randval = t->has_dropout && chance(2);
    t->is_deterministic = (int32_t)below(2), t->is_dkv_reduced = (int32_t)below(2);
    t->has_logits_soft_cap = t->bias_type == TESSERA_BIAS_NONE && chance(3);
}

static int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

static void choose_lengths(traits_t *t, args_t *a) {
    static const int32_t queries[] = {32, 5, 96}, keys[] = {60, 5, 240};
    const struct side q = {room(SEQSTART_Q),   room(SEQLEN_Q),   room(CU_SEQLEN_Q),
                           &a->seqstart_q_ptr, &a->seqlen_q_ptr, &a->cu_seqlen_q_ptr},
                      k = {room(SEQSTART_K),   room(SEQLEN_K),   room(CU_SEQLEN_K),
                           &a->seqstart_k_ptr, &a->seqlen_k_ptr, &a->cu_seqlen_k_ptr};
    t->seqlen_q = between(0, queries[shape]), t->seqlen_k = between(0, keys[shape]);
    t->max_seqlen_q = choose_side(&q, t->batch, t->is_group_mode, t->seqlen_q, 0) + between(0, 3);
    t->max_seqlen_k = choose_side(&k, t->batch, t->is_group_mode, t->seqlen_k, 0) + between(0, 3);
    if (!t->is_group_mode) return;
    t->seqlen_q = q.starts[t->batch] + between(0, 3), t->seqlen_k = k.starts[t->batch] + between(0, 3);
    if (chance(2))
        t->seqstart_qs = q.starts, t->seqstart_ks = k.starts;
    else if (t->is_deterministic) // the workspace is sized by keys with padding
        for (int32_t b = 0; b < t->batch; b++) t->max_seqlen_k = most(t->max_seqlen_k, k.starts[b + 1] - k.starts[b]);
}

static void choose_tensors(const traits_t *t, args_t *a) {
    const int64_t q = t->seqlen_q, k = t->seqlen_k, columns = t->is_group_mode ? t->max_seqlen_k : k;
    const int64_t dkv_heads = t->is_dkv_reduced ? t->nhead_k : t->nhead_q;
    int64_t unused;
#define STRIDES(x, heads, tokens, inner)                                                                               \
    choose_strides(heads, tokens, inner, &a->batch_stride_##x, &a->nhead_stride_##x, &a->stride_##x)
    STRIDES(q, t->nhead_q, q, t->hdim_q);
    STRIDES(k, t->nhead_k, k, t->hdim_q);
    STRIDES(v, t->nhead_k, k, t->hdim_v);
    STRIDES(o, t->nhead_q, q, t->hdim_v);
    STRIDES(do, t->nhead_q, q, t->hdim_v);
    STRIDES(dq, t->nhead_q, q, t->hdim_q);
    STRIDES(dk, dkv_heads, k, t->hdim_q);
    STRIDES(dv, dkv_heads, k, t->hdim_v);
    STRIDES(randval, t->nhead_q, q, columns);
    STRIDES(dbias, t->nhead_q, q, columns);
    STRIDES(bias, t->nhead_q, q, columns);
#undef STRIDES
    if (t->bias_type == TESSERA_BIAS_ALIBI) a->stride_bias = chance(2) ? 0 : t->nhead_q;
    choose_strides(t->nhead_q, 1, q, &a->batch_stride_lsed, &a->nhead_stride_lsed, &unused);
    if (chance(4)) a->nhead_stride_bias = a->batch_stride_bias = 0;
    if (chance(8)) a->nhead_stride_k = a->nhead_stride_v = 0;
    a->batch_stride_sink = chance(2) ? 0 : t->nhead_q;
    for (int n = 0; n < POINTERS; n++)
        if (n < SEQSTART_Q || n >= D) *pointer_at(a, pointers[n]) = room(n);
    if (chance(2)) a->sink_ptr = NULL;
}

static void choose_args(traits_t *t, args_t *a) {
    *a = tessera_fmha_bwd_args_init();
    choose_lengths(t, a);
    a->seqlen_q = t->seqlen_q, a->seqlen_k = t->seqlen_k, a->batch = t->batch;
    a->max_seqlen_q = t->max_seqlen_q, a->max_seqlen_k = t->max_seqlen_k;
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->nhead_q = t->nhead_q, a->nhead_k = t->nhead_k;
    a->mask_type = t->mask_type;
    choose_tensors(t, a);
    a->scale = (float)uniform(-1, 1) / sqrtf((float)t->hdim_q);
    a->logits_soft_cap = (float)uniform(0.5, 50);
    a->window_size_left = between(-1, 90), a->window_size_right = between(-1, 90);
    a->sink_size = chance(2) ? between(0, 90) : 0;
    a->p_drop = (float)uniform(0, 0.9);
    a->drop_prefs = (int32_t)below(2), a->drop_seed = below(1u << 31), a->drop_offset = below(1u << 31);
}

// ---- inputs: lse is above all scores, as a sum's logarithm is, so that no probability is above 1

static void fill_inputs(const traits_t *t, const args_t *a) {
    static const enum pattern elements[] = {FP32, FP16, BF16};
    const enum pattern element = elements[t->data_type];
    fill_room(Q, element), fill_room(K, element), fill_room(V, element), fill_room(O_, element), fill_room(DO, element);
    fill_room(BIAS, t->bias_type == TESSERA_BIAS_ALIBI ? SLOPES : element);
    fill_room(LSE, shape == WIDE ? LOGS_10 : LOGS_4);
    fill_room(SINK, FP32);
    *(uint64_t *)room(DROP_SEED) = 1234567890123, *(uint64_t *)room(DROP_OFFSET) = 77;
    (void)a;
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, seqlen_q, is_dkv_reduced); // enums and int32 alike
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {
        RUN(INTS, args_t, seqlen_q, nhead_k),
        RUN(FLOATS, args_t, scale, scale),
        RUN(FLOATS, args_t, logits_soft_cap, logits_soft_cap),
        RUN(FLOATS, args_t, p_drop, p_drop),
        RUN(STRIDES, args_t, stride_q, batch_stride_sink),
        RUN(INTS, args_t, window_size_left, sink_size),
        RUN(INTS, args_t, drop_prefs, drop_prefs),
        RUN(INTS, args_t, is_workspace_prepared, is_workspace_prepared),
    };
    if (!spoil_one(a, runs, sizeof runs / sizeof *runs, pointers, POINTERS))
        ((int32_t *)room(between(SEQSTART_Q, CU_SEQLEN_K)))[below(LENGTHS)] = odd_int();
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, batch, -1),
    WRONG(0, args_t, hdim_q, 513),
    WRONG(0, args_t, nhead_k, 7),
    WRONG(0, args_t, mask_type, TESSERA_MASK_COUNT),
    WRONG(1, traits_t, hdim_q, -8),
    WRONG(1, traits_t, hdim_v, 513),
    WRONG(1, traits_t, data_type, TESSERA_FMHA_FP8),
    WRONG(1, traits_t, data_type, -1),
    WRONG(1, traits_t, nhead_q, -1),
    WRONG(1, traits_t, mask_type, -1),
    WRONG(1, traits_t, bias_type, TESSERA_BIAS_COUNT),
};

// ---- what the call may touch

// Whether the arrays of lengths, which the check reads, lie in the rooms.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    if (t->batch > 0 && ((t->seqstart_qs && !fits(t->seqstart_qs, t->batch, 32, &unused)) ||
                         (t->seqstart_ks && !fits(t->seqstart_ks, t->batch, 32, &unused))))
        return 0;
    for (int n = SEQSTART_Q; n <= CU_SEQLEN_K && a->batch > 0; n++) {
        const void *const list = *pointer_at(a, pointers[n]);
        const int is_of_each = n == SEQLEN_Q || n == SEQLEN_K;
        if (list && !fits(list, a->batch - is_of_each, 32, &unused)) return 0;
    }
    return 1;
}

// Whether everything that a successful call may read or write lies in the rooms. The library is not used to find out.
static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int group = t->is_group_mode, bits = t->data_type == TESSERA_FMHA_FP32 ? 32 : 16;
    const double batches = group ? 1 : a->batch;
    const double q = group ? ((const int32_t *)a->seqstart_q_ptr)[a->batch] : a->seqlen_q,
                 k = group ? ((const int32_t *)a->seqstart_k_ptr)[a->batch] : a->seqlen_k;
    const double heads = a->nhead_q, dkv_heads = t->is_dkv_reduced ? a->nhead_k : heads;
    double columns = group ? 0 : a->seqlen_k;
    for (int32_t b = 0; b < a->batch; b++) columns = fmax(columns, fmha_bwd_sequence_of(t, a, b).seqlen_k);
#define FITS(x, bits, heads, rows, inner)                                                                              \
    fits(a->x##_ptr, last_of(batches, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x),    \
         bits, comparable)
    int good = FITS(q, bits, heads, q, a->hdim_q) && FITS(k, bits, a->nhead_k, k, a->hdim_q) &&
               FITS(v, bits, a->nhead_k, k, a->hdim_v) && FITS(o, bits, heads, q, a->hdim_v) &&
               FITS(do, bits, heads, q, a->hdim_v) && FITS(dq, bits, heads, q, a->hdim_q) &&
               FITS(dk, bits, dkv_heads, k, a->hdim_q) && FITS(dv, bits, dkv_heads, k, a->hdim_v);
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE) good &= FITS(bias, bits, heads, q, columns);
    if (t->has_dbias) good &= FITS(dbias, bits, heads, q, columns);
#undef FITS
    const double lsed = last_of(batches, heads, 1, q, a->batch_stride_lsed, a->nhead_stride_lsed, 0);
    good &= fits(a->lse_ptr, lsed, 32, comparable) && fits(a->d_ptr, lsed, 32, comparable);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        good &= fits(a->bias_ptr, last_of(a->batch, 1, 1, heads, a->stride_bias, 0, 0), 32, comparable);
    if (t->is_store_randval)
        good &= fits(
            a->rand_val_ptr,
            last_of(batches, heads, q, columns, a->batch_stride_randval, a->nhead_stride_randval, a->stride_randval), 8,
            comparable);
    if (t->has_dropout && a->drop_prefs)
        good &= fits(a->drop_seed_ptr, 0, 64, comparable) && fits(a->drop_offset_ptr, 0, 64, comparable);
    if (a->sink_ptr)
        good &= fits(a->sink_ptr, last_of(a->batch, 1, 1, heads, a->batch_stride_sink, 0, 0), 32, comparable) &&
                fits(a->d_sink_ptr, heads - 1, 32, comparable);
    return good;
}

static void allow_row(const traits_t *t, const args_t *a, fmha_bwd_tensor tensor, int32_t b, int32_t head, int32_t row,
                      int32_t count) {
    tessera_type type;
    const void *const at = fmha_bwd_row_at(t, a, tensor, b, head, row, &type);
    if (count > 0) allow(at, (int64_t)count * element_bits(type) / 8);
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    const int32_t dkv_heads = t->is_dkv_reduced ? a->nhead_k : a->nhead_q;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_bwd_sequence s = fmha_bwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++) {
                allow_row(t, a, FMHA_BWD_D, b, h, i, 1);
                allow_row(t, a, FMHA_BWD_DQ, b, h, i, a->hdim_q);
                if (t->has_dbias) allow_row(t, a, FMHA_BWD_DBIAS, b, h, i, s.seqlen_k);
                if (t->is_store_randval) allow_row(t, a, FMHA_BWD_RANDVAL, b, h, i, s.seqlen_k);
            }
        for (int32_t h = 0; h < dkv_heads; h++)
            for (int32_t j = 0; j < s.seqlen_k; j++) {
                allow_row(t, a, FMHA_BWD_DK, b, h, j, a->hdim_q);
                allow_row(t, a, FMHA_BWD_DV, b, h, j, a->hdim_v);
            }
    }
    if (a->sink_ptr) allow(a->d_sink_ptr, 4 * (int64_t)a->nhead_q);
}

// ---- verdicts

void fuzz_describe(void) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr, "  dtype %d d %d/%d group %d mask %d bias %d dbias %d drop %d/%d deterministic %d cap %d dkv %d\n",
            (int)t->data_type, t->hdim_q, t->hdim_v, t->is_group_mode, (int)t->mask_type, (int)t->bias_type,
            t->has_dbias, t->has_dropout, t->is_store_randval, t->is_deterministic, t->has_logits_soft_cap,
            t->is_dkv_reduced);
    fprintf(stderr, "  b %d h %d/%d s %d/%d max %d/%d window %d,%d sink %d scale %g cap %g p %g\n", a->batch,
            a->nhead_q, a->nhead_k, a->seqlen_q, a->seqlen_k, a->max_seqlen_q, a->max_seqlen_k, a->window_size_left,
            a->window_size_right, a->sink_size, (double)a->scale, (double)a->logits_soft_cap, (double)a->p_drop);
}

struct compared {
    const traits_t *traits;
    const args_t *args;
};

static void check_row(void *user, const fmha_bwd_row *row) {
    static const char *const messages[FMHA_BWD_TENSORS] = {
        "d differs from the reference",  "dq differs from the reference",    "dk differs from the reference",
        "dv differs from the reference", "dbias differs from the reference", "rand_val differs from the reference"};
    const struct compared *const c = user;
    double error = 0;
    if (!(fmha_bwd_compare(c->traits, c->args, row, &error) <= 1)) fail(messages[row->tensor]);
    counts.rows++;
}

// Compares one key head of one sequence, and d_sink of one head.
static void compare(const traits_t *t, const args_t *a) {
    const int32_t unit = (int32_t)below((uint32_t)(a->batch * a->nhead_k)), h = (int32_t)below((uint32_t)a->nhead_q);
    struct compared user = {t, a};
    double want, bound;
    // On GPUs products take p and dx in the type of q, on CDNA 2 without subnormal numbers.
    const int is_cdna2 = strcmp(on.name, "sim:gfx90a") == 0;
    const double fp16_least = on.is_gpu && t->data_type == TESSERA_FMHA_FP16 ? (is_cdna2 ? 0x1p-14 : 0x1p-25) : 0;
    if (fmha_bwd_reference(t, a, fp16_least, &unit, 1, 1, check_row, &user) != 0)
        fail("the reference ran out of memory");
    if (!a->sink_ptr) return;
    fmha_bwd_reference_d_sink(t, a, h, &want, &bound);
    if (!(fabs(((const float *)a->d_sink_ptr)[h] - want) <= bound)) fail("d_sink differs from the reference");
}

// ---- as CK's callers do it: the workspace is prepared by lengths of the host or of the device

static tessera_status launch_prepared(size_t bytes) {
    tessera_fmha_bwd_launcher launcher;
    if (tessera_fmha_bwd_launcher_init(on.device, &call.traits, &launcher) != TESSERA_SUCCESS)
        fail("the call is served and there is no launcher");
    if (launcher.workspace_size != bytes) fail("launcher and workspace_size do not agree");
    uint8_t *const workspace = new_workspace(bytes);
    const int by_host = !call.traits.is_group_mode || (call.traits.seqstart_qs && chance(2));
    tessera_status status =
        by_host ? tessera_fmha_bwd_prepare_workspace(&launcher, workspace, NULL)
                : tessera_fmha_bwd_prepare_workspace_async(&launcher, workspace, call.args.seqstart_q_ptr,
                                                           call.args.seqstart_k_ptr, NULL);
    call.args.workspace_ptr = workspace, call.args.workspace_size = bytes;
    if (status == TESSERA_SUCCESS) status = tessera_fmha_bwd_launcher_run(&launcher, &call.args, NULL);
    free_workspace(workspace, bytes);
    call.args = call_before.args;
    return status;
}

// ---- one iteration

FUZZ_DEFINE(fmha_bwd)

static tessera_status launch_somehow(int sensible, size_t bytes) {
    const int is_whole = call.traits.struct_size == sizeof call.traits && !call.args.instance;
    return !on.is_gpu && sensible && is_whole && chance(3) ? launch_prepared(bytes) : launch(sensible, bytes);
}

FUZZ_ITERATE(fmha_bwd, launch_somehow)
