// SPDX-License-Identifier: MIT
// Validation of a call: its traits, sizes, numbers, lengths and tensors.
#include <math.h>

#include "guard.h"
#include "ops/fmha_fwd_internal.h"
#include "tensors.h"

// ---- traits

static bool is_fp8(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP8 || dtype == TESSERA_FMHA_FP8BF16 || dtype == TESSERA_FMHA_FP8FP32;
}
static bool is_mx(tessera_fmha_dtype dtype) { return dtype == TESSERA_FMHA_MXFP8 || dtype == TESSERA_FMHA_MXFP4; }

tessera_status tessera_fmha_fwd_check_traits(const tessera_fmha_fwd_traits *t) {
    GUARD(within(t->hdim_q, 1, 512), "hdim_q is %d: 1 to 512", t->hdim_q);
    GUARD(within(t->hdim_v, 1, 512), "hdim_v is %d: 1 to 512", t->hdim_v);
    GUARD(tessera_fmha_dtype_string(t->data_type), "data_type is %d: TESSERA_FMHA_FP32 (0) to TESSERA_FMHA_MXFP4 (7)",
          (int)t->data_type);
    GUARD(within(t->is_group_mode, 0, 1), "is_group_mode is %d: 0 or 1", t->is_group_mode);
    GUARD(within(t->is_v_rowmajor, 0, 1), "is_v_rowmajor is %d: 0 or 1", t->is_v_rowmajor);
    GUARD(within(t->has_logits_soft_cap, 0, 1), "has_logits_soft_cap is %d: 0 or 1", t->has_logits_soft_cap);
    GUARD(tessera_mask_string(t->mask_type), "mask_type is %d: TESSERA_MASK_NONE (0) to TESSERA_MASK_GENERIC (3)",
          (int)t->mask_type);
    GUARD(tessera_bias_string(t->bias_type), "bias_type is %d: TESSERA_BIAS_NONE (0) to TESSERA_BIAS_ALIBI (2)",
          (int)t->bias_type);
    GUARD(within(t->has_lse, 0, 1), "has_lse is %d: 0 or 1", t->has_lse);
    GUARD(within(t->has_dropout, 0, 1), "has_dropout is %d: 0 or 1", t->has_dropout);
    GUARD(tessera_qscale_string(t->qscale_type),
          "qscale_type is %d: TESSERA_QSCALE_NONE (0) to TESSERA_QSCALE_TOKEN_HEAD (5)", (int)t->qscale_type);
    GUARD(within(t->skip_min_seqlen_q, 0, 1), "skip_min_seqlen_q is %d: 0 or 1", t->skip_min_seqlen_q);
    GUARD(within(t->has_sink, 0, 1), "has_sink is %d: 0 or 1", t->has_sink);

    const char *const dtype = tessera_fmha_dtype_string(t->data_type), *const qscale =
                                                                           tessera_qscale_string(t->qscale_type);
    const bool scales_fp8 = t->qscale_type == TESSERA_QSCALE_PER_TENSOR || t->qscale_type == TESSERA_QSCALE_BLOCK;
    GUARD(!t->has_logits_soft_cap || t->bias_type != TESSERA_BIAS_ELEMENTWISE,
          "has_logits_soft_cap and bias_type bias: a soft cap goes with alibi or without bias");
    GUARD(t->qscale_type != TESSERA_QSCALE_KV_BLOCK && t->qscale_type != TESSERA_QSCALE_TOKEN_HEAD,
          "qscale_type %s belongs to batch_prefill: fmha_fwd takes no, pt, bs, mx", qscale);
    GUARD(!scales_fp8 || is_fp8(t->data_type),
          "qscale_type %s with data_type %s: only fp8, fp8bf16 and fp8fp32 take pt or bs", qscale, dtype);
    GUARD(t->qscale_type != TESSERA_QSCALE_MX || is_mx(t->data_type),
          "qscale_type mx with data_type %s: only mxfp8 and mxfp4 take mx", dtype);
    GUARD(t->qscale_type == TESSERA_QSCALE_MX || !is_mx(t->data_type),
          "data_type %s with qscale_type %s: mxfp8 and mxfp4 need mx", dtype, qscale);
    GUARD(t->data_type != TESSERA_FMHA_MXFP4 || t->hdim_q % 2 == 0,
          "hdim_q is %d: even for mxfp4, which packs two elements a byte", t->hdim_q);
    GUARD(t->data_type != TESSERA_FMHA_MXFP4 || t->hdim_v % 2 == 0,
          "hdim_v is %d: even for mxfp4, which packs two elements a byte", t->hdim_v);
    return TESSERA_SUCCESS;
}

