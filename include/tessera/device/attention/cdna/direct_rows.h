// SPDX-License-Identifier: MIT
// Rows of a quantised cache that go from memory to registers, where they are operands as soon as they are widened. Lane
// l has row l % 32 of K: the half l / 32 of each 32 numbers, two chunks. Of V it has D_BLOCKS columns, from D_BLOCKS *
// (l % 32) on, of the keys that it has P of: operand b is every D_BLOCKS-th column. Queries and results follow
// (merged_queries.h).
//
// Takes KV, BN, Q_BF16.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_ROWS_H

#include "tessera/device/attention/cdna/numbers.h"

enum {
    K_RUNS = DQ / 32, // of 16 numbers of the lane's row
    V_ROWS = BN / 2,  // that a lane has columns of
    COLUMN_BYTES = NUMBER_BYTES(D_BLOCKS),
    COLUMN_WORDS = (COLUMN_BYTES + 3) / 4
};

// A tile's, on their way.
struct rows {
    uint32_t k[K_RUNS][2 * CHUNK_WORDS], v[V_ROWS][COLUMN_WORDS];
    struct row_scales scales;
};

// ---- memory. Keys past the end are the last one again.

INLINE struct spot own_spot(const struct cache *x, int tile, int end) {
    return look_up_key(x, tile + lane_id() % 32, end);
}

// What lies past the head dim is the row's beginning: numbers of q are 0 there, and of o none is stored.
INLINE void load_k(struct rows *to, const struct cache *x, const struct spot *spot) {
    const char *const row = (const char *)own_k(x, spot);
    UNROLL
    for (int n = 0; n < K_RUNS; n++) {
        const int first = 32 * n + lane_id() / 32 * 16;
        load_words(to->k[n], 2 * CHUNK_WORDS, row + (first < x->hdim_q ? NUMBER_BYTES(first) : 0));
    }
}

INLINE void load_columns(uint32_t to[COLUMN_WORDS], const char *from) {
    if (COLUMN_BYTES >= 4)
        load_words(to, COLUMN_WORDS, from);
    else
        to[0] = COLUMN_BYTES == 2 ? load_2(from) : load_1(from);
}

// Row n of the lane is key 8 (n / 4) + 4 (lane / 32) + n % 4. Four of them lie one behind the other in a page, of which
// only the first one's address is asked for, where pages have whole fours.
INLINE void load_v(struct rows *to, const struct cache *x, const struct spot *spot, int in_fours) {
    const int column = D_BLOCKS * (lane_id() % 32), first = 4 * (lane_id() / 32);
    const int offset = column < x->hdim_v ? NUMBER_BYTES(column) : 0;
    const uint64_t own = own_v(x, spot);
    if (in_fours) {
        const int64_t row = CACHE_BYTES(x->v_row);
        UNROLL
        for (int n = 0; n < V_ROWS; n += 4) {
            const char *const four = address_of(own, 2 * n + first) + offset;
            UNROLL
            for (int i = 0; i < 4; i++) load_columns(to->v[n + i], four + i * row);
        }
    } else {
        UNROLL
        for (int n = 0; n < V_ROWS; n++) load_columns(to->v[n], address_of(own, n / 4 * 8 + first + n % 4) + offset);
    }
}

// Whether those of a tile that has `left` keys, or more, do.
INLINE int lies_in_fours(const struct cache *x, int left) { return left >= BN && (x->page_size | x->offset) % 4 == 0; }

// ---- queries of bf16 as fp16

// Q_BF16: of the lane's query. Products with it are to be multiplied by the unit that this returns.
INLINE float make_fp16(operand q[Q_STEPS]) {
    float greatest = 0.0f;
    UNROLL
    for (int i = 0; i < 4 * Q_STEPS; i++) greatest = greatest_bf16(greatest, q[i / 4].chunk[0][i % 4]);
    const float unit = unit_of(max_f32(greatest, other_half(greatest))), over = over_unit(unit);
    UNROLL
    for (int i = 0; i < 4 * Q_STEPS; i++) q[i / 4].chunk[0][i % 4] = fp16_of_bf16(q[i / 4].chunk[0][i % 4], over);
    return unit;
}

// ---- numbers of 4 bits

// The two numbers of each byte of codes: LDS has them in fewer instructions than selections of bytes take.
LDS uint32_t pairs_of_codes[256];

INLINE void store_pairs(const struct tessera_fmha_fwd_cdna_args *p) {
    const struct codebook book = find_codebook(p);
    const u32x4 pairs = numbers_of_nibbles(&book, 0x01010101 * (uint32_t)lane_id() + 0xc0804000);
    UNROLL
    for (int i = 0; i < 4; i++) ((SHARED uint32_t *)pairs_of_codes)[64 * i + lane_id()] = pairs[i];
}

// Those of byte n.
INLINE uint32_t pair_of_codes(uint32_t codes, int n) {
    return ((SHARED const uint32_t *)pairs_of_codes)[codes >> 8 * n & 0xff];
}

// ---- products

INLINE u32x4 numbers_of_chunk(const uint32_t words[CHUNK_WORDS]) {
    if (KV == TESSERA_KV_TURBO4)
        return (u32x4){pair_of_codes(words[0], 0), pair_of_codes(words[0], 1), pair_of_codes(words[0], 2),
                       pair_of_codes(words[0], 3)};
    return numbers_of_words(words);
}

INLINE void scores_of_rows(f32x16 *s, const operand q[Q_STEPS], const struct rows *x) {
    *s = (f32x16)0.0f;
    UNROLL
    for (int n = 0; n < Q_STEPS; n++) {
        const operand k = {{numbers_of_chunk(x->k[n / 2] + n % 2 * CHUNK_WORDS)}};
        *s = MMA(k, q[n], *s);
    }
}

// Pairs of two keys' numbers of `count` <= 4 columns, from number `first` of those of two rows on.
INLINE void pairs_of_columns(uint32_t to[4], const uint32_t one[COLUMN_WORDS], const uint32_t other[COLUMN_WORDS],
                             int first) {
    if (KV == TESSERA_KV_TURBO4) {
        const uint32_t a = one[0] >> 4 * first, b = other[0] >> 4 * first;
        const uint32_t even = even_nibbles(a, b), odd = odd_nibbles(a, b);
        to[0] = pair_of_codes(even, 0), to[1] = pair_of_codes(odd, 0);
        to[2] = pair_of_codes(even, 1), to[3] = pair_of_codes(odd, 1);
    } else {
        const uint32_t a = one[first / 4], b = other[first / 4];
        const u32x2 low = NUMBERS_OF_WORD(low_bytes(a, b)), high = NUMBERS_OF_WORD(high_bytes(a, b));
        to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
    }
}

INLINE void add_values_of_rows(f32x16 o[D_BLOCKS], const struct rows *x, const p_operand p[KEY_STEPS]) {
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) {
        UNROLL
        for (int b = 0; b < D_BLOCKS; b += 4) {
            operand v[4];
            UNROLL
            for (int w = 0; w < 4; w++) {
                uint32_t pairs[4];
                pairs_of_columns(pairs, x->v[8 * n + 2 * w], x->v[8 * n + 2 * w + 1], b);
                UNROLL
                for (int i = 0; i < 4; i++) v[i].chunk[0][w] = pairs[i];
            }
            UNROLL
            for (int i = 0; i < 4 && b + i < D_BLOCKS; i++) o[b + i] = MMA_P(v[i], p[n], o[b + i]);
        }
    }
}

#endif
