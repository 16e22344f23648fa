// SPDX-License-Identifier: MIT
// The argument of emitted GPU kernels of fmha_bwd and its sub-kernels. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_BWD_GPU_H
#define TESSERA_KERNEL_FMHA_BWD_GPU_H

#include "tessera/kernel/fmha_fwd_gpu.h" // TESSERA_GPU_*

// What a launch of dot_do_o's kernel does.
enum {
    TESSERA_BWD_ROWS = 0,   // d of rows of q. Grid: blocks of bm0 rows, query heads, sequences
    TESSERA_BWD_D_SINK = 1, // d_sink of a head, after d of all rows. Grid: query heads
    TESSERA_BWD_HEAD = 2,   // the workspace's head: nsplits, dq_acc_offsets. Grid: one workgroup
};

// One struct for all of them. Device code includes this header too: it has only fixed-size types, and pointers that are
// 8 bytes on both sides. Strides count elements. In group mode seqstart_q is not NULL and batch strides are 0.
//
// dq_dk_dv computes dk and dv of bn0 keys, and adds what they give to dq_acc, in fp32. A head is one of dk: with
// dkv_group > 1 its workgroup goes over that many query heads, first head * dkv_group, and else over one. Where `share`
// is 0, the grid has blocks of keys, heads of dk and sequences, and block n writes to part n of the head's dq_acc if
// is_dq_stored, else it adds to part 0 in any order (atomically). Else blocks of keys are numbered, those of a head
// after one another, then heads, then sequences, blocks_k of each head; workgroup w of a grid along x does numbers
// w * share on, `share` of them, in this order, and adds to part number w - head_number * blocks_k / share of the head:
// nobody else does. dq_acc was zeroed unless is_dq_stored_all: then every row of every part is written, by blocks
// without keys too.
// Instances with max_q: the grid has query heads along y and sequences along z; a workgroup goes over all keys of a
// head, and dq is stored as such: there is no workspace.
// convert_dq: grid as that of TESSERA_BWD_ROWS; dq is the sum of the parts in their order.
struct tessera_fmha_bwd_gpu_args {
    const void *q, *k, *v, *o, *d_o; // d_o: gradient of o
    const float *lse;
    float *d;
    void *dq, *dk, *dv;
    void *dbias;      // NULL: not asked for
    const void *bias; // elements of the inputs' type, or ALiBi slopes, fp32
    uint8_t *rand_val;
    const float *sink; // of sequences and heads; NULL: none
    float *d_sink;
    // Lengths as in struct tessera_fmha_fwd_gpu_args.
    const int32_t *seqstart_q, *seqstart_k;
    const int32_t *seqlen_q_of, *seqlen_k_of;
    const int32_t *cu_seqlen_q, *cu_seqlen_k;
    // The workspace, as tessera/fmha_bwd.h has it. dq_acc_offsets: NULL in batch mode.
    int32_t *nsplits;
    int64_t *dq_acc_offsets;
    float *dq_acc;

    int64_t stride_q, stride_k, stride_v, stride_o, stride_do, stride_dq, stride_dk, stride_dv;
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_o, nhead_stride_do;
    int64_t nhead_stride_dq, nhead_stride_dk, nhead_stride_dv, nhead_stride_lsed;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_o, batch_stride_do;
    int64_t batch_stride_dq, batch_stride_dk, batch_stride_dv, batch_stride_lsed;
    int64_t stride_bias, nhead_stride_bias, batch_stride_bias; // slopes have batch_stride_bias only
    int64_t stride_dbias, nhead_stride_dbias, batch_stride_dbias;
    int64_t stride_randval, nhead_stride_randval, batch_stride_randval;
    int64_t batch_stride_sink;

    int32_t batch;
    int32_t seqlen_q, seqlen_k; // batch mode
    int32_t nhead_q, nhead_k;
    int32_t group;     // nhead_q / nhead_k
    int32_t dkv_group; // query heads that a head of dk is the sum of: group, or 1
    int32_t hdim_q, hdim_v;
    int32_t type; // tessera_type of q, k, v, o and of gradients

    // Masks, soft cap, bias and dropout as in struct tessera_fmha_fwd_gpu_args.
    uint32_t features; // TESSERA_GPU_*
    int32_t mask_y, mask_x, shift_y, shift_x;
    int32_t sink_size;
    float scale;
    float scale_log2; // scale * log2(e): of any sign, and 0 too
    float cap_log2, cap_scale;
    float keep_scale;
    uint32_t keep_below;
    const uint64_t *drop_seed_ptr, *drop_offset_ptr;
    uint64_t drop_seed, drop_offset;

    int32_t phase;    // dot_do_o: TESSERA_BWD_*
    int32_t bn0;      // keys of a block of dq_dk_dv
    int32_t blocks_k; // of a head: batch mode all, group mode those of max_seqlen_k
    int64_t share;
    int32_t nsplits_of_all;   // parts of each head
    int32_t is_by_sequence;   // nsplits has a number for each sequence
    int32_t is_dq_stored;     // each block of keys has a part of its own: ceil(keys with padding / bn0), <= blocks_k
    int32_t is_dq_stored_all; // and that is not zeroed before
};

#endif
