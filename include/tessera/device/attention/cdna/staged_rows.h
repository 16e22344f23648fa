// SPDX-License-Identifier: MIT
// V [key][d]: an item is a chunk of each of 4 keys, which becomes 4 keys of each of CHUNK columns.
//
// Takes item, v_tile, v_place, v_chunk, v_position.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STAGED_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STAGED_ROWS_H

#include "tessera/device/attention/cdna/keys.h"

enum { V_CHUNKS = DV / CHUNK, V_COPIES = (BN * V_CHUNKS / 4 + THREADS - 1) / THREADS, V_LOADS = 4 * V_COPIES };

INLINE void find_v_places(int places[V_LOADS], const struct keys *keys) {
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int key = 4 * (int)(item(c / 4) / V_CHUNKS) + c % 4, chunk = (int)(item(c / 4) % V_CHUNKS);
        places[c] = (CHUNK * chunk < keys->hdim_v ? 16 * chunk : OUTSIDE) + BYTES(key * keys->stride_v);
    }
}

// Stores four keys of column d.
#if BITS == 32
typedef u32x4 four;
#elif BITS == 16
typedef u32x2 four;
#elif BITS == 8
typedef uint32_t four;
#else
typedef uint16_t four;
#endif

INLINE void store_column(int d, int group, four x) {
    ((SHARED four *)&v_tile[v_place(d, v_chunk(group))])[v_position(group)] = x;
}

INLINE void store_v(const u32x4 staged[V_LOADS]) {
    UNROLL
    for (int c = 0; c < V_COPIES; c++) {
        const int group = (int)(item(c) / V_CHUNKS), d = CHUNK * (int)(item(c) % V_CHUNKS); // keys 4 group + 0..3
        const u32x4 *v = staged + 4 * c;
        if (BN * V_CHUNKS % (4 * THREADS) != 0 && 4 * group >= BN) continue;
        UNROLL
        for (int w = 0; w < 4; w++) { // words of a chunk
#if BITS == 32
            store_column(d + w, group, (u32x4){v[0][w], v[1][w], v[2][w], v[3][w]});
#elif BITS == 16
            const u32x2 even = {low_halves(v[0][w], v[1][w]), low_halves(v[2][w], v[3][w])};
            const u32x2 odd = {high_halves(v[0][w], v[1][w]), high_halves(v[2][w], v[3][w])};
            store_column(d + 2 * w, group, even);
            store_column(d + 2 * w + 1, group, odd);
#elif BITS == 8
            const uint32_t low_01 = low_bytes(v[0][w], v[1][w]), high_01 = high_bytes(v[0][w], v[1][w]);
            const uint32_t low_23 = low_bytes(v[2][w], v[3][w]), high_23 = high_bytes(v[2][w], v[3][w]);
            store_column(d + 4 * w, group, low_halves(low_01, low_23));
            store_column(d + 4 * w + 1, group, high_halves(low_01, low_23));
            store_column(d + 4 * w + 2, group, low_halves(high_01, high_23));
            store_column(d + 4 * w + 3, group, high_halves(high_01, high_23));
#else
            const uint32_t even_01 = even_nibbles(v[0][w], v[1][w]), odd_01 = odd_nibbles(v[0][w], v[1][w]);
            const uint32_t even_23 = even_nibbles(v[2][w], v[3][w]), odd_23 = odd_nibbles(v[2][w], v[3][w]);
            const uint32_t columns[4] = {low_bytes(even_01, even_23), low_bytes(odd_01, odd_23),
                                         high_bytes(even_01, even_23), high_bytes(odd_01, odd_23)};
            UNROLL
            for (int i = 0; i < 4; i++) { // of columns 4 (i / 2) + i % 2 and 2 more
                store_column(d + 8 * w + i / 2 * 4 + i % 2, group, (uint16_t)columns[i]);
                store_column(d + 8 * w + i / 2 * 4 + i % 2 + 2, group, (uint16_t)(columns[i] >> 16));
            }
#endif
        }
    }
}

#endif
