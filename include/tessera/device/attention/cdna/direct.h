// SPDX-License-Identifier: MIT
// Tiles of K, and of V where reads of LDS can transpose: they go from memory straight to LDS, and products read their
// operands there.
//
// LDS_BANKS: banks of LDS. LOAD: bytes that a lane loads at once by LOAD_TO_LDS.
//
// Takes TRANSPOSING_READS, LDS_BANKS, LOAD, LOAD_TO_LDS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_H

#include "tessera/device/attention/cdna/keys.h"

enum { V_CHUNKS = DV / CHUNK };
// Two tiles of each: one is read while the other arrives. They are separate objects, not elements of an array, so that
// the compiler knows that reads of one need not wait for loads to the other.
LDS u32x4 k_even[BN * Q_CHUNKS], k_odd[BN * Q_CHUNKS]; // [BN][DQ]
LDS u32x4 v_even[BN * V_CHUNKS], v_odd[BN * V_CHUNKS]; // [BN][DV] where reads transpose, else [DV][BN]

// A load to LDS writes the lanes' data one after the other, so chunks are permuted by the addresses that lanes load
// from: the same chunk of successive keys must lie in different banks. SLOTS: chunks that all banks hold together, as
// many as lanes read at once.
#define POWER(n) ((n) & -(n)) // the greatest power of 2 that divides n
#define CYCLE(chunks) (POWER(chunks) < SLOTS ? POWER(chunks) : SLOTS)
enum { SLOTS = LDS_BANKS / 4, K_CYCLE = CYCLE(Q_CHUNKS) };
INLINE int k_slot(int key, int chunk) { return chunk ^ (key / (SLOTS / K_CYCLE) & (K_CYCLE - 1)); }
#if TRANSPOSING_READS
enum { V_CYCLE = CYCLE(V_CHUNKS) }; // 32 lanes read 4 chunks of 4 keys
INLINE int v_slot(int key, int chunk) { return chunk ^ (4 * (key / (SLOTS / V_CYCLE)) & (V_CYCLE - 1)); }
#else
enum { KEY_CHUNKS = BN / CHUNK };
INLINE int v_slot(int d, int chunk) { return chunk ^ ((d ^ d / 8 % 4) & (KEY_CHUNKS - 1)); }
#endif

// PASS: chunks that the workgroup loads at once. Rows of `chunks` chunks repeat their permutation after
// PLACES(chunks) passes.
enum { PASS = THREADS * LOAD / 16 };
#define PLACES(chunks) ((chunks)*SLOTS / (POWER((chunks)*SLOTS) < PASS ? POWER((chunks)*SLOTS) : PASS))
struct places { // where a lane loads, in bytes from a tile's first row
    int k[PLACES(Q_CHUNKS)];
#if TRANSPOSING_READS
    int v[PLACES(V_CHUNKS)];
#endif
};

INLINE int chunk_of(int pass) { return PASS * pass + thread_id() * LOAD / 16; }
INLINE int place(int key, int chunk, int stride, int width) {
    const int within = thread_id() * LOAD % 16;
    return (chunk < width ? 16 * chunk : OUTSIDE) + within + BYTES(key * stride);
}

INLINE void find_places(struct places *p, const struct keys *keys) {
    UNROLL
    for (int n = 0; n < PLACES(Q_CHUNKS); n++) {
        const int key = chunk_of(n) / Q_CHUNKS, slot = chunk_of(n) % Q_CHUNKS;
        p->k[n] = place(key, k_slot(key, slot), keys->stride_k, keys->hdim_q / CHUNK);
    }
#if TRANSPOSING_READS
    UNROLL
    for (int n = 0; n < PLACES(V_CHUNKS); n++) {
        const int key = chunk_of(n) / V_CHUNKS, slot = chunk_of(n) % V_CHUNKS;
        p->v[n] = place(key, v_slot(key, slot), keys->stride_v, keys->hdim_v / CHUNK);
    }
#endif
}

