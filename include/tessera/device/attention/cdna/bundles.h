// SPDX-License-Identifier: MIT
// The pieces of a main loop whose order the generator has made: a product of 32 x 32, or what stands beside one. Where
// reads do not transpose, direct_v.h comes before this.
//
// PARTS: MFMA of a product of two operands. RING: operands that are read ahead.
//
// Takes MMA_PART, PARTS, RING.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BUNDLES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BUNDLES_H

#include "tessera/device/attention/cdna/direct.h"
#include "tessera/device/attention/cdna/mask.h"
#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/tiles.h"

// Two tiles of K and of V in LDS.
struct lds {
    SHARED u32x4 *k, *v;
};

enum { SCORE_OPERANDS = KEY_BLOCKS * Q_STEPS };                              // of K, for a tile
enum { K_TILES = 2 * 16 * BN * Q_CHUNKS, V_TILES = 2 * 16 * BN * V_CHUNKS }; // bytes of LDS
enum { BEHIND_K = K_TILES + V_TILES > 0x10000 ? K_TILES : 0 };
enum { SUMS = 3 };                                                       // so that one need not wait for the one before
enum { LOADS_K = BN * Q_CHUNKS / PASS, LOADS_V = BN * V_CHUNKS / PASS }; // of a wave, for a tile

struct loop {
    struct task task;
    struct tiles tiles;
    int now, next, after; // tiles
    int clear;            // tiles from here on, less than so many keys behind it, are seen by all of the wave's queries
    uint32_t clear_keys;
    int end;   // the wave sees no tile from here on
    int plain; // so many tiles follow `after`, each behind the one before and whole
    struct keys keys;
    struct places places;
    int wave_place; // where in a tile the wave's loads go, in bytes
    int at_k[LOADS_K];
    buffer from_k, from_v;
    const char *rows_k, *rows_v; // where these begin
    uint32_t bytes_k, bytes_v;
    int step_k, step_v; // bytes of a tile's rows in memory
#if TRANSPOSING_READS
    int at_v[LOADS_V];
#else
    int place_v;
    struct staged v_next;
#endif
    struct reads reads;
    operand ring[RING]; // operands of the next products
    operand q[Q_STEPS];
    p_operand p[KEY_STEPS];
    f32x16 o[D_BLOCKS];
    struct row row;
    float scale, shift; // a probability is 2^(scale * score - shift)
    float limit;        // a score above it has O and the sums rescaled, where the reference moves (raising.h)
    float most[SUMS];   // the greatest scores of a tile: of one in so many pairs
    float sum[SUMS];    // the probabilities' sums: of one in so many
};

// ---- products, each by itself before what stands beside it

// MFMA number n of the scores of `next`: block by block of 32 keys.
INLINE void score(struct loop *x, f32x16 next[KEY_BLOCKS], int n) {
    const int operand_of = n / PARTS, block = operand_of / Q_STEPS, step = operand_of % Q_STEPS;
    const f32x16 before = n % (PARTS * Q_STEPS) == 0 ? (f32x16)0.0f : next[block];
    next[block] = pinned(MMA_PART(x->ring[operand_of % RING], x->q[step], before, n % PARTS));
    one_after_the_other();
}

// MFMA number n of the values of `now`: by steps of keys, each for all columns.
INLINE void value(struct loop *x, int n) {
    const int operand_of = n / PARTS, block = operand_of % D_BLOCKS, step = operand_of / D_BLOCKS;
    const operand v = x->ring[(SCORE_OPERANDS + operand_of) % RING];
    x->o[block] = pinned(MMA_PART(v, x->p[step], x->o[block], n % PARTS));
    one_after_the_other();
}

// Waves meet behind a product, which the matrix cores compute meanwhile, when each has what it has read of LDS, and of
// its loads so many are under way at most.
#define MEET_AFTER_ACCESSES(loads) WAIT_FOR_LOADS(loads), WAIT_FOR_LDS(0), meet(), one_after_the_other()

// ---- operands

