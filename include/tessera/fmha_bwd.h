// SPDX-License-Identifier: MIT
// Fused multi-head attention, backward. Method: FlashAttention-2 (Dao, 2023): probabilities are computed again from
// lse. Fields have the names and meanings of CK's (example/ck_tile/01_fmha).
//
// With x, s, lse, o and the bytes of dropout as tessera/fmha_fwd.h defines them (s after soft cap, bias and mask), and
// with z[i,j] = keep[i,j] / (1 - p_drop), or 1 without dropout, for every sequence b, query head h, its key head g:
//
//   p[i,j]       = exp(s[i,j] - lse[b,h,i])                        0 where the mask hides j from i
//   d[b,h,i]     = sum_e do[b,i,h,e] o[b,i,h,e]                     hdim_v of them; stored
//   dp[i,j]      = sum_e do[b,i,h,e] v[b,j,g,e]
//   ds[i,j]      = p[i,j] (z[i,j] dp[i,j] - d[b,h,i])               the gradient of s
//   dbias[b,h,i,j] = ds[i,j]                                        with has_dbias; never summed over a broadcast bias
//   dx[i,j]      = ds[i,j] (1 - (s[i,j] / logits_soft_cap)^2)       with has_logits_soft_cap; else ds
//   dq[b,i,h,:]  = scale sum_j dx[i,j] k[b,j,g,:]
//   dk[b,j,h,:]  = scale sum_i dx[i,j] q[b,i,h,:]
//   dv[b,j,h,:]  = sum_i z[i,j] p[i,j] do[b,i,h,:]
//   d_sink[h]    = - sum_b sum_i exp(sink[b,h] - lse[b,h,i]) d[b,h,i]    with sink_ptr, which lse must include
//
// dk and dv have nhead_q heads, as CK's do; with is_dkv_reduced they have nhead_k, the sums over the heads h of g.
// Queries that see no key, and sequences without keys, have dq = 0; keys that no query sees have dk = dv = 0. Products
// accumulate in fp32. Keys that a mask hides must be finite, k and v, or gradients of queries beside them may be NaN.
// Masks, alibi and dropout are those of the forward pass: the same offset gives the same bytes.
//
// Deterministic: on CPUs every call gives the same bytes whatever the number of threads, also where is_deterministic is
// 0, which only decides how partial sums of dq are laid out (and so, between the two, their order). Nothing is atomic.
// On GPUs calls with is_deterministic do, on AMD's those on devices with as many compute units; others add to dq in any
// order, by fp32 atomics. There products take p and ds rounded to the inputs' type; those of fp16 on gfx90a take ds
// below 2^-14 for 0.
#ifndef TESSERA_FMHA_BWD_H
#define TESSERA_FMHA_BWD_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Traits decide which instances may serve a call, and together with lengths how large its workspace is, so that it can
// be allocated before there are any arguments.
typedef struct tessera_fmha_bwd_traits {
    size_t struct_size;           // sizeof(tessera_fmha_bwd_traits)
    int32_t seqlen_q, seqlen_k;   // batch mode: of every sequence; group mode: of all, padding included
    int32_t batch;                // sequences
    int32_t max_seqlen_q;         // at least the longest; batch mode ignores both
    int32_t max_seqlen_k;         // where is_deterministic without seqstart_qs and _ks, padding included
    int32_t hdim_q, hdim_v;       // 1 .. 512
    int32_t nhead_q, nhead_k;     // nhead_q is a multiple of nhead_k
    tessera_fmha_dtype data_type; // fp32, fp16, bf16
    int32_t is_group_mode;        // 0: batch, every sequence has the same room; 1: group, sequences are concatenated
    tessera_mask mask_type;
    tessera_bias bias_type;
    int32_t has_dbias; // with an elementwise bias
    int32_t has_dropout;
    int32_t is_store_randval; // with dropout: its bytes are stored, too
    int32_t is_deterministic;
    int32_t has_logits_soft_cap; // not together with a bias
    int32_t is_dkv_reduced;      // 1: dk and dv have nhead_k heads
    // Group mode, in host memory: cumulative physical lengths [batch + 1], padding included, by which the workspace is
    // sized exactly. NULL: it is sized for the worst case.
    const int32_t *seqstart_qs, *seqstart_ks;
} tessera_fmha_bwd_traits;