// ---- sizes and numbers

static tessera_status check_sizes(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int32_t seqlen_q = t->is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    const int64_t heads = (int64_t)a->batch * a->nhead_q;
    const char *const q_name = t->is_group_mode ? "max_seqlen_q" : "seqlen_q";
    GUARD(a->hdim_q == t->hdim_q, "args->hdim_q is %d: traits->hdim_q is %d", a->hdim_q, t->hdim_q);
    GUARD(a->hdim_v == t->hdim_v, "args->hdim_v is %d: traits->hdim_v is %d", a->hdim_v, t->hdim_v);
    GUARD(a->mask_type == t->mask_type, "args->mask_type is %d: traits->mask_type is %d", (int)a->mask_type,
          (int)t->mask_type);
    GUARD(within(a->num_splits, 0, TESSERA_FMHA_FWD_MOST_SPLITS), "num_splits is %d: 0 to %d", a->num_splits,
          TESSERA_FMHA_FWD_MOST_SPLITS);
    GUARD(a->batch >= 1, "batch is %d: 1 or more", a->batch);
    GUARD(a->nhead_q >= 1, "nhead_q is %d: 1 or more", a->nhead_q);
    GUARD(a->nhead_k >= 1, "nhead_k is %d: 1 or more", a->nhead_k);
    GUARD(a->nhead_q % a->nhead_k == 0, "nhead_q is %d: a multiple of nhead_k, which is %d", a->nhead_q, a->nhead_k);
    GUARD(heads <= INT32_MAX, "batch * nhead_q is %lld: at most %d", (long long)heads, INT32_MAX);
    GUARD(within(seqlen_q, 0, TESSERA_ATTENTION_MAX_SEQLEN), "%s is %d: 0 to %d", q_name, seqlen_q,
          TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(t->is_group_mode || within(a->seqlen_k, 0, TESSERA_ATTENTION_MAX_SEQLEN), "seqlen_k is %d: 0 to %d",
          a->seqlen_k, TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(!t->has_dropout || seqlen_q <= TESSERA_DROPOUT_SEQLEN, "%s is %d: dropout takes at most %d", q_name, seqlen_q,
          TESSERA_DROPOUT_SEQLEN);
    GUARD(!t->has_dropout || t->is_group_mode || a->seqlen_k <= TESSERA_DROPOUT_SEQLEN,
          "seqlen_k is %d: dropout takes at most %d", a->seqlen_k, TESSERA_DROPOUT_SEQLEN);
    GUARD(!t->has_dropout || heads <= TESSERA_DROPOUT_HEADS, "batch * nhead_q is %lld: dropout takes at most %d",
          (long long)heads, TESSERA_DROPOUT_HEADS);
    return TESSERA_SUCCESS;
}

static tessera_status check_numbers(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool block = t->qscale_type == TESSERA_QSCALE_BLOCK;
    // Half of fp32's range of exponents is left for the scale, the other half for the product q k.
    GUARD(fabsf(a->scale_s) <= 0x1p64f, "scale_s is %g: -2^64 to 2^64 (1.8e+19), or scores overflow fp32",
          (double)a->scale_s);
    GUARD(!t->has_logits_soft_cap || (a->logits_soft_cap > 0 && a->logits_soft_cap <= 0x1p64f),
          "logits_soft_cap is %g: above 0, to 2^64", (double)a->logits_soft_cap);
    GUARD(!t->has_sink || a->sink_size >= 0, "sink_size is %d: 0 or more", a->sink_size);
    GUARD(!t->skip_min_seqlen_q || a->min_seqlen_q >= 0, "min_seqlen_q is %d: 0 or more", a->min_seqlen_q);
    GUARD(!t->has_dropout || (a->p_drop >= 0 && a->p_drop < 1), "p_drop is %g: 0 <= p_drop < 1", (double)a->p_drop);
    GUARD(!t->has_dropout || within(a->s_randval, 0, 1), "s_randval is %d: 0 or 1", a->s_randval);
    GUARD(!t->has_dropout || within(a->drop_prefs, 0, 1), "drop_prefs is %d: 0 (the numbers) or 1 (the pointers)",
          a->drop_prefs);
    GUARD(!block || a->block_scale_size_q >= 1, "block_scale_size_q is %d: 1 or more, 128 is usual",
          a->block_scale_size_q);
    GUARD(!block || a->block_scale_size_kv >= 1, "block_scale_size_kv is %d: 1 or more, 128 is usual",
          a->block_scale_size_kv);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd_check_sizes(void *checked) {
    struct tessera_fmha_fwd_call *const call = checked;
    call->cache = NULL;
    call->splits = 0;
    call->leaves_longer = false;
    call->hdim_rope = 0;
    return tessera_fmha_fwd_check_call(call);
}

tessera_status tessera_fmha_fwd_check_call(struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    TRY(tessera_fmha_fwd_check_traits(t));
    TRY(check_sizes(call));
    call->queries = t->is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    call->keys = t->is_group_mode && a->seqlen_k <= 0 ? a->max_seqlen_q : a->seqlen_k;
    call->heads = (int64_t)a->batch * a->nhead_k;
    call->rows = call->queries * (a->nhead_q / a->nhead_k);
    call->hdims = (double)t->hdim_q + t->hdim_v;
    return TESSERA_SUCCESS;
}

// ---- arrays of lengths, the only memory whose contents are read for checks

struct extents { // sizes of tensors that hold all sequences
    int64_t tokens_q, tokens_k;
    int64_t columns;            // keys of the longest sequence
    int64_t blocks_q, blocks_k; // BLOCK: descales of one head
    int64_t v_columns;          // MX: scales of one row of v
};

static void add_arrays(const struct tessera_fmha_fwd_call *call, struct tessera_tensors *all) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t batch = a->batch;
    const bool group = t->is_group_mode;
    const struct tessera_attention_lengths lengths = tessera_fmha_fwd_get_lengths(call);
    if (call->cache) tessera_attention_add_cache(call->cache, a->batch, all);
    tessera_attention_add_lengths(&lengths, a->batch, all);
    if (group && t->qscale_type == TESSERA_QSCALE_BLOCK) {
        tessera_add_array(all, "block_scale_seqstart_q_ptr", a->block_scale_seqstart_q_ptr, 32, batch);
        tessera_add_array(all, "block_scale_seqstart_k_ptr", a->block_scale_seqstart_k_ptr, 32, batch);
    }
    if (group && t->qscale_type == TESSERA_QSCALE_MX)
        tessera_add_array(all, "seqstart_v_scale_ptr", a->seqstart_v_scale_ptr, 32, batch);
}

static tessera_status check_sequence(const struct tessera_fmha_fwd_call *call, int32_t b) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    if (t->is_group_mode) {
        const int32_t *const q = a->seqstart_q_ptr, *const k = a->seqstart_k_ptr;
        GUARD(q[b] >= 0, "seqstart_q_ptr[%d] is %d: 0 or more", b, q[b]);
        GUARD(!k || k[b] >= 0, "seqstart_k_ptr[%d] is %d: 0 or more", b, k[b]);
        GUARD(q[b + 1] >= q[b], "seqstart_q_ptr[%d] is %d: at least the one before, %d", b + 1, q[b + 1], q[b]);
        GUARD(!k || k[b + 1] >= k[b], "seqstart_k_ptr[%d] is %d: at least the one before, %d", b + 1, k[b + 1], k[b]);
        GUARD(t->data_type != TESSERA_FMHA_MXFP4 || t->is_v_rowmajor || k[b] % 2 == 0,
              "seqstart_k_ptr[%d] is %d: even for column-major v of mxfp4", b, k[b]);
    }
    const struct tessera_attention_sequence s = tessera_fmha_fwd_get_sequence(call, b);
    const bool dropout = t->has_dropout, group = t->is_group_mode;
    if (tessera_fmha_fwd_is_left_alone(call, &s)) return TESSERA_SUCCESS;
    TRY(tessera_attention_check_room(&s));
    GUARD(!group || s.seqlen_q <= a->max_seqlen_q, "max_seqlen_q is %d: sequence %d has %d queries", a->max_seqlen_q, b,
          s.seqlen_q);
    GUARD(s.seqlen_k <= TESSERA_ATTENTION_MAX_SEQLEN, "sequence %d has %d keys: at most %d", b, s.seqlen_k,
          TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(!dropout || s.seqlen_k <= TESSERA_DROPOUT_SEQLEN, "sequence %d has %d keys: dropout takes at most %d", b,
          s.seqlen_k, TESSERA_DROPOUT_SEQLEN);
    return TESSERA_SUCCESS;
}

// Sequence b's `count` scales begin at start[b], at or after *end, the end of the scales before. Sets *end to their
// end.
static tessera_status check_scales(const char *name, const int32_t *start, int32_t b, int64_t count, int64_t *end) {
    GUARD(start[b] >= *end, "%s[%d] is %d: at least %lld, the end of the sequence before", name, b, start[b],
          (long long)*end);
    *end = start[b] + count;
    return TESSERA_SUCCESS;
}

enum { MX_BLOCK = 32 };

// On a GPU the host reads no lengths. All that it knows of group mode's tensors then is that there may be one query:
// there may be no key.
static tessera_status check_lengths(const struct tessera_fmha_fwd_call *call, bool on_gpu, struct extents *out) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = t->is_group_mode, mx = t->qscale_type == TESSERA_QSCALE_MX;
    const int64_t block_q = t->qscale_type == TESSERA_QSCALE_BLOCK ? a->block_scale_size_q : 0;
    const int64_t block_k = t->qscale_type == TESSERA_QSCALE_BLOCK ? a->block_scale_size_kv : 0;
    *out = (struct extents){.tokens_q = a->seqlen_q, .tokens_k = a->seqlen_k, .columns = a->seqlen_k};
    if (block_q) out->blocks_q = tessera_ceil_div(a->seqlen_q, block_q);
    if (block_k) out->blocks_k = tessera_ceil_div(a->seqlen_k, block_k);
    if (mx) out->v_columns = tessera_ceil_div(a->seqlen_k, MX_BLOCK);
    if (group) *out = (struct extents){0};
    if (on_gpu) {
        const bool some = group && a->max_seqlen_q > 0;
        if (some) *out = (struct extents){1, 0, 1, 1, 1, 1};
        if (some && t->has_dropout && a->s_randval && a->stride_randval == 0) out->columns = 0; // no sequence has keys
        return TESSERA_SUCCESS;
    }

    for (int32_t b = 0; b < a->batch; b++) {
        TRY(check_sequence(call, b));
        const struct tessera_attention_sequence s = tessera_fmha_fwd_get_sequence(call, b);
        const bool alone = tessera_fmha_fwd_is_left_alone(call, &s);
        if (call->cache && !alone) TRY(tessera_attention_check_cache(call->cache, &s));
        if (!group) continue;
        out->tokens_q = s.token_q + s.physical_q;
        out->tokens_k = s.token_k + s.physical_k;
        out->columns = tessera_max(out->columns, s.seqlen_k);
        if (block_q)
            TRY(check_scales("block_scale_seqstart_q_ptr", a->block_scale_seqstart_q_ptr, b,
                             tessera_ceil_div(s.seqlen_q, block_q), &out->blocks_q));
        if (block_k)
            TRY(check_scales("block_scale_seqstart_k_ptr", a->block_scale_seqstart_k_ptr, b,
                             tessera_ceil_div(s.seqlen_k, block_k), &out->blocks_k));
        if (mx)
            TRY(check_scales("seqstart_v_scale_ptr", a->seqstart_v_scale_ptr, b, tessera_ceil_div(s.seqlen_k, MX_BLOCK),
                             &out->v_columns));
    }
    return TESSERA_SUCCESS;
}

// ---- the tensors of a call

static const struct tessera_axis no_axis = {NULL, 1, 0};

// The axes of tensor x, from the fields of args. Batch strides do not exist in group mode.
#define BATCH(x) (t->is_group_mode ? no_axis : (struct tessera_axis){"batch_stride_" #x, a->batch, a->batch_stride_##x})
// The same of k or v, which may lie in blocks of a cache.
#define KV_BLOCKS(x)                                                                                                   \
    (call->cache ? (struct tessera_axis){"batch_stride_" #x, call->cache->blocks, a->batch_stride_##x} : BATCH(x))
#define HEADS(x, count) ((struct tessera_axis){"nhead_stride_" #x, count, a->nhead_stride_##x})
#define ROWS(x, count) ((struct tessera_axis){"stride_" #x, count, a->stride_##x})

static void add_descales(const struct tessera_fmha_fwd_call *call, const struct extents *n,
                         struct tessera_tensors *all) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t mx_columns = tessera_ceil_div(t->hdim_q, MX_BLOCK);
    const struct tessera_axis heads_q = HEADS(q_descale, a->nhead_q), heads_k = HEADS(k_descale, a->nhead_k),
                              heads_v = HEADS(v_descale, a->nhead_k);
    const void *const q = a->q_descale_ptr, *const k = a->k_descale_ptr, *const v = a->v_descale_ptr;
    const char *const q_name = "q_descale_ptr", *const k_name = "k_descale_ptr", *const v_name = "v_descale_ptr";
    switch (t->qscale_type) {
    case TESSERA_QSCALE_PER_TENSOR:
        tessera_add_array(all, q_name, q, 32, 1);
        tessera_add_array(all, k_name, k, 32, 1);
        tessera_add_array(all, v_name, v, 32, 1);
        break;
    case TESSERA_QSCALE_BLOCK:
        tessera_add_tensor(all, q_name, q, 32, false, BATCH(q_descale), heads_q, no_axis, n->blocks_q);
        tessera_add_tensor(all, k_name, k, 32, false, BATCH(k_descale), heads_k, no_axis, n->blocks_k);
        tessera_add_tensor(all, v_name, v, 32, false, BATCH(v_descale), heads_v, no_axis, n->blocks_k);
        break;
    case TESSERA_QSCALE_MX:
        tessera_add_tensor(all, q_name, q, 8, false, BATCH(q_descale), heads_q, ROWS(q_descale, n->tokens_q),
                           mx_columns);
        tessera_add_tensor(all, k_name, k, 8, false, BATCH(k_descale), heads_k, ROWS(k_descale, n->tokens_k),
                           mx_columns);
        tessera_add_tensor(all, v_name, v, 8, false, BATCH(v_descale), heads_v, ROWS(v_descale, t->hdim_v),
                           n->v_columns);
        break;
    default:
        break;
    }
}

static void add_tensors(const struct tessera_fmha_fwd_call *call, const struct extents *n,
                        struct tessera_tensors *all) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct tessera_attention_storages *const storages = &tessera_attention_storages[t->data_type];
    const struct tessera_attention_pages *const pages = call->cache ? &call->cache->pages : NULL;
    const int bits = tessera_type_bits(storages->qkv), kv_bits = pages ? 8 * pages->element_bytes : bits;
    const int64_t row_k = pages ? pages->row_k : t->hdim_q, row_v = pages ? pages->row_v : t->hdim_v;
    const struct tessera_axis heads_v = HEADS(v, a->nhead_k);
    const struct tessera_axis k_blocks = KV_BLOCKS(k), v_blocks = KV_BLOCKS(v);

    tessera_add_tensor(all, "q_ptr", a->q_ptr, bits, false, BATCH(q), HEADS(q, a->nhead_q), ROWS(q, n->tokens_q),
                       t->hdim_q);
    // In pages of pieces a row is the whole page of a head.
    const bool pieces = pages && pages->piece_v;
    const int64_t rows = pieces ? 1 : n->tokens_k, tokens = pieces ? n->tokens_k : 1;
    tessera_add_tensor(all, "k_ptr", a->k_ptr, kv_bits, false, k_blocks, HEADS(k, a->nhead_k), ROWS(k, rows),
                       tokens * (row_k - call->hdim_rope));
    if (t->is_v_rowmajor)
        tessera_add_tensor(all, "v_ptr", a->v_ptr, kv_bits, false, v_blocks, heads_v, ROWS(v, rows), tokens * row_v);
    else
        tessera_add_tensor(all, "v_ptr", a->v_ptr, bits, false, BATCH(v), heads_v, ROWS(v, t->hdim_v), n->tokens_k);
    tessera_add_tensor(all, "o_ptr", a->o_ptr, tessera_type_bits(storages->o), true, BATCH(o), HEADS(o, a->nhead_q),
                       ROWS(o, n->tokens_q), t->hdim_v);

    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
        tessera_add_tensor(all, "bias_ptr", a->bias_ptr, tessera_type_bits(storages->bias), false, BATCH(bias),
                           HEADS(bias, a->nhead_q), ROWS(bias, n->tokens_q), n->columns);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        tessera_add_tensor(all, "bias_ptr", a->bias_ptr, 32, false, ROWS(bias, a->batch), no_axis, no_axis, a->nhead_q);
    if (t->has_lse)
        tessera_add_tensor(all, "lse_ptr", a->lse_ptr, 32, true, BATCH(lse), HEADS(lse, a->nhead_q), no_axis,
                           n->tokens_q);
    if (t->has_dropout && a->s_randval)
        tessera_add_tensor(all, "rand_val_ptr", a->rand_val_ptr, 8, true, BATCH(randval), HEADS(randval, a->nhead_q),
                           ROWS(randval, n->tokens_q), n->columns);
    if (t->has_dropout && a->drop_prefs) {
        tessera_add_array(all, "drop_seed_ptr", a->drop_seed_ptr, 64, 1);
        tessera_add_array(all, "drop_offset_ptr", a->drop_offset_ptr, 64, 1);
    }
    if (t->has_sink && a->sink_ptr) tessera_add_array(all, "sink_ptr", a->sink_ptr, 32, a->nhead_q);
    add_descales(call, n, all);
}

tessera_status tessera_fmha_fwd_check_memory(const void *checked, bool on_gpu, struct tessera_tensors *all) {
    const struct tessera_fmha_fwd_call *const call = checked;
    struct extents extents;
    TRY(check_numbers(call));
    add_arrays(call, all);
    TRY(tessera_check_tensors(all));
    TRY(check_lengths(call, on_gpu, &extents));
    if (call->cache) extents.tokens_k = call->cache->rows;
    if (call->cache && !on_gpu) tessera_attention_add_list(call->cache, call->args.batch, all);
    add_tensors(call, &extents, all);
    return TESSERA_SUCCESS;
}
