// SPDX-License-Identifier: MIT
// Validation of a call: its traits, sizes, numbers, lengths and tensors.
#include <math.h>

#include "guard.h"
#include "ops/fmha_bwd_internal.h"
#include "tensors.h"

// ---- traits, which hold sizes too

static tessera_status check_flag(const char *name, int32_t value) {
    GUARD(within(value, 0, 1), "%s is %d: 0 or 1", name, value);
    return TESSERA_SUCCESS;
}

static tessera_status check_words(const tessera_fmha_bwd_traits *t) {
    GUARD(within(t->hdim_q, 1, 512), "hdim_q is %d: 1 to 512", t->hdim_q);
    GUARD(within(t->hdim_v, 1, 512), "hdim_v is %d: 1 to 512", t->hdim_v);
    GUARD((uint32_t)t->data_type <= TESSERA_FMHA_BF16, "data_type is %d (%s): fp32, fp16, bf16", (int)t->data_type,
          tessera_fmha_dtype_string(t->data_type) ? tessera_fmha_dtype_string(t->data_type) : "no tessera_fmha_dtype");
    GUARD(tessera_mask_string(t->mask_type), "mask_type is %d: TESSERA_MASK_NONE (0) to TESSERA_MASK_GENERIC (3)",
          (int)t->mask_type);
    GUARD(tessera_bias_string(t->bias_type), "bias_type is %d: TESSERA_BIAS_NONE (0) to TESSERA_BIAS_ALIBI (2)",
          (int)t->bias_type);
    TRY(check_flag("is_group_mode", t->is_group_mode));
    TRY(check_flag("has_dbias", t->has_dbias));
    TRY(check_flag("has_dropout", t->has_dropout));
    TRY(check_flag("is_store_randval", t->is_store_randval));
    TRY(check_flag("is_deterministic", t->is_deterministic));
    TRY(check_flag("has_logits_soft_cap", t->has_logits_soft_cap));
    TRY(check_flag("is_dkv_reduced", t->is_dkv_reduced));
    GUARD(!t->has_dbias || t->bias_type == TESSERA_BIAS_ELEMENTWISE,
          "has_dbias and bias_type %s: dbias is the gradient of an elementwise bias",
          tessera_bias_string(t->bias_type));
    GUARD(!t->is_store_randval || t->has_dropout, "is_store_randval without has_dropout: there are no bytes to store");
    GUARD(!t->has_logits_soft_cap || t->bias_type == TESSERA_BIAS_NONE,
          "has_logits_soft_cap and bias_type %s: a soft cap goes only without bias", tessera_bias_string(t->bias_type));
    return TESSERA_SUCCESS;
}

