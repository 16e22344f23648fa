// SPDX-License-Identifier: MIT
// The CPU vocabulary on AVX-512 with AMX: the words of cpu_avx512bf16.h and those of its 8 tile registers, which are
// named by the numbers 0 to 7. A tile is 16 rows of 16 words, or fewer. Source of the method: Intel's Architectures
// Software Developer's Manual, volume 1, chapter "Programming with Intel AMX".
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

// Bytes, or halves of words, of a and b in turns: those of the lower half of each quarter, and of the upper.
INLINE void v_zip_8(vi a, vi b, vi x[2]) {
    x[0] = _mm512_unpacklo_epi8(a, b);
    x[1] = _mm512_unpackhi_epi8(a, b);
}
INLINE void v_zip_16(vi a, vi b, vi x[2]) {
    x[0] = _mm512_unpacklo_epi16(a, b);
    x[1] = _mm512_unpackhi_epi16(a, b);
}

// 2 * LANES numbers of 16 bits as bytes: the upper ones, signed, and the lower ones, which are not.
INLINE void v_store_bytes(uint8_t *upper, uint8_t *lower, vi x) {
    _mm256_storeu_si256((__m256i *)upper, _mm512_cvtepi16_epi8(_mm512_srli_epi16(x, 8)));
    _mm256_storeu_si256((__m256i *)lower, _mm512_cvtepi16_epi8(x));
}

// The first `count` > 0 bytes from p on, up to a vector, and nothing else; others are 0.
INLINE vi v_load_bytes(const void *p, int count) {
    return _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, (unsigned)(count < 64 ? count : 64)), p);
}

// Integers of two vectors as halves of words, in order of memory, saturated.
INLINE vi v_halves_of_i(vi first, vi rest) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtsepi32_epi16(first)), _mm512_cvtsepi32_epi16(rest), 1);
}

// LANES numbers as bf16, to nearest even.
INLINE void v_store_pairs(void *p, vf x) { _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x)); }

// Vectors whose lane l is of row l % rows, of 1, 2, 4, 8 or 16 rows: of keys l / rows.

INLINE __m512i v_lanes(void) { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

// Lane l gets that of its row, or from lane `first` on of its key.
INLINE vi v_of_row_i(vi x, int rows) { return _mm512_permutexvar_epi32(v_and_i(v_lanes(), v_set1_i(rows - 1)), x); }
INLINE vf v_of_row(vf x, int rows) { return v_as_f(v_of_row_i(v_as_i(x), rows)); }
INLINE vi v_key_lanes(int rows) {
    return v_shr_i(v_lanes(), rows == 16 ? 4 : rows == 8 ? 3 : rows == 4 ? 2 : rows == 2 ? 1 : 0);
}
INLINE vf v_of_key(vf x, int rows, int first) {
    return _mm512_permutexvar_ps(v_add_i(v_key_lanes(rows), v_set1_i(first)), x);
}

// Each lane gets the greatest, or the sum, of its row.
INLINE vf v_swap_lanes(vf x, int distance) { return _mm512_permutexvar_ps(v_xor_i(v_lanes(), v_set1_i(distance)), x); }
INLINE vf v_greatest_of_row(vf x, int rows) {
    if (rows < 16) x = v_max(x, v_swap_lanes(x, 8));
    if (rows < 8) x = v_max(x, v_swap_lanes(x, 4));
    if (rows < 4) x = v_max(x, v_swap_lanes(x, 2));
    if (rows < 2) x = v_max(x, v_swap_lanes(x, 1));
    return x;
}
INLINE vf v_sum_of_row(vf x, int rows) {
    if (rows < 16) x = v_add(x, v_swap_lanes(x, 8));
    if (rows < 8) x = v_add(x, v_swap_lanes(x, 4));
    if (rows < 4) x = v_add(x, v_swap_lanes(x, 2));
    if (rows < 2) x = v_add(x, v_swap_lanes(x, 1));
    return x;
}

// Such vectors of LANES keys become one for each row, whose lane l is of key v_key_of_lane(rows, l).
INLINE int v_key_of_lane(int rows, int l) {
    const int quarter = l / 4, at = l % 4;
    switch (rows) {
    case 2:
        return at / 2 * 8 + 2 * quarter + at % 2;
    case 4:
        return 4 * at + quarter;
    case 8:
        return quarter / 2 * 8 + 2 * at + quarter % 2;
    default:
        return l;
    }
}
INLINE void v_rows_of_keys(vf x[LANES], int rows) {
    if (rows == 2) {
        const __m512 first = _mm512_shuffle_ps(x[0], x[1], 0x88);
        x[1] = _mm512_shuffle_ps(x[0], x[1], 0xdd);
        x[0] = first;
    }
    if (rows == 4 || rows == 8) v_transpose_quarters(x);
    if (rows == 8) {
        v_transpose_quarters(x + 4);
        UNROLL
        for (int r = 0; r < 4; r++) {
            const __m512 first = _mm512_shuffle_f32x4(x[r], x[r + 4], 0x88);
            x[r + 4] = _mm512_shuffle_f32x4(x[r], x[r + 4], 0xdd);
            x[r] = first;
        }
    }
    if (rows == 16) v_transpose(x);
}

// Makes stores before this visible to tile loads after it: compilers do not see that tile registers read memory.
INLINE void t_see_stores(void) { __asm__ volatile("" ::: "memory"); }

#ifndef TESSERA_EMULATE_TILES

// t_start() comes before the first tile word of a thread, t_end() after the last. t_start_as() gives each tile so many
// rows of so many words; what a product sums over is words of a, which b has as rows.
struct t_shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(struct t_shape) == 64, "LDTILECFG reads 64 bytes");
INLINE void t_start(void) {
    // static, as gcc 12 thinks that only 8 bytes of it are read, and drops stores to the others
    static const struct t_shape shape = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shape);
}
INLINE void t_start_as(const int rows[TILES], const int words[TILES]) {
    struct t_shape shape = {.palette = 1};
    for (int t = 0; t < TILES; t++) {
        shape.rows[t] = (uint8_t)rows[t];
        shape.row_bytes[t] = (uint16_t)(4 * words[t]);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shape)); // see above
}
INLINE void t_end(void) { _tile_release(); }

