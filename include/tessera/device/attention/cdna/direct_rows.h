// SPDX-License-Identifier: MIT
// Rows of a cache that go from memory to registers, where they are operands as soon as they are widened. Lane l has row
// l % 32 of K: the half l / 32 of each 32 numbers, two chunks. Queries follow (merged_queries.h). Of V it has what
// direct_linear.h, or direct_pieces.h, says.
//
// Takes KV, BN.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H

#include "tessera/device/attention/cdna/paged.h"
#include "tessera/device/attention/cdna/scores.h"
#include "tessera/isa/cdna_quantised.h"

enum { K_RUNS = DQ / 32 }; // of 16 numbers of the lane's row

// A tile's, on their way.
struct rows_of_k {
    uint32_t run[K_RUNS][2 * CHUNK_WORDS];
};

INLINE int first_of_run(int n) { return 32 * n + lane_id() / 32 * 16; } // its number in the row

// ---- memory. Keys past the end are the last one again.

INLINE struct spot own_spot(const struct cache *x, int tile, int end) {
    return look_up_key(x, tile + key_of_operand_row(lane_id() % 32), end);
}

// What lies past the head dim is the row's beginning: numbers of q are 0 there, and of o none is stored.
INLINE void load_k(struct rows_of_k *to, const struct cache *x, const struct spot *spot) {
    const char *const row = (const char *)own_k(x, spot);
    const int half = lane_id() < 32 ? 0 : x->k_step; // in pieces
    UNROLL
    for (int n = 0; n < K_RUNS; n++) {
        const int first = first_of_run(n), offset = PIECES ? 2 * n * x->k_step + half : NUMBER_BYTES(first);
        load_words(to->run[n], 2 * CHUNK_WORDS, row + (first < x->hdim_q ? offset : 0));
    }
}

#endif
