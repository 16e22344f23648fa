// SPDX-License-Identifier: MIT
// More words of sm_90a: rows of quantised caches, which begin anywhere, what their bytes stand for, and products that
// take them from registers.
//
// Sources: PTX ISA 8.0, "Data Movement and Conversion Instructions: cp.async", "cvt", "prmt", "shf"; "Logic and Shift
// Instructions: lop3"; "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive"; "Matrix
// Fragments for mma.m16n8k16 with floating point type"; the CUDA math API, cuda_fp8.hpp, which converts by the same
// instructions.
#ifndef TESSERA_ISA_SM90_QUANTISED_H
#define TESSERA_ISA_SM90_QUANTISED_H

#include "tessera/isa/sm90_async.h"

// ---- copies to shared memory: of 4 or 8 bytes, of which the first `bytes` are read and the others are zeros, or of
// all

INLINE void copy_4(uint32_t to, const void *from, int bytes) {
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
INLINE void copy_8(uint32_t to, const void *from, int bytes) {
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
INLINE void copy_all_4(uint32_t to, const void *from) {
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
INLINE void copy_all_16(uint32_t to, const void *from) {
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Of multiples of 16 bytes, which are announced to a barrier (sm90_async.h).
INLINE void copy_run(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    __asm__ volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
        "r"(bytes), "r"(barrier)
        : "memory");
}

INLINE void copy_run_to_both(uint32_t to, const void *from, int bytes, uint32_t barrier) { // as copy_box_to_both()
    __asm__ volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier), "h"((uint16_t)3)
                     : "memory");
}

// The lane arrives at a barrier once its copies of 4, 8 or 16 bytes so far are there.
INLINE void arrive_after_copies(uint32_t barrier) {
    __asm__ volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

INLINE void shared_store_8(uint32_t to, uint64_t x) {
    __asm__ volatile("st.shared.u64 [%0], %1;" ::"r"(to), "l"(x) : "memory");
}
INLINE void shared_store_4(uint32_t to, uint32_t x) {
    __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}
INLINE void shared_store_2(uint32_t to, uint32_t x) {
    __asm__ volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"((uint16_t)x) : "memory");
}
INLINE uint32_t shared_load_2(uint32_t from) {
    uint16_t x;
    __asm__ volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
    return x;
}
INLINE uint64_t shared_load_8(uint32_t from) {
    uint64_t x;
    __asm__ volatile("ld.shared.u64 %0, [%1];" : "=l"(x) : "r"(from) : "memory");
    return x;
}
// Of what nobody writes any longer.
INLINE uint32_t shared_read_4(uint32_t from) {
    uint32_t x;
    __asm__("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from));
    return x;
}

// ---- bytes

// Four bytes of the eight of `low` and `high`; half byte i of `which` is the number of byte i, from 0 to 7.
INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t which) {
    uint32_t x;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(low), "r"(high), "r"(which));
    return x;
}
// The bits of `one` that `which` has, and the others of `other`: one instruction, of which the compiler makes two where
// `which` is a constant.
INLINE uint32_t select_bits(uint32_t which, uint32_t one, uint32_t other) {
    uint32_t x;
    __asm__("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(x) : "r"(which), "r"(one), "r"(other));
    return x;
}
// The four bytes from bit `shift` on of the eight of `low` and `high`, shift < 32.
INLINE uint32_t from_bit(uint32_t low, uint32_t high, uint32_t shift) {
    uint32_t x;
    __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(low), "r"(high), "r"(shift));
    return x;
}
// All bits but the first `before`, of which there may be more than a word has.
INLINE uint32_t bits_from(int before) {
    uint32_t x;
    __asm__("shl.b32 %0, %1, %2;" : "=r"(x) : "r"(0xffffffff), "r"(before));
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

// ---- products of a warp

// Of a matrix of 8 x 8 elements of 16 bits, of which lane l has 2 (l % 4) and the next one of row l / 4: what it has of
// its transpose.
INLINE uint32_t transposed(uint32_t x) {
    uint32_t y;
    __asm__("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// Adds A B to the sums: A has 16 rows, B eight columns, both 16 steps of fp16. Lane l has of A four pairs of steps: 2
// (l % 4) and the next one of row l / 4 and of the eighth row behind it, and the same eight steps on; of B those two
// pairs of column l / 4; and of the sums, in fp32, columns 2 (l % 4) and the next one of row l / 4, and of the eighth
// row behind.
INLINE void add_product(float sums[4], const uint32_t a[4], uint32_t b, uint32_t b_behind) {
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
            "%2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(b_behind));
}

#endif
