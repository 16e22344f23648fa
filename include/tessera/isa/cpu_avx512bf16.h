// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with BF16 and VBMI: the words of cpu_avx512.h and those of products of bf16 pairs.
// vdpbf16ps flushes denormals and rounds each step to nearest even, whatever MXCSR says.
#ifndef TESSERA_ISA_CPU_AVX512BF16_H
#define TESSERA_ISA_CPU_AVX512BF16_H

#include "tessera/isa/cpu_avx512.h"

// acc + a.low * b.low + a.high * b.high; each word holds two bf16.
INLINE vf v_dot2(vf acc, vf a, vf b) { return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b); }

// Word i: the bf16 of low[i] in its low half, that of high[i] in its high half.
INLINE vi v_pair_lanes(vf low, vf high) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lanes, _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// The bf16 of first[0], first[1], ..., second[0], ... in order of memory.
INLINE vi v_pair_row(vf first, vf second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }

// Zips the 2 * LANES halves of words in `low` with those in `high` to as many words: the first LANES, and the rest.
INLINE void v_zip_pairs(vi low, vi high, vi *first, vi *rest) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lanes, _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(32)), 16));
    *first = _mm512_permutex2var_epi16(low, order, high);
    *rest = _mm512_permutex2var_epi16(low, _mm512_add_epi16(order, _mm512_set1_epi16(16)), high);
}

// 2 * LANES numbers of 4 bits in order of memory, each in the lowest bits of half a word; what is above is undefined.
INLINE vi v_load_u4_pairs(const uint8_t *p) {
    const __m512i bits =
        _mm512_set1_epi64(0x200c200820042000); // bytes of 8 bits from bit 0, 32, 4, 32, 8, 32, 12, 32 on
    return _mm512_multishift_epi64_epi8(bits, _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)p)));
}

// Each half of a word becomes one of the 16 halves of which `table` has two copies, by its number of 4 bits.
INLINE vi v_lookup_pairs(vi table, vi numbers) { return _mm512_permutexvar_epi16(numbers, table); }

// The lower byte and the upper one, without the sign, of the bf16 of each of 128 magnitudes of e4m3. Those below 8 are
// multiples of 2^-9, and 0x7f is NaN.
INLINE void v_tables_of_e4m3(vi low[2], vi upper[2]) {
    const int64_t rise = 0x7060504030201000, high = (int64_t)0xf0e0d0c0b0a09080, last = (int64_t)0xc0e0d0c0b0a09080;
    low[0] = _mm512_setr_epi64(0x60402000c0800000, high, rise, high, rise, high, rise, high);
    low[1] = _mm512_setr_epi64(rise, high, rise, high, rise, high, rise, last);
    upper[0] = _mm512_setr_epi64(0x3c3c3c3c3b3b3b00, 0x3c3c3c3c3c3c3c3c, 0x3d3d3d3d3d3d3d3d, 0x3d3d3d3d3d3d3d3d,
                                 0x3e3e3e3e3e3e3e3e, 0x3e3e3e3e3e3e3e3e, 0x3f3f3f3f3f3f3f3f, 0x3f3f3f3f3f3f3f3f);
    upper[1] = _mm512_setr_epi64(0x4040404040404040, 0x4040404040404040, 0x4141414141414141, 0x4141414141414141,
                                 0x4242424242424242, 0x4242424242424242, 0x4343434343434343, 0x7f43434343434343);
}

// The bf16 of codes that both bytes of each half of a word have.
INLINE vi v_bf16_of_twice(vi codes) {
    vi low[2], upper[2];
    v_tables_of_e4m3(low, upper);
    vi x = _mm512_mask2_permutex2var_epi8(low[0], codes, 0x5555555555555555, low[1]);
    x = _mm512_mask2_permutex2var_epi8(upper[0], x, 0xaaaaaaaaaaaaaaaa, upper[1]);
    return _mm512_ternarylogic_epi32(x, codes, _mm512_set1_epi16(-0x8000), 0xf8); // x | codes & sign
}

