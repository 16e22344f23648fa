// SPDX-License-Identifier: MIT
// Tiles of K and V whose rows lie in the pages of a cache: as those of staged.h, but the address of every row is looked
// up, by one lane for a key. Keys past the end are the last one again, so that no memory is read that no key lies in;
// their probabilities are 0. KV: the type of the cache, TESSERA_KV_AUTO where it is that of q.
//
// Takes MX, V_COLUMNS, WHOLE_CHUNKS, MERGED, PAGED, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_PAGED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_PAGED_H

#include "tessera/device/attention/cdna/staged.h"
#include "tessera/isa/cdna_exchange.h"

#define CACHE_BYTES(elements) ((elements) * (KV == TESSERA_KV_AUTO ? BITS / 8 : 1))

// The cache of the task's sequence and head.
struct cache {
    const int32_t *table; // the sequence's part
    int batch, offset, page_size;
    const char *k, *v; // of page 0
    struct tessera_attention_page_strides of_k, of_v;
    int hdim_q, hdim_v;
};

INLINE struct cache find_cache(const struct tessera_fmha_fwd_cdna_args *p, const struct task *task) {
    const struct tessera_attention_pages *const pages = &p->pages;
    const int64_t begin = pages->begin ? read_int(pages->begin, task->batch) : task->batch * pages->table_stride;
    const struct cache cache = {
        pages->table ? pages->table + begin : pages->table,
        task->batch,
        pages->offset ? read_int(pages->offset, task->batch) : 0,
        pages->page_size,
        (const char *)p->call.k + CACHE_BYTES(task->head_k * pages->of_k.head),
        (const char *)p->call.v + CACHE_BYTES(task->head_k * pages->of_v.head),
        pages->of_k,
        pages->of_v,
        p->call.hdim_q,
        p->call.hdim_v,
    };
    return cache;
}

// Where the row of the lane's key lies: its page, or sequence, and its number there.
struct spot {
    int page, row;
};

INLINE struct spot look_up(const struct cache *x, int tile, int end) {
    const uint32_t at = (uint32_t)(min_i32(tile + min_i32(lane_id(), BN - 1), end - 1) + x->offset);
    const uint32_t page = at / (uint32_t)x->page_size;
    const struct spot spot = {x->table ? *(GLOBAL const int32_t *)(uint64_t)(x->table + page) : x->batch,
                              (int)(at - page * (uint32_t)x->page_size)};
    return spot;
}

// The address of the row that lane number `key` has the address of.
INLINE const char *address_of(uint64_t of_own_key, int key) {
    const uint32_t low = of_lane((uint32_t)of_own_key, key), high = of_lane((uint32_t)(of_own_key >> 32), key);
    return (const char *)((uint64_t)high << 32 | low);
}

INLINE uint64_t own_address(const char *base, const struct tessera_attention_page_strides *of, const struct spot *s) {
    return (uint64_t)base + (uint64_t)CACHE_BYTES(s->page * of->page + s->row * of->row);
}

INLINE void load_paged_tile(struct staged *s, const struct cache *x, const struct spot *spot) {
    const uint64_t k = own_address(x->k, &x->of_k, spot), v = own_address(x->v, &x->of_v, spot);
    UNROLL
    for (int c = 0; c < K_COPIES; c++) {
        const int key = min_i32((int)(item(c) / Q_CHUNKS), BN - 1);
        s->k[c] = chunk_of_row(address_of(k, key), (int)(item(c) % Q_CHUNKS), x->hdim_q);
    }
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int key = min_i32(4 * (int)(item(c / 4) / V_CHUNKS) + c % 4, BN - 1);
        s->v[c] = chunk_of_row(address_of(v, key), (int)(item(c / 4) % V_CHUNKS), x->hdim_v);
    }
}

#endif
