// SPDX-License-Identifier: MIT
// Numbers of the rows of a quantised cache, and what operands take for them: 16 bits, exactly, but for the centroids of
// turbo4, which are rounded.
//
// KV: the type of the cache. NUMBERS_OF_WORD makes the four numbers of a word those of an operand.
//
// Takes PAGED, KV, NUMBERS_OF_WORD.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_NUMBERS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_NUMBERS_H

#include "tessera/device/attention/cdna/scaled_rows.h"
#include "tessera/turbo4.h"

INLINE struct codebook find_codebook(const struct tessera_fmha_fwd_cdna_args *p) {
    uint32_t pairs[TESSERA_TURBO4_CENTROIDS / 2] = {0};
    UNROLL
    for (int i = 0; KV == TESSERA_KV_TURBO4 && i < TESSERA_TURBO4_CENTROIDS; i += 2)
        pairs[i / 2] = TWO_OF_O(read_float(p->pages.centroids, i), read_float(p->pages.centroids, i + 1));
    return codebook_of(pairs);
}

// A chunk's numbers of 8 bits.
INLINE u32x4 numbers_of_words(const uint32_t words[CHUNK_WORDS]) {
    u32x4 x;
    UNROLL
    for (int w = 0; w < CHUNK_WORDS; w++) {
        const u32x2 four = NUMBERS_OF_WORD(words[w]);
        x[2 * w] = four.x, x[2 * w + 1] = four.y;
    }
    return x;
}

#endif
