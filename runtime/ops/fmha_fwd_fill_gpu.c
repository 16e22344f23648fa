// SPDX-License-Identifier: MIT
// A call as GPUs' kernels get it, whatever their kind.
#include <float.h>
#include <math.h>

#include "guard.h"
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"

typedef struct tessera_fmha_fwd_gpu_args kernel_args;

static void set_mask(const struct tessera_fmha_fwd_call *call, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct tessera_attention_window window =
        tessera_attention_get_window(call->traits.mask_type, a->window_size_left, a->window_size_right);
    out->mask_y = window.mask_y, out->mask_x = window.mask_x;
    out->shift_y = window.shift_y, out->shift_x = window.shift_x;
}

static void set_lengths(const struct tessera_fmha_fwd_call *call, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    out->seqstart_q = group ? a->seqstart_q_ptr : NULL;
    out->seqstart_k = group ? a->seqstart_k_ptr : NULL;
    out->seqlen_q_of = group ? a->seqlen_q_ptr : NULL;
    out->seqlen_k_of = group ? a->seqlen_k_ptr : NULL;
    out->cu_seqlen_q = out->seqlen_q_of ? NULL : a->cu_seqlen_q_ptr;
    out->cu_seqlen_k = out->seqlen_k_of ? NULL : a->cu_seqlen_k_ptr;
    out->seqlen_q = group ? 0 : a->seqlen_q;
    out->seqlen_k = group ? 0 : a->seqlen_k;
    if (call->cache) { // in place of those of tensors
        out->seqstart_k = NULL;
        out->seqlen_k_of = call->cache->seqlen_k;
        out->cu_seqlen_k = call->cache->starts;
        out->seqlen_k = call->cache->max_seqlen_k;
    }
    out->min_seqlen_q = call->traits.skip_min_seqlen_q ? a->min_seqlen_q : -1;
}

static const float log2e = 1.44269504088896341f;

// Scale, soft cap and bias of scores, and sinks.
static void set_scores(const struct tessera_fmha_fwd_call *call, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    // At least FLT_MIN instead of 0: products q k that do not nearly overflow become as good as equal, as they do times
    // 0.
    const float scale = fabsf(a->scale_s) * log2e;
    out->scale_log2 = copysignf(scale > FLT_MIN ? scale : FLT_MIN, a->scale_s);
    if (a->scale_s < 0 || call->traits.has_logits_soft_cap || call->traits.bias_type != TESSERA_BIAS_NONE ||
        call->traits.qscale_type == TESSERA_QSCALE_BLOCK)
        out->features |= TESSERA_GPU_SCALED;
    if (call->traits.has_logits_soft_cap) {
        out->features |= TESSERA_GPU_SOFT_CAP;
        out->cap_log2 = a->logits_soft_cap * log2e;
        out->cap_scale = 2 / a->logits_soft_cap;
    }
    if (call->traits.bias_type == TESSERA_BIAS_ELEMENTWISE) {
        out->features |= TESSERA_GPU_BIAS;
        out->stride_bias = a->stride_bias;
        out->nhead_stride_bias = a->nhead_stride_bias;
        out->batch_stride_bias = call->traits.is_group_mode ? 0 : a->batch_stride_bias;
    } else if (call->traits.bias_type == TESSERA_BIAS_ALIBI) {
        out->features |=
            tessera_attention_alibi_features(call->traits.mask_type, a->window_size_left, a->window_size_right);
        out->batch_stride_bias = a->stride_bias;
    }
    out->bias = call->traits.bias_type == TESSERA_BIAS_NONE ? NULL : a->bias_ptr;
    out->sink = call->traits.has_sink ? a->sink_ptr : NULL;
    out->sink_size = call->traits.has_sink ? a->sink_size : 0;
}

static void set_dropout(const struct tessera_fmha_fwd_call *call, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    out->keep_scale = 1;
    if (!call->traits.has_dropout) return;
    const float keep = 1 - a->p_drop;
    out->features |= TESSERA_GPU_DROPOUT;
    out->keep_scale = 1 / keep;
    out->keep_below = tessera_attention_keep_below(keep);
    out->drop_seed = a->drop_seed;
    out->drop_offset = a->drop_offset;
    out->drop_seed_ptr = a->drop_prefs ? a->drop_seed_ptr : NULL;
    out->drop_offset_ptr = a->drop_prefs ? a->drop_offset_ptr : NULL;
    if (!a->s_randval) return;
    out->features |= TESSERA_GPU_RANDVAL;
    out->rand_val = a->rand_val_ptr;
    out->stride_randval = a->stride_randval;
    out->nhead_stride_randval = a->nhead_stride_randval;
    out->batch_stride_randval = call->traits.is_group_mode ? 0 : a->batch_stride_randval;
}

