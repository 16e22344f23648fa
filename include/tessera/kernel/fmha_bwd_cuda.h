// SPDX-License-Identifier: MIT
// The argument of an emitted kernel of fmha_bwd's dq_dk_dv for NVIDIA's GPUs. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_BWD_CUDA_H
#define TESSERA_KERNEL_FMHA_BWD_CUDA_H

#include "tessera/kernel/fmha_bwd_gpu.h"
#include "tessera/kernel/tensor_map.h"

// Tensors that a map describes; others are copied by the lanes of a warp, or added to from registers.
enum {
    TESSERA_CUDA_BWD_MAP_Q = 1,
    TESSERA_CUDA_BWD_MAP_K = 2,
    TESSERA_CUDA_BWD_MAP_V = 4,
    TESSERA_CUDA_BWD_MAP_DO = 8,
    TESSERA_CUDA_BWD_MAP_DQ = 16
};

// Workgroups stay and take tasks in turns, each bn0 keys of one head of dk and one sequence. Tasks are numbered in
// groups of `heads_together` heads of dk (of all sequences: number of the sequence * heads + head); within a group the
// first block of keys of each head comes first. Tasks past the end of their sequence do nothing.
//
// They add to dq_acc, of which each head has one part, in any order, or with `turns` in that of the blocks of keys: a
// task waits at each tile of queries for the blocks before, whose numbers are lower, so that somebody is at work on
// them or has them done.
//
// The maps have the dimensions column, row, head, sequence. In group mode there is one sequence with rows for all.
struct tessera_fmha_bwd_cuda_args {
    struct tessera_tensor_map map_q, map_k, map_v, map_do;
    struct tessera_tensor_map map_dq; // of dq_acc: column, row, part of a head; in group mode all rows are in one
    struct tessera_fmha_bwd_gpu_args call;
    uint32_t maps;                        // TESSERA_CUDA_BWD_MAP_*
    int32_t tasks, heads, heads_together; // heads of dk of a sequence
    uint32_t *counter; // of tasks taken beyond a first for each workgroup; NULL: they are dealt out in turns
    uint32_t *turns;   // zeros, one for each row of dq_acc, of which first rows of tiles use theirs; NULL: any order
};

#endif
