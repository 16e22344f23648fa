// SPDX-License-Identifier: MIT
// A wave's scores, and the state of a lane's row of them. DESCALED: fp8, whose tensors or blocks have descales. MERGED:
// rows are queries of all heads of a key head.
//
// Takes DESCALED, MERGED.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H

#include "tessera/device/attention/cdna/operands.h"

// The row of scores of a lane's query; lanes l and l + 32 have the same query and different keys. Element e of block b
// of the scores is key 32 b + 8 (e / 4) + 4 (lane / 32) + e % 4.
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
#define KEY(b, e) (32 * (b) + (e) / 4 * 8 + (e) % 4)
INLINE int first_key(int tile) { return tile + 4 * (lane_id() / 32); }

#endif
