// SPDX-License-Identifier: MIT
// Fused multi-head attention, forward. Method: FlashAttention-2 (Dao, 2023), online softmax (Milakov and Gimelshein,
// 2018). Fields have the names and meanings of CK's (example/ck_tile/01_fmha).
//
// For every sequence b, query head h, its key head g = h / (nhead_q / nhead_k), query i and key j:
//
//   s[i,j] = scale_s * qd * kd * sum_d q[b,i,h,d] k[b,j,g,d]             qd, kd: the descales of qscale, else 1
//   s[i,j] = logits_soft_cap * tanh(s[i,j] / logits_soft_cap)            with has_logits_soft_cap
//   s[i,j] = s[i,j] + bias[b,h,i,j]   or   + alibi(i, j)                 with bias_type
//   s[i,j] = -inf  where the mask hides j from i
//   lse[b,h,i] = ln( sum_j exp s[i,j]  (+ exp sink[h]  with sink_ptr) )
//   o[b,i,h,:] = sum_j keep[i,j] / (1 - p_drop) * exp(s[i,j] - lse[b,h,i]) * vd * v[b,j,g,:]
//
// Scores are capped first, then biased, as FlashAttention (flash_fwd_kernel.h) and vLLM (unified_attention) do it; CK
// has no kernels for both, and AITER's paged decode adds alibi first.
//
// A query that sees no key has o = 0 and lse = -inf (or sink[h]). Products accumulate in fp32, and scores are fp32: if
// a score exceeds 2.3e38 (FLT_MAX / log2 e), which takes |q k| of 2^63 or more, its query's o and lse may be NaN.
// exp(s[i,j] - max s) is rounded to the type that products with v have: GPUs take fp16 for fp16, bf16 for bf16, and
// e4m3 for types of 8 bits and fewer; CPUs that multiply bf16 take that for all but fp32 and fp16. So an element of o
// may be off by 2^-11, 2^-8 or 2^-4 of the sum of the magnitudes of its terms, beside the rounding to its own type.
//
// NaN and infinity in q, k, v and bias go through these equations as IEEE arithmetic has them, so that a query that
// sees a score of NaN or +inf has NaN as lse and o, and a key whose score is -inf weighs 0; where the mask hides a key,
// its k may be anything, but o may be NaN if its v is not finite.
//
// The fp8 in fp8, fp8bf16 and fp8fp32 is E4M3 in the format that tessera_device_fp8_format() names: OCP's on CPUs and
// gfx950, and FNUZ on gfx942, where the same byte is a number half as large.
//
// Mask. Query i sees key j when i - y < j < i + x and 0 <= j < seqlen_k, where
//   TOP_LEFT      y = 1 + left,               x = 1 + right
//   BOTTOM_RIGHT  y = 1 + left - (sk - sq),   x = 1 + right + (sk - sq)
//   GENERIC       y = window_size_left,       x = window_size_right
// and a negative window_size_left (right) means unbounded on that side; causal is left = -1, right = 0. With
// sink_size > 0 query i also sees every j < min(sink_size, i + x), where y < sq and i < sk (StreamingLLM).
//
// Alibi, slope = alibi_slope[b or 0, h] (fp32):
//   no mask                        -slope * | i + max(sk - sq, 0) - j - max(sq - sk, 0) |
//   causal (left < 0, right = 0)   +slope * j
//   other TOP_LEFT, GENERIC        -slope * | i - j |
//   other BOTTOM_RIGHT             as without mask
//
// Dropout. keep[i,j] = byte[b,h,i,j] <= floor(255 (1 - p_drop)), in fp32. The bytes come from Philox4x32-10 with key =
// seed and counter = (offset low, offset high, i + 2^24 c, c / 2^8 + 2^12 (b nhead_q + h)), c = 2 (j / 32) + (j / 4) %
// 2; of its 16 output bytes (x first, little-endian) the one numbered j % 4 + 4 ((j % 32) / 8) is taken. They depend on
// nothing else. After a call the caller's generator must advance its offset by 1. CK's bytes differ: it runs 7 rounds
// and numbers elements by its warps' registers. Needs seqlen_q, seqlen_k <= 2^24 and batch * nhead_q <= 2^20.
#ifndef TESSERA_FMHA_FWD_H
#define TESSERA_FMHA_FWD_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Traits decide which instances may serve a call. A feature whose trait is 0 is off.
typedef struct tessera_fmha_fwd_traits {
    size_t struct_size;     // sizeof(tessera_fmha_fwd_traits)
    int32_t hdim_q, hdim_v; // 1 .. 512; mxfp4: even
    tessera_fmha_dtype data_type;
    int32_t is_group_mode;       // 0: batch, every sequence has the same room; 1: group, sequences are concatenated
    int32_t is_v_rowmajor;       // 1: v is [seqlen_k, hdim_v]; 0: [hdim_v, seqlen_k]
    int32_t has_logits_soft_cap; // not together with an elementwise bias, as in CK
    tessera_mask mask_type;
    tessera_bias bias_type;
    int32_t has_lse;
    int32_t has_dropout;
    tessera_qscale qscale_type; // NONE; PER_TENSOR or BLOCK for fp8, fp8bf16, fp8fp32; MX for and only for mxfp8, mxfp4
    int32_t skip_min_seqlen_q;  // sequences with seqlen_q <= min_seqlen_q are left untouched
    int32_t has_sink;           // sink_ptr or sink_size is given
} tessera_fmha_fwd_traits;

