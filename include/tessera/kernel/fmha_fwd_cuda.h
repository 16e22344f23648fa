// SPDX-License-Identifier: MIT
// The argument of an emitted kernel of fmha_fwd for NVIDIA's GPUs. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_CUDA_H
#define TESSERA_KERNEL_FMHA_FWD_CUDA_H

#include "tessera/kernel/attention_pages.h"
#include "tessera/kernel/fmha_fwd_gpu.h"
#include "tessera/kernel/tensor_map.h"

// Tensors that a map describes; other ones are copied by the lanes of a warp.
enum { TESSERA_CUDA_MAP_Q = 1, TESSERA_CUDA_MAP_K = 2, TESSERA_CUDA_MAP_V = 4 };

// What a launch does with tiles of V: nothing beforehand; it transposes all of them, and nothing else, one for a place
// in shared memory; they are so already (device/attention/cuda/transpose_first.h).
enum { TESSERA_CUDA_V_ROWS, TESSERA_CUDA_V_TRANSPOSING, TESSERA_CUDA_V_TRANSPOSED };

// Rows of a box where tasks have all key heads (device/attention/cuda_pages/whole.h).
enum { TESSERA_CUDA_BOX_ROWS = 8 };

// Workgroups stay and take tasks in turns, each bm0 rows of q of one query head and sequence. Of instances that merge
// heads a task's rows are those of all query heads of a key head, row = query * group + head, and it has a part of the
// tiles of keys; tasks are numbered part by part. Other tasks are numbered in groups of `heads_together` of the `heads`
// (of all sequences: number of the sequence * nhead_q + head); within a group the last block of q of each head comes
// first. `call.blocks_q` counts the blocks of the longest sequence, and tasks past the end of theirs do nothing. The
// first `blocks_behind` (0 or 1) blocks of heads come behind the others of all. After `whole` tasks come strips, of a
// warpgroup's rows each: those of the other blocks, and `strips_behind` behind the last block of each head.
//
// If `paired` is not 0 workgroups 2 n and 2 n + 1 are a cluster, and of the first `paired` tasks 2 n and 2 n + 1 have
// the same keys. All tasks have all keys of a key head in batch mode then: there are maps of all, and boxes of k, and
// of v unless it is transposed first, have half of a tile's rows (device/attention/cuda/pairs.h).
//
// Sequences of more than `queries` queries are left alone by instances that find keys in caches.
//
// The maps have the dimensions column, row, head, sequence. Rows of column-major v are columns of o, and beside such v
// of 8 bits the rows of k are two dimensions, one of four and one of fours (device/attention/cuda/share.h). In group
// mode there is one sequence with rows for all, whose number the host does not know: what lies past the last one is
// never read by them.
//
// Of a cache the dimensions of its maps are column, row of a block, head, block; boxes have `box_rows` rows. Key j of
// sequence b is row (j + offset) % page_size of block (j + offset) / page_size of the sequence's part of the table,
// which begins at entry begin[b], or at b * table_stride. A key past a sequence's last one is never looked up. Where
// `begin` is not NULL the list says how many keys a sequence has: `last`, unless it is NULL, has the rows of its last
// block. Where tasks have all key heads, of a cache of 8 bits, the dimensions are byte of 128, row of a page, 128 bytes
// of a row of all heads, page, and boxes have all of TESSERA_CUDA_BOX_ROWS rows. Where `piece_v` is not 0 blocks are
// pages in pieces, as tessera_attention_pages has them: there are no boxes.
// Rows of a quantised cache have scales, or norms, unless all have the tensor's one, which is call.k_descale and
// call.v_descale. They begin anywhere, if `aligned` does not say that all begin at multiples of 16 bytes, or of
// turbo4 that they are in step (device/attention/cuda_pages/in_step.h).
struct tessera_fmha_fwd_cuda_pages {
    const int32_t *table, *begin, *offset, *last;
    int64_t table_stride, stride_k, stride_v; // those of k and v from block to block, in elements
    int32_t page_size, box_rows, aligned, piece_v;
    struct tessera_attention_page_scales k_scale, v_scale;
    const float *centroids; // of turbo4: [16]
};

struct tessera_fmha_fwd_cuda_args {
    struct tessera_tensor_map map_q, map_k, map_v;
    struct tessera_fmha_fwd_gpu_args call;
    uint32_t maps; // TESSERA_CUDA_MAP_*
    int32_t tasks, heads, heads_together, whole, strips_behind, blocks_behind;
    // Instances that merge heads. With parts > 1 results go to o_acc [batch, nhead_q, queries, parts, hdim_v] and the
    // logarithms of their sums, base 2, to lse_acc [batch, nhead_q, queries, parts], where -inf says that there is no
    // result. A part has `part_tiles` tiles, or a `parts`-th of a task's where that is more.
    int32_t parts, part_tiles, queries;
    float *o_acc, *lse_acc;
    char *transposed; // unless `v` is V_ROWS: `head_tiles` tiles of V of each key head of each sequence
    int32_t v, all_tiles, head_tiles, paired;
    uint32_t *counter; // of tasks taken beyond a first for each workgroup; NULL: they are dealt out in turns
    struct tessera_fmha_fwd_cuda_pages pages; // of instances that find keys in caches
};

#endif
