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
    __m512i l = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low));
    __m512i h = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high));
    return _mm512_or_si512(l, _mm512_slli_epi32(h, 16));
}

// The bf16 of first[0], first[1], ..., second[0], ... in order of memory.
INLINE vi v_pair_row(vf first, vf second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }

#endif
