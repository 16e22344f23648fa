// SPDX-License-Identifier: MIT
// V goes through registers to LDS, while K goes straight there: a load to LDS cannot transpose.
//
// Takes V_WORDS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_V_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_V_H

#include "tessera/device/attention/cdna/direct.h"

// An item is 2 * V_WORDS columns of 4 keys. V_COPIES: items of a thread.
enum { V_ITEMS = DV / 2 / V_WORDS, V_COPIES = (BN / 4 * V_ITEMS + THREADS - 1) / THREADS };
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

INLINE int v_item(int copy) { return thread_id() + THREADS * copy; }

// Where the lane's item of a tile begins, in bytes.
INLINE int v_item_place(const struct keys *keys, int copy) {
    const int key = 4 * (v_item(copy) / V_ITEMS), word = v_item(copy) % V_ITEMS * V_WORDS;
    return (2 * word < keys->hdim_v ? 4 * word : OUTSIDE) + BYTES(key * keys->stride_v);
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

// Stores two columns of an item. The product S^T leaves half h of the wave with keys 16 n + 4 h + 0..3 and
// 16 n + 8 + 4 h + 0..3 of P for step n of the product with V. These 8 keys are chunk 2 n + h of a column of V.
INLINE void store_v_word(const struct staged *s, SHARED u32x4 *to, int copy, int w) {
    const int group = v_item(copy) / V_ITEMS, d = v_item(copy) % V_ITEMS * V_WORDS * 2; // keys 4 group + 0..3
    const int chunk = group / 4 * 2 + group % 2, half = group / 2 % 2, column = d + 2 * w;
    const v_words *v = s->v + 4 * copy;
    const uint32_t k0 = V_WORD(v[0], w), k1 = V_WORD(v[1], w), k2 = V_WORD(v[2], w), k3 = V_WORD(v[3], w);
    const u32x2 even = {low_halves(k0, k1), low_halves(k2, k3)};
    const u32x2 odd = {high_halves(k0, k1), high_halves(k2, k3)};
    ((SHARED u32x2 *)&to[column * KEY_CHUNKS + v_slot(column, chunk)])[half] = even;
    ((SHARED u32x2 *)&to[(column + 1) * KEY_CHUNKS + v_slot(column + 1, chunk)])[half] = odd;
}

INLINE void store_v(const struct staged *s, SHARED u32x4 *to) {
    UNROLL
    for (int c = 0; c < V_COPIES; c++) {
        if (BN / 4 * V_ITEMS % THREADS != 0 && 4 * (v_item(c) / V_ITEMS) >= BN) continue;
        UNROLL
        for (int w = 0; w < V_WORDS; w++) store_v_word(s, to, c, w);
    }
}

#endif
