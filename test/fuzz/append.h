// SPDX-License-Identifier: MIT
// What programs share whose operations append keys to caches, as tessera/fmha_fwd_appendkv.h has it.
#ifndef TESSERA_TEST_FUZZ_APPEND_H
#define TESSERA_TEST_FUZZ_APPEND_H

#include "appendkv_reference.h"
#include "fuzz.h"
#include "tessera/fmha_fwd_appendkv.h"

typedef tessera_fmha_fwd_appendkv_args append_args;
typedef tessera_fmha_fwd_appendkv_traits append_traits;

// How keys are rotated, if they are, and strides of new ones. Tables of angles have rows for so many positions.
void choose_append(const append_traits *t, append_args *a, int32_t positions);
void choose_rope(append_traits *t);

// Whether new keys, what they are rotated by, and the caches lie in the rooms.
int append_fits(const append_traits *t, const append_args *a, int *comparable);
void allow_append(const append_traits *t, const append_args *a);
// Fails where the caches, or queries, do not hold what they must.
void compare_append(const append_traits *t, const append_args *a);
// Queries of a call that appends first, rotated as there; the caller frees them. They have the strides of q.
void *rotated_queries(const append_traits *t, const append_args *a);

// Rows of a page, or of a sequence's room in a cache.
int32_t rows_of_block(const append_args *a);

// Copies the fields that operations that append first have by the same names.
#define COPY_APPEND_ARGS(to, from)                                                                                     \
    do {                                                                                                               \
        (to)->knew_ptr = (from)->knew_ptr, (to)->vnew_ptr = (from)->vnew_ptr;                                          \
        (to)->rotary_cos_ptr = (from)->rotary_cos_ptr, (to)->rotary_sin_ptr = (from)->rotary_sin_ptr;                  \
        (to)->seqlen_knew = (from)->seqlen_knew;                                                                       \
        (to)->rotary_dim = (from)->rotary_dim, (to)->rotary_rows = (from)->rotary_rows;                                \
        (to)->stride_knew = (from)->stride_knew, (to)->nhead_stride_knew = (from)->nhead_stride_knew;                  \
        (to)->stride_vnew = (from)->stride_vnew, (to)->nhead_stride_vnew = (from)->nhead_stride_vnew;                  \
        (to)->batch_stride_knew = (from)->batch_stride_knew, (to)->batch_stride_vnew = (from)->batch_stride_vnew;      \
    } while (0)
// Those of caches.
#define COPY_CACHE_ARGS(to, from)                                                                                      \
    do {                                                                                                               \
        (to)->q_ptr = (from)->q_ptr, (to)->k_ptr = (void *)(uintptr_t)(from)->k_ptr;                                   \
        (to)->v_ptr = (void *)(uintptr_t)(from)->v_ptr;                                                                \
        (to)->seqlen_k_ptr = (from)->seqlen_k_ptr, (to)->block_table_ptr = (from)->block_table_ptr;                    \
        (to)->cache_batch_idx = (from)->cache_batch_idx;                                                               \
        (to)->seqlen_q = (from)->seqlen_q, (to)->batch = (from)->batch;                                                \
        (to)->hdim_q = (from)->hdim_q, (to)->hdim_v = (from)->hdim_v;                                                  \
        (to)->nhead_q = (from)->nhead_q, (to)->nhead_k = (from)->nhead_k;                                              \
        (to)->cache_blocks = (from)->cache_blocks, (to)->page_block_size = (from)->page_block_size;                    \
        (to)->batch_stride_block_table = (from)->batch_stride_block_table;                                             \
        (to)->stride_q = (from)->stride_q, (to)->stride_k = (from)->stride_k, (to)->stride_v = (from)->stride_v;       \
        (to)->nhead_stride_q = (from)->nhead_stride_q, (to)->nhead_stride_k = (from)->nhead_stride_k;                  \
        (to)->nhead_stride_v = (from)->nhead_stride_v, (to)->batch_stride_q = (from)->batch_stride_q;                  \
        (to)->batch_stride_k = (from)->batch_stride_k, (to)->batch_stride_v = (from)->batch_stride_v;                  \
    } while (0)

#endif