// Before a product: its operand and that of the next have arrived when so many accesses of LDS at most are under way.
#define WAIT_FOR_OPERANDS(count) WAIT_FOR_LDS(count), one_after_the_other()

INLINE void read_k(struct loop *x, SHARED const u32x4 *k, int n) {
    x->ring[n % RING] = k_operand((lds_tile){k, x->reads.k}, n / Q_STEPS, n % Q_STEPS);
}
INLINE void read_v(struct loop *x, SHARED const u32x4 *v, int n) {
    const int reads = (int)(sizeof x->reads.v / sizeof *x->reads.v);
    int at[sizeof x->reads.v / sizeof *x->reads.v];
    UNROLL
    for (int i = 0; i < reads; i++) at[i] = x->reads.v[i] - BEHIND_K;
    x->ring[(SCORE_OPERANDS + n) % RING] = v_operand((lds_tile){v, at}, n % D_BLOCKS, n / D_BLOCKS);
}

// A read reaches 64 KB from the offset in its register. Where tiles take more, those of V begin behind K's tiles, of
// which the compiler learns nothing here, or it would take them apart again.
INLINE void reach_v(struct reads *r) {
    UNROLL
    for (int i = 0; i < (int)(sizeof r->v / sizeof *r->v); i++) r->v[i] += BEHIND_K;
    hold_reads(r);
}

// ---- softmax

// Score number e becomes a probability.
INLINE void exponential(const struct loop *x, f32x16 s[KEY_BLOCKS], int e) {
    const float exponent = s[e / ELEMENTS][e % ELEMENTS] * x->scale - x->shift;
    s[e / ELEMENTS][e % ELEMENTS] = here_f32(exp2_fast(exponent));
}
INLINE void add(struct loop *x, const f32x16 s[KEY_BLOCKS], int e) {
    x->sum[e % SUMS] = here_f32(x->sum[e % SUMS] + s[e / ELEMENTS][e % ELEMENTS]);
}

// Probabilities from e on become a word of the operand of the values.
INLINE void pack_word(struct loop *x, const f32x16 s[KEY_BLOCKS], int e) {
    enum { NUMBERS = 32 / P_BITS, P_CHUNK = 128 / P_BITS }; // of a word and of 16 bytes
    const int chunk = e / P_CHUNK, word = e % P_CHUNK / NUMBERS;
#if BITS == 8
    const f32x16 p = s[e / ELEMENTS];
    const int at = e % ELEMENTS;
    const uint32_t packed = pack_fp8_over(any_u32(), p[at], p[at + 1], p[at + 2], p[at + 3]); // no move makes a 0
#else
    const uint32_t packed = PACK_P(s[e / ELEMENTS], e % ELEMENTS);
#endif
    x->p[chunk / P_OPERAND_CHUNKS].chunk[chunk % P_OPERAND_CHUNKS][word] = (uint32_t)here((int)packed);
}

// The greatest of scores e and e + 1 and of those before, also of the tiles before.
INLINE void maximum(struct loop *x, const f32x16 s[KEY_BLOCKS], int e) {
    const float before = e < 2 * SUMS ? x->row.max : x->most[e / 2 % SUMS];
    const float a = s[e / ELEMENTS][e % ELEMENTS], b = s[e / ELEMENTS][e % ELEMENTS + 1];
    x->most[e / 2 % SUMS] = here_f32(max_f32(max_f32(before, a), b));
}

INLINE float greatest_score(const struct loop *x) { return max_f32(max_f32(x->most[0], x->most[1]), x->most[2]); }

// Here, and not where the compiler would: waves wait for their first loads.
INLINE void clear_o(struct loop *x) {
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) x->o[b][e] = here_f32(0.0f);
    }
}

// Finds the tiles that all of the wave's queries see whole.
INLINE void find_clear_tiles(struct loop *x) {
    const struct task *task = &x->task;
    const int first = x->tiles.wave_last - task->mask_y + 1;
    const int end = min_i32(task->seqlen_k, x->tiles.wave_first + task->mask_x) - BN + 1; // of tiles' first keys
    x->clear = first;
    x->clear_keys = end > first ? (uint32_t)end - (uint32_t)first : 0;
    x->end = uniform(min_i32(x->tiles.end, x->tiles.wave_last + task->mask_x));
}
INLINE int is_clear(const struct loop *x, int tile) { return (uint32_t)tile - (uint32_t)x->clear < x->clear_keys; }

