// SPDX-License-Identifier: MIT
// The argument of an emitted kernel of fmha_fwd's sub-kernel combine. Not for callers.
//
// Where keys are cut into parts ("splits"), each part s leaves o_s, its result by itself, and l_s, the logarithm of its
// sum of exponentials, for every row. With l = log(sum over s of exp(l_s)), to which a sink adds as another part that
// has no values, o = sum over s of exp(l_s - l) o_s: the merge of FlashAttention's partial results (Dao et al.,
// "Flash-Decoding for long-context inference", 2023).
#ifndef TESSERA_KERNEL_FMHA_FWD_COMBINE_GPU_H
#define TESSERA_KERNEL_FMHA_FWD_COMBINE_GPU_H

#include <stdint.h>

// How o is stored: FP8 is the device's E4M3.
enum { TESSERA_COMBINED_FP32, TESSERA_COMBINED_FP16, TESSERA_COMBINED_BF16, TESSERA_COMBINED_FP8 };

// A wave combines a row. Rows are numbered (sequence * nhead_q + head) * queries + query; those past the end of their
// sequence, and those of sequences with no more than min_seqlen_q or more than `queries` queries, are left alone.
struct tessera_fmha_fwd_combine_args {
    const float *o_acc;   // [rows, splits, hdim_v]; anything where lse_acc is -inf
    const float *lse_acc; // [rows, splits], base 2; -inf where the part has no key that the query sees
    void *o;
    float *lse;                                            // NULL: not asked for
    const float *sink;                                     // of each head; NULL: none
    const int32_t *seqstart_q, *seqlen_q_of, *cu_seqlen_q; // as in tessera_fmha_fwd_gpu_args
    int64_t stride_o, nhead_stride_o, batch_stride_o;      // elements
    int64_t nhead_stride_lse, batch_stride_lse;            // group mode: batch strides are 0
    int32_t batch, nhead_q, queries, splits;               // queries: of the longest sequence
    int32_t seqlen_q, min_seqlen_q;                        // batch mode; -1: none
    int32_t hdim_v;                                        // a multiple of 8
    int32_t type;                                          // TESSERA_COMBINED_*
};

#endif
