// SPDX-License-Identifier: MIT
// Tiles of K and V from the pages of a quantised cache: rows are looked up as those of paged.h, and on their way to LDS
// their numbers become 16 bits.
//
// Takes PAGED, KV, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_QUANTISED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_QUANTISED_H

#include "tessera/device/attention/cdna/numbers.h"

// A lane loads RUN chunks of K at once, and one of V of each of four keys, as staged_rows.h stores them, or of KEYS
// keys of columns. Tiles give every thread as much.
enum { K_RUNS = Q_CHUNKS / RUN, K_LOADS = BN * K_RUNS / THREADS };

// A tile on its way.
struct quantised {
    uint32_t k[K_LOADS][RUN * CHUNK_WORDS], v[V_LOADS][CHUNK_WORDS];
    struct row_scales scales;
};

// ---- memory

// What lies past the head dim is the row's beginning: numbers of q are 0 there, and of o none is stored.
INLINE void load_quantised_tile(struct quantised *s, const struct tessera_fmha_fwd_cdna_args *p,
                                const struct task *task, const struct cache *x, const struct spot *spot) {
    const uint64_t k = own_k(x, spot), v = own_v(x, spot);
    UNROLL
    for (int c = 0; c < K_LOADS; c++) {
        const int key = (int)(item(c) / K_RUNS), run = (int)(item(c) % K_RUNS);
        const int inside = RUN * CHUNK * run < x->hdim_q;
        load_words(s->k[c], RUN * CHUNK_WORDS, address_of(k, key) + (inside ? run * x->k_step : 0));
    }
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const struct item_of_v of = item_of_v(x, c);
        const int offset = of.column < x->hdim_v ? NUMBER_BYTES(of.column * x->piece) : 0;
        load_words(s->v[c], CHUNK_WORDS, address_of(v, of.key) + offset);
    }
    s->scales = load_row_scales(p, task, spot);
}

// ---- to LDS

INLINE u32x4 numbers_of(const struct codebook *book, const uint32_t words[CHUNK_WORDS]) {
    return KV == TESSERA_KV_TURBO4 ? numbers_of_nibbles(book, words[0]) : numbers_of_words(words);
}

// A tile that has `left` keys, or more than BN.
INLINE void store_quantised_tile(struct quantised *s, const struct cache *x, const struct codebook *book, float unit,
                                 int left) {
    u32x4 v[V_LOADS];
    UNROLL
    for (int c = 0; c < V_LOADS; c++) v[c] = numbers_of(book, s->v[c]);
    if (SELDOM(left < BN)) clear_rest_of_v(v, x, left);
    UNROLL
    for (int c = 0; c < K_LOADS; c++) {
        UNROLL
        for (int i = 0; i < RUN; i++) {
            const int key = (int)(item(c) / K_RUNS), chunk = RUN * (int)(item(c) % K_RUNS) + i;
            k_tile[k_place(key, chunk)] = numbers_of(book, s->k[c] + CHUNK_WORDS * i);
        }
    }
    store_paged_v(v, x);
    store_row_scales(&s->scales, unit, left);
}

#endif
