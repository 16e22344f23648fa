// SPDX-License-Identifier: MIT
// Tiles of K and V whose rows lie in the pages of a cache: as those of staged.h, but the address of every row is looked
// up, by one lane for a key. Keys past the end are the last one again, so that no memory is read that no key lies in;
// their probabilities are 0, and their rows of V become 0 on the way to LDS, since 0 times infinity is no number.
// KV: the type of the cache, TESSERA_KV_AUTO where it is that of q.
//
// Pages in pieces have 16 bytes of each row of K beside one another, and keys of a column of V.
//
// Takes MX, V_COLUMNS, WHOLE_CHUNKS, MERGED, PAGED, DIRECT, PIECES, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_PAGED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_PAGED_H

#include "tessera/device/attention/cdna/staged.h"
#include "tessera/isa/cdna_exchange.h"

#define CACHE_BYTES(elements) ((elements) * (KV == TESSERA_KV_AUTO ? BITS / 8 : 1))
#define NUMBER_BYTES(numbers) ((numbers) * (KV == TESSERA_KV_AUTO ? BITS : KV == TESSERA_KV_TURBO4 ? 4 : 8) / 8)

// Chunks of K that a lane loads at once, and words of one; keys of a column of V in pieces that it does.
enum {
    RUN = KV == TESSERA_KV_AUTO ? 1 : 2,
    CHUNK_WORDS = NUMBER_BYTES(CHUNK) / 4,
    KEYS = PIECES ? TESSERA_PIECE_BYTES : CHUNK
};

// The cache of the task's sequence and head.
struct cache {
    const int32_t *table; // the sequence's part
    int batch, offset, page_size;
    const char *k, *v;      // of page 0
    int64_t k_page, v_page; // elements from one page to the next
    int k_row, v_row;       // and from one row, or in pieces of V from all columns of one piece
    int hdim_q, hdim_v;
    int k_step; // bytes from a run of a row of K to the next one
    int piece;  // keys beside one another in a column of V, at least KEYS; 1: rows are contiguous
};

INLINE struct cache find_cache(const struct tessera_fmha_fwd_cdna_args *p, const struct task *task) {
    const struct tessera_attention_pages *const pages = &p->pages;
    const int64_t begin = pages->begin ? read_int(pages->begin, task->batch) : task->batch * pages->table_stride;
    const int pieces = KV != TESSERA_KV_TURBO4 && pages->piece_v;
    const struct cache cache = {
        pages->table ? pages->table + begin : pages->table,
        task->batch,
        pages->offset ? read_int(pages->offset, task->batch) : 0,
        pages->page_size,
        (const char *)p->call.k + CACHE_BYTES(task->head_k * pages->of_k.head),
        (const char *)p->call.v + CACHE_BYTES(task->head_k * pages->of_v.head),
        pages->of_k.page,
        pages->of_v.page,
        here((int)pages->of_k.row), // in vector registers: scalar ones are all in use
        here((int)pages->of_v.row),
        p->call.hdim_q,
        p->call.hdim_v,
        here(pieces ? TESSERA_PIECE_BYTES * pages->page_size : NUMBER_BYTES(RUN * CHUNK)),
        pieces ? pages->piece_v : 1,
    };
    return cache;
}

// ---- addresses

// Where the row of the lane's key lies: its page, or sequence, and its number there.
struct spot {
    int page, row;
};

// Of the lane's key, or the last one where that is behind it.
INLINE struct spot look_up_key(const struct cache *x, int key, int end) {
    const uint32_t at = (uint32_t)(min_i32(key, end - 1) + x->offset);
    const int quantised = KV != TESSERA_KV_AUTO, shifts = DIRECT & quantised; // pages of these are powers of 2
    const uint32_t size = (uint32_t)x->page_size, page = shifts ? at >> trailing_zeros(size) : at / size;
    const int listed = quantised || x->table; // they are in pages
    const struct spot spot = {listed ? *(GLOBAL const int32_t *)(uint64_t)(x->table + page) : x->batch,
                              (int)(at - page * size)};
    return spot;
}
INLINE struct spot look_up(const struct cache *x, int tile, int end) {
    return look_up_key(x, tile + min_i32(lane_id(), BN - 1), end);
}

// The address of the row that lane number `key` has the address of.
INLINE const char *address_of(uint64_t of_own_key, int key) {
    const uint32_t low = of_lane((uint32_t)of_own_key, key), high = of_lane((uint32_t)(of_own_key >> 32), key);
    return (const char *)((uint64_t)high << 32 | low);
}

