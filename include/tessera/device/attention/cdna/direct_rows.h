// SPDX-License-Identifier: MIT
// Rows of a cache that go from memory to registers, where they are operands as soon as they are widened. Lane
// l has row l % 32 of K: the half l / 32 of each 32 numbers, two chunks. Of V it has D_BLOCKS columns, from D_BLOCKS *
// (l % 32) on, of the keys that it has P of: operand b is every D_BLOCKS-th column. Queries and results follow
// (merged_queries.h).
//
// Takes KV, BN.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H

#include "tessera/device/attention/cdna/paged.h"
#include "tessera/isa/cdna_quantised.h"

enum {
    K_RUNS = DQ / 32, // of 16 numbers of the lane's row
    V_ROWS = BN / 2,  // that a lane has columns of
    COLUMN_BYTES = NUMBER_BYTES(D_BLOCKS),
    COLUMN_WORDS = (COLUMN_BYTES + 3) / 4
};

// A tile's, on their way.
struct rows {
    uint32_t k[K_RUNS][2 * CHUNK_WORDS], v[V_ROWS][COLUMN_WORDS];
};

INLINE int first_of_run(int n) { return 32 * n + lane_id() / 32 * 16; }         // its number in the row of K
INLINE int key_of_row(int n) { return n / 4 * 8 + lane_id() / 32 * 4 + n % 4; } // of the tile

// ---- memory. Keys past the end are the last one again.

INLINE struct spot own_spot(const struct cache *x, int tile, int end) {
    return look_up_key(x, tile + lane_id() % 32, end);
}

// What lies past the head dim is the row's beginning: numbers of q are 0 there, and of o none is stored.
INLINE void load_k(struct rows *to, const struct cache *x, const struct spot *spot) {
    const char *const row = (const char *)own_k(x, spot);
    UNROLL
    for (int n = 0; n < K_RUNS; n++) {
        const int first = first_of_run(n);
        load_words(to->k[n], 2 * CHUNK_WORDS, row + (first < x->hdim_q ? NUMBER_BYTES(first) : 0));
    }
}

INLINE void load_columns(uint32_t to[COLUMN_WORDS], const char *from) {
    if (COLUMN_BYTES >= 4)
        load_words(to, COLUMN_WORDS, from);
    else
        to[0] = COLUMN_BYTES == 2 ? load_2(from) : load_1(from);
}

// Four of the lane's rows lie one behind the other in a page, of which only the first one's address is asked for, where
// pages have whole fours.
INLINE void load_v(struct rows *to, const struct cache *x, const struct spot *spot, int in_fours) {
    const int column = D_BLOCKS * (lane_id() % 32);
    const int offset = column < x->hdim_v ? NUMBER_BYTES(column) : 0;
    const uint64_t own = own_v(x, spot);
    if (in_fours) {
        const int64_t row = CACHE_BYTES(x->v_row);
        UNROLL
        for (int n = 0; n < V_ROWS; n += 4) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other(); // which addresses have no room for
            const char *const four = address_of(own, key_of_row(n)) + offset;
            UNROLL
            for (int i = 0; i < 4; i++) load_columns(to->v[n + i], four + i * row);
        }
    } else {
        UNROLL
        for (int n = 0; n < V_ROWS; n++) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other();
            load_columns(to->v[n], address_of(own, key_of_row(n)) + offset);
        }
    }
}

// Whether those of a tile that has `left` keys, or more, do.
INLINE int lies_in_fours(const struct cache *x, int left) { return left >= BN && (x->page_size | x->offset) % 4 == 0; }

#endif