// Turns the code in each half of a word into a bf16.
INLINE vi v_bf16_of_e4m3(vi codes) { return v_bf16_of_twice(_mm512_or_si512(codes, _mm512_slli_epi16(codes, 8))); }

// The bf16 of 2 * LANES codes in order of memory.
INLINE vi v_load_e4m3_pairs(const uint8_t *p) {
    const __m512i twice =
        _mm512_set_epi8(31, 31, 30, 30, 29, 29, 28, 28, 27, 27, 26, 26, 25, 25, 24, 24, 23, 23, 22, 22, 21, 21, 20, 20,
                        19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7,
                        7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i codes = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)p));
    return v_bf16_of_twice(_mm512_permutexvar_epi8(twice, codes));
}
INLINE vi v_bf16_of_e2m1(vi codes) {
    const __m512i numbers = _mm512_broadcast_i64x4(
        _mm256_setr_epi16(0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, // 0 0.5 1 1.5 2 3 4 6
                          -0x8000, -0x4100, -0x4080, -0x4040, -0x4000, -0x3fc0, -0x3f80, -0x3f40));
    return v_lookup_pairs(numbers, codes);
}

// A piece is 32 bytes of a row, and a vector holds those of two: one after the other, or zipped, so that the bytes or
// halves of words of both rows are pairs. Its numbers become vectors of bf16, part by part, where they lie: of bytes
// those of the lower half of each quarter are part 0, of numbers of 4 bits part n is the nth of each half of a word.

INLINE vi v_load_halves(const void *first, const void *second) {
    const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)first));
    return _mm512_inserti64x4(low, _mm256_loadu_si256((const __m256i *)second), 1);
}
INLINE vi v_repeat_half(const void *p) { return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)p)); }

// Pairs of bytes of both rows: part 0 has the first LANES, part 1 the others.
INLINE vi v_zip_bytes(vi rows) {
    const __m512i lanes =
        _mm512_set_epi64(0x3f1f3e1e3d1d3c1c, 0x2f0f2e0e2d0d2c0c, 0x3b1b3a1a39193818, 0x2b0b2a0a29092808,
                         0x3717361635153414, 0x2707260625052404, 0x3313321231113010, 0x2303220221012000);
    return _mm512_permutexvar_epi8(lanes, rows);
}

// Pairs of halves of words of both rows: quarter q has pairs q, q + 4, q + 8 and q + 12. So v_transpose_quarters() of
// four vectors of their columns puts these in order.
INLINE vi v_zip_words(vi rows) {
    const __m512i pairs = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i order = _mm512_or_si512(pairs, _mm512_slli_epi32(_mm512_add_epi32(pairs, _mm512_set1_epi32(16)), 16));
    return _mm512_permutexvar_epi16(order, rows);
}

// Quarter q of x[r] gets word r of that quarter of each x.
INLINE void v_transpose_quarters(vf x[4]) {
    __m512d t[4];
    UNROLL
    for (int i = 0; i < 4; i += 2) {
        t[i] = _mm512_castps_pd(_mm512_unpacklo_ps(x[i], x[i + 1]));
        t[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(x[i], x[i + 1]));
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        x[2 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(t[i], t[i + 2]));
        x[2 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t[i], t[i + 2]));
    }
}

// Halves of words in the order in which those of a piece come: of bytes in one vector, of 4 bits in two.
INLINE vi v_order_bytes(vi x) { return _mm512_shuffle_i64x2(x, x, 0xd8); }
INLINE void v_order_u4(vi x[2]) {
    const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i fourths = _mm512_or_si512(_mm512_slli_epi32(lanes, 2),
                                            _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(1)), 18));
    const __m512i second = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(1), 1);
    const __m512i low = _mm512_add_epi16(fourths, second), high = _mm512_add_epi16(low, _mm512_set1_epi16(2));
    const __m512i first = _mm512_permutex2var_epi16(x[0], low, x[1]);
    x[1] = _mm512_permutex2var_epi16(x[0], high, x[1]);
    x[0] = first;
}