TESSERA_INIT(tessera_fmha_bwd_traits)

// Arguments of a call. Strides count elements and are 0 or more; outputs may not overlap themselves or anything else.
//
//   tensor         indexed by                                       innermost
//   q, dq          batch_stride, nhead_stride (h), stride (i)       hdim_q
//   o, do          batch_stride, nhead_stride (h), stride (i)       hdim_v
//   k, v           batch_stride, nhead_stride (g), stride (j)       hdim_q, hdim_v
//   dk, dv         batch_stride, nhead_stride (h or g), stride (j)  hdim_q, hdim_v
//   lse, d         batch_stride_lsed, nhead_stride_lsed (h)         queries                     fp32
//   bias, dbias    batch_stride, nhead_stride (h), stride (i)       keys of the longest sequence
//   (alibi)        stride_bias (b)                                  nhead_q                     fp32
//   rand_val       batch_stride, nhead_stride (h), stride (i)       keys of the longest sequence  uint8
//   sink           batch_stride_sink (b), 0 for all the same        nhead_q                     fp32
//   d_sink         1                                                nhead_q                     fp32
//
// In group mode batch strides are ignored (alibi's stride_bias and batch_stride_sink are not) and sequences begin at
// seqstart_{q,k}_ptr[b], as in the forward pass; so are lengths: seqlen_{q,k}_ptr, cu_seqlen_{q,k}_ptr. Rows past
// a logical length are neither read nor written, and of dbias and rand_val no columns past it. Of rows within, every
// element of every output is written, whatever it held (CK adds to d_sink and leaves hidden parts of dbias alone).
typedef struct tessera_fmha_bwd_args {
    size_t struct_size; // sizeof(tessera_fmha_bwd_args)

    const void *q_ptr, *k_ptr, *v_ptr;
    const void *bias_ptr; // bias, or alibi slopes
    const void *o_ptr;
    const void *lse_ptr;
    const void *do_ptr;
    void *d_ptr;
    void *rand_val_ptr;
    void *dq_ptr, *dk_ptr, *dv_ptr;
    void *dbias_ptr;
    const void *sink_ptr; // NULL: no learned sink
    void *d_sink_ptr;     // with sink_ptr
    const void *seqstart_q_ptr, *seqstart_k_ptr;
    const void *seqlen_q_ptr, *seqlen_k_ptr;
    const void *cu_seqlen_q_ptr, *cu_seqlen_k_ptr;

    int32_t seqlen_q, seqlen_k, batch, max_seqlen_q, max_seqlen_k, hdim_q, hdim_v, nhead_q, nhead_k; // the traits'

    float scale; // of q k, -2^64 to 2^64; 1/sqrt(hdim_q) is usual
    float logits_soft_cap;

    int64_t stride_q, stride_k, stride_v, stride_bias, stride_o, stride_randval, stride_do;
    int64_t stride_dq, stride_dk, stride_dv, stride_dbias;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_bias, nhead_stride_o, nhead_stride_randval;
    int64_t nhead_stride_do, nhead_stride_lsed, nhead_stride_dq, nhead_stride_dk, nhead_stride_dv, nhead_stride_dbias;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_bias, batch_stride_o, batch_stride_randval;
    int64_t batch_stride_do, batch_stride_lsed, batch_stride_dq, batch_stride_dk, batch_stride_dv, batch_stride_dbias;
    int64_t batch_stride_sink;

    int32_t window_size_left, window_size_right;
    int32_t sink_size;      // the first keys of a window, as in the forward pass
    tessera_mask mask_type; // that of the traits

    float p_drop;       // 0 <= p_drop < 1
    int32_t drop_prefs; // 0: the two numbers; 1: the two pointers, in memory that the device reads
    uint64_t drop_seed, drop_offset;
    const uint64_t *drop_seed_ptr, *drop_offset_ptr;

    void *workspace_ptr; // tessera_fmha_bwd_workspace_size() bytes, 64-byte aligned
    size_t workspace_size;
    int32_t is_workspace_prepared; // 1: by a launcher's functions; 0: the call prepares it itself, contents are lost

    const struct tessera_fmha_bwd_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_fmha_bwd_args;

TESSERA_INIT_WITH(tessera_fmha_bwd_args, all.window_size_left = all.window_size_right = -1)

typedef struct tessera_fmha_bwd_instance tessera_fmha_bwd_instance; // tessera/kernel/fmha_bwd.h

// tessera_fmha_bwd_check() reads the arrays of lengths. On the CPU a call reads them too, on a GPU none does.
TESSERA_CALLS(fmha_bwd)

// ---- the workspace, and launchers
//
// One block of memory, whose layout is a launcher's affair. A caller allocates workspace_size bytes, has them prepared
// before every run, and hands them over as workspace_ptr:
//
//   offset 0         int32_t nsplits[batch in deterministic group mode, else 1]      parts that dq is the sum of
//   offsets_offset   int64_t dq_acc_offsets[batch + 1], group mode only              in elements; [0] = 0
//   host_ws_size     float   dq_acc[], for each sequence [nhead_q, nsplits, queries with padding, hdim_q]
//   scratch_offset   what threads of CPUs compute in, counters of GPUs; a multiple of 64, and after it all is scratch
//
// The first two are a multiple of 16 bytes long, on sm_90a both together of 64. dq_acc, there of dq over the scale and
// with the columns of a row in an order of its own, has device_ws_size bytes: the sum of nhead_q * nsplits * queries *
// hdim_q over the sequences, times 4; where only the device knows the lengths it has as many as they could need. Parts:
//
//   not deterministic            1, to which one task adds all keys of a head in order, or on GPUs several in any order
//   deterministic, group mode    ceil(keys with padding / bn0) of each sequence, bn0 that of the instance
//   deterministic, batch mode    for n = ceil(seqlen_k / bn0) blocks of each head and w = ceil(batch * heads * n /
//                                workers) of them for each of the workers: n / w if w divides n, 1 if n divides w, else
//                                1 + ceil((n - 1) / w). Workers are 4 for each compute unit of a CPU, 1 for each of a
//                                GPU; heads are those of dk
//
// dq_acc is zeroed, except in deterministic group mode without mask, where every part is written as a whole.
// Instances for sm_90a have 1 part where others have those of their tasks: tasks add to it by turns, in the order of
// their keys, and it is zeroed. Whose turn it is say counters behind dq_acc, which every run zeroes.
// An instance that takes few queries alone writes dq itself: it needs no workspace, workspace_size is 0, preparing does
// nothing, and every call gives the same bytes.
typedef struct tessera_fmha_bwd_launcher {
    size_t struct_size;
    const tessera_device *device; // borrowed
    tessera_fmha_bwd_traits traits;
    const struct tessera_fmha_bwd_instance *instance; // NULL: none serves the traits
    const struct tessera_fmha_bwd_dot_do_o_instance *dot_do_o;
    const struct tessera_fmha_bwd_convert_dq_instance *convert_dq; // NULL: `instance` writes dq itself
    size_t workspace_size;
    size_t offsets_offset, host_ws_size, device_ws_size, scratch_offset;
    int32_t needs_zero_dq_acc;
} tessera_fmha_bwd_launcher;

// Chooses the instances for the traits (CK's constructor). Where none serves them it logs a warning, and it and all
// calls with that launcher return TESSERA_ERROR_NO_INSTANCE. Nothing has to be released.
TESSERA_API tessera_status tessera_fmha_bwd_launcher_init(const tessera_device *device,
                                                          const tessera_fmha_bwd_traits *traits,
                                                          tessera_fmha_bwd_launcher *out);

// Fills in the head of a workspace and zeroes dq_acc where that is needed. In group mode seqstart_qs and seqstart_ks of
// the traits must be given; _async takes them from memory of the device instead, when the stream comes to it.
TESSERA_API tessera_status tessera_fmha_bwd_prepare_workspace(const tessera_fmha_bwd_launcher *launcher,
                                                              void *workspace, void *stream);
TESSERA_API tessera_status tessera_fmha_bwd_prepare_workspace_async(const tessera_fmha_bwd_launcher *launcher,
                                                                    void *workspace, const void *seqstart_q,
                                                                    const void *seqstart_k, void *stream);

// Runs a call with a prepared workspace, args->workspace_ptr.
TESSERA_API tessera_status tessera_fmha_bwd_launcher_run(const tessera_fmha_bwd_launcher *launcher,
                                                         const tessera_fmha_bwd_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