#define t_zero(t) _tile_zero(t)
#define t_load(t, p, stride) _tile_loadd(t, p, 4 * (size_t)(stride))
#define t_load_once(t, p, stride) _tile_stream_loadd(t, p, 4 * (size_t)(stride))
#define t_store(t, p, stride) _tile_stored(t, p, 4 * (size_t)(stride))
#define t_dot2(c, a, b) _tile_dpbf16ps(c, a, b)
#define t_dot4(c, a, b) _tile_dpbssd(c, a, b)
#define t_dot4_unsigned_a(c, a, b) _tile_dpbusd(c, a, b)
#define t_dot4_unsigned_b(c, a, b) _tile_dpbsud(c, a, b)

#else // the same by vectors, for tests on processors without AMX: a whole build with -DTESSERA_EMULATE_TILES

static __thread vf t_register[TILES][TILE];
static __thread int t_rows[TILES], t_words[TILES];

INLINE void t_start_as(const int rows[TILES], const int words[TILES]) {
    memset(t_register, 0, sizeof t_register);
    memcpy(t_rows, rows, sizeof t_rows);
    memcpy(t_words, words, sizeof t_words);
}
INLINE void t_start(void) {
    static const int whole[TILES] = {16, 16, 16, 16, 16, 16, 16, 16};
    t_start_as(whole, whole);
}
INLINE void t_end(void) {}
INLINE void t_zero(int t) { memset(t_register[t], 0, sizeof t_register[t]); }
INLINE void t_load(int t, const void *p, int64_t stride) {
    t_zero(t);
    for (int r = 0; r < t_rows[t]; r++)
        memcpy(&t_register[t][r], (const uint8_t *)p + 4 * r * stride, 4 * (size_t)t_words[t]);
}
INLINE void t_load_once(int t, const void *p, int64_t stride) { t_load(t, p, stride); }
INLINE void t_store(int t, void *p, int64_t stride) {
    for (int r = 0; r < t_rows[t]; r++)
        memcpy((uint8_t *)p + 4 * r * stride, &t_register[t][r], 4 * (size_t)t_words[t]);
}
INLINE void t_dot2(int c, int a, int b) {
    for (int w = 0; w < t_words[a]; w++)
        for (int r = 0; r < t_rows[c]; r++)
            t_register[c][r] = v_dot2(t_register[c][r], v_word((float *)&t_register[a][r] + w), t_register[b][w]);
}
// Sums of four products of bytes; those of a or b may be unsigned.
INLINE void t_dot4_as(int c, int a, int b, int a_below, int b_below) {
    for (int r = 0; r < t_rows[c]; r++)
        for (int n = 0; n < t_words[c]; n++)
            for (int w = 0; w < 4 * t_words[a]; w++) {
                const int x = ((const int8_t *)&t_register[a][r])[w];
                const int y = ((const int8_t *)&t_register[b][w / 4])[4 * n + w % 4];
                ((int32_t *)&t_register[c][r])[n] += (a_below ? x & 255 : x) * (b_below ? y & 255 : y);
            }
}
INLINE void t_dot4(int c, int a, int b) { t_dot4_as(c, a, b, 0, 0); }
INLINE void t_dot4_unsigned_a(int c, int a, int b) { t_dot4_as(c, a, b, 1, 0); }
INLINE void t_dot4_unsigned_b(int c, int a, int b) { t_dot4_as(c, a, b, 0, 1); }

#endif
#endif
