// SPDX-License-Identifier: MIT
// Tiles of K and V: they go from memory through registers to LDS, and products read their operands there.
//
// Takes MX, V_COLUMNS, WHOLE_CHUNKS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STAGED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STAGED_H

#include "tessera/device/attention/cdna/keys.h"

// K [BN][DQ] and V^T [DV][BN] in chunks. Eight lanes read the same chunk of eight rows at once, and a thread writes
// eight rows of V^T: these must lie in different banks. Where a row has a power of two of chunks, its number permutes
// them; rows of other widths have one chunk of padding.
// K has room for every chunk that threads move, which may be more than BN rows.
#define POWER_OF_2(n) (((n) & ((n)-1)) == 0)
enum { KEY_CHUNKS = BN / CHUNK };
enum { K_COPIES = (BN * Q_CHUNKS + THREADS - 1) / THREADS };
enum { K_ROW = Q_CHUNKS + (POWER_OF_2(Q_CHUNKS) ? 0 : (Q_CHUNKS + 1) % 2) };
enum { K_ROWS = (K_COPIES * THREADS + Q_CHUNKS - 1) / Q_CHUNKS };
LDS u32x4 k_tile[K_ROWS * K_ROW];
LDS u32x4 v_tile[DV * KEY_CHUNKS];

// Rows that have eight chunks together.
enum { K_CYCLE = Q_CHUNKS < 8 ? 8 / Q_CHUNKS : 1, V_CYCLE = KEY_CHUNKS < 8 ? 8 / KEY_CHUNKS : 1 };
INLINE int k_place(int key, int chunk) {
    return key * K_ROW + (POWER_OF_2(Q_CHUNKS) ? chunk ^ (key / K_CYCLE & (8 / K_CYCLE - 1)) : chunk);
}
INLINE int v_place(int d, int chunk) { return d * KEY_CHUNKS + (chunk ^ ((d / V_CYCLE ^ d / 8) & (8 / V_CYCLE - 1))); }

// Along the reduced dimension chunks belong to the two halves of the wave in turns, in both operands.
INLINE int operand_chunk(int step, int n) { return 2 * (step * OPERAND_CHUNKS + n) + lane_id() / 32; }

// The product with P sums over keys in the order that pack() leaves P in. A chunk has GROUPS groups of 4 keys; half h
// of the wave has P of keys 8 i + 4 h + 0..3: groups belong to the halves in turns.
enum { GROUPS = CHUNK / 4 };
#if BITS == 4
// A chunk of V meets a chunk of P from each half: the keys of half 0 come first in it.
INLINE int v_chunk(int group) { return group / GROUPS; }
INLINE int v_position(int group) { return group % 2 * (GROUPS / 2) + group / 2 % (GROUPS / 2); }
#else
INLINE int v_chunk(int group) { return group / (2 * GROUPS) * 2 + group % 2; }
INLINE int v_position(int group) { return group / 2 % GROUPS; }
#endif

// Items are numbered in the order of memory; thread t moves items t, t + THREADS, ...
INLINE uint32_t item(int copy) { return (uint32_t)thread_id() + (uint32_t)(THREADS * copy); }

#if MX
#include "tessera/device/attention/cdna/staged_scales.h"
#endif
#if V_COLUMNS
#include "tessera/device/attention/cdna/staged_columns.h"
#else
#include "tessera/device/attention/cdna/staged_rows.h"
#endif

struct staged {
    u32x4 k[K_COPIES], v[V_LOADS];
#if MX
    struct scales scales;
#endif
};

// Where this thread reads in a tile, in bytes. An item of K is a chunk. Chunks past the head dim, and items past the
// tile's last, are OUTSIDE.
struct places {
    int k[K_COPIES], v[V_LOADS];
#if MX
    struct scale_places scales;
#endif
};

INLINE void find_places(struct places *p, const struct keys *keys) {
    UNROLL
    for (int c = 0; c < K_COPIES; c++) {
        const int key = (int)(item(c) / Q_CHUNKS), chunk = (int)(item(c) % Q_CHUNKS);
        p->k[c] = (CHUNK * chunk < keys->hdim_q ? 16 * chunk : OUTSIDE) + BYTES(key * keys->stride_k);
    }
    find_v_places(p->v, keys);
#if MX
    find_scale_places(&p->scales, keys);
#endif
}

INLINE void load_tile(struct staged *s, const struct places *p, const struct keys *keys, int tile, int end) {
    const buffer k = k_rows(keys, tile, end), v = v_rows(keys, tile, end);
#if !WHOLE_CHUNKS
    UNROLL
    for (int c = 0; c < K_COPIES; c++)
        s->k[c] = load_chunk(k, p->k[c], CHUNK * (int)(item(c) % Q_CHUNKS), keys->hdim_q);
    UNROLL
    for (int c = 0; c < V_LOADS; c++)
        s->v[c] = load_chunk(v, p->v[c], CHUNK * (int)(item(c / 4) % V_CHUNKS), keys->hdim_v);
#else
    UNROLL
    for (int c = 0; c < K_COPIES; c++) s->k[c] = buffer_load_16(k, p->k[c]);
    UNROLL
    for (int c = 0; c < V_LOADS; c++) s->v[c] = buffer_load_16(v, p->v[c]);
#endif
#if MX
    load_scales(&s->scales, &p->scales, keys, tile, end);
#endif
}

INLINE void store_k(const u32x4 staged[K_COPIES]) {
    UNROLL
    for (int c = 0; c < K_COPIES; c++) {
        const int key = (int)(item(c) / Q_CHUNKS), chunk = (int)(item(c) % Q_CHUNKS);
        k_tile[k_place(key, chunk)] = staged[c];
    }
}

INLINE void store_tile(const struct staged *s) {
    store_k(s->k);
    store_v(s->v);
#if MX
    store_scales(&s->scales);
#endif
}

typedef SHARED const u32x4 *lds_tile; // HIP does not see from an array's type that it lies in LDS

INLINE operand k_operand(lds_tile k, int block, int step) {
    operand x;
    UNROLL
    for (int p = 0; p < OPERAND_CHUNKS; p++)
        x.chunk[p] = k[k_place(32 * block + lane_id() % 32, operand_chunk(step, p))];
#if MX
    x.scale = k_scales[64 * (Q_STEPS * block + step) + lane_id()];
#endif
    return x;
}

INLINE operand v_operand(lds_tile v, int block, int step) {
    operand x;
    UNROLL
    for (int p = 0; p < OPERAND_CHUNKS; p++)
        x.chunk[p] = v[v_place(32 * block + lane_id() % 32, operand_chunk(step, p))];
#if MX
    x.scale = v_scales[64 * (KEY_STEPS * block + step) + lane_id()];
#endif
    return x;
}

#endif
