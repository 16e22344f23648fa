// SPDX-License-Identifier: MIT
// V^T [d][key], as it is multiplied: an item is a chunk of keys.
//
// Takes item, v_tile, v_place, v_chunk, v_position, KEY_CHUNKS, GROUPS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STAGED_COLUMNS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STAGED_COLUMNS_H

#include "tessera/device/attention/cdna/keys.h"

enum { V_LOADS = (DV * KEY_CHUNKS + THREADS - 1) / THREADS };

INLINE void find_v_places(int places[V_LOADS], const struct keys *keys) {
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int d = (int)(item(c) / KEY_CHUNKS), chunk = (int)(item(c) % KEY_CHUNKS);
        places[c] = d < keys->hdim_v ? BYTES(d * keys->stride_v) + 16 * chunk : OUTSIDE;
    }
}

// Keys from `count` on become zeros: past a row's end there may be anything, and P = 0 times NaN is not 0. The word
// that holds both is loaded byte by byte, since in the last row it reaches past the buffer.
INLINE void cut_v(u32x4 staged[V_LOADS], const int places[V_LOADS], buffer v, int count) {
    enum { NUMBERS = 32 / BITS }; // in a word
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int left = count - CHUNK * (int)(item(c) % KEY_CHUNKS); // keys of this chunk
        const int place = left > 0 && left < CHUNK ? places[c] + left / NUMBERS * 4 : OUTSIDE;
        uint32_t last = 0;
        UNROLL
        for (int i = 0; i < 4; i++) last |= buffer_load_1(v, place + i) << 8 * i;
        last &= (1u << (uint32_t)left % NUMBERS * BITS) - 1;
        UNROLL
        for (int w = 0; w < 4; w++) {
            const int of_word = left - NUMBERS * w;
            staged[c][w] = of_word >= NUMBERS ? staged[c][w] : of_word > 0 ? last : 0;
        }
    }
}

INLINE void store_v(const u32x4 staged[V_LOADS]) {
    UNROLL
    for (int c = 0; c < V_LOADS; c++) {
        const int d = (int)(item(c) / KEY_CHUNKS), chunk = (int)(item(c) % KEY_CHUNKS);
        if (DV * KEY_CHUNKS % THREADS != 0 && d >= DV) continue;
        const u32x4 v = staged[c];
#if BITS == 32
        v_tile[v_place(d, v_chunk(chunk))] = v;
#elif BITS == 4
        const u32x2 low = {low_halves(v.x, v.y), low_halves(v.z, v.w)};
        const u32x2 high = {high_halves(v.x, v.y), high_halves(v.z, v.w)};
        v_tile[v_place(d, v_chunk(chunk * GROUPS))] = (u32x4){low.x, low.y, high.x, high.y};
#else
#if BITS == 16
        const u32x2 of_halves[2] = {v.lo, v.hi}; // what each half of the wave takes
#else
        const u32x2 of_halves[2] = {v.even, v.odd};
#endif
        UNROLL
        for (int half = 0; half < 2; half++) {
            const int group = chunk * GROUPS + half;
            ((SHARED u32x2 *)&v_tile[v_place(d, v_chunk(group))])[v_position(group) / (GROUPS / 2)] = of_halves[half];
        }
#endif
    }
}

#endif
