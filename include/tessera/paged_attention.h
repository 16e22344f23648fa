// SPDX-License-Identifier: MIT
// Decoding: attention of the last few queries of many sequences over keys and values in pages, which may be quantised,
// as vLLM and AITER do it (paged_attention_rocm, paged_attention_v1, pa_fwd). The equations, alibi, NaN and infinity
// are those of tessera/fmha_fwd.h. CPUs serve all of it; README.md says what GPUs do.
//
// Query i of the n of sequence b stands at position p = seqlen_k_ptr[b] - n + i. It sees keys 0 to p; with
// sliding_window > 0 only the last sliding_window of these. Scores are scaled, capped, given alibi's bias and hidden,
// in this order. A query that sees no key gives 0.
//
// Key j of sequence b is row j % P of page block_table_ptr[b * batch_stride_block_table + j / P], P = page_block_size.
// Entries after the page of the last key are not read. With x elements of the cache in 16 bytes:
//
//   kv_memory_layout  a page of k                       a page of v                       AITER's
//   LINEAR            [P, hdim_q], rows stride_k apart  [P, hdim_v], rows stride_v apart  NHD, HND (paged_attention_v1)
//   VLLM              [hdim_q / x, P, x]                [hdim_v, P]                       paged_attention_rocm
//   VECTORIZED        [hdim_q / x, P, x]                [P / x, hdim_v, x]                shuffled, 5-D
//
// batch_stride_k and batch_stride_v lead from one page to the next, nhead_stride_k and nhead_stride_v from one head to
// the next. In pages that are not LINEAR, hdim_q is a multiple of x, with VECTORIZED P and hdim_v too, and stride_k and
// stride_v are ignored.
//
//   kv_cache_dtype  an element             a number
//   AUTO            of q's type            the element
//   FP8_E4M3        8 bits, OCP's e4m3     the element times its scale
//   INT8            8 bits, -128 to 127    the element times its scale
//   TURBO4          a byte of 2 numbers    a centroid times the row's norm
//
// The bytes 0x7f and 0xff of FP8_E4M3 are NaN, which goes through the equations as NaN of other types does: a query
// that sees such a key has NaN as lse and o, and one that sees such a value NaN in its column of o.
//
// The fp32 scale of row r of head g of page t is k_scale_ptr[t * batch_stride_k_scale + g * nhead_stride_k_scale + r *
// stride_k_scale]; NULL: 1. With all strides 0 that is one scale of the tensor, with stride_k_scale 0 one of each page
// and head, else one of each token and head. The same of v. Scales of keys are applied to scores before anything else
// is, those of values to probabilities that have been summed: no number is rounded but the probabilities.
//
// Where q has an infinity, or several values that a query sees have infinite scales, quantised caches may give NaN in
// place of the infinity, or with a soft cap the number, that the equations have: CPUs multiply with integers there.
//
// Slots of TURBO4 are those of tessera/turbo4.h: strides count bytes, a row has hdim / 2 of numbers, its fp16 norm
// behind them, and any number of others. Where k_scale_ptr and v_scale_ptr are given, norms lie there instead, found by
// the strides of scales. Number n stands for centroids_ptr[n], rounded to q's type; norms are applied as scales are.
// Attention knows nothing of a rotation: queries must have been rotated as keys were, and results are rotated as values
// were (tessera/hadamard_rotate.h). LINEAR pages alone.
//
// Sequences of more than max_seqlen_q queries (those that are being prefilled, in a mixed batch) are left alone:
// nothing of theirs is read but seqstart_q_ptr, and their rows of o and lse are not written.
#ifndef TESSERA_PAGED_ATTENTION_H
#define TESSERA_PAGED_ATTENTION_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_paged_attention_traits {
    size_t struct_size;           // sizeof(tessera_paged_attention_traits)
    int32_t hdim_q, hdim_v;       // 1 .. 512
    tessera_fmha_dtype data_type; // of q and o: fp32, fp16, bf16
    tessera_kv_cache_dtype kv_cache_dtype;
    tessera_kv_layout kv_memory_layout;
    int32_t is_group_mode;       // 1: seqstart_q_ptr says how many queries a sequence has; 0: all have max_seqlen_q
    int32_t has_logits_soft_cap; // alibi is added to what has been capped
    tessera_bias bias_type;      // NONE or ALIBI
    int32_t has_lse;
    int32_t has_sink; // sink_ptr is given
} tessera_paged_attention_traits;

// Strides count elements and are 0 or more. q, o and lse are indexed as in tessera/fmha_fwd.h: in group mode by tokens,
// else batch_stride_q leads from one sequence's queries to the next one's. o and lse overlap nothing. Memory must stay
// valid until the stream has finished the call.
//
//   seqstart_q_ptr   [batch + 1] int32: AITER's query_start_loc; group mode
//   seqlen_k_ptr     [batch] int32: AITER's context_lens, the keys of a sequence, those of its queries included
//   block_table_ptr  [batch, ceil(max_seqlen_k / P)] int32
//
// On the CPU a call refuses lengths and pages that are not within the bounds of max_seqlen_k and num_total_pages.
typedef struct tessera_paged_attention_args {
    size_t struct_size; // sizeof(tessera_paged_attention_args)

    const void *q_ptr, *k_ptr, *v_ptr;
    const void *k_scale_ptr, *v_scale_ptr; // not with AUTO
    const void *centroids_ptr;             // [16] fp32; TURBO4
    const void *alibi_slopes_ptr;          // [nhead_q] fp32
    const void *sink_ptr;                  // [nhead_q] fp32: logits that every row's denominator has once
    void *lse_ptr;                         // fp32, natural logarithm
    void *o_ptr;
    const void *seqstart_q_ptr, *seqlen_k_ptr, *block_table_ptr;

    int32_t batch;
    int32_t max_seqlen_q; // AITER's max_qlen: 1 without speculation
    int32_t max_seqlen_k; // the most keys of a sequence
    int32_t hdim_q, hdim_v;
    int32_t nhead_q, nhead_k;
    int32_t num_total_pages; // that k and v hold
    int32_t page_block_size; // a power of two up to 65536
    int32_t sliding_window;  // 0: none

    float scale_s;
    float logits_soft_cap;

    int64_t batch_stride_block_table;
    int64_t stride_q, stride_k, stride_v, stride_o;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_lse, nhead_stride_o;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_lse, batch_stride_o;
    int64_t stride_k_scale, nhead_stride_k_scale, batch_stride_k_scale;
    int64_t stride_v_scale, nhead_stride_v_scale, batch_stride_v_scale;

    void *workspace_ptr; // tessera_paged_attention_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const struct tessera_paged_attention_instance *instance; // that must be taken; NULL: that of least estimated cost
    const struct tessera_fmha_fwd_instance *attends; // that must attend, a row of fmha_fwd's table; NULL: the same
    int32_t num_splits;                              // of each sequence's keys: 1 .. 128; 0: as many as pay
} tessera_paged_attention_args;

typedef struct tessera_paged_attention_instance tessera_paged_attention_instance;

// All zero but the struct's size.
TESSERA_INIT(tessera_paged_attention_traits)
TESSERA_INIT(tessera_paged_attention_args)

// tessera_paged_attention_check() reads the arrays of lengths and pages. On the CPU a call reads them too.
TESSERA_CALLS(paged_attention)

#ifdef __cplusplus
}
#endif
#endif
