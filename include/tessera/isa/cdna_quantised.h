// SPDX-License-Identifier: MIT
// More words of CDNA: rows of quantised caches, which begin anywhere, and what their bytes stand for.
#ifndef TESSERA_ISA_CDNA_QUANTISED_H
#define TESSERA_ISA_CDNA_QUANTISED_H

#include "tessera/isa/cdna_exchange.h"

// ---- loads from any address, aligned or not

typedef u32x4 u32x4_anywhere __attribute__((aligned(1)));
typedef u32x2 u32x2_anywhere __attribute__((aligned(1)));
typedef uint32_t u32_anywhere __attribute__((aligned(1)));
typedef uint16_t u16_anywhere __attribute__((aligned(1)));
INLINE u32x4 load_16(const void *from) { return *(GLOBAL const u32x4_anywhere *)(uint64_t)from; }
INLINE u32x2 load_8(const void *from) { return *(GLOBAL const u32x2_anywhere *)(uint64_t)from; }
INLINE uint32_t load_4(const void *from) { return *(GLOBAL const u32_anywhere *)(uint64_t)from; }
INLINE uint32_t load_1(const void *from) { return *(GLOBAL const uint8_t *)(uint64_t)from; }
INLINE uint32_t load_2(const void *from) { return *(GLOBAL const u16_anywhere *)(uint64_t)from; }

// 1, 2, or a multiple of 4 words.
INLINE void load_words(uint32_t *to, int words, const char *from) {
    if (words == 1) to[0] = load_4(from);
    if (words == 2) {
        const u32x2 x = load_8(from);
        to[0] = x.x, to[1] = x.y;
    }
    UNROLL
    for (int w = 0; w + 4 <= words; w += 4) {
        const u32x4 x = load_16(from + 4 * w);
        to[w] = x.x, to[w + 1] = x.y, to[w + 2] = x.z, to[w + 3] = x.w;
    }
}

// ---- the four numbers of a word as fp16

typedef _Float16 fp16x2 __attribute__((ext_vector_type(2)));

// Exact. With 0x64 above it a byte is 1024 more in fp16.
INLINE u32x2 fp16_of_int8(uint32_t x) {
    const uint32_t above = x ^ 0x80808080;
    const fp16x2 too_much = (_Float16)(1024 + 128);
    const fp16x2 low = __builtin_bit_cast(fp16x2, low_bytes(above, 0x64646464)) - too_much;
    const fp16x2 high = __builtin_bit_cast(fp16x2, high_bytes(above, 0x64646464)) - too_much;
    return (u32x2){__builtin_bit_cast(uint32_t, low), __builtin_bit_cast(uint32_t, high)};
}

// Two of fp16 as bf16, where that has the bits for them.
INLINE uint32_t bf16_of_fp16(uint32_t x) { return high_halves(AS_U32(unpack_fp16(x)), AS_U32(unpack_fp16(x >> 16))); }

INLINE u32x2 bf16_of_int8(uint32_t x) {
    const u32x2 four = fp16_of_int8(x);
    return (u32x2){bf16_of_fp16(four.x), bf16_of_fp16(four.y)};
}

