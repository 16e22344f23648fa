// SPDX-License-Identifier: MIT
// Rows of V in linear pages, in registers: a lane has D_BLOCKS columns, from D_BLOCKS * (l % 32) on, of the keys that
// it has P of: operand b is every D_BLOCKS-th column. Results follow (merged_queries.h).
//
// Takes KV, BN.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_LINEAR_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_LINEAR_H

#include "tessera/device/attention/cdna/direct_rows.h"

enum {
    V_PARTS = BN / 2, // rows that a lane has columns of
    COLUMN_BYTES = NUMBER_BYTES(D_BLOCKS),
    PART_WORDS = (COLUMN_BYTES + 3) / 4
};

struct rows_of_v {
    uint32_t part[V_PARTS][PART_WORDS];
};

INLINE int key_of_row(int n) { return n / 4 * 8 + lane_id() / 32 * 4 + n % 4; } // of the tile

INLINE void load_columns(uint32_t to[PART_WORDS], const char *from) {
    if (COLUMN_BYTES >= 4)
        load_words(to, PART_WORDS, from);
    else
        to[0] = COLUMN_BYTES == 2 ? load_2(from) : load_1(from);
}

// Four of the lane's rows lie one behind the other in a page, of which only the first one's address is asked for, where
// pages have whole fours.
INLINE void load_v(struct rows_of_v *to, const struct cache *x, const struct spot *spot, int in_fours) {
    const int column = D_BLOCKS * (lane_id() % 32);
    const int offset = column < x->hdim_v ? NUMBER_BYTES(column) : 0;
    const uint64_t own = own_v(x, spot);
    if (in_fours) {
        const int64_t row = CACHE_BYTES(x->v_row);
        UNROLL
        for (int n = 0; n < V_PARTS; n += 4) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other(); // which addresses have no room for
            const char *const four = address_of(own, key_of_row(n)) + offset;
            UNROLL
            for (int i = 0; i < 4; i++) load_columns(to->part[n + i], four + i * row);
        }
    } else {
        UNROLL
        for (int n = 0; n < V_PARTS; n++) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other();
            load_columns(to->part[n], address_of(own, key_of_row(n)) + offset);
        }
    }
}

// Whether those of a tile that has `left` keys, or more, do.
INLINE int lies_in_fours(const struct cache *x, int left) { return left >= BN && (x->page_size | x->offset) % 4 == 0; }

#endif
