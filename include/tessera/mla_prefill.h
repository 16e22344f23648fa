// SPDX-License-Identifier: MIT
// Multi-head latent attention of DeepSeek-V2 and V3 (DeepSeek-AI, 2024), prefill: keys and values were expanded from
// the latent cache, so that each head has 128 elements of its own in its keys (nope, without rotary position
// embedding), and 64 rotated ones (rope) that all heads usually share. Values have 128.
//
// For every sequence b, query head h, its key head g = h / (nhead_q / nhead_k), query i and key j:
//
//   s[i,j] = scale_s * qd * kd * ( sum_{d < 128} q[b,i,h,d] k[b,j,g,d]
//                                  + sum_{d < 64} q[b,i,h,128 + d] k_rope[b,j,g,d] )
//   s[i,j] = -inf  where the mask hides j from i
//   lse[b,h,i] = ln sum_j exp s[i,j]
//   o[b,i,h,:] = sum_j exp(s[i,j] - lse[b,h,i]) * vd * v[b,j,g,:]
//
// qd, kd, vd are the descales of PER_TENSOR, else 1. A query that sees no key has o = 0 and lse = -inf. Rounding, NaN
// and infinity are those of tessera/fmha_fwd.h, whose instances attend on CPUs, and so is the meaning of TOP_LEFT and
// BOTTOM_RIGHT, which are causal here: query i sees j <= i, or j <= i + seqlen_k - seqlen_q.
//
// On AMD's gfx950 there are kernels for FP8BF16, whose p is fp8 too, as in fmha_fwd. There q, k, k_rope, v and o, and
// their strides that matter, begin at multiples of 16 bytes, nhead_q and batch are at most 65535, and the rows of 256
// queries, or 128 keys, span less than 2 GiB. With `persistent` in its name an instance has no more workgroups than the
// GPU has units; it is taken where args name it.
#ifndef TESSERA_MLA_PREFILL_H
#define TESSERA_MLA_PREFILL_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Elements of k, of k_rope, and of both, which is those of q; of v.
enum { TESSERA_MLA_NOPE = 128, TESSERA_MLA_ROPE = 64, TESSERA_MLA_QK = 192, TESSERA_MLA_V = 128 };

// Decides which instances may serve a request.
typedef struct tessera_mla_prefill_traits {
    size_t struct_size;           // sizeof(tessera_mla_prefill_traits)
    int32_t hdim_q, hdim_v;       // TESSERA_MLA_QK, TESSERA_MLA_V
    tessera_fmha_dtype data_type; // BF16, or FP8BF16: e4m3, of which o is bf16
    int32_t is_group_mode;        // 0: batch, every sequence has the same length; 1: group, they are concatenated
    tessera_mask mask_type;       // NONE, TOP_LEFT, BOTTOM_RIGHT
    int32_t has_lse;
    tessera_qscale qscale_type; // NONE, or PER_TENSOR for fp8bf16
} tessera_mla_prefill_traits;

// Strides count elements and are 0 or more; the innermost dimension is contiguous; pointers are aligned to the element.
// Outputs overlap nothing. Memory must stay valid until the stream has finished the call.
//
//   tensor      indexed by                                        innermost
//   q, o        batch_stride, nhead_stride (h), stride (i)        192, 128
//   k           batch_stride, nhead_stride (g), stride (j)        128
//   k_rope      batch_stride, nhead_stride (g), stride (j)        64
//   v           batch_stride, nhead_stride (g), stride (j)        128
//   lse         batch_stride, nhead_stride (h)                    seqlen_q, fp32
//
// A rope that heads share has nhead_stride_k_rope = 0. Keys that lie in one piece have k_rope_ptr 128 elements behind
// k_ptr and the same strides: then nothing is copied. In group mode batch strides are ignored, token i of sequence b is
// token seqstart_q[b] + i of q, o and lse, and token j is token seqstart_k[b] + j of k, k_rope and v.
typedef struct tessera_mla_prefill_args {
    size_t struct_size; // sizeof(tessera_mla_prefill_args)

    const void *q_ptr, *k_ptr, *k_rope_ptr, *v_ptr;
    const void *q_descale_ptr, *k_descale_ptr, *v_descale_ptr; // PER_TENSOR: one fp32 each; k's is that of k_rope too
    void *lse_ptr;
    void *o_ptr;
    const void *seqstart_q_ptr, *seqstart_k_ptr; // [batch + 1] int32, group mode

    int32_t seqlen_q, seqlen_k; // batch mode; group mode: seqlen_k may hint at the longest, for selection alone
    int32_t batch;
    int32_t max_seqlen_q;     // group mode: at least the longest length
    int32_t nhead_q, nhead_k; // nhead_q is a multiple of nhead_k; 128 is usual

    float scale_s; // 1/sqrt(192) is usual

    int64_t stride_q, stride_k, stride_k_rope, stride_v, stride_o;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_k_rope, nhead_stride_v, nhead_stride_o, nhead_stride_lse;
    int64_t batch_stride_q, batch_stride_k, batch_stride_k_rope, batch_stride_v, batch_stride_o, batch_stride_lse;

    void *workspace_ptr; // tessera_mla_prefill_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const struct tessera_mla_prefill_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_mla_prefill_args;

typedef struct tessera_mla_prefill_instance tessera_mla_prefill_instance;

// All zero but the struct's size, and of the traits the head dims.
TESSERA_INIT_WITH(tessera_mla_prefill_traits, all.hdim_q = TESSERA_MLA_QK; all.hdim_v = TESSERA_MLA_V)
TESSERA_INIT(tessera_mla_prefill_args)

// tessera_mla_prefill_check() reads the arrays of lengths. On the CPU a call reads them too.
TESSERA_CALLS(mla_prefill)

#ifdef __cplusplus
}
#endif
#endif
