// SPDX-License-Identifier: MIT
// A wave's scores, and the state of a lane's row of them. DESCALED: fp8, whose tensors or blocks have descales. MERGED:
// rows are queries of all heads of a key head. PIECES: rows of K are multiplied in the order in which pieces have keys.
//
// Takes DESCALED, MERGED, PIECES.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H

#include "tessera/device/attention/cdna/operands.h"

// The row of scores of a lane's query; lanes l and l + 32 have the same query and different keys. Element e of block b
// of the scores is of row 32 b + 8 (e / 4) + 4 (lane / 32) + e % 4 of the product's first operand: of this key. PIECES:
// of key 16 (lane / 32) + e, so that a lane's keys are one piece.
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

enum { ELEMENTS = 16 };
#define OPERAND_ROW(b, e) (32 * (b) + (e) / 4 * 8 + (e) % 4)
#if PIECES
#define KEY(b, e) (e)
INLINE int first_key(int tile) { return tile + 16 * (lane_id() / 32); }
INLINE int key_of_operand_row(int row) { return row / 4 % 2 * 16 + row / 8 * 4 + row % 4; }
#else
#define KEY OPERAND_ROW
INLINE int first_key(int tile) { return tile + 4 * (lane_id() / 32); }
INLINE int key_of_operand_row(int row) { return row; }
#endif

#endif
