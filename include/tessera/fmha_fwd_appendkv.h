// SPDX-License-Identifier: MIT
// Appends new keys and values to the caches of sequences, and rotates the new keys and the queries by their positions
// (RoFormer: Su et al., 2021). Fields have the names and meanings of CK's (example/ck_tile/01_fmha), but for those that
// say so. What runs attention over the caches afterwards takes lengths that include the new keys.
//
// For every sequence b, key head g and new key j < seqlen_knew, with n = seqlen_k[b] keys in the cache before:
//
//   k[b, n + j, g, :] = rotate(knew[b, j, g, :], n + j)
//   v[b, n + j, g, :] = vnew[b, j, g, :]
//   q_rotated[b, i, h, :] = rotate(q[b, i, h, :], has_mask ? n + i : n)        for every query head h, query i
//
// rotate(x, t) with c = cos[t, i] and s = sin[t, i] replaces, for i < rotary_dim / 2, the elements
//
//   HALF         y, z = x[i], x[i + rotary_dim / 2]     by  c y - s z,  c z + s y
//   INTERLEAVED  y, z = x[2 i], x[2 i + 1]              likewise
//
// computed in fp32 and rounded to nearest even; others stay. Without rope keys are copied bit by bit, and there is no
// q.
//
// Where row t of sequence b lies. Row t of sequence cache_batch_idx[b] (or b, where that is NULL) of the cache, or with
// block_table_ptr row t % page_block_size of page block_table[b, t / page_block_size]; batch_stride_k and
// batch_stride_v lead from one sequence, or page, to the next.
#ifndef TESSERA_FMHA_FWD_APPENDKV_H
#define TESSERA_FMHA_FWD_APPENDKV_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_fmha_fwd_appendkv_traits {
    size_t struct_size;           // sizeof(tessera_fmha_fwd_appendkv_traits)
    int32_t hdim_q, hdim_v;       // 1 .. 512
    tessera_fmha_dtype data_type; // all but the mx types; those of fp8 have no rope
    int32_t is_v_rowmajor;        // 1; CK's v is never column-major here either
    tessera_rope rope_type;
} tessera_fmha_fwd_appendkv_traits;

// Strides count elements and are 0 or more; those of outputs (k, v, q_rotated) span all elements along the axes of
// smaller strides. The innermost dimension is contiguous. Pointers are aligned to the element; GPU instances may need
// more of them and of strides, as tessera_fmha_fwd_appendkv_explain() says. Outputs overlap nothing, except that
// q_rotated may be q with the same strides. Memory must stay valid until the stream has finished the call.
//
//   tensor          indexed by                                                    innermost
//   q, q_rotated    batch_stride, nhead_stride (h), stride (i)                    hdim_q
//   knew            batch_stride, nhead_stride (g), stride (j)                    hdim_q
//   vnew            likewise                                                      hdim_v
//   k, v            batch_stride (sequence or page), nhead_stride (g), stride     hdim_q, hdim_v
//   cos, sin        packed [rotary_rows, rotary_dim / 2], of q's type
//   seqlen_k        [batch] int32: keys in the cache before the call
//   block_table     [batch, pages of max_seqlen_k keys] int32, stride batch_stride_block_table
//   cache_batch_idx [batch] int32
//
// A sequence or page that two sequences append to holds the rows of either. On the CPU a call refuses positions that
// are not below max_seqlen_k, or with rope rotary_rows, and ids that are not below cache_blocks; a GPU, which reads
// these arrays alone, leaves such rows out.
typedef struct tessera_fmha_fwd_appendkv_args {
    size_t struct_size; // sizeof(tessera_fmha_fwd_appendkv_args)

    const void *q_ptr;
    void *q_rotated_ptr; // q_ptr: in place, as CK does it
    void *k_ptr, *v_ptr;
    const void *knew_ptr, *vnew_ptr;
    const void *seqlen_k_ptr;
    const void *rotary_cos_ptr, *rotary_sin_ptr;
    const void *block_table_ptr; // NULL: the cache has no pages
    const void *cache_batch_idx; // NULL with pages

    int32_t seqlen_q, seqlen_knew; // 0 or more
    int32_t batch;
    int32_t hdim_q, hdim_v;   // those of the traits
    int32_t nhead_q, nhead_k; // nhead_q is a multiple of nhead_k
    int32_t rotary_dim;       // with rope a multiple of 16 up to hdim_q
    int32_t rotary_rows;      // rows of cos and sin
    int32_t has_mask;         // 1: queries have positions of their own; 0: all that of the first
    int32_t max_seqlen_k;     // rows that a sequence has room for
    int32_t cache_blocks;     // sequences, or pages, that k and v hold
    int32_t page_block_size;  // with pages 1 or more

    int64_t batch_stride_block_table;
    int64_t stride_q, stride_q_rotated, stride_k, stride_v, stride_knew, stride_vnew;
    int64_t nhead_stride_q, nhead_stride_q_rotated, nhead_stride_k, nhead_stride_v, nhead_stride_knew,
        nhead_stride_vnew;
    int64_t batch_stride_q, batch_stride_q_rotated, batch_stride_k, batch_stride_v, batch_stride_knew,
        batch_stride_vnew;

    void *workspace_ptr; // none is needed
    size_t workspace_size;
    const struct tessera_fmha_fwd_appendkv_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_fmha_fwd_appendkv_args;

typedef struct tessera_fmha_fwd_appendkv_instance tessera_fmha_fwd_appendkv_instance;

// All zero but the struct's size and is_v_rowmajor.
TESSERA_INIT_WITH(tessera_fmha_fwd_appendkv_traits, all.is_v_rowmajor = 1)
TESSERA_INIT(tessera_fmha_fwd_appendkv_args)

// tessera_fmha_fwd_appendkv_check() reads seqlen_k, block_table and cache_batch_idx. On the CPU a call reads them too.
TESSERA_CALLS(fmha_fwd_appendkv)

#ifdef __cplusplus
}
#endif
#endif
