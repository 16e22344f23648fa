// SPDX-License-Identifier: MIT
// A call as GPUs' kernels get it, whatever their kind.
#include "guard.h"
#include "ops/attention_gpu.h"
#include "ops/fmha_bwd_internal.h"

typedef struct tessera_fmha_bwd_gpu_args kernel_args;
typedef const struct tessera_fmha_bwd_call call_t;

static void set_mask(call_t *call, kernel_args *out) {
    const tessera_fmha_bwd_args *const a = &call->args;
    const struct tessera_attention_window window =
        tessera_attention_get_window(call->traits.mask_type, a->window_size_left, a->window_size_right);
    out->mask_y = window.mask_y, out->mask_x = window.mask_x;
    out->shift_y = window.shift_y, out->shift_x = window.shift_x;
    out->sink_size = call->traits.mask_type == TESSERA_MASK_NONE ? 0 : a->sink_size;
}

static void set_lengths(call_t *call, kernel_args *out) {
    const tessera_fmha_bwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    out->seqstart_q = group ? a->seqstart_q_ptr : NULL;
    out->seqstart_k = group ? a->seqstart_k_ptr : NULL;
    out->seqlen_q_of = group ? a->seqlen_q_ptr : NULL;
    out->seqlen_k_of = group ? a->seqlen_k_ptr : NULL;
    out->cu_seqlen_q = out->seqlen_q_of ? NULL : a->cu_seqlen_q_ptr;
    out->cu_seqlen_k = out->seqlen_k_of ? NULL : a->cu_seqlen_k_ptr;
    out->seqlen_q = group ? 0 : a->seqlen_q;
    out->seqlen_k = group ? 0 : a->seqlen_k;
}

static const float log2e = 1.44269504088896341f;

static void set_bias(call_t *call, kernel_args *out) {
    const tessera_fmha_bwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    if (call->traits.bias_type == TESSERA_BIAS_NONE) return;
    out->bias = a->bias_ptr;
    if (call->traits.bias_type == TESSERA_BIAS_ALIBI) {
        out->features |=
            tessera_attention_alibi_features(call->traits.mask_type, a->window_size_left, a->window_size_right);
        out->batch_stride_bias = a->stride_bias;
        return;
    }
    out->features |= TESSERA_GPU_BIAS;
    out->stride_bias = a->stride_bias;
    out->nhead_stride_bias = a->nhead_stride_bias;
    out->batch_stride_bias = group ? 0 : a->batch_stride_bias;
    if (!call->traits.has_dbias) return;
    out->dbias = a->dbias_ptr;
    out->stride_dbias = a->stride_dbias;
    out->nhead_stride_dbias = a->nhead_stride_dbias;
    out->batch_stride_dbias = group ? 0 : a->batch_stride_dbias;
}

static void set_dropout(call_t *call, kernel_args *out) {
    const tessera_fmha_bwd_args *const a = &call->args;
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
    if (!call->traits.is_store_randval) return;
    out->features |= TESSERA_GPU_RANDVAL;
    out->rand_val = a->rand_val_ptr;
    out->stride_randval = a->stride_randval;
    out->nhead_stride_randval = a->nhead_stride_randval;
    out->batch_stride_randval = call->traits.is_group_mode ? 0 : a->batch_stride_randval;
}

static void set_tensors(call_t *call, kernel_args *k) {
    const tessera_fmha_bwd_args *const a = &call->args;
    const int64_t mode = call->traits.is_group_mode ? 0 : 1;
    k->q = a->q_ptr, k->k = a->k_ptr, k->v = a->v_ptr, k->o = a->o_ptr, k->d_o = a->do_ptr;
    k->dq = a->dq_ptr, k->dk = a->dk_ptr, k->dv = a->dv_ptr;
    k->lse = a->lse_ptr, k->d = a->d_ptr;
#define STRIDES(x)                                                                                                     \
    k->stride_##x = a->stride_##x, k->nhead_stride_##x = a->nhead_stride_##x,                                          \
    k->batch_stride_##x = mode * a->batch_stride_##x
    STRIDES(q), STRIDES(k), STRIDES(v), STRIDES(o), STRIDES(do);
    STRIDES(dq), STRIDES(dk), STRIDES(dv);
#undef STRIDES
    k->nhead_stride_lsed = a->nhead_stride_lsed;
    k->batch_stride_lsed = mode * a->batch_stride_lsed;
    k->sink = a->sink_ptr;
    k->d_sink = a->sink_ptr ? a->d_sink_ptr : NULL;
    k->batch_stride_sink = a->batch_stride_sink;
}

void tessera_fmha_bwd_fill_workspace(const tessera_fmha_bwd_traits *t, const struct tessera_fmha_bwd_layout *layout,
                                     void *workspace, kernel_args *k) {
    k->batch = t->batch;
    k->nhead_q = t->nhead_q;
    k->hdim_q = t->hdim_q;
    if (layout->is_direct) return;
    k->nsplits = workspace;
    k->dq_acc_offsets = t->is_group_mode ? (int64_t *)(void *)((char *)workspace + layout->offsets_offset) : NULL;
    k->dq_acc = (float *)(void *)((char *)workspace + layout->host_bytes);
    k->bn0 = layout->bn0;
    k->blocks_k = (int32_t)tessera_ceil_div(t->is_group_mode ? t->max_seqlen_k : t->seqlen_k, layout->bn0);
    k->share = layout->is_parted && !t->is_group_mode ? layout->share : 0;
    k->nsplits_of_all = layout->nsplits;
    k->is_by_sequence = layout->is_by_sequence;
    k->is_dq_stored = layout->is_stored;
    k->is_dq_stored_all = !layout->is_zeroed;
}

void tessera_fmha_bwd_fill(call_t *call, const struct tessera_fmha_bwd_layout *layout, void *workspace,
                           kernel_args *k) {
    const tessera_fmha_bwd_args *const a = &call->args;
    memset(k, 0, sizeof *k); // including padding, so that equal calls have equal bytes
    set_tensors(call, k);
    set_lengths(call, k);
    set_mask(call, k);
    set_bias(call, k);
    set_dropout(call, k);
    tessera_fmha_bwd_fill_workspace(&call->traits, layout, workspace, k);
    k->nhead_k = a->nhead_k;
    k->group = a->nhead_q / a->nhead_k;
    k->dkv_group = call->traits.is_dkv_reduced ? k->group : 1;
    k->hdim_v = a->hdim_v;
    k->type = (int32_t)tessera_attention_storages[call->traits.data_type].qkv;
    k->scale = a->scale;
    k->scale_log2 = a->scale * log2e;
    if (!call->traits.has_logits_soft_cap) return;
    k->features |= TESSERA_GPU_SOFT_CAP;
    k->cap_log2 = a->logits_soft_cap * log2e;
    k->cap_scale = 2 / a->logits_soft_cap;
}
