// SPDX-License-Identifier: MIT
// Attention over caches of keys and values, for queries that come beside keys of earlier calls (prefill in chunks). It
// is fmha_fwd_splitkv without splits of the caller's (tessera/fmha_fwd_splitkv.h); what is said there of keys, lengths
// and tensors holds here too. Fields have the names and meanings of CK's (example/ck_tile/01_fmha), but for those that
// say so. The equations, the mask, alibi, NaN and infinity are those of tessera/fmha_fwd.h without dropout.
#ifndef TESSERA_FMHA_FWD_PAGEDKV_H
#define TESSERA_FMHA_FWD_PAGEDKV_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_fmha_fwd_pagedkv_traits {
    size_t struct_size;           // sizeof(tessera_fmha_fwd_pagedkv_traits)
    int32_t hdim_q, hdim_v;       // 1 .. 512
    tessera_fmha_dtype data_type; // all but the mx types
    int32_t is_group_mode;        // 0: batch, every sequence has the same room; 1: group, queries are concatenated
    int32_t is_v_rowmajor;        // 1
    int32_t has_logits_soft_cap;  // not together with an elementwise bias, as in CK
    tessera_mask mask_type;
    tessera_bias bias_type;
    int32_t has_lse;
    tessera_qscale qscale_type; // NONE, or PER_TENSOR for fp8, fp8bf16, fp8fp32: CK's do_fp8_static_quant
    int32_t skip_min_seqlen_q;  // sequences with seqlen_q <= min_seqlen_q are left untouched
    int32_t has_sink;           // sink_ptr or sink_size is given
} tessera_fmha_fwd_pagedkv_traits;

// Strides, arrays and their contents are as in tessera_fmha_fwd_splitkv_args. On the CPU a call refuses lengths that
// are not within 0 .. seqlen_k and ids that are not below cache_blocks.
typedef struct tessera_fmha_fwd_pagedkv_args {
    size_t struct_size; // sizeof(tessera_fmha_fwd_pagedkv_args)

    const void *q_ptr, *k_ptr, *v_ptr;
    const void *bias_ptr; // bias, or alibi slopes
    const void *q_descale_ptr, *k_descale_ptr, *v_descale_ptr;
    void *lse_ptr;
    void *o_ptr;
    const void *block_table_ptr; // NULL: the cache has no pages
    const void *cache_batch_idx; // batch mode without pages; else NULL
    const void *seqstart_q_ptr, *seqstart_k_ptr, *seqlen_k_ptr;
    const void *sink_ptr; // NULL: no learned sink

    int32_t seqlen_q; // batch mode
    int32_t seqlen_k; // batch mode and pages: the keys of a sequence, at most so many with seqlen_k_ptr
    int32_t batch;
    int32_t max_seqlen_q; // group mode: at least the longest length
    int32_t hdim_q, hdim_v;
    int32_t nhead_q, nhead_k;
    int32_t cache_blocks;    // sequences, or pages, that k and v hold; group mode without pages ignores it
    int32_t page_block_size; // with pages 1 or more
    int32_t is_gappy;        // group mode with pages

    float scale_s;
    float logits_soft_cap;

    int64_t batch_stride_block_table;
    int64_t stride_q, stride_k, stride_v, stride_bias, stride_o;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_lse, nhead_stride_o;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_lse, batch_stride_o;

    int32_t window_size_left, window_size_right;
    int32_t sink_size;
    tessera_mask mask_type; // that of the traits
    int32_t min_seqlen_q;

    void *workspace_ptr; // tessera_fmha_fwd_pagedkv_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const struct tessera_fmha_fwd_pagedkv_instance *instance; // that must be taken; NULL: that of least estimated cost

    // What is appended first, as by tessera/fmha_fwd_appendkv.h, in batch mode. Without it all are 0.
    const void *knew_ptr, *vnew_ptr;
    const void *rotary_cos_ptr, *rotary_sin_ptr;
    tessera_rope rope_type; // rotates new keys and queries
    int32_t seqlen_knew;    // 0 or more
    int32_t rotary_dim;     // with rope a multiple of 16 up to hdim_q
    int32_t rotary_rows;    // rows of cos and sin
    int64_t stride_knew, nhead_stride_knew, batch_stride_knew;
    int64_t stride_vnew, nhead_stride_vnew, batch_stride_vnew;
} tessera_fmha_fwd_pagedkv_args;

typedef struct tessera_fmha_fwd_pagedkv_instance tessera_fmha_fwd_pagedkv_instance;

// All zero but the struct's size, and of the traits is_v_rowmajor, of the arguments the windows (-1).
TESSERA_INIT_WITH(tessera_fmha_fwd_pagedkv_traits, all.is_v_rowmajor = 1)
TESSERA_INIT_WITH(tessera_fmha_fwd_pagedkv_args, all.window_size_left = all.window_size_right = -1)

// tessera_fmha_fwd_pagedkv_check() reads the arrays of lengths, block_table and cache_batch_idx. On the CPU a call
// reads them too.
TESSERA_CALLS(fmha_fwd_pagedkv)

#ifdef __cplusplus
}
#endif
#endif
