// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with FP16: the words of cpu_avx512bf16.h, those of vectors of 2 * LANES IEEE halves,
// whose denormals cost no time, those of 2 * LANES integers of 16 bits, and those of quarters of vectors. A word of 16
// bits holds two codes of 8 bits or four of 4, and the numbers of a vector are those of one of them, `which`, in each
// word: so no code has to move to another word.
#ifndef TESSERA_ISA_CPU_AVX512FP16_H
#define TESSERA_ISA_CPU_AVX512FP16_H

#include "tessera/isa/cpu_avx512bf16.h"

#ifndef TESSERA_EMULATE_HALVES

typedef __m512h vh; // 2 * LANES halves

INLINE vh v_as_h(vi a) { return _mm512_castsi512_ph(a); }
INLINE vi v_bits_h(vh a) { return _mm512_castph_si512(a); }
INLINE vh v_mac_half(vh acc, const uint16_t *p, vh b) { // with intrinsics the half would be loaded by an instruction
    __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(acc) : "v"(b), "m"(*p));
    return acc;
}
INLINE vh v_add_h(vh a, vh b) { return _mm512_add_ph(a, b); }
INLINE vh v_mac_h(vh acc, vh a, vh b) { return _mm512_fmadd_ph(a, b, acc); }
INLINE vi v_words_of_scaled(vh a, vh exponents) { return _mm512_cvtph_epi16(_mm512_scalef_ph(a, exponents)); }

#else // the same in floats, for tests on processors without FP16: a whole build with -DTESSERA_EMULATE_HALVES

typedef vi vh;

INLINE vh v_as_h(vi a) { return a; }
INLINE vi v_bits_h(vh a) { return a; }
INLINE vf v_floats_h(vh a, int other) {
    return _mm512_cvtph_ps(other ? _mm512_extracti64x4_epi64(a, 1) : _mm512_castsi512_si256(a));
}
INLINE vh v_both_h(__m256i first, __m256i other) { return _mm512_inserti64x4(_mm512_castsi256_si512(first), other, 1); }

// The half nearest to a * b + c. A sum that is no float becomes the odd one of its neighbours, which rounds as it does.
INLINE __m256i v_half_of_sum(vf a, vf b, vf c) {
    const __m512 low = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512 high = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __m512 cut = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __mmask16 between = _mm512_cmp_ps_mask(low, high, _CMP_LT_OQ);
    const __m512i odd = _mm512_mask_or_epi32(v_as_i(cut), between, v_as_i(cut), v_set1_i(1));
    return v_to_f16(v_as_f(odd));
}
INLINE vh v_mac_h(vh acc, vh a, vh b) {
    return v_both_h(v_half_of_sum(v_floats_h(a, 0), v_floats_h(b, 0), v_floats_h(acc, 0)),
                    v_half_of_sum(v_floats_h(a, 1), v_floats_h(b, 1), v_floats_h(acc, 1)));
}
INLINE vh v_add_h(vh a, vh b) { return v_mac_h(b, a, _mm512_set1_epi16(0x3c00)); } // a * 1 + b
INLINE vh v_mac_half(vh acc, const uint16_t *p, vh b) { return v_mac_h(acc, _mm512_set1_epi16((int16_t)*p), b); }
INLINE vi v_words_of_scaled(vh a, vh exponents) {
    const vf first = _mm512_scalef_ps(v_floats_h(a, 0), v_floats_h(exponents, 0));
    const vf other = _mm512_scalef_ps(v_floats_h(a, 1), v_floats_h(exponents, 1));
    return v_both_h(_mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(first)),
                    _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(other)));
}

#endif

INLINE vh v_zero_h(void) { return v_as_h(v_set1_i(0)); }
INLINE vh v_set1_h(float a) { return v_as_h(_mm512_set1_epi16((int16_t)_cvtss_sh(a, _MM_FROUND_TO_NEAREST_INT))); }

// Both halves of word i are the half of x[i].
INLINE vi v_twice_h(vf x) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(lanes, _mm512_slli_epi32(lanes, 16));
    return _mm512_permutexvar_epi16(order, _mm512_castsi256_si512(v_to_f16(x)));
}

// The first LANES halves, and the others.
INLINE vf v_first_floats(vh x) { return _mm512_cvtph_ps(_mm512_castsi512_si256(v_bits_h(x))); }
INLINE vf v_other_floats(vh x) { return _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v_bits_h(x), 1)); }

// memory: 16 bytes of each of four rows, 16 bytes four times
INLINE vi v_load_quarters(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    const __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
    const __m512i y = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)b), 1);
    const __m512i z = _mm512_inserti32x4(y, _mm_loadu_si128((const __m128i *)c), 2);
    return _mm512_inserti32x4(z, _mm_loadu_si128((const __m128i *)d), 3);
}
INLINE vi v_repeat_quarter(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }

// Pair by pair the greater of `most` and the magnitude, both as integers; that of NaN is above all.
INLINE vi v_greater_pairs(vi most, vi pairs) {
    return _mm512_max_epu16(most, _mm512_and_si512(pairs, _mm512_set1_epi16(0x7fff)));
}

// The numbers of codes: of E4M3, whose NaN becomes 480, times 2^-8; of int8; and of the 16 halves of which `table` has
// two copies.
INLINE vh v_halves_of_e4m3(vi codes, int which) {
    const __m512i upper = which ? codes : _mm512_slli_epi16(codes, 8);
    return v_as_h(_mm512_and_si512(_mm512_srai_epi16(upper, 1), _mm512_set1_epi16(-0x4080)));
}
INLINE vh v_halves_of_s8(vi codes, int which) { // 1024 + the code with its sign turned over, 1152 less
    const __m512i low = which ? _mm512_srli_epi16(codes, 8) : codes;
    const __m512i half = _mm512_ternarylogic_epi32(low, _mm512_set1_epi16(0xff), _mm512_set1_epi16(0x6480), 0x6a);
    return v_add_h(v_as_h(half), v_as_h(_mm512_set1_epi16(-0x1b80))); // - 1152
}
INLINE vh v_halves_of_u4(vi table, vi codes, int which) {
    return v_as_h(v_lookup_pairs(table, v_shr_i(codes, 4 * which)));
}

// The numbers of codes as integers of 16 bits: of E4M3 times powers of 2, `exponents`, as halves; of int8; and of the
// 16 words of which `table` has two copies.
INLINE vi v_words_of_e4m3(vi codes, int which, vh exponents) {
    return v_words_of_scaled(v_halves_of_e4m3(codes, which), exponents);
}
INLINE vi v_words_of_u4(vi table, vi codes, int which) { return v_lookup_pairs(table, v_shr_i(codes, 4 * which)); }

// Integers of 16 bits: four of a, four of b, the next four of a, and so on, saturated.
INLINE vi v_words_of_i(vi a, vi b) { return _mm512_packs_epi32(a, b); }

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