INLINE uint64_t own_k(const struct cache *x, const struct spot *s) {
    return (uint64_t)x->k + (uint64_t)CACHE_BYTES(s->page * x->k_page + rows_before(s->row, x->k_row));
}

// In pieces that of the KEYS keys that the lane's is one of.
INLINE uint64_t own_v(const struct cache *x, const struct spot *s) {
    const int piece = here(x->piece);
    const int row = s->row & -min_i32(piece, KEYS), in_piece = row & (piece - 1);
    const int64_t first = rows_before(row >> trailing_zeros((uint32_t)piece), x->v_row);
    return (uint64_t)x->v + (uint64_t)CACHE_BYTES(s->page * x->v_page + first + in_piece);
}

// ---- memory

// What a lane's load number c of a tile of V is of: a chunk of a row, or in pieces KEYS keys of a column.
struct item_of_v {
    int key, column;
};

INLINE struct item_of_v item_of_v(const struct cache *x, int c) {
    const int chunks = (int)item(c / 4), columns = (int)item(c);
    const struct item_of_v rows = {min_i32(4 * (chunks / V_CHUNKS) + c % 4, BN - 1), CHUNK * (chunks % V_CHUNKS)};
    const struct item_of_v pieces = {min_i32(KEYS * (columns / DV), BN - KEYS), columns % DV};
    return x->piece > 1 ? pieces : rows;
}

// 16 bytes at an offset in a row; those that are not inside are 0, and are not read.
INLINE u32x4 load_inside(const char *row, int offset, int inside) {
    const u32x4 x = *(GLOBAL const u32x4 *)(uint64_t)(row + (inside ? offset : 0));
    return inside ? x : (u32x4){0, 0, 0, 0};
}

INLINE void load_paged_tile(struct staged *s, const struct cache *x, const struct spot *spot) {
    const uint64_t k = own_k(x, spot), v = own_v(x, spot);
    UNROLL
    for (int c = 0; c < K_COPIES; c++) {
        const int key = min_i32((int)(item(c) / Q_CHUNKS), BN - 1), chunk = (int)(item(c) % Q_CHUNKS);
        s->k[c] = load_inside(address_of(k, key), chunk * x->k_step, CHUNK * chunk < x->hdim_q);
    }
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const struct item_of_v of = item_of_v(x, c);
        s->v[c] = load_inside(address_of(v, of.key), NUMBER_BYTES(of.column * x->piece), of.column < x->hdim_v);
    }
}

// ---- to LDS

// The first `count` numbers of a chunk, and 0 for the others.
INLINE u32x4 first_of(u32x4 x, int count) {
    UNROLL
    for (int w = 0; w < 4; w++) {
#if BITS == 32
        x[w] = count > w ? x[w] : 0;
#elif BITS == 16
        x[w] &= count > 2 * w + 1 ? 0xffffffff : count > 2 * w ? 0xffff : 0;
#else
        const int left = count - 4 * w;
        x[w] &= left >= 4 ? 0xffffffff : left > 0 ? (1u << 8 * left) - 1 : 0;
#endif
    }
    return x;
}

// Of a tile that has `left` keys what a lane has of the others becomes 0.
INLINE void clear_rest_of_v(u32x4 v[V_LOADS], const struct cache *x, int left) {
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int first = item_of_v(x, c).key;
        v[c] = first_of(v[c], x->piece > 1 || left <= first ? left - first : KEYS);
    }
}

// Columns of KEYS keys.
INLINE void store_pieces(const u32x4 staged[V_LOADS]) {
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int first = KEYS * (int)(item(c) / DV), column = (int)(item(c) % DV);
        const u32x4 x = staged[c];
        if (BN * V_CHUNKS % (4 * THREADS) != 0 && first >= BN) continue;
#if BITS == 32
        store_column(column, first / 4, x);
#elif BITS == 16
        store_column(column, first / 4, (four){x.x, x.y});
        store_column(column, first / 4 + 1, (four){x.z, x.w});
#else
        UNROLL
        for (int group = 0; group < 4; group++) store_column(column, first / 4 + group, x[group]);
#endif
    }
}

INLINE void store_paged_v(const u32x4 v[V_LOADS], const struct cache *x) {
    if (x->piece > 1)
        store_pieces(v);
    else
        store_v(v);
}

// A tile that has `left` keys, or more than BN.
INLINE void store_paged_tile(struct staged *s, const struct cache *x, int left) {
    if (SELDOM(left < BN)) clear_rest_of_v(s->v, x, left);
    store_k(s->k);
    store_paged_v(s->v, x);
}

#endif
