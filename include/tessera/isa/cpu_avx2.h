// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX2 with FMA and F16C (x86-64-v3). docs/vocabulary.md says what each word means.
#ifndef TESSERA_ISA_CPU_AVX2_H
#define TESSERA_ISA_CPU_AVX2_H

#include <immintrin.h>

#include "tessera/isa/common.h"

#define LANES 8

typedef __m256 vf;  // LANES floats
typedef __m256i vi; // LANES 32-bit integers, or LANES words of packed operands

// memory
INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
INLINE vi v_load_i(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE void v_store_i(void *p, vi x) { _mm256_storeu_si256((__m256i *)p, x); }
INLINE void v_stream_i(void *p, vi x) { _mm256_stream_si256((__m256i *)p, x); }
INLINE void stream_end(void) { _mm_sfence(); }
INLINE void v_load_split(const float *p, vf x[2]) {
    const __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + LANES);
    const __m256 even = _mm256_shuffle_ps(low, high, 0x88), odd = _mm256_shuffle_ps(low, high, 0xdd);
    x[0] = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), 0xd8));
    x[1] = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), 0xd8));
}
INLINE vi v_load_u4(const uint8_t *p) {
    int32_t four;
    memcpy(&four, p, sizeof four);
    __m256i bytes = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four)); // its high nibble goes to the upper word
    return _mm256_and_si256(_mm256_or_si256(bytes, _mm256_slli_epi64(bytes, 28)), _mm256_set1_epi32(15));
}
INLINE vf v_lookup(const float *p, vi codes) {
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), codes);
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p + 8), codes);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28))); // by bit 3 of each code
}
INLINE vi v_load_u8(const uint8_t *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE vi v_load_s8(const uint8_t *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE vi v_load_u16(const uint16_t *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m128i v_low_halves(vi x) {
    x = _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08));
}
INLINE __m128i v_low_bytes(vi x) { // in the lower half
    x = _mm256_and_si256(x, _mm256_set1_epi32(0xff));
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm_packus_epi16(words, words);
}
INLINE void v_store_u16(uint16_t *p, vi x) { _mm_storeu_si128((__m128i *)p, v_low_halves(x)); }
INLINE void v_store_u8(uint8_t *p, vi x) { _mm_storel_epi64((__m128i *)p, v_low_bytes(x)); }
INLINE void v_stream_u16(uint16_t *p, vi x) { _mm_stream_si128((__m128i *)p, v_low_halves(x)); }
INLINE void v_stream_u8(uint8_t *p, vi x) {
    _mm_stream_si64((long long *)(void *)p, _mm_cvtsi128_si64(v_low_bytes(x)));
}
INLINE vf v_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m128i v_to_f16(vf x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE void v_store_f16(uint16_t *p, vf x) { _mm_storeu_si128((__m128i *)p, v_to_f16(x)); }
INLINE void v_stream_f16(uint16_t *p, vf x) { _mm_stream_si128((__m128i *)p, v_to_f16(x)); }

// floats
INLINE vf v_set1(float x) { return _mm256_set1_ps(x); }
INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf v_quotient(vf a, vf b) { return _mm256_div_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE vf v_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
INLINE vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf v_scale2(vf a, vf n) {
    __m256i shifted = _mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23));
    return _mm256_and_ps(_mm256_castsi256_ps(shifted), _mm256_cmp_ps(n, _mm256_set1_ps(-125.0f), _CMP_NLT_UQ));
}

// integers
INLINE vi v_set1_i(int32_t x) { return _mm256_set1_epi32(x); }
INLINE vi v_add_i(vi a, vi b) { return _mm256_add_epi32(a, b); }
INLINE vi v_sub_i(vi a, vi b) { return _mm256_sub_epi32(a, b); }
INLINE vi v_and_i(vi a, vi b) { return _mm256_and_si256(a, b); }
INLINE vi v_or_i(vi a, vi b) { return _mm256_or_si256(a, b); }
INLINE vi v_xor_i(vi a, vi b) { return _mm256_xor_si256(a, b); }
INLINE vi v_shl_i(vi a, int bits) { return _mm256_slli_epi32(a, bits); }
INLINE vi v_shr_i(vi a, int bits) { return _mm256_srli_epi32(a, bits); }
INLINE vi v_max_i(vi a, vi b) { return _mm256_max_epi32(a, b); }
INLINE vi v_to_i(vf a) { return _mm256_cvttps_epi32(v_round(a)); }
INLINE vf v_to_f(vi a) { return _mm256_cvtepi32_ps(a); }
INLINE vf v_as_f(vi a) { return _mm256_castsi256_ps(a); }
INLINE vi v_as_i(vf a) { return _mm256_castps_si256(a); }
INLINE void v_mul_wide(vi a, uint32_t b, vi *high, vi *low) {
    __m256i factor = _mm256_set1_epi64x(b);
    __m256i even = _mm256_mul_epu32(a, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

// choices
INLINE vf v_if_gt_i(vi a, vi b, vf then, vf otherwise) {
    return _mm256_blendv_ps(otherwise, then, _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)));
}
INLINE vf v_if_equal(vf a, vf b, vf then, vf otherwise) {
    return _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

// x[r] lane c becomes x[c] lane r.
INLINE void v_transpose(vf x[LANES]) {
    __m256 t[8];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 8; i += 4) UNROLL
    for (int h = 0; h < 2; h++) {
        x[i + 2 * h] = _mm256_shuffle_ps(t[i + h], t[i + 2 + h], 0x44);
        x[i + 2 * h + 1] = _mm256_shuffle_ps(t[i + h], t[i + 2 + h], 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    UNROLL
    for (int i = 0; i < 8; i++) x[i] = t[i];
}

// over all lanes
INLINE float v_sum(vf a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
INLINE float v_greatest(vf a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

// Lane r gets the sum of the lanes of x[r], by adding halves again and again: those of x[2 i] and x[2 i + 1] first.
INLINE vf v_sums_of_two(vf a, vf b) { return _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)); }
INLINE vf v_sums_of_twos(const vf x[LANES / 2]) {
    __m256 t[2];
    UNROLL
    for (int i = 0; i < 2; i++)
        t[i] = _mm256_add_ps(_mm256_shuffle_ps(x[2 * i], x[2 * i + 1], 0x44),
                             _mm256_shuffle_ps(x[2 * i], x[2 * i + 1], 0xee));
    return _mm256_add_ps(_mm256_permute2f128_ps(t[0], t[1], 0x20), _mm256_permute2f128_ps(t[0], t[1], 0x31));
}
INLINE vf v_sums(vf x[LANES]) {
    __m256 t[4];
    UNROLL
    for (int i = 0; i < 4; i++) t[i] = v_sums_of_two(x[2 * i], x[2 * i + 1]);
    return v_sums_of_twos(t);
}

// products: acc + a * b, where a is one fp32 word of memory in all lanes
INLINE vf v_word(const void *p) { return _mm256_broadcast_ss((const float *)p); }
INLINE vf v_mac(vf acc, vf a, vf b) { return _mm256_fmadd_ps(a, b, acc); }
INLINE vf v_mac_word(vf acc, const float *p, vf b) { return v_mac(acc, v_word(p), b); }

// integers of 16 bits: 2 * LANES of bytes with a sign, LANES to nearest even, acc + both products of each word
INLINE vi v_load_s8_words(const uint8_t *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
INLINE void v_store_words(int16_t *p, vf a) {
    const __m256i x = _mm256_cvtps_epi32(a);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
INLINE vi v_dot_words(vi acc, vi a, vi b) { // with intrinsics gcc 12 adds products first, and copies each sum
    const __m256i products = _mm256_madd_epi16(a, b);
    __asm__("vpaddd %1, %0, %0" : "+x"(acc) : "x"(products));
    return acc;
}

// Bytes, or halves of words, of both in turns: those of the lower half of each half, and of the upper one.
INLINE void v_zip_8(vi a, vi b, vi x[2]) {
    x[0] = _mm256_unpacklo_epi8(a, b);
    x[1] = _mm256_unpackhi_epi8(a, b);
}
INLINE void v_zip_16(vi a, vi b, vi x[2]) {
    x[0] = _mm256_unpacklo_epi16(a, b);
    x[1] = _mm256_unpackhi_epi16(a, b);
}

// Each byte, below 16, chooses one of 16 words, of whose lower and upper bytes there are two copies, in that order.
INLINE void v_lookup_words(vi low, vi upper, vi codes, vi x[2]) {
    v_zip_8(_mm256_shuffle_epi8(low, codes), _mm256_shuffle_epi8(upper, codes), x);
}

// 2 * LANES codes of E4M3 times 2^-8 as halves; NaN becomes 480 x 2^-8.
INLINE vi v_load_e4m3_halves(const uint8_t *p) {
    return _mm256_and_si256(_mm256_slli_epi16(v_load_s8_words(p), 7), _mm256_set1_epi16(-0x4080));
}

// The greater of `most` and twice the code, byte by byte, without the code's sign; and the greatest byte.
INLINE vi v_most_twice(vi most, vi codes) { return _mm256_max_epu8(most, _mm256_add_epi8(codes, codes)); }
INLINE int v_greatest_byte(vi a) {
    __m128i x = _mm_max_epu8(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_max_epu8(x, _mm_srli_si128(x, 8));
    x = _mm_max_epu8(x, _mm_srli_si128(x, 4));
    x = _mm_max_epu8(x, _mm_srli_si128(x, 2));
    return (_mm_cvtsi128_si32(_mm_max_epu8(x, _mm_srli_si128(x, 1))) & 0xff);
}

#endif
