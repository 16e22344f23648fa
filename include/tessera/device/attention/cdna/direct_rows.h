// SPDX-License-Identifier: MIT
// Rows of a cache that go from memory to registers, where they are operands as soon as they are widened. Lane l has row
// l % MMA_ROWS of each block of K: the share l / MMA_ROWS of each 32, or 64, numbers, two chunks. Queries follow
// (merged_queries.h). Of V it has what direct_linear.h, or direct_pieces.h, says.
//
// Takes KV, BN, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H

#include "tessera/device/attention/cdna/paged.h"
#include "tessera/device/attention/cdna/scores.h"
#include "tessera/isa/cdna_quantised.h"

enum { K_RUNS = DQ / (16 * SHARES) }; // of 16 numbers of the lane's row

// A tile's, on their way.
struct rows_of_k {
    uint32_t run[KEY_BLOCKS][K_RUNS][2 * CHUNK_WORDS];
};

INLINE int first_of_run(int n) { return 16 * SHARES * n + lane_id() / MMA_ROWS * 16; } // its number in the row

// ---- memory. Keys past the end are the last one again.

INLINE struct spot own_spot(const struct cache *x, int tile, int end) {
    return look_up_key(x, tile + key_of_operand_row(lane_id() % BN), end);
}

// Whether TOGETHER of a lane's keys lie one behind the other in a page, so that only the first one's address is asked
// for, in a tile that has `left` keys, or more.
enum { TOGETHER = MMA_ROWS == 16 ? LANE_KEYS : 4 };
INLINE int lie_together(const struct cache *x, int left) {
    return left >= BN && (x->page_size | x->offset) % TOGETHER == 0;
}

// Where the lane's row of each block lies. Of one block the lane itself has looked it up.
INLINE void find_rows_of_k(const char *rows[KEY_BLOCKS], const struct cache *x, const struct spot *spot, int together) {
    const uint64_t own = own_k(x, spot);
    const int row = lane_id() % MMA_ROWS;
    if (KEY_BLOCKS == 1) {
        rows[0] = (const char *)own;
    } else if (together) {
        const char *const first = address_of(own, row);
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) rows[b] = first + b * (4 * (int64_t)CACHE_BYTES(x->k_row));
    } else {
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) rows[b] = address_of(own, MMA_ROWS * b + row);
    }
}

// What lies past the head dim is the row's beginning: numbers of q are 0 there, and of o none is stored.
INLINE void load_k(struct rows_of_k *to, const struct cache *x, const struct spot *spot, int together) {
    const char *rows[KEY_BLOCKS];
    find_rows_of_k(rows, x, spot, together);
    const int share = (SHARES == 2 ? lane_id() >= 32 : lane_id() / MMA_ROWS) * x->k_step; // in pieces
    UNROLL
    for (int n = 0; n < K_RUNS; n++) {
        const int first = first_of_run(n), offset = PIECES ? SHARES * n * x->k_step + share : NUMBER_BYTES(first);
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++)
            load_words(to->run[b][n], 2 * CHUNK_WORDS, rows[b] + (first < x->hdim_q ? offset : 0));
    }
}

#endif
