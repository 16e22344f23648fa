// SPDX-License-Identifier: MIT
// A wave's scores, and the state of a lane's row of them. DESCALED: fp8, whose tensors or blocks have descales. MERGED:
// rows are queries of all heads of a key head. PIECES: rows of K are multiplied in the order in which pieces have keys.
//
// Takes DESCALED, MERGED, PIECES, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H

#include "tessera/device/attention/cdna/operands.h"
#include "tessera/isa/cdna_exchange.h"

// The row of scores of a lane's query; lanes l and l + MMA_ROWS have the same query and different keys. Element e of
// block b of the scores is of row 32 b + 8 (e / 4) + 4 (lane / 32) + e % 4 of the product's first operand, or where
// that has 16 rows of 16 b + 4 (lane / 16) + e: of this key. PIECES, and of 16 rows: of key LANE_KEYS (lane / MMA_ROWS)
// + ELEMENTS b + e, so that a lane's keys lie side by side, in one piece, or in memory that one address is enough for.
struct row {
    int query;      // its number in the sequence
    float max, sum; // of all scores; of the probabilities of this lane's keys
#if DESCALED
    float descale; // TESSERA_GPU_BLOCK: the query's
#endif
#if MERGED
    int head;
#endif
};

// The head of the lane's row.
#if MERGED
#define HEAD(task, row) ((row)->head)
#else
#define HEAD(task, row) ((task)->head)
#endif

enum { ELEMENTS = MMA_ROWS / SHARES, LANE_KEYS = BN / SHARES };
#define OPERAND_ROW(b, e) (MMA_ROWS * (b) + (e) / 4 * 4 * SHARES + (e) % 4)
#if PIECES || MMA_ROWS == 16
#define KEY(b, e) (ELEMENTS * (b) + (e))
INLINE int first_key(int tile) { return tile + LANE_KEYS * (lane_id() / MMA_ROWS); }
INLINE int key_of_operand_row(int row) { return row / 4 % SHARES * LANE_KEYS + row / (4 * SHARES) * 4 + row % 4; }
#else
#define KEY OPERAND_ROW
INLINE int first_key(int tile) { return tile + 4 * (lane_id() / 32); }
INLINE int key_of_operand_row(int row) { return row; }
#endif

// The greatest, and the sum, of what the lanes have that share a query.
#if MMA_ROWS == 32
INLINE float max_of_row(float x) { return max_f32(x, other_half(x)); }
INLINE float sum_of_row(float x) { return x + other_half(x); }
#else
INLINE float other_quarter(float x) { return AS_F32(other_lane_bits(AS_U32(x), 16)); }
INLINE float max_of_row(float x) {
    const float of_two = max_f32(x, other_half(x));
    return max_f32(of_two, other_quarter(of_two));
}
INLINE float sum_of_row(float x) {
    const float of_two = x + other_half(x);
    return of_two + other_quarter(of_two);
}
#endif

#endif
