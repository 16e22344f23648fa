// SPDX-License-Identifier: MIT
// What products take for the numbers of 8 and 4 bits of a quantised cache's rows in registers (direct_rows.h), and for
// queries where they take fp16 in place of bf16.
//
// Takes KV, PIECES, NUMBERS_OF_WORD, Q_BF16.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_CODES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DIRECT_CODES_H

#include "tessera/device/attention/cdna/numbers.h"
#if PIECES
#include "tessera/device/attention/cdna/direct_pieces.h"
#else
#include "tessera/device/attention/cdna/direct_linear.h"
#endif

// ---- queries of bf16 as fp16

// Q_BF16: of the lane's query. Products with it are to be multiplied by the unit that this returns.
INLINE float make_fp16(operand q[Q_STEPS]) {
    float greatest = 0.0f;
    UNROLL
    for (int i = 0; i < 4 * Q_STEPS; i++) greatest = greatest_bf16(greatest, q[i / 4].chunk[0][i % 4]);
    const float unit = unit_of(max_of_row(greatest)), over = over_unit(unit);
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

// ---- operands

INLINE u32x4 numbers_of_chunk(const uint32_t words[CHUNK_WORDS]) {
    if (KV == TESSERA_KV_TURBO4)
        return (u32x4){pair_of_codes(words[0], 0), pair_of_codes(words[0], 1), pair_of_codes(words[0], 2),
                       pair_of_codes(words[0], 3)};
    return numbers_of_words(words);
}

#if !PIECES
// Pairs of two keys' numbers of `count` <= 4 columns, from number `first` of those of two rows on.
INLINE void pairs_of_columns(uint32_t to[4], const uint32_t one[PART_WORDS], const uint32_t other[PART_WORDS],
                             int first) {
    if (KV == TESSERA_KV_TURBO4) {
        const uint32_t a = one[first / 8] >> 4 * (first % 8), b = other[first / 8] >> 4 * (first % 8);
        const uint32_t even = even_nibbles(a, b), odd = odd_nibbles(a, b);
        to[0] = pair_of_codes(even, 0), to[1] = pair_of_codes(odd, 0);
        to[2] = pair_of_codes(even, 1), to[3] = pair_of_codes(odd, 1);
    } else {
        const uint32_t a = one[first / 4], b = other[first / 4];
        const u32x2 low = NUMBERS_OF_WORD(low_bytes(a, b)), high = NUMBERS_OF_WORD(high_bytes(a, b));
        to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
    }
}
#endif

#endif
