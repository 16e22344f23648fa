// SPDX-License-Identifier: MIT
// More words of sm_90a: rows of quantised caches, which begin anywhere, and what their bytes stand for.
//
// Sources: PTX ISA 8.0, "Data Movement and Conversion Instructions: cp.async", "cvt", "prmt", "shf"; the CUDA math API,
// cuda_fp8.hpp, which converts by the same instructions.
#ifndef TESSERA_ISA_SM90_QUANTISED_H
#define TESSERA_ISA_SM90_QUANTISED_H

#include "tessera/isa/sm90_async.h"

// ---- copies to shared memory of 4 bytes, of which the first `bytes` are read and the others are zeros

INLINE void copy_4(uint32_t to, const void *from, int bytes) {
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// Copies since the one before are a group. The second word waits until no more than `pending` of the lane's last groups
// are on their way; then the lane sees the others.
INLINE void commit_copies(void) { __asm__ volatile("cp.async.commit_group;" ::: "memory"); }
#define AWAIT_COPIES(pending) __asm__ volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

INLINE void shared_store_8(uint32_t to, uint64_t x) {
    __asm__ volatile("st.shared.u64 [%0], %1;" ::"r"(to), "l"(x) : "memory");
}
INLINE void shared_store_4(uint32_t to, uint32_t x) {
    __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
INLINE uint64_t shared_load_8(uint32_t from) {
    uint64_t x;
    __asm__ volatile("ld.shared.u64 %0, [%1];" : "=l"(x) : "r"(from) : "memory");
    return x;
}

// ---- bytes

// Four bytes of the eight of `low` and `high`; half byte i of `which` is the number of byte i, from 0 to 7.
INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t which) {
    uint32_t x;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(low), "r"(high), "r"(which));
    return x;
}
// The four bytes from bit `shift` on of the eight of `low` and `high`, shift < 32.
INLINE uint32_t from_bit(uint32_t low, uint32_t high, uint32_t shift) {
    uint32_t x;
    __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(low), "r"(high), "r"(shift));
    return x;
}

// ---- the four numbers of a word as fp16

// Exact. With 0x64 above it a byte is 1024 more in fp16.
INLINE uint32_t minus_1152(uint32_t x) {
    uint32_t y;
    __asm__("sub.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(0x64806480));
    return y;
}
INLINE u32x2 fp16_of_int8(uint32_t x) {
    const uint32_t above = x ^ 0x80808080;
    return (u32x2){minus_1152(pick_bytes(above, 0x64646464, 0x5140)),
                   minus_1152(pick_bytes(above, 0x64646464, 0x7362))};
}

// OCP's E4M3; exact, and NaN stays NaN.
INLINE uint32_t fp16_of_two_e4m3(uint16_t x) {
    uint32_t y;
    __asm__("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(x));
    return y;
}
INLINE u32x2 fp16_of_e4m3(uint32_t x) {
    return (u32x2){fp16_of_two_e4m3((uint16_t)x), fp16_of_two_e4m3((uint16_t)(x >> 16))};
}

// Two of fp16 as bf16, where that has the bits for them.
INLINE uint32_t bf16_of_fp16(uint32_t x) { return pack_bf16(unpack_fp16(x), unpack_fp16(x >> 16)); }

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
        to.low[i] = even_bytes(pairs[2 * i], pairs[2 * i + 1]);
        to.high[i] = odd_bytes(pairs[2 * i], pairs[2 * i + 1]);
    }
    return to;
}

// One byte for each of four numbers of 0 to 15. A selection has 8: `lower` are the numbers without their fourth bit,
// and `side` selects of both results by it.
INLINE uint32_t bytes_of_four(const uint32_t table[4], uint32_t lower, uint32_t side) {
    return pick_bytes(pick_bytes(table[0], table[1], lower), pick_bytes(table[2], table[3], lower), side);
}

// The low four bits of a byte come first.
INLINE u32x4 numbers_of_nibbles(const struct codebook *book, uint32_t x) {
    const uint32_t lower = x & 0x77777777, side = (x >> 1 & 0x44444444) | 0x32103210;
    const uint32_t low = bytes_of_four(book->low, lower, side), high = bytes_of_four(book->high, lower, side);
    const uint32_t next_low = bytes_of_four(book->low, lower >> 16, side >> 16),
                   next_high = bytes_of_four(book->high, lower >> 16, side >> 16);
    return (u32x4){pick_bytes(low, high, 0x5140), pick_bytes(low, high, 0x7362),
                   pick_bytes(next_low, next_high, 0x5140), pick_bytes(next_low, next_high, 0x7362)};
}

#endif
