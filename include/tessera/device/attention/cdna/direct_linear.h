// SPDX-License-Identifier: MIT
// Rows of V in linear pages, in registers: a lane has D_BLOCKS columns, from D_BLOCKS * (l % MMA_ROWS) on, of the keys
// that it has P of: operand b is every D_BLOCKS-th column. Results follow (merged_queries.h).
//
// Takes KV, BN, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_LINEAR_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_LINEAR_H

#include "tessera/device/attention/cdna/direct_rows.h"

enum {
    V_PARTS = LANE_KEYS, // rows that a lane has columns of
    COLUMN_BYTES = NUMBER_BYTES(D_BLOCKS),
    PART_WORDS = (COLUMN_BYTES + 3) / 4
};

struct rows_of_v {
    uint32_t part[V_PARTS][PART_WORDS];
};

// Which operand's row of K is of the same key, and which lane has looked that up.
INLINE int row_of_part(int n) { return n / 4 * 4 * SHARES + lane_id() / MMA_ROWS * 4 + n % 4; }

INLINE void load_columns(uint32_t to[PART_WORDS], const char *from) {
    if (COLUMN_BYTES >= 4)
        load_words(to, PART_WORDS, from);
    else
        to[0] = COLUMN_BYTES == 2 ? load_2(from) : load_1(from);
}

INLINE void load_v(struct rows_of_v *to, const struct cache *x, const struct spot *spot, int together) {
    const int column = D_BLOCKS * (lane_id() % MMA_ROWS);
    const int offset = column < x->hdim_v ? NUMBER_BYTES(column) : 0;
    const uint64_t own = own_v(x, spot);
    if (together) {
        const int64_t row = CACHE_BYTES(x->v_row);
        UNROLL
        for (int n = 0; n < V_PARTS; n += TOGETHER) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other(); // which addresses have no room for
            const char *const first = address_of(own, row_of_part(n)) + offset;
            UNROLL
            for (int i = 0; i < TOGETHER; i++) load_columns(to->part[n + i], first + i * row);
        }
    } else {
        UNROLL
        for (int n = 0; n < V_PARTS; n++) {
            if (KV == TESSERA_KV_AUTO) one_after_the_other();
            load_columns(to->part[n], address_of(own, row_of_part(n)) + offset);
        }
    }
}

#endif
