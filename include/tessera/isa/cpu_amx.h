// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with AMX: the words of cpu_avx512bf16.h and those of its 8 tile registers, which are
// named by the numbers 0 to 7. A tile is 16 rows of 16 words. Source of the method: Intel's Architectures Software
// Developer's Manual, volume 1, chapter "Programming with Intel AMX".
#ifndef TESSERA_ISA_CPU_AMX_H
#define TESSERA_ISA_CPU_AMX_H

#include "tessera/isa/cpu_avx512bf16.h"

enum { TILE = 16, TILES = 8 };

// x truncated to bf16, towards 0.
INLINE vf v_upper(vf x) { return v_as_f(v_and_i(v_as_i(x), v_set1_i((int32_t)0xffff0000))); }

// v_upper() of the result is x rounded to the nearest bf16, ties away from 0.
INLINE vf v_round_half_away(vf x) { return v_as_f(v_add_i(v_as_i(x), v_set1_i(0x8000))); }

// The bf16 in the low half of each word, and in the high half.
INLINE vf v_low_half(vi words) { return v_as_f(v_shl_i(words, 16)); }
INLINE vf v_high_half(vi words) { return v_upper(v_as_f(words)); }

// Word i: the upper half of low[i] in its low half, that of high[i] in its high half.
INLINE vi v_upper_lanes(vf low, vf high) {
    const __m512i upper = _mm512_set1_epi32((int32_t)0xffff0000);
    return _mm512_or_si512(_mm512_srli_epi32(v_as_i(low), 16), _mm512_and_si512(v_as_i(high), upper));
}

// The upper halves of first[0], first[1], ..., second[0], ... in order of memory.
INLINE vi v_upper_row(vf first, vf second) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i pairs = _mm512_or_si512(_mm512_slli_epi32(lanes, 2), _mm512_slli_epi32(lanes, 18));
    const __m512i odd = _mm512_add_epi32(pairs, _mm512_set1_epi32(0x30001));
    return _mm512_permutex2var_epi16(v_as_i(first), odd, v_as_i(second));
}

// Makes stores before this visible to tile loads after it: compilers do not see that tile registers read memory.
INLINE void t_see_stores(void) { __asm__ volatile("" ::: "memory"); }

#ifndef TESSERA_EMULATE_TILES

// t_start() comes before the first tile word of a thread, t_end() after the last.
INLINE void t_start(void) {
    static const struct { // static, as gcc 12 thinks that only 8 bytes of it are read, and drops stores to the others
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    static_assert(sizeof shape == 64, "LDTILECFG reads 64 bytes");
    _tile_loadconfig(&shape);
}
INLINE void t_end(void) { _tile_release(); }

#define t_zero(t) _tile_zero(t)
#define t_load(t, p, stride) _tile_loadd(t, p, 4 * (size_t)(stride))
#define t_load_once(t, p, stride) _tile_stream_loadd(t, p, 4 * (size_t)(stride))
#define t_store(t, p, stride) _tile_stored(t, p, 4 * (size_t)(stride))
#define t_dot2(c, a, b) _tile_dpbf16ps(c, a, b)

#else // the same by vectors, for tests on processors without AMX: a whole build with -DTESSERA_EMULATE_TILES

static __thread vf t_register[TILES][TILE];

INLINE void t_start(void) { memset(t_register, 0, sizeof t_register); }
INLINE void t_end(void) {}
INLINE void t_zero(int t) { memset(t_register[t], 0, sizeof t_register[t]); }
INLINE void t_load(int t, const float *p, int64_t stride) {
    for (int r = 0; r < TILE; r++) t_register[t][r] = v_load(p + r * stride);
}
INLINE void t_load_once(int t, const float *p, int64_t stride) { t_load(t, p, stride); }
INLINE void t_store(int t, float *p, int64_t stride) {
    for (int r = 0; r < TILE; r++) v_store(p + r * stride, t_register[t][r]);
}
INLINE void t_dot2(int c, int a, int b) {
    for (int w = 0; w < TILE; w++)
        for (int r = 0; r < TILE; r++)
            t_register[c][r] = v_dot2(t_register[c][r], v_word((float *)&t_register[a][r] + w), t_register[b][w]);
}

#endif
#endif
