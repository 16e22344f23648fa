// SPDX-License-Identifier: MIT
// Hides scores of keys that a query does not see.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MASK_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MASK_H

#include "tessera/device/attention/cdna/part.h"
#include "tessera/device/attention/cdna/scores.h"

// Keys from `begin` to `end` of the query's, and those before `sink`, stay.
INLINE void hide(f32x16 s[KEY_BLOCKS], const struct part *p, int query, int tile) {
    const int first = here(first_key(tile)), begin = query - p->mask_y + 1 - first;
    const int end = min_i32(p->seqlen_k, query + p->mask_x) - first;
    const uint32_t count = (uint32_t)max_i32(end - begin, 0);
    const int sink = query < p->seqlen_k ? min_i32(p->sink - first, end) : 0;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if ((uint32_t)(KEY(b, e) - begin) >= count && KEY(b, e) >= sink) s[b][e] = -INFINITY_F32;
            one_after_the_other();
        }
    }
}

#endif
