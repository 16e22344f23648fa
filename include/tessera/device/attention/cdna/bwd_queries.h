// SPDX-License-Identifier: MIT
// Backward: numbers of a tile's queries that all waves read: lse, in units of log2, and d.
//
// Takes BM.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_QUERIES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_QUERIES_H

#include "tessera/isa/cdna.h"

// Of a lane's 16 of a block of 32 queries.
enum { ELEMENTS = 16 };
#define QUERY(e) ((e) / 4 * 8 + (e) % 4)

LDS f32x4 lse_of[BM / 4], d_of[BM / 4];

// The numbers of a lane's queries: 4 lie side by side.
INLINE f32x16 of_queries(const SHARED f32x4 *list, int block) {
    const int half = lane_id() / 32;
    f32x16 x;
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 4) {
        const f32x4 four = list[8 * block + half + QUERY(e) / 4];
        x[e] = four[0], x[e + 1] = four[1], x[e + 2] = four[2], x[e + 3] = four[3];
    }
    return x;
}

// Takes the numbers of query number thread_id(), of `left` that exist; others have lse = inf, so that their
// probabilities are 0 whatever their scores are. Rows that see no key have lse = -inf; masks hide all of their scores,
// whatever is subtracted from them.
INLINE void store_numbers(uint32_t lse_bits, uint32_t d_bits, int left) {
    if (thread_id() >= BM) return;
    const float lse = AS_F32(lse_bits);
    ((SHARED float *)lse_of)[thread_id()] = thread_id() >= left    ? INFINITY_F32
                                            : lse == -INFINITY_F32 ? 0.0f
                                                                   : lse * LOG2E;
    ((SHARED float *)d_of)[thread_id()] = AS_F32(d_bits);
}

#endif