// ---- loads

// Where lanes load, in bytes from a tile's first row.
INLINE void find_passes(const int *places, int chunks, int stride, int count, int *at) {
    const int rows = PLACES(chunks) * PASS / chunks;
    UNROLL
    for (int n = 0; n < count; n++)
        at[n] = here(places[n % PLACES(chunks)] + BYTES(rows * stride) * (n / PLACES(chunks)));
}

INLINE void find_loads(struct loop *x) {
    find_passes(x->places.k, Q_CHUNKS, x->keys.stride_k, LOADS_K, x->at_k);
#if TRANSPOSING_READS
    find_passes(x->places.v, V_CHUNKS, x->keys.stride_v, LOADS_V, x->at_v);
#endif
    x->step_k = BYTES(BN * x->keys.stride_k);
    x->step_v = BYTES(BN * x->keys.stride_v);
}

// The buffers of the tiles that are loaded: K of the one after the next, and V of that too where it takes the way
// through registers.
#if TRANSPOSING_READS
#define NEXT_OF_V next
#else
#define NEXT_OF_V after
#endif
INLINE void make_buffers(struct loop *x) {
    x->from_k = make_buffer(x->rows_k, x->bytes_k);
    x->from_v = make_buffer(x->rows_v, x->bytes_v);
}
INLINE void aim(struct loop *x) {
    x->rows_k = x->keys.k + BYTES(rows_before(x->after, x->keys.stride_k));
    x->bytes_k = bytes_of_rows(x->tiles.end - x->after, BN, x->keys.stride_k, x->keys.hdim_q, BITS);
    x->rows_v = x->keys.v + BYTES(rows_before(x->NEXT_OF_V, x->keys.stride_v));
    x->bytes_v = bytes_of_rows(x->tiles.end - x->NEXT_OF_V, BN, x->keys.stride_v, x->keys.hdim_v, BITS);
    x->plain = x->after >= x->tiles.begin && x->next + BN == x->after ? (x->tiles.end - x->after) / BN - 1 : 0;
    make_buffers(x);
}

// On to the next tile. Mostly it lies behind the one before and is whole: then buffers only move; else they are found
// anew.
INLINE void move_k(struct loop *x) { x->rows_k = pointer_here(x->rows_k + x->step_k); }
INLINE void move_v(struct loop *x) { x->rows_v = pointer_here(x->rows_v + x->step_v); }
INLINE void advance(struct loop *x) {
    x->now = x->next;
    x->next = x->after;
    x->plain -= 1;
    x->after += BN;
    if (SELDOM(x->plain < 0)) {
        x->after = tile_after(&x->tiles, uniform_here(x->next));
        aim(x);
    } else {
        make_buffers(x);
    }
}

INLINE void load_to(buffer from, int offset, SHARED u32x4 *to, int wave_place, int pass) {
    LOAD_TO_LDS(from, offset, (SHARED char *)to + wave_place + 16 * PASS * pass);
}
INLINE void load_k(const struct loop *x, SHARED u32x4 *to, int pass) {
    load_to(x->from_k, x->at_k[pass], to, x->wave_place, pass);
}
#if TRANSPOSING_READS
INLINE void load_v(const struct loop *x, SHARED u32x4 *to, int pass) {
    load_to(x->from_v, x->at_v[pass], to, x->wave_place, pass);
}
#else
INLINE void fetch_v_row(struct loop *x, int i) {
    x->v_next.v[i] = LOAD_V(x->from_v, x->place_v + uniform_here(BYTES(i * x->keys.stride_v)));
}
INLINE void store_word(const struct loop *x, SHARED u32x4 *to, int w) { store_v_word(&x->v_next, to, 0, w); }
#endif

#endif
