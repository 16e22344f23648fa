// SPDX-License-Identifier: MIT
// What emitted kernels of fmha_fwd_appendkv receive, and the rows of its table. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_APPENDKV_H
#define TESSERA_KERNEL_FMHA_FWD_APPENDKV_H

#include "tessera/fmha_fwd_appendkv.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where rows of a tensor lie, in elements.
struct tessera_append_strides {
    int64_t batch, head, row;
};

// A CPU kernel reads it through a pointer; of a GPU kernel it is the one argument. Everything that can be checked
// without reading arrays was checked.
struct tessera_fmha_fwd_appendkv_problem {
    const void *q, *knew, *vnew, *cos, *sin;
    void *q_rotated, *k, *v;
    const int32_t *seqlen_k, *block_table, *cache_batch_idx;
    int32_t *seqlen_k_after; // where a GPU's kernel leaves the lengths with the new keys; NULL: nowhere
    struct tessera_append_strides of_q, of_q_rotated, of_k, of_v, of_knew, of_vnew;
    int64_t table_stride;
    int32_t batch, seqlen_q, seqlen_knew, nhead_q, nhead_k, hdim_q, hdim_v;
    int32_t rotary_dim, rotary_rows, has_mask; // rotary_dim is 0 without rope
    int32_t max_seqlen_k, cache_blocks, page_size;
    int32_t type, rope; // tessera_type, tessera_rope
};

// Rows of a call are numbered: those of a sequence follow one another, its new keys (with their values) before its
// queries, and of a token all heads. A CPU kernel computes rows begin .. end - 1.
typedef void tessera_fmha_fwd_appendkv_cpu_run(const struct tessera_fmha_fwd_appendkv_problem *problem, int64_t begin,
                                               int64_t end);

typedef struct tessera_fmha_fwd_appendkv_tile {
    uint16_t rows;  // of a workgroup; CPU: 1
    uint16_t lanes; // of a row
    uint16_t bytes; // that a lane moves at once; 0: an element's
} tessera_fmha_fwd_appendkv_tile;

struct tessera_fmha_fwd_appendkv_instance {
    tessera_instance base;
    tessera_fmha_fwd_appendkv_tile tile;
    tessera_fmha_fwd_appendkv_cpu_run *run; // CPU instances
};

TESSERA_TABLE_CALLS(fmha_fwd_appendkv)

#ifdef __cplusplus
}
#endif
#endif
