// SPDX-License-Identifier: MIT
// Keys and values that lie in pages, as CPU kernels of attention get them. Not for callers.
#ifndef TESSERA_KERNEL_ATTENTION_PAGES_H
#define TESSERA_KERNEL_ATTENTION_PAGES_H

#include <stdint.h>

#include "tessera/attention.h"

// Where rows of a tensor of pages lie, in elements.
struct tessera_attention_page_strides {
    int64_t page, head, row;
};

// The scale of each row of a tensor of pages, fp32 or fp16. A page's or a head's only scale has strides of 0.
struct tessera_attention_page_scales {
    const void *base; // NULL: there are none
    tessera_type type;
    struct tessera_attention_page_strides of; // in bytes
};

enum { TESSERA_PIECE_BYTES = 16 };

// Key j of sequence b is row (j + offset) % page_size of the page that entry (j + offset) / page_size of the sequence's
// part of the table names.
struct tessera_attention_pages {
    const int32_t *table;  // NULL: sequence b is page b
    const int32_t *begin;  // the sequence's part begins at entry begin[b]; NULL: at b * table_stride
    const int32_t *offset; // of the sequence; NULL: 0
    int64_t table_stride;
    int32_t page_size;
    const void *k, *v;
    struct tessera_attention_page_strides of_k, of_v;
    // Pages in pieces hold k as [row_k / x, page_size, x] with x elements in TESSERA_PIECE_BYTES, and v as [page_size /
    // piece_v, row_v, piece_v]. 0: rows are contiguous.
    int32_t piece_v;
    int32_t row_k, row_v, element_bytes; // elements of a row, and bytes of one
    // What is not stored as q is: rows are copied, as numbers of type `number`; their scales are listed.
    tessera_kv_cache_dtype dtype;
    tessera_type number;
    int32_t hdim_q, hdim_v;
    struct tessera_attention_page_scales k_scale, v_scale;
    const float *centroids; // of TURBO4: [16]
    // Where keys have a second part, their last hdim_rope elements, it lies in a tensor of its own; NULL: in k.
    const void *k_rope;
    struct tessera_attention_page_strides of_k_rope;
    int32_t hdim_rope;
};

// Where rows lie, in elements of the base: row n at[n], or where there is no list first + n * stride; those of the next
// key head `head` elements behind them. What attends applies the scale of a key to its score, and that of a value to
// its probability.
struct tessera_attention_rows {
    const void *base;
    int64_t first, stride, head; // head: 0 where rows are copies, of one head
    tessera_kv_cache_dtype
        dtype; // TESSERA_KV_AUTO: numbers as in q, or `pages->number`; else codes, elements are bytes
    const int64_t *at;
    const float *scale; // of row n scale[n], with room for whole vectors of any target; NULL: rows are not scaled
};

// Keys key .. key + count - 1, count > 0, of a sequence and some key heads.
struct tessera_attention_keys {
    int32_t batch, head, heads;
    int32_t key, count;
    int32_t ahead; // of keys after them, whose rows will be asked for next
};

// What is to be found of keys, a set: where rows lie, their scales, and whether quantised rows are copied as numbers.
// Rows that are copied have their scales, and belong to the first head alone.
enum tessera_attention_find { TESSERA_FIND_ROWS = 1, TESSERA_FIND_SCALES = 2, TESSERA_FIND_NUMBERS = 4 };

// Scales of the next head come behind the list of the head before, which has a multiple of so many: what finds rows
// may have other vectors than what attends.
enum { TESSERA_SCALES_STEP = 16 };

// `room` has 2 * count elements, for lists; `copies` has room for copies of rows in pieces or quantised ones, and for
// scales of all heads.
typedef void tessera_attention_pages_cpu_run(const struct tessera_attention_pages *pages,
                                             const struct tessera_attention_keys *keys, int what, int64_t *room,
                                             void *copies, struct tessera_attention_rows *k,
                                             struct tessera_attention_rows *v);

// Rows of a block are found one by one: there is nothing to choose.
typedef struct tessera_attention_pages_tile {
    uint16_t rows;
} tessera_attention_pages_tile;

#endif