// Part `part` of bytes, whose bf16 have so and so lower and upper bytes.
INLINE vi v_part_of_bytes(vi low, vi upper, int part) {
    return part ? _mm512_unpackhi_epi8(low, upper) : _mm512_unpacklo_epi8(low, upper);
}
INLINE vi v_bf16_of_e4m3_bytes(vi codes, int part) {
    vi low[2], upper[2];
    v_tables_of_e4m3(low, upper);
    const __m512i unsigned_upper = _mm512_permutex2var_epi8(upper[0], codes, upper[1]), sign = _mm512_set1_epi8(-0x80);
    return v_part_of_bytes(_mm512_permutex2var_epi8(low[0], codes, low[1]),
                           _mm512_ternarylogic_epi32(unsigned_upper, codes, sign, 0xf8), part);
}

// Integers of 16 bits: 2 * LANES bytes with a sign; LANES numbers, to nearest even; the byte with a sign that is the
// lower or the upper one of each half of a word.
INLINE vi v_load_s8_words(const uint8_t *p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
INLINE void v_store_words(int16_t *p, vf a) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(a)));
}
INLINE vi v_words_of_s8(vi codes, int which) {
    return _mm512_srai_epi16(which ? codes : _mm512_slli_epi16(codes, 8), 8);
}

// acc + the products of both words of each lane.
INLINE vi v_dot_words(vi acc, vi a, vi b) { // with intrinsics gcc 12 copies and stores each sum of a register tile
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
}

// The same of words in vectors of floats: where a register tile may be one of floats, too, gcc 12 copies sums whose
// type is another, and stores some of them.
INLINE vf v_dot_words_as_f(vf acc, vf a, vf b) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
}

// One of the two bf16 of each word.
INLINE vf v_floats_of_bf16(vi words, int which) {
    const __m512i upper = which ? _mm512_and_si512(words, _mm512_set1_epi32((int32_t)0xffff0000)) : v_shl_i(words, 16);
    return _mm512_castsi512_ps(upper);
}

// Lane 4 * q + r gets the sum of quarter q of x[r].
INLINE vf v_sums_of_quarters(const vf x[4]) {
    __m512d t[2];
    UNROLL
    for (int i = 0; i < 4; i += 2)
        t[i / 2] =
            _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(x[i], x[i + 1]), _mm512_unpackhi_ps(x[i], x[i + 1])));
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(t[0], t[1])),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(t[0], t[1])));
}

// Lane 8 * (r / 4) + 4 * h + r % 4 gets the sum of half h of x[r].
INLINE vf v_sums_of_halves(const vf x[8]) {
    const __m512 low = v_sums_of_quarters(x), high = v_sums_of_quarters(x + 4);
    return _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
}

// The same of integers.
INLINE vi v_sums_of_halves_i(const vi x[8]) {
    __m512i of[2], t[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        t[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]),
                                _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]));
    UNROLL
    for (int i = 0; i < 2; i++)
        of[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]),
                                 _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    return _mm512_add_epi32(_mm512_shuffle_i64x2(of[0], of[1], 0x88), _mm512_shuffle_i64x2(of[0], of[1], 0xdd));
}

// 2^x like v_exp2() of cpu_common.h, within 7.5e-5: enough for a result that is rounded to bf16. Here 2^(x - floor x)
// is a minimax polynomial (in relative error) of degree 3 on [0, 1).
INLINE vf v_exp2_short(vf x) {
    vf r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    vf p = v_fma(v_set1(0x1.3f96a4p-4f), r, v_set1(0x1.cefc4cp-3f));
    p = v_fma(p, r, v_set1(0x1.64444cp-1f));
    p = v_fma(p, r, v_set1(0x1.fff632p-1f));
    const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(normal, p, x);
}

// Multiplies both halves of word i by scale[i], a power of 2.
INLINE vi v_scale_pairs(vi a, vf scale) {
    const __m512i upper = _mm512_set1_epi32((int32_t)0xffff0000);
    __m512 low = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(a, 16)), scale);
    __m512 high = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(a, upper)), scale);
    __m512i l = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
    return _mm512_or_si512(l, _mm512_and_si512(_mm512_castps_si512(high), upper));
}

#endif
