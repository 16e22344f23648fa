// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with FP16: the words of cpu_avx512bf16.h, those of vectors of 2 * LANES IEEE halves,
// whose denormals cost no time, those of 2 * LANES integers of 16 bits, and those of quarters of vectors. A word of 16
// bits holds two codes of 8 bits or four of 4, and the numbers of a vector are those of one of them, `which`, in each
// word: so no code has to move to another word.
#ifndef TESSERA_ISA_CPU_AVX512FP16_H
#define TESSERA_ISA_CPU_AVX512FP16_H

#include "tessera/isa/cpu_avx512bf16.h"

typedef __m512h vh; // 2 * LANES halves

INLINE vh v_as_h(vi a) { return _mm512_castsi512_ph(a); }
INLINE vh v_zero_h(void) { return _mm512_setzero_ph(); }
INLINE vh v_set1_h(float a) { return _mm512_set1_ph((_Float16)a); }
INLINE vh v_mac_half(vh acc, const uint16_t *p, vh b) { // with intrinsics the half would be loaded by an instruction
    __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(acc) : "v"(b), "m"(*p));
    return acc;
}
INLINE vh v_add_h(vh a, vh b) { return _mm512_add_ph(a, b); }
INLINE vh v_mac_h(vh acc, vh a, vh b) { return _mm512_fmadd_ph(a, b, acc); }

// Both halves of word i are the half of x[i].
INLINE vi v_twice_h(vf x) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lanes, _mm512_slli_epi32(lanes, 16));
    return _mm512_permutexvar_epi16(order, _mm512_castsi256_si512(v_to_f16(x)));
}

// The first LANES halves, and the others.
INLINE vf v_first_floats(vh x) { return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_castph_si512(x))); }
INLINE vf v_other_floats(vh x) { return _mm512_cvtph_ps(_mm512_extracti64x4_epi64(_mm512_castph_si512(x), 1)); }

// memory: 16 bytes of each of four rows, 16 bytes four times, LANES integers of 16 bits, to nearest even
INLINE vi v_load_quarters(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    const __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
    const __m512i y = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)b), 1);
    const __m512i z = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)c), 2);
    return _mm512_inserti32x4(z, _mm_loadu_si128((const __m128i *)d), 3);
}
INLINE vi v_repeat_quarter(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }
INLINE void v_store_words(int16_t *p, vf a) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(a)));
}

// One of the two bf16 of each word.
INLINE vf v_floats_of_bf16(vi words, int which) {
    const __m512i upper = which ? _mm512_and_si512(words, _mm512_set1_epi32((int32_t)0xffff0000)) : v_shl_i(words, 16);
    return _mm512_castsi512_ps(upper);
}

// Pair by pair the greater of `most` and the magnitude, both as integers; that of NaN is above all.
INLINE vi v_greater_pairs(vi most, vi pairs) {
    return _mm512_max_epu16(most, _mm512_and_si512(pairs, _mm512_set1_epi16(0x7fff)));
}

// The numbers of codes: of E4M3, whose NaN becomes 480, times 2^-8; of int8; and of the 16 halves of which `table` has
// two copies.
INLINE vh v_halves_of_e4m3(vi codes, int which) {
    const __m512i upper = which ? codes : _mm512_slli_epi16(codes, 8);
    return _mm512_castsi512_ph(_mm512_and_si512(_mm512_srai_epi16(upper, 1), _mm512_set1_epi16(-0x4080)));
}
INLINE vh v_halves_of_s8(vi codes, int which) { // 1024 + the code with its sign turned over, 1152 less
    const __m512i low = which ? _mm512_srli_epi16(codes, 8) : codes;
    const __m512i half = _mm512_ternarylogic_epi32(low, _mm512_set1_epi16(0xff), _mm512_set1_epi16(0x6480), 0x6a);
    return _mm512_sub_ph(_mm512_castsi512_ph(half), _mm512_castsi512_ph(_mm512_set1_epi16(0x6480)));
}
INLINE vh v_halves_of_u4(vi table, vi codes, int which) {
    return v_as_h(v_lookup_pairs(table, v_shr_i(codes, 4 * which)));
}

// The numbers of codes as integers of 16 bits: of E4M3 times powers of 2, `exponents`, as halves; of int8; and of the
// 16 words of which `table` has two copies.
INLINE vi v_words_of_e4m3(vi codes, int which, vh exponents) {
    return _mm512_cvtph_epi16(_mm512_scalef_ph(v_halves_of_e4m3(codes, which), exponents));
}
INLINE vi v_words_of_s8(vi codes, int which) {
    return _mm512_srai_epi16(which ? codes : _mm512_slli_epi16(codes, 8), 8);
}
INLINE vi v_words_of_u4(vi table, vi codes, int which) { return v_lookup_pairs(table, v_shr_i(codes, 4 * which)); }

// Integers of 16 bits: four of a, four of b, the next four of a, and so on, saturated.
INLINE vi v_words_of_i(vi a, vi b) { return _mm512_packs_epi32(a, b); }

// acc + the products of both words of each lane.
INLINE vi v_dot_words(vi acc, vi a, vi b) { // with intrinsics gcc 12 copies and stores each sum of a register tile
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
}

// The greater of `most` and twice the code, byte by byte, without the code's sign; and the greatest byte.
INLINE vi v_most_twice(vi most, vi codes) { return _mm512_max_epu8(most, _mm512_add_epi8(codes, codes)); }
INLINE int v_greatest_byte(vi a) {
    const __m512i of_pairs = _mm512_max_epu8(a, v_shr_i(a, 8)),
                  of_all = _mm512_max_epu8(of_pairs, v_shr_i(of_pairs, 16));
    return _mm512_reduce_max_epi32(_mm512_and_si512(of_all, v_set1_i(0xff)));
}

// Lane r gets the greatest lane of x[r].
INLINE vi v_greatests_i(const vi x[LANES]) {
    __m512i t[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        t[i] = v_max_i(_mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]));
    UNROLL
    for (int i = 0; i < 4; i++)
        t[i] = v_max_i(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]), _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    for (int half = 2; half > 0; half /= 2) UNROLL
    for (int i = 0; i < half; i++)
        t[i] = v_max_i(_mm512_shuffle_i32x4(t[2 * i], t[2 * i + 1], 0x88),
                       _mm512_shuffle_i32x4(t[2 * i], t[2 * i + 1], 0xdd));
    return t[0];
}

#endif