static tessera_status check_dropout(const tessera_fmha_bwd_traits *t, int32_t queries, int32_t keys) {
    const int64_t heads = (int64_t)t->batch * t->nhead_q;
    if (!t->has_dropout) return TESSERA_SUCCESS;
    GUARD(queries <= TESSERA_DROPOUT_SEQLEN, "a sequence may have %d queries: dropout takes at most %d", queries,
          TESSERA_DROPOUT_SEQLEN);
    GUARD(keys <= TESSERA_DROPOUT_SEQLEN, "a sequence may have %d keys: dropout takes at most %d", keys,
          TESSERA_DROPOUT_SEQLEN);
    GUARD(heads <= TESSERA_DROPOUT_HEADS, "batch * nhead_q is %lld: dropout takes at most %d", (long long)heads,
          TESSERA_DROPOUT_HEADS);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_check_traits(const tessera_fmha_bwd_traits *t) {
    const int64_t heads = (int64_t)t->batch * t->nhead_q;
    const bool group = t->is_group_mode;
    TRY(check_words(t));
    GUARD(t->batch >= 1, "batch is %d: 1 or more", t->batch);
    GUARD(t->nhead_q >= 1, "nhead_q is %d: 1 or more", t->nhead_q);
    GUARD(t->nhead_k >= 1, "nhead_k is %d: 1 or more", t->nhead_k);
    GUARD(t->nhead_q % t->nhead_k == 0, "nhead_q is %d: a multiple of nhead_k, which is %d", t->nhead_q, t->nhead_k);
    GUARD(heads <= INT32_MAX, "batch * nhead_q is %lld: at most %d", (long long)heads, INT32_MAX);
    GUARD(within(t->seqlen_q, 0, group ? INT32_MAX : TESSERA_ATTENTION_MAX_SEQLEN), "seqlen_q is %d: 0 to %d",
          t->seqlen_q, group ? INT32_MAX : TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(within(t->seqlen_k, 0, group ? INT32_MAX : TESSERA_ATTENTION_MAX_SEQLEN), "seqlen_k is %d: 0 to %d",
          t->seqlen_k, group ? INT32_MAX : TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(!group || within(t->max_seqlen_q, 0, TESSERA_ATTENTION_MAX_SEQLEN), "max_seqlen_q is %d: 0 to %d",
          t->max_seqlen_q, TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(!group || within(t->max_seqlen_k, 0, TESSERA_ATTENTION_MAX_SEQLEN), "max_seqlen_k is %d: 0 to %d",
          t->max_seqlen_k, TESSERA_ATTENTION_MAX_SEQLEN);
    return check_dropout(t, group ? t->max_seqlen_q : t->seqlen_q, group ? t->max_seqlen_k : t->seqlen_k);
}

// ---- sizes and numbers of the arguments

static tessera_status check_same(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a) {
#define SAME(name) GUARD(a->name == t->name, "args->" #name " is %d: traits->" #name " is %d", a->name, t->name)
    SAME(seqlen_q);
    SAME(seqlen_k);
    SAME(batch);
    SAME(max_seqlen_q);
    SAME(max_seqlen_k);
    SAME(hdim_q);
    SAME(hdim_v);
    SAME(nhead_q);
    SAME(nhead_k);
#undef SAME
    GUARD(a->mask_type == t->mask_type, "args->mask_type is %d: traits->mask_type is %d", (int)a->mask_type,
          (int)t->mask_type);
    return TESSERA_SUCCESS;
}

static tessera_status check_numbers(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a) {
    GUARD(fabsf(a->scale) <= 0x1p64f, "scale is %g: -2^64 to 2^64 (1.8e+19), or scores overflow fp32",
          (double)a->scale);
    GUARD(!t->has_logits_soft_cap || (a->logits_soft_cap > 0 && a->logits_soft_cap <= 0x1p64f),
          "logits_soft_cap is %g: above 0, to 2^64", (double)a->logits_soft_cap);
    GUARD(t->mask_type == TESSERA_MASK_NONE || a->sink_size >= 0, "sink_size is %d: 0 or more", a->sink_size);
    GUARD(!t->has_dropout || (a->p_drop >= 0 && a->p_drop < 1), "p_drop is %g: 0 <= p_drop < 1", (double)a->p_drop);
    GUARD(!t->has_dropout || within(a->drop_prefs, 0, 1), "drop_prefs is %d: 0 (the numbers) or 1 (the pointers)",
          a->drop_prefs);
    GUARD(within(a->is_workspace_prepared, 0, 1), "is_workspace_prepared is %d: 0 or 1", a->is_workspace_prepared);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_check_sizes(void *checked) {
    const struct tessera_fmha_bwd_call *const call = checked;
    TRY(tessera_fmha_bwd_check_traits(&call->traits));
    return check_same(&call->traits, &call->args);
}

// ---- arrays of lengths, the only memory whose contents are read for checks

struct tessera_attention_sequence tessera_fmha_bwd_get_sequence(const tessera_fmha_bwd_traits *t,
                                                                const tessera_fmha_bwd_args *a, int32_t b) {
    const struct tessera_attention_lengths lengths = TESSERA_ATTENTION_LENGTHS(t, a);
    return tessera_attention_get_sequence(&lengths, b);
}

struct extents { // sizes of tensors that hold all sequences
    int64_t tokens_q, tokens_k, columns;
};

static tessera_status check_starts(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, int32_t b) {
    const int32_t *const q = a->seqstart_q_ptr, *const k = a->seqstart_k_ptr;
    const int32_t *const qs = t->seqstart_qs, *const ks = t->seqstart_ks;
    GUARD(b > 0 || (q[0] >= 0 && k[0] >= 0), "seqstart_q_ptr[0] is %d, seqstart_k_ptr[0] %d: 0 or more", q[0], k[0]);
    GUARD(q[b + 1] >= q[b], "seqstart_q_ptr[%d] is %d: at least the one before, %d", b + 1, q[b + 1], q[b]);
    GUARD(k[b + 1] >= k[b], "seqstart_k_ptr[%d] is %d: at least the one before, %d", b + 1, k[b + 1], k[b]);
    GUARD(!qs || qs[b + 1] == q[b + 1], "seqstart_q_ptr[%d] is %d: %d in the traits", b + 1, q[b + 1], qs[b + 1]);
    GUARD(!ks || ks[b + 1] == k[b + 1], "seqstart_k_ptr[%d] is %d: %d in the traits", b + 1, k[b + 1], ks[b + 1]);
    return TESSERA_SUCCESS;
}

static tessera_status check_sequence(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, int32_t b,
                                     struct extents *out) {
    if (t->is_group_mode) TRY(check_starts(t, a, b));
    const struct tessera_attention_sequence s = tessera_fmha_bwd_get_sequence(t, a, b);
    TRY(tessera_attention_check_room(&s));
    if (!t->is_group_mode) return TESSERA_SUCCESS;
    GUARD(s.seqlen_q <= a->max_seqlen_q, "max_seqlen_q is %d: sequence %d has %d queries", a->max_seqlen_q, b,
          s.seqlen_q);
    GUARD(s.seqlen_k <= a->max_seqlen_k, "max_seqlen_k is %d: sequence %d has %d keys", a->max_seqlen_k, b, s.seqlen_k);
    GUARD(!t->is_deterministic || (t->seqstart_qs && t->seqstart_ks) || s.physical_k <= a->max_seqlen_k,
          "max_seqlen_k is %d: sequence %d has %d keys, padding included, and without seqstart_qs and seqstart_ks it "
          "sizes the workspace of a deterministic call",
          a->max_seqlen_k, b, s.physical_k);
    *out = (struct extents){s.token_q + s.physical_q, s.token_k + s.physical_k, tessera_max(out->columns, s.seqlen_k)};
    GUARD(out->tokens_q <= a->seqlen_q, "seqlen_q is %d: sequences up to number %d have %lld tokens of q", a->seqlen_q,
          b, (long long)out->tokens_q);
    return TESSERA_SUCCESS;
}

// ---- the tensors of a call

static const struct tessera_axis no_axis = {NULL, 1, 0};

// The axes of tensor x, from the fields of args. Batch strides do not exist in group mode.
#define BATCH(x) (t->is_group_mode ? no_axis : (struct tessera_axis){"batch_stride_" #x, a->batch, a->batch_stride_##x})
#define HEADS(x, count) ((struct tessera_axis){"nhead_stride_" #x, count, a->nhead_stride_##x})
#define ROWS(x, count) ((struct tessera_axis){"stride_" #x, count, a->stride_##x})
#define ADD(x, bits, written, heads, rows, columns)                                                                    \
    tessera_add_tensor(all, #x "_ptr", a->x##_ptr, bits, written, BATCH(x), HEADS(x, heads), ROWS(x, rows), columns)

static void add_rows(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, const struct extents *n,
                     struct tessera_tensors *all) {
    const int bits = t->data_type == TESSERA_FMHA_FP32 ? 32 : 16;
    const int32_t dkv_heads = t->is_dkv_reduced ? a->nhead_k : a->nhead_q;
    ADD(q, bits, false, a->nhead_q, n->tokens_q, a->hdim_q);
    ADD(k, bits, false, a->nhead_k, n->tokens_k, a->hdim_q);
    ADD(v, bits, false, a->nhead_k, n->tokens_k, a->hdim_v);
    ADD(o, bits, false, a->nhead_q, n->tokens_q, a->hdim_v);
    ADD(do, bits, false, a->nhead_q, n->tokens_q, a->hdim_v);
    ADD(dq, bits, true, a->nhead_q, n->tokens_q, a->hdim_q);
    ADD(dk, bits, true, dkv_heads, n->tokens_k, a->hdim_q);
    ADD(dv, bits, true, dkv_heads, n->tokens_k, a->hdim_v);
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE) ADD(bias, bits, false, a->nhead_q, n->tokens_q, n->columns);
    if (t->has_dbias) ADD(dbias, bits, true, a->nhead_q, n->tokens_q, n->columns);
    if (t->has_dropout && t->is_store_randval) {
        const struct tessera_axis heads = HEADS(randval, a->nhead_q), rows = ROWS(randval, n->tokens_q);
        tessera_add_tensor(all, "rand_val_ptr", a->rand_val_ptr, 8, true, BATCH(randval), heads, rows, n->columns);
    }
}

static void add_others(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, const struct extents *n,
                       struct tessera_tensors *all) {
    const struct tessera_axis heads = HEADS(lsed, a->nhead_q);
    tessera_add_tensor(all, "lse_ptr", a->lse_ptr, 32, false, BATCH(lsed), heads, no_axis, n->tokens_q);
    tessera_add_tensor(all, "d_ptr", a->d_ptr, 32, true, BATCH(lsed), heads, no_axis, n->tokens_q);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        tessera_add_tensor(all, "bias_ptr", a->bias_ptr, 32, false, ROWS(bias, a->batch), no_axis, no_axis, a->nhead_q);
    if (t->has_dropout && a->drop_prefs) {
        tessera_add_array(all, "drop_seed_ptr", a->drop_seed_ptr, 64, 1);
        tessera_add_array(all, "drop_offset_ptr", a->drop_offset_ptr, 64, 1);
    }
    if (!a->sink_ptr) return;
    const struct tessera_axis batches = {"batch_stride_sink", a->batch, a->batch_stride_sink};
    tessera_add_tensor(all, "sink_ptr", a->sink_ptr, 32, false, batches, no_axis, no_axis, a->nhead_q);
    tessera_add_tensor(all, "d_sink_ptr", a->d_sink_ptr, 32, true, no_axis, no_axis, no_axis, a->nhead_q);
}

// On a GPU the host reads no lengths. All that it knows of group mode's tensors then is that they may hold one token.
tessera_status tessera_fmha_bwd_check_memory(const void *checked, bool on_gpu, struct tessera_tensors *all) {
    const struct tessera_fmha_bwd_call *const call = checked;
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const tessera_fmha_bwd_args *const a = &call->args;
    struct extents extents = {a->seqlen_q, a->seqlen_k, a->seqlen_k};
    TRY(check_numbers(t, a));
    const struct tessera_attention_lengths lengths = TESSERA_ATTENTION_LENGTHS(t, a);
    tessera_attention_add_lengths(&lengths, a->batch, all);
    TRY(tessera_check_tensors(all));
    if (t->is_group_mode) extents = on_gpu ? (struct extents){1, 1, 1} : (struct extents){0, 0, 0};
    for (int32_t b = 0; !on_gpu && b < a->batch; b++) TRY(check_sequence(t, a, b, &extents));
    add_rows(t, a, &extents, all);
    add_others(t, a, &extents, all);
    return TESSERA_SUCCESS;
}
