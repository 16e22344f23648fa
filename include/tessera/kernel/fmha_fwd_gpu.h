// SPDX-License-Identifier: MIT
// The argument of an emitted CDNA kernel of fmha_fwd. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_GPU_H
#define TESSERA_KERNEL_FMHA_FWD_GPU_H

#include <stdint.h>

// Features of a call, as bits of `features`.
enum {
    TESSERA_GPU_SOFT_CAP = 1,
    TESSERA_GPU_BIAS = 2,            // elementwise
    TESSERA_GPU_ALIBI = 4,           // bias holds the slopes
    TESSERA_GPU_ALIBI_SHIFT = 8,     // query i's zero point is i + seqlen_k - seqlen_q, else i
    TESSERA_GPU_ALIBI_VERTICAL = 16, // the zero point is 0 for all queries, and the slope has the opposite sign
    TESSERA_GPU_DROPOUT = 32,
    TESSERA_GPU_RANDVAL = 64,     // stores the random bytes of dropout, of all keys
    TESSERA_GPU_SCALED = 128,     // scores are scaled before their maximum is taken, since the scale is not positive
                                  // or something is added to scaled scores
    TESSERA_GPU_PER_TENSOR = 256, // fp8: descales, one fp32 each
    TESSERA_GPU_BLOCK = 512,      // fp8: descales, fp32, for blocks of rows; with TESSERA_GPU_SCALED
    TESSERA_GPU_ROWS = 1024,      // fp8: descales, fp32, of the rows of q; those of k and v are the pages'
};

// A workgroup computes bm0 rows of q of one query head and sequence. Key heads of all sequences, number of the sequence
// * nhead_k + head, take turns in groups of `together`: z in the grid is the group, x the query head in it, where the
// first query heads of all its key heads come first; y is the block of q, the last block first, since under a mask it
// tends to see the most keys, and counts those of the longest sequence. With `turns` a workgroup takes such a block
// from each of so many parts of the grid (block_of_turn() in device/attention/cdna/task.h). A workgroup whose rows lie
// past its sequence's end does nothing. Device code includes this header too: it has only fixed-size types, and
// pointers that are 8 bytes on both sides.
struct tessera_fmha_fwd_gpu_args {
    const void *q, *k, *v;
    void *o;
    float *lse; // NULL: not asked for
    // In group mode seqstart_q is not NULL and batch strides are 0. Logical lengths are those of tessera/fmha_fwd.h, or
    // NULL where they are not given.
    const int32_t *seqstart_q, *seqstart_k;
    const int32_t *seqlen_q_of, *seqlen_k_of;
    const int32_t *cu_seqlen_q, *cu_seqlen_k;
    int64_t stride_q, stride_k, stride_v, stride_o; // in elements; a tile's rows span less than 2 GiB
    int64_t nhead_stride_q, nhead_stride_k, nhead_stride_v, nhead_stride_o, nhead_stride_lse;
    int64_t batch_stride_q, batch_stride_k, batch_stride_v, batch_stride_o, batch_stride_lse;
    int32_t seqlen_q, seqlen_k; // batch mode
    int32_t nhead_q, nhead_k;
    int32_t group;    // nhead_q / nhead_k
    int32_t together; // a divisor of nhead_k times the sequences
    // For 0 <= n < 2^31 the upper 32 bits of (n + 1) * over_<d>, shifted to the right by shift_<d>, are n / <d>.
    uint32_t over_nhead_k, shift_nhead_k, over_together, shift_together;
    float scale_log2; // scale_s * log2(e), but never 0: |scale_log2| >= FLT_MIN
    // Query i sees i - y < j < i + x, where y = mask_y + shift_y * (seqlen_q - seqlen_k) and
    // x = mask_x - shift_x * (seqlen_q - seqlen_k); an unbounded side is INT32_MAX / 2 with shift 0.
    int32_t mask_y, mask_x;
    int32_t shift_y, shift_x;
    int32_t min_seqlen_q;   // sequences with seqlen_q <= this are left untouched; -1: none
    int32_t blocks_q;       // of the longest sequence
    int32_t turns, rows;    // blocks of a workgroup of an instance that takes some in turns; the y of the grid
    int32_t hdim_q, hdim_v; // multiples of 8, at most the instance's
    uint32_t features;      // TESSERA_GPU_*
    int32_t sink_size;      // where mask_y < seqlen_q, query i < seqlen_k sees j < min(sink_size, i + mask_x) too
    const float *sink;      // a score of each head that is added to the sum of exponentials only; NULL: none
    const void *bias;       // elements of the inputs' type, or ALiBi slopes, fp32
    int64_t stride_bias, nhead_stride_bias, batch_stride_bias; // slopes have batch_stride_bias only
    float cap_log2;                                            // logits_soft_cap * log2(e)
    float cap_scale;                                           // 2 / logits_soft_cap
    const uint64_t *drop_seed_ptr, *drop_offset_ptr;           // NULL: drop_seed and drop_offset are used
    uint64_t drop_seed, drop_offset;
    uint8_t *rand_val;
    int64_t stride_randval, nhead_stride_randval, batch_stride_randval;
    uint32_t keep_below; // a byte of dropout <= keep_below keeps its element
    float keep_scale;    // 1 / (1 - p_drop); without dropout 1
    // Descales as in tessera/fmha_fwd.h; NULL where there are none.
    const void *q_descale, *k_descale, *v_descale;
    const int32_t *block_scale_seqstart_q, *block_scale_seqstart_k, *seqstart_v_scale; // group mode
    int64_t stride_q_descale, stride_k_descale, stride_v_descale;
    int64_t nhead_stride_q_descale, nhead_stride_k_descale, nhead_stride_v_descale;
    int64_t batch_stride_q_descale, batch_stride_k_descale, batch_stride_v_descale; // group mode: 0
    int32_t block_scale_size_q, block_scale_size_kv;
};

#endif
