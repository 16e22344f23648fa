// SPDX-License-Identifier: MIT
// Products of 8 bits with rows of FP8_E4M3 as they lie in a cache. A query, and a probability, is the sum of two
// numbers of e4m3: itself, rounded, and 16 times what is lost by that, of which together all 8 bits of bf16 are left.
// Of 32 columns of a product, 16 have the first parts of 16 rows, and the others the second ones: lane l has the first
// part of a row, and lane l + 8 its second one.
//
// The hardware's e4m3 has no -0 in whose place it has NaN, and its numbers are half of OCP's (CDNA 3 ISA, "FP8 and
// BF8"; OCP OFP8, 5.2): rows are changed to it in registers.
//
// Takes BN, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_PARTS_OF_8_BITS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_PARTS_OF_8_BITS_H

#include "tessera/device/attention/cdna/direct_pieces.h"
#include "tessera/device/attention/cdna/scaled_rows.h"

// ---- parts

#define OF_SECOND_PART 16.0f

INLINE int has_second_part(void) { return lane_id() & 8; }
INLINE float over_part(void) { return has_second_part() ? 1 / OF_SECOND_PART : 1.0f; } // what the lane's is times

// Those of four numbers that the lane has.
INLINE uint32_t parts_of(float a, float b, float c, float d) {
    const float times = has_second_part() ? OF_SECOND_PART : 1.0f, less = has_second_part() ? OF_SECOND_PART : 0.0f;
    const uint32_t first = pack_fp8(a, b, c, d);
    const f32x2 low = unpack_fp8(first), high = unpack_fp8_high(first);
    const f32x2 ab = (f32x2){a, b} * times - low * less, cd = (f32x2){c, d} * times - high * less;
    return pack_fp8(ab.x, ab.y, cd.x, cd.y);
}

// Adds what products have of the two parts of a row.
INLINE void add_parts(f32x16 *x) {
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) (*x)[e] += AS_F32(other_lane_bits(AS_U32((*x)[e]), 8));
}

// ---- operands

// Queries. Products with numbers of a cache are to be multiplied by what this returns.
INLINE float make_parts(u32x4 to[K_RUNS], const operand q[Q_STEPS]) {
    float greatest = 0.0f;
    UNROLL
    for (int i = 0; i < 4 * Q_STEPS; i++) greatest = greatest_bf16(greatest, q[i / 4].chunk[0][i % 4]);
    const float unit = unit_of(max_f32(greatest, other_half(greatest))) * 0x1p8f, over = over_unit(unit);
    UNROLL
    for (int w = 0; w < 4 * K_RUNS; w++) {
        const uint32_t low = q[w / 2].chunk[0][w % 2 * 2], high = q[w / 2].chunk[0][w % 2 * 2 + 1];
        to[w / 4][w % 4] = parts_of(unpack_bf16(low) * over, unpack_bf16(low >> 16) * over, unpack_bf16(high) * over,
                                    unpack_bf16(high >> 16) * over);
    }
    return 2 * unit * over_part();
}

INLINE u32x4 pack_parts(const f32x16 *s) {
    u32x4 p;
    UNROLL
    for (int w = 0; w < 4; w++) p[w] = parts_of((*s)[4 * w], (*s)[4 * w + 1], (*s)[4 * w + 2], (*s)[4 * w + 3]);
    return p;
}

// Rows: NaN, seldom, is looked for in all words together.
INLINE void make_fnuz(uint32_t *words, int count) {
    uint32_t nan = 0;
    UNROLL
    for (int w = 0; w < count; w++) words[w] = fnuz_of_e4m3(words[w], &nan);
    if (SELDOM(any_lane((nan & 0x80808080) != 0))) {
        UNROLL
        for (int w = 0; w < count; w++) words[w] = fnuz_with_nan(words[w]);
    }
}

// ---- products

INLINE u32x4 chunk_of(const uint32_t words[4]) { return (u32x4){words[0], words[1], words[2], words[3]}; }

INLINE void scores_of_parts(f32x16 *s, const u32x4 q[K_RUNS], const struct rows_of_k *x) {
    *s = (f32x16)0.0f;
    UNROLL
    for (int n = 0; n < K_RUNS; n++) *s = mma_fp8(chunk_of(x->run[0][n]), q[n], *s);
}

INLINE void add_values_of_parts(f32x16 o[D_BLOCKS], const struct rows_of_v *x, u32x4 p) {
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) o[b] = mma_fp8(chunk_of(x->piece[b]), p, o[b]);
}

#endif
