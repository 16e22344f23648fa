// SPDX-License-Identifier: MIT
// V goes through registers to LDS, while K goes straight there: a load to LDS cannot transpose.
//
// Takes V_WORDS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_V_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_V_H

#include "tessera/device/attention/cdna/direct.h"

// An item is V_WORDS words, of OF_WORD columns each, of 4 keys. V_COPIES: items of a thread.
enum { OF_WORD = 32 / BITS, V_ITEMS = DV / OF_WORD / V_WORDS, V_COPIES = (BN / 4 * V_ITEMS + THREADS - 1) / THREADS };
#if V_WORDS == 1
typedef uint32_t v_words;
#define V_WORD(x, w) x
#define LOAD_V buffer_load_4
#elif V_WORDS == 2
typedef u32x2 v_words;
#define V_WORD(x, w) (x)[w]
#define LOAD_V buffer_load_8
#else
typedef u32x4 v_words;
#define V_WORD(x, w) (x)[w]
#define LOAD_V buffer_load_16
#endif
struct staged {
    v_words v[4 * V_COPIES];
};

// Keys 4 group .. 4 group + 3 and words word .. word + V_WORDS - 1 are an item. Successive lanes have those of the same
// keys, or where there are many words or elements are bytes, four lanes do, and the next ones have other keys: so they
// store to different banks.
INLINE int v_item(int copy) { return thread_id() + THREADS * copy; }
#if V_WORDS == 4 || BITS == 8
INLINE int v_group(int copy) { return v_item(copy) / 4 % (BN / 4); }
INLINE int v_word(int copy) { return (v_item(copy) % 4 + v_item(copy) / BN * 4) * V_WORDS; }
#else
INLINE int v_group(int copy) { return v_item(copy) / V_ITEMS; }
INLINE int v_word(int copy) { return v_item(copy) % V_ITEMS * V_WORDS; }
#endif

// Where the lane's item of a tile begins, in bytes.
INLINE int v_item_place(const struct keys *keys, int copy) {
    const int key = 4 * v_group(copy), word = v_word(copy);
    return (OF_WORD * word < keys->hdim_v ? 4 * word : OUTSIDE) + BYTES(key * keys->stride_v);
}

INLINE void fetch_v(struct staged *s, const struct keys *keys, int tile, int end) {
    const buffer from = v_rows(keys, tile, end);
    UNROLL
    for (int c = 0; c < V_COPIES; c++) {
        const int place = here(v_item_place(keys, c));
        UNROLL
        for (int i = 0; i < 4; i++) s->v[4 * c + i] = LOAD_V(from, place + BYTES(i * keys->stride_v));
    }
}

// Stores four keys of a column. The product S^T leaves half h of the wave with keys 8 n + 4 h + 0..3 of P, for 16 bytes
// with one n after the other: these are chunk h, and 2 + h, and so on, of a column of V.
#if BITS == 8
typedef uint32_t four;
#else
typedef u32x2 four;
#endif
INLINE void store_column(SHARED u32x4 *to, int column, int group, four x) {
    enum { FOURS = CHUNK / 4 };
    const int chunk = group / (2 * FOURS) * 2 + group % 2;
    ((SHARED four *)&to[v_chunk(column, chunk)])[group / 2 % FOURS] = x;
}

// Stores the columns of a word of an item.
INLINE void store_v_word(const struct staged *s, SHARED u32x4 *to, int copy, int w) {
    const int group = v_group(copy), column = OF_WORD * (v_word(copy) + w);
    const v_words *v = s->v + 4 * copy;
    const uint32_t k0 = V_WORD(v[0], w), k1 = V_WORD(v[1], w), k2 = V_WORD(v[2], w), k3 = V_WORD(v[3], w);
#if BITS == 8
    const uint32_t low_01 = low_bytes(k0, k1), high_01 = high_bytes(k0, k1);
    const uint32_t low_23 = low_bytes(k2, k3), high_23 = high_bytes(k2, k3);
    store_column(to, column, group, low_halves(low_01, low_23));
    store_column(to, column + 1, group, high_halves(low_01, low_23));
    store_column(to, column + 2, group, low_halves(high_01, high_23));
    store_column(to, column + 3, group, high_halves(high_01, high_23));
#else
    store_column(to, column, group, (u32x2){low_halves(k0, k1), low_halves(k2, k3)});
    store_column(to, column + 1, group, (u32x2){high_halves(k0, k1), high_halves(k2, k3)});
#endif
}

INLINE void store_v(const struct staged *s, SHARED u32x4 *to) {
    UNROLL
    for (int c = 0; c < V_COPIES; c++) {
        if (BN / 4 * V_ITEMS % THREADS != 0 && v_item(c) >= BN / 4 * V_ITEMS) continue;
        UNROLL
        for (int w = 0; w < V_WORDS; w++) store_v_word(s, to, c, w);
    }
}

#endif