static void set_descales(const struct tessera_fmha_fwd_call *call, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const tessera_qscale qscale = call->traits.qscale_type;
    const bool group = call->traits.is_group_mode;
    if (qscale == TESSERA_QSCALE_NONE) return;
    out->q_descale = a->q_descale_ptr;
    out->k_descale = a->k_descale_ptr;
    out->v_descale = a->v_descale_ptr;
    if (qscale == TESSERA_QSCALE_PER_TENSOR) {
        out->features |= TESSERA_GPU_PER_TENSOR;
        return;
    }
    out->nhead_stride_q_descale = a->nhead_stride_q_descale;
    out->nhead_stride_k_descale = a->nhead_stride_k_descale;
    out->nhead_stride_v_descale = a->nhead_stride_v_descale;
    out->batch_stride_q_descale = group ? 0 : a->batch_stride_q_descale;
    out->batch_stride_k_descale = group ? 0 : a->batch_stride_k_descale;
    out->batch_stride_v_descale = group ? 0 : a->batch_stride_v_descale;
    if (qscale == TESSERA_QSCALE_BLOCK) {
        out->features |= TESSERA_GPU_BLOCK;
        out->block_scale_size_q = a->block_scale_size_q;
        out->block_scale_size_kv = a->block_scale_size_kv;
        out->block_scale_seqstart_q = group ? a->block_scale_seqstart_q_ptr : NULL;
        out->block_scale_seqstart_k = group ? a->block_scale_seqstart_k_ptr : NULL;
        return;
    }
    out->stride_q_descale = a->stride_q_descale;
    out->stride_k_descale = a->stride_k_descale;
    out->stride_v_descale = a->stride_v_descale;
    out->seqstart_v_scale = group ? a->seqstart_v_scale_ptr : NULL;
}

// Of queries whose keys have scales of their rows: one, or one of each query and its head.
static void set_query_scales(const struct tessera_attention_cache *cache, kernel_args *k) {
    if (!cache || (!cache->q_scales && !cache->scale_q)) return;
    k->features |= TESSERA_GPU_ROWS;
    k->q_descale = cache->q_scales ? cache->q_scales : cache->scale_q;
    k->stride_q_descale = cache->q_scales ? k->nhead_q : 0;
    k->nhead_stride_q_descale = cache->q_scales ? 1 : 0;
}

// Of divisors from 1 to 2^30: over = 2^(32 + shift) / divisor, where 2^shift is the greatest power of 2 that is not
// above it, but less than 2^32.
static void find_divisor(int32_t divisor, uint32_t *over, uint32_t *shift) {
    *shift = 0;
    while (divisor >> *shift > 1) ++*shift;
    const uint64_t factor = (UINT64_C(1) << 32 << *shift) / (uint32_t)divisor;
    *over = factor > UINT32_MAX ? UINT32_MAX : (uint32_t)factor;
}

void tessera_fmha_fwd_set_order(const struct tessera_fmha_fwd_order *order, kernel_args *k) {
    k->together = (int32_t)order->together;
    find_divisor(k->together, &k->over_together, &k->shift_together);
    k->turns = (int32_t)order->turns;
    k->rows = (int32_t)tessera_ceil_div(k->blocks_q, k->turns);
}

void tessera_fmha_fwd_fill(const struct tessera_fmha_fwd_call *call, int32_t blocks_q, kernel_args *k) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    k->q = a->q_ptr;
    k->k = a->k_ptr;
    k->v = a->v_ptr;
    k->o = a->o_ptr;
    k->lse = call->traits.has_lse ? a->lse_ptr : NULL;
    k->stride_q = a->stride_q;
    k->stride_k = a->stride_k;
    k->stride_v = a->stride_v;
    k->stride_o = a->stride_o;
    k->nhead_stride_q = a->nhead_stride_q;
    k->nhead_stride_k = a->nhead_stride_k;
    k->nhead_stride_v = a->nhead_stride_v;
    k->nhead_stride_o = a->nhead_stride_o;
    k->nhead_stride_lse = k->lse ? a->nhead_stride_lse : 0;
    k->batch_stride_q = group ? 0 : a->batch_stride_q;
    k->batch_stride_k = group ? 0 : a->batch_stride_k;
    k->batch_stride_v = group ? 0 : a->batch_stride_v;
    k->batch_stride_o = group ? 0 : a->batch_stride_o;
    k->batch_stride_lse = group || !k->lse ? 0 : a->batch_stride_lse;
    k->hdim_q = a->hdim_q;
    k->hdim_v = a->hdim_v;
    k->nhead_q = a->nhead_q;
    k->nhead_k = a->nhead_k;
    k->group = a->nhead_q / a->nhead_k;
    find_divisor(a->nhead_k, &k->over_nhead_k, &k->shift_nhead_k);
    k->blocks_q = blocks_q;
    tessera_fmha_fwd_set_order(&(struct tessera_fmha_fwd_order){.turns = 1, .together = a->nhead_k}, k);
    set_lengths(call, k);
    set_mask(call, k);
    set_scores(call, k);
    set_dropout(call, k);
    set_descales(call, k);
    set_query_scales(call->cache, k);
}

int64_t tessera_fmha_fwd_blocks(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t queries = call->traits.is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    return tessera_fmha_fwd_count_blocks(instance, queries, a->nhead_q / a->nhead_k);
}

// Kernels compute tanh as 1 - 2 / (1 + exp), which is off by 2^-24 as every number near 1 is; scores are off by the cap
// times this.
static float greatest_cap(tessera_fmha_dtype data_type) { return data_type == TESSERA_FMHA_FP32 ? 128.0f : 4096.0f; }

tessera_status tessera_fmha_fwd_check_cap(const struct tessera_fmha_fwd_call *call) {
    const float cap = greatest_cap(call->traits.data_type);
    GUARD(!call->traits.has_logits_soft_cap || call->args.logits_soft_cap <= cap,
          "logits_soft_cap is %g: at most %g for %s on a GPU", (double)call->args.logits_soft_cap, (double)cap,
          tessera_fmha_dtype_string(call->traits.data_type));
    return TESSERA_SUCCESS;
}
