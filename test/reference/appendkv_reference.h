// SPDX-License-Identifier: MIT
// Whether fmha_fwd_appendkv left in the cache and in the rotated queries what it must, in fp64. Written from the text
// of its public header; shares no code with the library, and finds rows of the cache in its own way, page after page.
#ifndef APPENDKV_REFERENCE_H
#define APPENDKV_REFERENCE_H

#include "tessera/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor of rows, with distances in elements.
typedef struct appendkv_tensor {
    const void *begin;
    int64_t block_stride, head_stride, row_stride;
    int32_t columns;
} appendkv_tensor;

// A tensor that the call writes: it, and all of its bytes before the call.
typedef struct appendkv_output {
    appendkv_tensor now;
    void *before; // the check puts into it what it has found to be right
    int64_t bytes;
    const char *name;
} appendkv_output;

typedef struct appendkv_call {
    tessera_type type;
    tessera_rope rope;
    int32_t batch, heads_q, heads_k, queries, added; // `added`: new keys of each sequence
    int32_t rotary_dim, positions_differ;            // has_mask
    const int32_t *keys_before;                      // of each sequence
    const int32_t *pages; // a table of page numbers, or NULL; its rows are table_stride apart
    int32_t page_size, table_stride;
    const int32_t *cache_of; // the sequences' numbers in the cache, or NULL: their own
    appendkv_tensor q, knew, vnew;
    appendkv_output q_rotated, k, v;
    const void *cos, *sin;
    // Where not 0: a GPU leaves out keys at positions, and in sequences or pages, that are not below these, and where
    // it rotates rows at positions that are not below `angles`.
    int32_t positions, blocks, angles;
} appendkv_call;

typedef struct appendkv_verdict {
    int64_t checked, wrong; // elements
    char first[200];        // of the wrong ones, in words
} appendkv_verdict;

// Elements that are copied must be the same bit by bit. Of those that are rotated an error of half a unit in the last
// place, and of three roundings in fp32, is right. All other bytes must be as before.
void appendkv_check(const appendkv_call *call, appendkv_verdict *verdict);

// Column `column`, which is rotated, of the row of a tensor that begins at element `begin` and has this position.
double appendkv_rotated(const appendkv_call *call, const appendkv_tensor *x, int64_t begin, int32_t position,
                        int32_t column);

#ifdef __cplusplus
}
#endif
#endif
