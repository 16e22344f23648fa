// SPDX-License-Identifier: MIT
// Tiles of K and V from the pages of a quantised cache: rows are looked up as those of paged.h, and on their way to LDS
// their numbers become 16 bits, exactly, but for the centroids of turbo4, which are rounded.
//
// KV: the type of the cache. NUMBERS_OF_FP16 makes operands of two numbers of fp16.
//
// Takes PAGED, KV, NUMBERS_OF_FP16, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_QUANTISED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_QUANTISED_H

#include "tessera/device/attention/cdna/scaled_rows.h"
#include "tessera/turbo4.h"

// A lane loads RUN chunks of K at once, and one of V of each of four keys, as staged_rows.h stores them, or of KEYS
// keys of columns. Tiles give every thread as much.
enum { CHUNK_WORDS = NUMBER_BYTES(CHUNK) / 4 };
enum { K_RUNS = Q_CHUNKS / RUN, K_LOADS = BN * K_RUNS / THREADS };

// A tile on its way.
struct quantised {
    uint32_t k[K_LOADS][RUN * CHUNK_WORDS], v[V_LOADS][CHUNK_WORDS];
    struct row_scales scales;
};

// ---- memory

INLINE void load_words(uint32_t *to, int words, const char *from) {
    if (words == 4) {
        const u32x4 x = load_16(from);
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    } else if (words == 2) {
        const u32x2 x = load_8(from);
        to[0] = x.x, to[1] = x.y;
    } else {
        to[0] = load_4(from);
    }
}

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

INLINE struct codebook find_codebook(const struct tessera_fmha_fwd_cdna_args *p) {
    uint32_t pairs[TESSERA_TURBO4_CENTROIDS / 2] = {0};
    UNROLL
    for (int i = 0; KV == TESSERA_KV_TURBO4 && i < TESSERA_TURBO4_CENTROIDS; i += 2)
        pairs[i / 2] = TWO_OF_O(read_float(p->pages.centroids, i), read_float(p->pages.centroids, i + 1));
    return codebook_of(pairs);
}

// ---- to LDS

// A chunk's numbers.
INLINE u32x4 numbers_of(const struct codebook *book, const uint32_t words[CHUNK_WORDS]) {
    if (KV == TESSERA_KV_TURBO4) return numbers_of_nibbles(book, words[0]);
    u32x4 x;
    UNROLL
    for (int w = 0; w < CHUNK_WORDS; w++) {
        const u32x2 four = KV == TESSERA_KV_INT8 ? fp16_of_int8(words[w]) : fp16_of_e4m3(words[w]);
        x[2 * w] = NUMBERS_OF_FP16(four.x), x[2 * w + 1] = NUMBERS_OF_FP16(four.y);
    }
    return x;
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
