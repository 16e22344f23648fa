// SPDX-License-Identifier: MIT
// The argument of an emitted CDNA kernel of mla_prefill. Not for callers.
#ifndef TESSERA_KERNEL_MLA_PREFILL_CDNA_H
#define TESSERA_KERNEL_MLA_PREFILL_CDNA_H

#include "tessera/kernel/fmha_fwd_gpu.h"

// A work item is what a workgroup of fmha_fwd computes. Kernels find `call` where the struct begins. Keys of `call`
// are the part of 128 elements; that of 64 lies in a tensor of its own. Each workgroup of a persistent grid takes one
// item of each `workgroups` items, whose numbers count the query head fastest, then the block.
struct tessera_mla_prefill_cdna_args {
    struct tessera_fmha_fwd_gpu_args call;
    const void *k_rope;
    int64_t stride_k_rope, nhead_stride_k_rope, batch_stride_k_rope; // elements; group mode: the last is 0
    uint32_t items, workgroups;
};

#endif