#define TESSERA_FMHA_FWD_TRAITS_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(tessera_fmha_fwd_traits), 0, 0, TESSERA_FMHA_FP32, 0, 1, 0, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 0, 0, \
            TESSERA_QSCALE_NONE, 0, 0                                                                                  \
    }

static inline tessera_fmha_fwd_traits tessera_fmha_fwd_traits_init(void) {
    const tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    return traits;
}

// Arguments of a call. Strides count elements (for mxfp4 too, so they are even there) and are 0 or more: packed
// b*s*3*h*d views, broadcast inputs (stride 0) and padding all work. Each stride of an output must span all elements
// along the axes of smaller strides; o, lse and rand_val must overlap neither one another nor any input. The innermost
// dimension is contiguous. Memory must stay valid until the stream has finished the call. Pointers are aligned to the
// element; GPU instances may need more of q, k, v, o, as tessera_fmha_fwd_explain() says. Strides from row to row
// (stride_*) must be less than 8 MB for GPU instances, or less than 2 GiB / (rows of a block) where blocks have fewer
// than 256 rows; on AMD's GPUs batch * nhead_k is at most 2^31 - 1. Fields that the traits do not ask for are ignored.
//
//   tensor      indexed by                                        innermost
//   q, o        batch_stride, nhead_stride (h), stride (i)        hdim_q, hdim_v
//   k           batch_stride, nhead_stride (g), stride (j)        hdim_q
//   v           batch_stride, nhead_stride (g), stride (j)        hdim_v                    row-major
//               batch_stride, nhead_stride (g), stride (d)        seqlen_k                  column-major
//   bias        batch_stride, nhead_stride (h), stride (i)        seqlen_k                  elementwise
//               stride_bias (b), 1 (h)                                                      alibi slopes, fp32
//   lse         batch_stride, nhead_stride (h)                    seqlen_q                  fp32
//   rand_val    batch_stride, nhead_stride (h), stride (i)        seqlen_k                  uint8
//   sink_ptr    1 (h)                                                                       fp32
//
// In group mode batch strides are ignored (alibi's stride_bias is not) and token i of sequence b is token
// seqstart_q[b] + i of q, o, bias, lse, rand_val; token j is token seqstart_k[b] + j of k and v. bias and rand_val
// columns are j itself.
//
// Lengths. Batch mode: seqlen_q, seqlen_k; with cu_seqlen_{q,k}_ptr [batch + 1] the effective length of sequence b is
// cu[b + 1] - cu[b], at most that. Group mode: seqstart_{q,k}_ptr [batch + 1] are cumulative physical lengths; the
// logical length is seqlen_{q,k}_ptr[b], or cu_seqlen[b + 1] - cu_seqlen[b], or else the physical one. All are int32,
// in memory that the device reads. Rows of o, lse past a logical length are left untouched.
//
// Descales. PER_TENSOR: one fp32 each. BLOCK: fp32 [batch, head, ceil(seqlen / block_scale_size)], in group mode
// [head, sum of blocks] and sequence b's begin at block_scale_seqstart_{q,k}_ptr[b]; v shares k's blocks. MX: E8M0
// bytes (2^(byte - 127), 255 is NaN), one for each 32 elements along the reduced dimension: q, k [.., token,
// ceil(hdim_q / 32)] with the tensor's own order of strides; v [.., hdim_v, ceil(seqlen_k / 32)] with stride_v_descale
// from one d to the next; in group mode sequence b's columns begin at seqstart_v_scale_ptr[b].
typedef struct tessera_fmha_fwd_args {
    size_t struct_size; // sizeof(tessera_fmha_fwd_args)

    const void *q_ptr, *k_ptr, *v_ptr;
    const void *bias_ptr; // bias, or alibi slopes
    const void *q_descale_ptr, *k_descale_ptr, *v_descale_ptr;
    void *rand_val_ptr; // with s_randval: the byte of every i and j within the logical lengths
    void *lse_ptr;
    void *o_ptr;
    const void *seqstart_q_ptr, *seqstart_k_ptr;
    const void *seqlen_q_ptr, *seqlen_k_ptr;
    const void *cu_seqlen_q_ptr, *cu_seqlen_k_ptr;
    const void *block_scale_seqstart_q_ptr, *block_scale_seqstart_k_ptr;
    const void *seqstart_v_scale_ptr;
    const void *sink_ptr; // NULL: no learned sink

    int32_t seqlen_q, seqlen_k; // batch mode; group mode: seqlen_k may hint at the longest, for selection alone
    int32_t batch;
    int32_t max_seqlen_q;     // at least the longest logical length; group mode needs it
    int32_t hdim_q, hdim_v;   // those of the traits
    int32_t nhead_q, nhead_k; // nhead_q is a multiple of nhead_k

    float scale_s;         // -2^64 to 2^64; 1/sqrt(hdim_q) is usual
    float logits_soft_cap; // with has_logits_soft_cap above 0, to 2^64; on GPUs to 4096, of fp32 to 128

    int64_t stride_q, stride_k, stride_v, stride_bias, stride_randval, stride_o;
    int64_t stride_q_descale, stride_k_descale, stride_v_descale;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_randval, nhead_stride_lse;
    int64_t nhead_stride_o, nhead_stride_q_descale, nhead_stride_k_descale, nhead_stride_v_descale;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_randval, batch_stride_lse;
    int64_t batch_stride_o, batch_stride_q_descale, batch_stride_k_descale, batch_stride_v_descale;

    int32_t window_size_left, window_size_right;
    int32_t sink_size;
    tessera_mask mask_type; // that of the traits
    int32_t min_seqlen_q;

    float p_drop;       // 0 <= p_drop < 1
    int32_t s_randval;  // 1: store the bytes of dropout
    int32_t drop_prefs; // 0: the two numbers; 1: the two pointers, in memory that the device reads
    uint64_t drop_seed, drop_offset;
    const uint64_t *drop_seed_ptr, *drop_offset_ptr;

    int32_t block_scale_size_q, block_scale_size_kv; // BLOCK: > 0, 128 is usual

    void *workspace_ptr; // tessera_fmha_fwd_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;

    // The instance that must be taken: one that tessera_fmha_fwd_select() chose, perhaps for other facts, or a row of
    // tessera_fmha_fwd_get_table() in tessera/kernel/fmha_fwd.h. It does all of the call. NULL: that of least estimated
    // cost, which on an AMD GPU may leave the last workgroups to another one.
    const struct tessera_fmha_fwd_instance *instance;

    // Instances that cut keys into parts, of which others combine the results: at most so many parts. 0: as many as are
    // estimated to be fastest. Other instances take 0 and 1 only.
    int32_t num_splits;
} tessera_fmha_fwd_args;

// All zero but the struct's size, the windows (-1) and the masks' neutral values.
#ifdef __cplusplus
#define TESSERA_FMHA_FWD_ARGS_INIT tessera_fmha_fwd_args_init()
#else
#define TESSERA_FMHA_FWD_ARGS_INIT                                                                                     \
    { .struct_size = sizeof(tessera_fmha_fwd_args), .window_size_left = -1, .window_size_right = -1 }
#endif
TESSERA_INIT_WITH(tessera_fmha_fwd_args, all.window_size_left = all.window_size_right = -1)

// One row of the generated table; its definition is in tessera/kernel/fmha_fwd.h.
typedef struct tessera_fmha_fwd_instance tessera_fmha_fwd_instance;

// tessera_fmha_fwd_check() reads the arrays of lengths. On the CPU a call reads them too, on a GPU none does.
TESSERA_CALLS(fmha_fwd)

#ifdef __cplusplus
}
#endif
#endif
