// SPDX-License-Identifier: MIT
// Dropout's bytes of a warpgroup's scores of a step, drawn again as the forward pass drew them.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_DROPOUT_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_DROPOUT_H

#include "tessera/device/attention/cuda/random.h"
#include "tessera/device/attention/cuda_bwd/adjust.h"

enum { LANES_APART = 4 }; // of lanes that have other keys

// Stores the bytes of a query and four keys for each of the thread's rows.
INLINE void store_bytes(const uint32_t words[2], const launch *a, uint32_t task_at, struct block b) {
    const struct pairs pairs =
        find_pairs(task_at, b, a->call.batch_stride_randval, a->call.nhead_stride_randval, a->call.stride_randval);
    UNROLL
    for (int i = 0; i < 8; i++) {
        const int key = i / 4 * 8 + i % 4;
        if (pairs.queries > 0 && key < pairs.keys)
            store_1(a->call.rand_val + pairs.first + key, words[i / 4] >> 8 * (i % 4));
    }
}

// Bit i: score i is kept. Philox gives a query the bytes of 16 keys at once, of which a warp needs two words. Four
// lanes have the same 16 queries and one of four neighbouring keys each, so each draws for four of the queries, and
// they exchange bytes.
INLINE int draw(const launch *a, uint32_t task_at, struct block b) {
    static_assert(BM == 64, "16 queries of a thread");
    const int own = b.key % 4, word = b.key % 32 / 8; // the second row's bytes are in the next word
    const int batch = TASK_FIELD(task_at, batch);
    const uint32_t head = (uint32_t)(batch * a->call.nhead_q + b.head);
    const uint64_t seed = DROP_SEED(a->call), offset = DROP_OFFSET(a->call);
    const int low = here((int)(uint32_t)seed), high = here((int)(seed >> 32)); // or keys of all rounds are kept
    uint32_t bytes[2][4], kept = 0;
    UNROLL
    for (int i = 0; i < 4; i++) {
        const int query = b.query + COLUMN(2 * own + i / 2, i % 2);
        const u32x4 bits =
            random_bits((uint64_t)(uint32_t)high << 32 | (uint32_t)low, offset, head, query, b.key / 32, b.key % 8 / 4);
        bytes[0][i] = word ? bits.z : bits.x;
        bytes[1][i] = word ? bits.w : bits.y;
        if (a->call.features & TESSERA_GPU_RANDVAL) {
            const uint32_t words[2] = {bytes[0][i], bytes[1][i]};
            const struct block four = {b.head, query, b.key - own};
            store_bytes(words, a, task_at, four);
        }
    }
    UNROLL
    for (int r = 0; r < 2; r++) {
        const uint32_t even[2] = {even_bytes(bytes[r][0], bytes[r][1]), even_bytes(bytes[r][2], bytes[r][3])};
        const uint32_t odd[2] = {odd_bytes(bytes[r][0], bytes[r][1]), odd_bytes(bytes[r][2], bytes[r][3])};
        uint32_t of_key[4] = {even_bytes(even[0], even[1]), even_bytes(odd[0], odd[1]), odd_bytes(even[0], even[1]),
                              odd_bytes(odd[0], odd[1])};
        transpose_words(of_key, LANES_APART); // now of the own key, and from each lane for its queries
        UNROLL
        for (int i = 0; i < BM / 4; i++) {
            const int score = ELEMENT(i / 2, r, i % 2);
            kept |= ((of_key[i / 4] >> 8 * (i % 4) & 255) <= a->call.keep_below ? 1u : 0u) << score;
        }
    }
    return (int)kept;
}

// Each tests the bits anew: kept apart from one another they would take a register each.

INLINE void pack_kept(uint32_t words[P_WORDS], const float x[SCORES], int kept) {
    kept = here(kept);
    UNROLL
    for (int i = 0; i < P_WORDS; i++)
        words[i] = TWO(kept >> 2 * i & 1 ? x[2 * i] : 0.0f, kept >> (2 * i + 1) & 1 ? x[2 * i + 1] : 0.0f);
}

INLINE void drop(float x[SCORES], int kept, float keep_scale) {
    kept = here(kept);
    UNROLL
    for (int i = 0; i < SCORES; i++) x[i] = kept >> i & 1 ? x[i] * keep_scale : 0.0f;
}

#endif
