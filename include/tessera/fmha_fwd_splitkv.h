// SPDX-License-Identifier: MIT
// Attention over caches of keys and values, for decoding: the keys of a sequence are split, each split attends by
// itself, and the splits are combined (flash decoding: Dao et al., 2023). Fields have the names and meanings of CK's
// (example/ck_tile/01_fmha), but for those that say so. The equations, the mask, alibi, NaN and infinity are those of
// tessera/fmha_fwd.h without dropout: results are the same for every num_splits up to rounding. A learned sink enters
// the denominator once, whatever the splits.
//
// Where key j of sequence b lies.
//   group mode, no pages        row seqstart_k[b] + j of k and v
//   batch mode, no pages        row j of sequence cache_batch_idx[b] (or b, where that is NULL) of the cache
//   block_table_ptr             row t % page_block_size of page block_table[b, t / page_block_size], with t = j, or
//                               with is_gappy t = seqstart_k[b] + j
// batch_stride_k and batch_stride_v lead from one sequence, or page, to the next. Only pages that hold one of a
// sequence's keys are looked up.
//
// Lengths. Queries are those of tessera/fmha_fwd.h. A sequence has seqlen_k_ptr[b] keys, those included that were
// appended before; where that is NULL seqlen_k, or in group mode seqstart_k[b + 1] - seqstart_k[b].
//
// Splits. num_splits is 1 to 128; or 0: as many as the library finds best, by lengths, where it knows them, and the
// device's compute units; or TESSERA_NUM_SPLITS_CK: as CK's example chooses where it is not told, by rows alone. With
// b = batch * nhead_q * ceil(queries / 64) blocks (where one query has neither mask nor bias, batch * nhead_k *
// ceil(nhead_q / nhead_k / 64)) and p = 2 * compute units that is 1 where b >= 0.8 p, else the least n up to
// min(128, p) whose e(n) is at least 0.85 of the greatest, e(n) = w / ceil(w), w = b n / p.
//
// Append and attend in one call, as FlashAttention's flash_attn_with_kvcache does it. With seqlen_knew > 0 or a
// rope_type, a first step is fmha_fwd_appendkv (tessera/fmha_fwd_appendkv.h): it puts knew and vnew behind the keys of
// each sequence, whose number BEFORE the call is seqlen_k_ptr[b], and with a rope_type rotates new keys and queries.
// Attention is then over seqlen_k_ptr[b] + seqlen_knew keys, at most seqlen_k. Queries have positions of their own,
// from seqlen_k_ptr[b] on, where there is a mask; else all have that of the first new key. The caller's q is left as it
// is: rotated queries, and on GPUs the new lengths, lie in the workspace. Batch mode alone; k and v are written.
#ifndef TESSERA_FMHA_FWD_SPLITKV_H
#define TESSERA_FMHA_FWD_SPLITKV_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESSERA_NUM_SPLITS_CK = -1 };

// Decides which instances may serve a request.
typedef struct tessera_fmha_fwd_splitkv_traits {
    size_t struct_size;           // sizeof(tessera_fmha_fwd_splitkv_traits)
    int32_t hdim_q, hdim_v;       // 1 .. 512
    tessera_fmha_dtype data_type; // all but the mx types
    int32_t is_group_mode;        // 0: batch, every sequence has the same room; 1: group, queries are concatenated
    int32_t is_v_rowmajor;        // 1
    int32_t has_logits_soft_cap;  // not together with an elementwise bias, as in CK
    tessera_mask mask_type;
    tessera_bias bias_type;
    int32_t has_lse;
    tessera_qscale qscale_type; // NONE, or PER_TENSOR for fp8, fp8bf16, fp8fp32: CK's do_fp8_static_quant
    int32_t has_sink;           // sink_ptr or sink_size is given
} tessera_fmha_fwd_splitkv_traits;

// Strides count elements and are 0 or more; tensors are indexed as in tessera/fmha_fwd.h, k and v by sequence or page
// in place of the batch. Outputs overlap nothing. The innermost dimension is contiguous. Memory must stay valid until
// the stream has finished the call.
//
//   seqlen_k_ptr     [batch] int32, or NULL
//   seqstart_q_ptr   [batch + 1] int32, group mode
//   seqstart_k_ptr   [batch + 1] int32, group mode without pages, or with pages where seqlen_k_ptr is NULL; with
//                    is_gappy, which needs seqlen_k_ptr, [batch]: where in its first page a sequence begins
//   block_table_ptr  [batch, pages of a sequence] int32, stride batch_stride_block_table: the pages of seqlen_k keys,
//                    with is_gappy those of page_block_size - 1 more
//   cache_batch_idx  [batch] int32
//
// On the CPU a call refuses lengths that are not within 0 .. seqlen_k and ids that are not below cache_blocks.
typedef struct tessera_fmha_fwd_splitkv_args {
    size_t struct_size; // sizeof(tessera_fmha_fwd_splitkv_args)

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
    int32_t num_splits;      // 1 .. 128, 0 or TESSERA_NUM_SPLITS_CK

    float scale_s;
    float logits_soft_cap;

    int64_t batch_stride_block_table;
    int64_t stride_q, stride_k, stride_v, stride_bias, stride_o;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_lse, nhead_stride_o;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_lse, batch_stride_o;

    int32_t window_size_left, window_size_right;
    int32_t sink_size;
    tessera_mask mask_type; // that of the traits

    void *workspace_ptr; // tessera_fmha_fwd_splitkv_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const struct tessera_fmha_fwd_splitkv_instance *instance; // that must be taken; NULL: that of least estimated cost

    // What is appended first, as by tessera/fmha_fwd_appendkv.h, in batch mode. Without it all are 0.
    const void *knew_ptr, *vnew_ptr;
    const void *rotary_cos_ptr, *rotary_sin_ptr;
    tessera_rope rope_type; // rotates new keys and queries
    int32_t seqlen_knew;    // 0 or more
    int32_t rotary_dim;     // with rope a multiple of 16 up to hdim_q
    int32_t rotary_rows;    // rows of cos and sin
    int64_t stride_knew, nhead_stride_knew, batch_stride_knew;
    int64_t stride_vnew, nhead_stride_vnew, batch_stride_vnew;
} tessera_fmha_fwd_splitkv_args;

typedef struct tessera_fmha_fwd_splitkv_instance tessera_fmha_fwd_splitkv_instance;

// All zero but the struct's size, and of the traits is_v_rowmajor, of the arguments the windows (-1).
TESSERA_INIT_WITH(tessera_fmha_fwd_splitkv_traits, all.is_v_rowmajor = 1)
TESSERA_INIT_WITH(tessera_fmha_fwd_splitkv_args, all.window_size_left = all.window_size_right = -1)

// tessera_fmha_fwd_splitkv_check() reads the arrays of lengths, block_table and cache_batch_idx. On the CPU a call
// reads them too.
TESSERA_CALLS(fmha_fwd_splitkv)

#ifdef __cplusplus
}
#endif
#endif
