// SPDX-License-Identifier: MIT
// The rows of fmha_fwd_appendkv: which token and head a row is one of, and where it lies in the cache. The same on CPUs
// and GPUs, whose vocabularies stand before it.
#ifndef TESSERA_DEVICE_ATTENTION_COMMON_APPEND_H
#define TESSERA_DEVICE_ATTENTION_COMMON_APPEND_H

#include "tessera/kernel/fmha_fwd_appendkv.h"

typedef struct tessera_fmha_fwd_appendkv_problem problem;

// A row of a new key and its value, or of a query.
struct row {
    int32_t batch, token, head, is_query;
    int32_t position; // of its token in the sequence
};

INLINE int32_t rows_of_sequence(const problem *p) {
    return p->seqlen_knew * p->nhead_k + (p->rotary_dim ? p->seqlen_q * p->nhead_q : 0);
}

// `number`: in its sequence, which holds `before` keys.
INLINE struct row row_of(const problem *p, int32_t batch, int32_t number, int32_t before) {
    const int32_t keys = p->seqlen_knew * p->nhead_k, is_query = number >= keys;
    const int32_t heads = is_query ? p->nhead_q : p->nhead_k, rest = is_query ? number - keys : number;
    struct row row = {batch, rest / heads, rest % heads, is_query, before};
    if (!is_query || p->has_mask) row.position += row.token;
    return row;
}

// Whether the row may be rotated by its position.
INLINE int is_in_table(const problem *p, const struct row *row) {
    return !p->rotary_dim || (row->position >= 0 && row->position < p->rotary_rows);
}

// The sequence, or page, of the cache that a key goes to, and its row there; below 0: to none.
struct slot {
    int32_t block, row;
};
INLINE struct slot slot_of(const problem *p, const struct row *row) {
    const int32_t t = row->position;
    struct slot slot = {-1, t};
    if (t < 0 || t >= p->max_seqlen_k) return slot;
    if (p->block_table) {
        slot.block = p->block_table[row->batch * p->table_stride + t / p->page_size];
        slot.row = t % p->page_size;
    } else {
        slot.block = p->cache_batch_idx ? p->cache_batch_idx[row->batch] : row->batch;
    }
    if (slot.block >= p->cache_blocks) slot.block = -1;
    return slot;
}

INLINE int64_t element_of(const struct tessera_append_strides *of, int32_t batch, int32_t head, int32_t row) {
    return batch * of->batch + head * of->head + row * of->row;
}

#endif
