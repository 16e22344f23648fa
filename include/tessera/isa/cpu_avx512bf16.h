// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with BF16: the words of cpu_avx512.h and those of products of bf16 pairs.
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

// 2 * LANES numbers in order of memory, each widened to half a word.
INLINE vi v_load_u8_pairs(const uint8_t *p) { return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
INLINE vi v_load_u4_pairs(const uint8_t *p) {
    __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); // its high nibble goes to the upper half
    return _mm512_and_si512(_mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12)), _mm512_set1_epi16(15));
}

// Each half of a word becomes one of the 2 * LANES halves of `table`, by its number.
INLINE vi v_lookup_pairs(vi table, vi numbers) { return _mm512_permutexvar_epi16(numbers, table); }

// Turns the code in each half of a word into a bf16.
INLINE vi v_bf16_of_e4m3(vi codes) {
    // Multiples of 2^-9, and in lane 31, which is 0x7f's, NaN.
    const __m512i specials = _mm512_mask_set1_epi16(
        _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60)), 1u << 31,
        0x7fc0);
    __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7f));
    __m512i bits = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
    // Below 8, or 0x7f, which becomes 0x77.
    __mmask32 special =
        _mm512_cmpge_epu16_mask(_mm512_sub_epi16(magnitude, _mm512_set1_epi16(8)), _mm512_set1_epi16(0x77));
    bits = _mm512_mask_permutexvar_epi16(bits, special, magnitude, specials);
    return _mm512_or_si512(bits, _mm512_slli_epi16(_mm512_and_si512(codes, _mm512_set1_epi16(0x80)), 8));
}
INLINE vi v_bf16_of_e2m1(vi codes) {
    const __m512i numbers = _mm512_broadcast_i64x4(
        _mm256_setr_epi16(0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, // 0 0.5 1 1.5 2 3 4 6
                          -0x8000, -0x4100, -0x4080, -0x4040, -0x4000, -0x3fc0, -0x3f80, -0x3f40));
    return v_lookup_pairs(numbers, codes);
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
