// SPDX-License-Identifier: MIT
// A wave's scores, and what a lane keeps of its query. DESCALED: fp8, whose tensors or blocks have descales.
//
// Takes DESCALED.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SCORES_H

#include "tessera/device/attention/cdna/operands.h"

// What a lane keeps of its query. Element e of block b of the scores is key 32 b + 8 (e / 4) + 4 (lane / 32) + e % 4.
struct row {
    int query;      // in the sequence
    float max, sum; // of scores, and of this lane's part of P
#if DESCALED
    float descale; // TESSERA_CDNA_BLOCK: of the query
#endif
};

enum { ELEMENTS = 16 };
#define KEY(b, e) (32 * (b) + (e) / 4 * 8 + (e) % 4)
INLINE int first_key(int tile) { return tile + 4 * (lane_id() / 32); }

#endif
