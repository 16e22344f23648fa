// SPDX-License-Identifier: MIT
// Attention of queries of many sequences, concatenated, over keys and values in pages, as SGLang and vLLM keep them.
// Fields have the names and meanings of CK's (fmha_batch_prefill_args of example/ck_tile/01_fmha), but for those that
// say so. The equations, the mask, alibi, dropout, NaN and infinity are those of tessera/fmha_fwd.h.
//
// Where key j of sequence b lies: in row j % P of page j / P of its pages, P = page_block_size.
//
//   kv_lookup_table   pages of the sequence                                      its keys
//   SGLANG_1D         kv_page_indices[kv_indptr[b]] .. [kv_indptr[b + 1] - 1]    P (pages - 1) + kv_last_page_lens[b];
//                                                                                where that is NULL, for P = 1, pages
//   VLLM_2D           kv_page_indices[b * batch_stride_block_table] and so on    seqlen_k_ptr[b]
//
// Entries after the page of the last key are not read.
//
//   kv_memory_layout  a page of k                       a page of v
//   LINEAR            [P, hdim_q], rows stride_k apart  [P, hdim_v], rows stride_v apart
//   VECTORIZED        [hdim_q / x, P, x]                [P / x, hdim_v, x]         x elements are 16 bytes
//   VLLM              [hdim_q / x, P, x]                [hdim_v, P]
//
// batch_stride_k and batch_stride_v lead from one page to the next, nhead_stride_k and nhead_stride_v from one head to
// the next. With VECTORIZED, P and head dims are multiples of x, with VLLM hdim_q is; stride_k and stride_v are ignored
// with both.
//
// Numbers of fp8 are elements times their descales, which are fp32. Those of keys are applied to scores before anything
// else is, those of values to probabilities that have been summed; CPUs do not round these to fp8, and GPUs divide the
// descales of values by one that is greater, so that their range is no concern (CK keeps them within 2^8, or 2^7 of
// FNUZ, and its p_scale has no use here). Bytes that are NaN, 0x7f and 0xff of OCP's e4m3 and 0x80 of gfx942's, go
// through the equations as NaN of other types does.
//
//   qscale_type   q_descale_ptr      k_descale_ptr                        v_descale_ptr
//   PER_TENSOR    [1]                [1]                                  [1]
//   KV_BLOCK      [1]                of a page and head, at               likewise
//                                    page * nblock_stride_kv_block_descale +
//                                    head * nhead_stride_kv_block_descale
//   TOKEN_HEAD    [tokens, nhead_q]  [num_total_pages, P, nhead_k]        [nhead_k]
#ifndef TESSERA_FMHA_BATCH_PREFILL_H
#define TESSERA_FMHA_BATCH_PREFILL_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_fmha_batch_prefill_traits {
    size_t struct_size;           // sizeof(tessera_fmha_batch_prefill_traits)
    int32_t hdim_q, hdim_v;       // 1 .. 512
    tessera_fmha_dtype data_type; // all but the mx types
    int32_t is_group_mode;        // 1
    int32_t is_v_rowmajor;        // 1
    int32_t has_logits_soft_cap;  // not together with an elementwise bias, as in CK
    tessera_mask mask_type;
    tessera_bias bias_type;
    int32_t has_lse;
    int32_t has_dropout;
    tessera_qscale qscale_type; // NONE, or PER_TENSOR, KV_BLOCK, TOKEN_HEAD for fp8, fp8bf16, fp8fp32
    int32_t skip_min_seqlen_q;  // sequences with seqlen_q <= min_seqlen_q are left untouched
    int32_t has_sink;           // sink_ptr or sink_size is given
    tessera_kv_layout kv_memory_layout;
    tessera_kv_lookup kv_lookup_table;
} tessera_fmha_batch_prefill_traits;

// Strides count elements and are 0 or more; q, o, bias, lse and rand_val are indexed as in tessera/fmha_fwd.h's group
// mode. Outputs overlap nothing. Memory must stay valid until the stream has finished the call.
//
//   seqstart_q_ptr     [batch + 1] int32
//   kv_page_indices    int32: 1-D, at least one entry, or 2-D [batch, ceil(max_seqlen_k / P)]
//   kv_indptr          [batch + 1] int32, 1-D
//   kv_last_page_lens  [batch] int32, 1-D: 1 to P of a sequence that has pages
//   seqlen_k_ptr       [batch] int32, 2-D
//
// On the CPU a call refuses lengths and pages that are not within these bounds and those of max_seqlen_k and
// num_total_pages.
typedef struct tessera_fmha_batch_prefill_args {
    size_t struct_size; // sizeof(tessera_fmha_batch_prefill_args)

    const void *q_ptr, *k_ptr, *v_ptr;
    const void *bias_ptr; // bias, or alibi slopes
    const void *q_descale_ptr, *k_descale_ptr, *v_descale_ptr;
    void *rand_val_ptr; // with s_randval: the byte of every i and j within the lengths
    void *lse_ptr;
    void *o_ptr;
    const void *seqstart_q_ptr;
    const void *sink_ptr; // NULL: no learned sink
    const void *kv_indptr, *kv_page_indices, *kv_last_page_lens, *seqlen_k_ptr;

    int32_t batch;
    int32_t max_seqlen_q; // at least the longest length
    int32_t max_seqlen_k; // the most keys of a sequence
    int32_t hdim_q, hdim_v;
    int32_t nhead_q, nhead_k;
    int32_t num_total_pages;            // that k and v hold
    int32_t page_block_size;            // a power of two up to 65536; CK has instances for 1, 16 and 1024
    tessera_kv_layout kv_memory_layout; // those of the traits
    tessera_kv_lookup kv_lookup_table;

    float scale_s;
    float logits_soft_cap;

    int64_t batch_stride_block_table; // 2-D
    int64_t stride_q, stride_k, stride_v, stride_bias, stride_randval, stride_o;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_randval, nhead_stride_lse;
    int64_t nhead_stride_o;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_lse, batch_stride_o;

    int64_t nblock_stride_kv_block_descale, nhead_stride_kv_block_descale; // KV_BLOCK

    int32_t window_size_left, window_size_right;
    int32_t sink_size;
    tessera_mask mask_type; // that of the traits
    int32_t min_seqlen_q;

    float p_drop;       // 0 <= p_drop < 1
    int32_t s_randval;  // 1: store the bytes of dropout
    int32_t drop_prefs; // 0: the two numbers; 1: the two pointers, in memory that the device reads
    uint64_t drop_seed, drop_offset;
    const uint64_t *drop_seed_ptr, *drop_offset_ptr;

    void *workspace_ptr; // tessera_fmha_batch_prefill_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const struct tessera_fmha_batch_prefill_instance
        *instance; // that must be taken; NULL: that of least estimated cost
} tessera_fmha_batch_prefill_args;

typedef struct tessera_fmha_batch_prefill_instance tessera_fmha_batch_prefill_instance;

// All zero but the struct's size, and of the traits is_group_mode and is_v_rowmajor, of the arguments the windows (-1).
TESSERA_INIT_WITH(tessera_fmha_batch_prefill_traits, all.is_group_mode = all.is_v_rowmajor = 1)
TESSERA_INIT_WITH(tessera_fmha_batch_prefill_args, all.window_size_left = all.window_size_right = -1)

// tessera_fmha_batch_prefill_check() reads the arrays of lengths and pages. On the CPU a call reads them too.
TESSERA_CALLS(fmha_batch_prefill)

#ifdef __cplusplus
}
#endif
#endif
