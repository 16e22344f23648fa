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
// Lanes of half a wave read OF_KEY chunks of each of 4 keys, or where elements are bytes, of keys 0 to 3 and 8 to 11.
enum { V_CYCLE = CYCLE(V_CHUNKS), V_ROWS = SLOTS / V_CYCLE, OF_KEY = BITS / 4 };
INLINE int v_slot(int key, int chunk) {
    const int turn = BITS == 8 ? key % 4 / V_ROWS + key / 8 % 2 * (4 / V_ROWS) : key / V_ROWS;
    return chunk ^ (OF_KEY * turn & (V_CYCLE - 1));
}
#else
enum { KEY_CHUNKS = BN / CHUNK };
// All banks hold 8 chunks. Where those of a column are but four, columns also change places: eight lanes that read
// together, columns 4 n to 4 n + 3 and 4 (n ^ 5) to 4 (n ^ 5) + 3, have a chunk in 8 slots, and 16 that store together
// in as many as there can be.
INLINE int v_slot(int d, int chunk) {
    return chunk ^ (KEY_CHUNKS == 4 ? d / 2 % 2 + d / 16 % 2 * 2 : (d ^ d / 8 % 4) & (KEY_CHUNKS - 1));
}
INLINE int v_column(int d) { return KEY_CHUNKS == 4 ? d ^ d / 8 % 2 : d; }
INLINE int v_chunk(int d, int chunk) { return v_column(d) * KEY_CHUNKS + v_slot(d, chunk); } // where it is in a tile
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
    int v[V_CYCLE / OF_KEY];
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
    operand x;
    UNROLL
    for (int p = 0; p < OPERAND_CHUNKS; p++) {
        const int n = OPERAND_CHUNKS * step + p;
        x.chunk[p] = *read_at(k, n % READS, 32 * block * Q_CHUNKS + n / READS * K_CYCLE);
    }
    return x;
}

#if TRANSPOSING_READS
// Each of 16 lanes reads 8 bytes of a key, and receives as many of a column: 4 keys, or 8 that are bytes.
#if BITS == 8
#define READ_COLUMN read_transposed_8
#else
#define READ_COLUMN read_transposed
#endif
INLINE operand v_operand(lds_tile v, int block, int step) {
    enum { READS = V_CYCLE / OF_KEY, KEYS = 256 / BITS }; // of a chunk of both halves of the wave
    operand x;
    UNROLL
    for (int p = 0; p < OPERAND_CHUNKS; p++) {
        const int key = KEYS * (OPERAND_CHUNKS * step + p);
        SHARED const u32x4 *at = read_at(v, block % READS, key * V_CHUNKS + block / READS * V_CYCLE);
        const u32x2 low = READ_COLUMN(at), high = READ_COLUMN(at + KEYS / 2 * V_CHUNKS);
        x.chunk[p] = (u32x4){low.x, low.y, high.x, high.y};
    }
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
#if BITS == 8
    const int key = 4 * half + lane % 8 / 2 + lane % 16 / 8 * 8, chunk = lane / 16 % 2;
#else
    const int key = 4 * half + lane % 16 / 4, chunk = lane / 16 % 2 * 2 + lane % 4 / 2;
#endif
    UNROLL
    for (int n = 0; n < V_CYCLE / OF_KEY; n++)
        r->v[n] = 16 * (key * V_CHUNKS + v_slot(key, OF_KEY * n + chunk)) + 8 * (lane % 2);
#else
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) r->v[n] = 16 * v_chunk(row, 2 * n + half);
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
