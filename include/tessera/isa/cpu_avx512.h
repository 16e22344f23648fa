// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 (x86-64-v4: F, BW, CD, DQ, VL). docs/vocabulary.md says what each word means.
#ifndef TESSERA_ISA_CPU_AVX512_H
#define TESSERA_ISA_CPU_AVX512_H

#include <immintrin.h>

#include "tessera/isa/common.h"

#define LANES 16

typedef __m512 vf;  // LANES floats
typedef __m512i vi; // LANES 32-bit integers, or LANES words of packed operands

// memory
INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
INLINE vi v_load_i(const void *p) { return _mm512_loadu_si512(p); }
INLINE void v_store_i(void *p, vi x) { _mm512_storeu_si512(p, x); }
INLINE void v_stream_i(void *p, vi x) { _mm512_stream_si512((__m512i *)p, x); }
INLINE void stream_end(void) { _mm_sfence(); }
INLINE void v_load_split(const float *p, vf x[2]) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 low = _mm512_loadu_ps(p), high = _mm512_loadu_ps(p + LANES);
    x[0] = _mm512_permutex2var_ps(low, even, high);
    x[1] = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}
INLINE vi v_load_u4(const uint8_t *p) {
    __m512i bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)p)); // its high nibble goes to the upper word
    return _mm512_and_si512(_mm512_or_si512(bytes, _mm512_slli_epi64(bytes, 28)), _mm512_set1_epi32(15));
}
INLINE vf v_lookup(const float *p, vi codes) { return _mm512_permutexvar_ps(codes, _mm512_loadu_ps(p)); }
INLINE vi v_load_u8(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE vi v_load_s8(const uint8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE vi v_load_u16(const uint16_t *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)); }
INLINE void v_store_u8(uint8_t *p, vi x) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x)); }
INLINE void v_store_u16(uint16_t *p, vi x) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(x)); }
INLINE void v_stream_u8(uint8_t *p, vi x) { _mm_stream_si128((__m128i *)p, _mm512_cvtepi32_epi8(x)); }
INLINE void v_stream_u16(uint16_t *p, vi x) { _mm256_stream_si256((__m256i *)p, _mm512_cvtepi32_epi16(x)); }
INLINE vf v_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE __m256i v_to_f16(vf x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE void v_store_f16(uint16_t *p, vf x) { _mm256_storeu_si256((__m256i *)p, v_to_f16(x)); }
INLINE void v_stream_f16(uint16_t *p, vf x) { _mm256_stream_si256((__m256i *)p, v_to_f16(x)); }

// floats
INLINE vf v_set1(float x) { return _mm512_set1_ps(x); }
INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf v_quotient(vf a, vf b) { // a guess, corrected by its residue; vdivps takes up to 16 cycles
    const __m512 inverse = _mm512_rcp14_ps(b), guess = _mm512_mul_ps(a, inverse);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(guess, b, a), inverse, guess);
}
INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE vf v_abs(vf a) { return _mm512_abs_ps(a); }
INLINE vf v_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf v_scale2(vf a, vf n) { // a denormal result would take Intel's processors over 100 cycles
    const __mmask16 normal = _mm512_cmp_ps_mask(n, _mm512_set1_ps(-125.0f), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(normal, a, n);
}

// integers
INLINE vi v_set1_i(int32_t x) { return _mm512_set1_epi32(x); }
INLINE vi v_add_i(vi a, vi b) { return _mm512_add_epi32(a, b); }
INLINE vi v_sub_i(vi a, vi b) { return _mm512_sub_epi32(a, b); }
INLINE vi v_and_i(vi a, vi b) { return _mm512_and_si512(a, b); }
INLINE vi v_or_i(vi a, vi b) { return _mm512_or_si512(a, b); }
INLINE vi v_xor_i(vi a, vi b) { return _mm512_xor_si512(a, b); }
INLINE vi v_shl_i(vi a, int bits) { return _mm512_slli_epi32(a, (unsigned)bits); }
INLINE vi v_shr_i(vi a, int bits) { return _mm512_srli_epi32(a, (unsigned)bits); }
INLINE vi v_max_i(vi a, vi b) { return _mm512_max_epi32(a, b); }
INLINE vi v_to_i(vf a) { return _mm512_cvt_roundps_epi32(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vf v_to_f(vi a) { return _mm512_cvtepi32_ps(a); }
INLINE vf v_as_f(vi a) { return _mm512_castsi512_ps(a); }
INLINE vi v_as_i(vf a) { return _mm512_castps_si512(a); }
INLINE void v_mul_wide(vi a, uint32_t b, vi *high, vi *low) {
    __m512i factor = _mm512_set1_epi64(b);
    __m512i even = _mm512_mul_epu32(a, factor), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
    *low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}

// choices
INLINE vf v_if_gt_i(vi a, vi b, vf then, vf otherwise) {
    return _mm512_mask_blend_ps(_mm512_cmpgt_epi32_mask(a, b), otherwise, then);
}
INLINE vf v_if_equal(vf a, vf b, vf then, vf otherwise) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), otherwise, then);
}

// x[r] lane c becomes x[c] lane r.
INLINE void v_transpose(vf x[LANES]) {
    __m512 t[16];
    UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 16; i += 4) UNROLL
    for (int h = 0; h < 2; h++) {
        __m512d a = _mm512_castps_pd(t[i + h]), b = _mm512_castps_pd(t[i + 2 + h]);
        x[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        x[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
        x[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        x[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    }
}

// over all lanes
INLINE float v_sum(vf a) { return _mm512_reduce_add_ps(a); }
INLINE float v_greatest(vf a) { return _mm512_reduce_max_ps(a); }

// Lane r gets the sum of the lanes of x[r], by adding halves again and again.
INLINE vf v_sums(vf x[LANES]) {
    __m512 t[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        t[i] = _mm512_add_ps(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
    UNROLL
    for (int i = 0; i < 4; i++) {
        __m512d a = _mm512_castps_pd(t[2 * i]), b = _mm512_castps_pd(t[2 * i + 1]);
        t[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    for (int half = 2; half > 0; half /= 2) UNROLL
    for (int i = 0; i < half; i++)
        t[i] = _mm512_add_ps(_mm512_shuffle_f32x4(t[2 * i], t[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(t[2 * i], t[2 * i + 1], 0xdd));
    return t[0];
}

// products: acc + a * b, where a is one fp32 word of memory in all lanes
INLINE vf v_word(const void *p) { return _mm512_set1_ps(*(const float *)p); }
INLINE vf v_mac(vf acc, vf a, vf b) { return _mm512_fmadd_ps(a, b, acc); }
INLINE vf v_mac_word(vf acc, const float *p, vf b) { // with intrinsics a word used twice would take a register
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(b), "m"(*p));
    return acc;
}

#endif