// OCP's E4M3, exactly; NaN stays NaN.
#ifdef __gfx950__
#define OF_E4M3(type, x)                                                                                               \
    (u32x2) {                                                                                                          \
        __builtin_bit_cast(uint32_t, __builtin_amdgcn_cvt_scalef32_pk_##type##_fp8(x, 1.0f, 0)),                       \
            __builtin_bit_cast(uint32_t, __builtin_amdgcn_cvt_scalef32_pk_##type##_fp8(x, 1.0f, 1))                    \
    }
INLINE u32x2 fp16_of_e4m3(uint32_t x) { return OF_E4M3(f16, x); }
INLINE u32x2 bf16_of_e4m3(uint32_t x) { return OF_E4M3(bf16, x); }
#else
// Conversions of gfx942 do not know it. In each half the low byte has exponent and fraction, the high one the sign.
// They become those of fp16, whose exponents are 8 less.
INLINE uint32_t fp16_of_two_e4m3(uint32_t x) {
    const uint32_t bits = (x & 0x00ff00ff) << 7 | (x & 0x80008000);
    const fp16x2 numbers = __builtin_bit_cast(fp16x2, bits) * (_Float16)256;
    return __builtin_bit_cast(uint32_t, numbers);
}
INLINE u32x2 fp16_of_e4m3(uint32_t x) {
    const uint32_t sizes = x & 0x7f7f7f7f, numbers = sizes | ((sizes + 0x01010101) & 0x80808080); // 0xff: NaN
    return (u32x2){fp16_of_two_e4m3(low_bytes(numbers, x)), fp16_of_two_e4m3(high_bytes(numbers, x))};
}
INLINE u32x2 bf16_of_e4m3(uint32_t x) {
    const u32x2 four = fp16_of_e4m3(x);
    return (u32x2){bf16_of_fp16(four.x), bf16_of_fp16(four.y)};
}
#endif

// ---- numbers of 8 bits that products take as they are

#ifdef __gfx942__
// Two of the four numbers of a word of the hardware's e4m3.
INLINE f32x2 unpack_fp8(uint32_t x) { return __builtin_bit_cast(f32x2, __builtin_amdgcn_cvt_pk_f32_fp8((int)x, 0)); }
INLINE f32x2 unpack_fp8_high(uint32_t x) {
    return __builtin_bit_cast(f32x2, __builtin_amdgcn_cvt_pk_f32_fp8((int)x, 1));
}

// Numbers of OCP's E4M3 over 2 as those of FNUZ: -0 becomes 0. Bits 7 of bytes of *nan become 1 where one was NaN.
INLINE uint32_t fnuz_of_e4m3(uint32_t x, uint32_t *nan) {
    uint32_t sizes = x & 0x7f7f7f7f;
    __asm__("" : "+v"(sizes)); // or the compiler takes two instructions for the last two operations
    *nan |= sizes + 0x01010101;
    return (x & (sizes + 0x7f7f7f7f)) | sizes;
}
// What NaN came to becomes NaN.
INLINE uint32_t fnuz_with_nan(uint32_t x) {
    const uint32_t nan = ((x & 0x7f7f7f7f) + 0x01010101) & 0x80808080;
    return (x & ~(nan - (nan >> 7))) | nan;
}
#endif

// ---- the eight numbers of 4 bits of a word, by 16 numbers of 16 bits

// Their bytes, four to a word.
struct codebook {
    uint32_t low[4], high[4];
};

// Of 16 numbers, two to a word.
INLINE struct codebook codebook_of(const uint32_t pairs[8]) {
    struct codebook to;
    UNROLL
    for (int i = 0; i < 4; i++) {
        to.low[i] = pick_bytes(pairs[2 * i], pairs[2 * i + 1], 0x06040200);
        to.high[i] = pick_bytes(pairs[2 * i], pairs[2 * i + 1], 0x07050301);
    }
    return to;
}

// One byte for each of four numbers of 0 to 15: a selection has 8, so the fourth bit is that of another one's.
INLINE uint32_t bytes_of_four(const uint32_t table[4], uint32_t numbers) {
    const uint32_t eights = numbers >> 3 & 0x01010101, upper = (eights << 8) - eights, at = numbers & 0x07070707;
    return (pick_bytes(table[2], table[3], at) & upper) | (pick_bytes(table[0], table[1], at) & ~upper);
}

// The low four bits of a byte come first.
INLINE u32x4 numbers_of_nibbles(const struct codebook *book, uint32_t x) {
    const uint32_t even = x & 0x0f0f0f0f, odd = x >> 4 & 0x0f0f0f0f;
    const uint32_t even_low = bytes_of_four(book->low, even), even_high = bytes_of_four(book->high, even);
    const uint32_t odd_low = bytes_of_four(book->low, odd), odd_high = bytes_of_four(book->high, odd);
    const uint32_t of_02 = low_bytes(even_low, even_high), of_46 = high_bytes(even_low, even_high);
    const uint32_t of_13 = low_bytes(odd_low, odd_high), of_57 = high_bytes(odd_low, odd_high);
    return (u32x4){low_halves(of_02, of_13), high_halves(of_02, of_13), low_halves(of_46, of_57),
                   high_halves(of_46, of_57)};
}

#endif