// Loads BN rows of `chunks` chunks. `to` is where the wave's share of the first pass goes. Places beyond the first
// PLACES are computed where they are used: they would take too many registers.
INLINE void load_rows(buffer from, const int *places, int chunks, int stride, SHARED u32x4 *to) {
    int at[PLACES(DQ > DV ? Q_CHUNKS : V_CHUNKS) + PLACES(DQ > DV ? V_CHUNKS : Q_CHUNKS)];
    const int rows = PLACES(chunks) * PASS / chunks;
    UNROLL
    for (int pass = 0; PASS * pass < BN * chunks; pass++) {
        const int n = pass % PLACES(chunks);
        at[n] = here(pass == n ? places[n] : at[n] + BYTES(rows * stride));
        if (PASS * (pass + 1) <= BN * chunks || PASS * pass + PASS / WAVES * wave_id() < BN * chunks)
            LOAD_TO_LDS(from, at[n], to + PASS * pass);
    }
}

// The address of what a lane reads for an operand is the tile's first byte, plus an offset that depends on the lane and
// is kept in a register (here), plus one that is the same in all lanes and goes into the instruction.
struct reads {
    int k[K_CYCLE / 2];
#if TRANSPOSING_READS
    int v[V_CYCLE / 4];
#else
    int v[KEY_STEPS];
#endif
};
typedef struct {
    SHARED const u32x4 *first;
    const int *at;
} lds_tile;

INLINE SHARED const u32x4 *read_at(lds_tile tile, int n, int chunks) {
    return (SHARED const u32x4 *)((SHARED const char *)tile.first + tile.at[n]) + chunks;
}

INLINE operand k_operand(lds_tile k, int block, int step) {
    enum { READS = K_CYCLE / 2 };
    const operand x = {{*read_at(k, step % READS, 32 * block * Q_CHUNKS + step / READS * K_CYCLE)}};
    return x;
}

#if TRANSPOSING_READS
// Each of 16 lanes reads 4 columns of a key, and receives 4 keys of a column.
INLINE operand v_operand(lds_tile v, int block, int step) {
    enum { READS = V_CYCLE / 4 };
    SHARED const u32x4 *at = read_at(v, block % READS, 16 * step * V_CHUNKS + block / READS * V_CYCLE);
    const u32x2 low = read_transposed(at), high = read_transposed(at + 8 * V_CHUNKS);
    const operand x = {{{low.x, low.y, high.x, high.y}}};
    return x;
}
#else
INLINE operand v_operand(lds_tile v, int block, int step) {
    const operand x = {{*read_at(v, step, 32 * block * KEY_CHUNKS)}};
    return x;
}
#endif

INLINE void find_reads(struct reads *r) {
    const int lane = lane_id(), half = lane / 32, row = lane % 32;
    UNROLL
    for (int n = 0; n < K_CYCLE / 2; n++) r->k[n] = 16 * (row * Q_CHUNKS + k_slot(row, 2 * n + half));
#if TRANSPOSING_READS
    const int key = 4 * half + lane % 16 / 4, chunk = lane / 16 % 2 * 2 + lane % 4 / 2;
    UNROLL
    for (int n = 0; n < V_CYCLE / 4; n++) r->v[n] = 16 * (key * V_CHUNKS + v_slot(key, 4 * n + chunk)) + 8 * (lane % 2);
#else
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) r->v[n] = 16 * (row * KEY_CHUNKS + v_slot(row, 2 * n + half));
#endif
}

// Keeps the compiler from computing anything from the offsets before this point.
INLINE void hold_reads(struct reads *r) {
    UNROLL
    for (int n = 0; n < (int)(sizeof r->k / sizeof *r->k); n++) r->k[n] = here(r->k[n]);
    UNROLL
    for (int n = 0; n < (int)(sizeof r->v / sizeof *r->v); n++) r->v[n] = here(r->v[n]);
}

#endif
