// SPDX-License-Identifier: MIT
// More words of CDNA: what lanes exchange, and sums in memory that several workgroups add to.
#ifndef TESSERA_ISA_CDNA_EXCHANGE_H
#define TESSERA_ISA_CDNA_EXCHANGE_H

#include "tessera/isa/cdna.h"

// Waits for all lanes of the wave: each sees what the others wrote to LDS before.
INLINE void meet_lanes(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// The number that lane number `lane` has, which may be another one for each lane. All lanes that are asked must be
// active.
INLINE uint32_t of_lane(uint32_t x, int lane) { return (uint32_t)__builtin_amdgcn_ds_bpermute(lane * 4, (int)x); }

// The number of the lane whose number differs in the bits of `mask`, a power of 2 up to 16 that the compiler knows.
// Both must be active. Of 4 the neighbour is where the mirror images in 8 and then in 4 lanes meet.
INLINE uint32_t other_lane_bits(uint32_t x, int mask) {
    switch (mask) {
    case 1:
        return LLVM_DPP(x, 0xb1); // quad_perm:[1,0,3,2]
    case 2:
        return LLVM_DPP(x, 0x4e); // quad_perm:[2,3,0,1]
    case 4:
        return LLVM_DPP(LLVM_DPP(x, 0x141), 0x1b); // row_half_mirror, quad_perm:[3,2,1,0]
    case 8:
        return LLVM_DPP(x, 0x128); // row_ror:8
    default:
        return of_lane(x, lane_id() ^ mask);
    }
}

// The number that lane `lane`, 0 to 15, has of each row of 16 lanes: for all lanes of the row.
INLINE uint32_t of_row(uint32_t x, int lane) {
#define LLVM_OF_ROW(n)                                                                                                 \
    case n:                                                                                                            \
        return LLVM_DPP(x, 0x150 + (n)) /* row_newbcast */
    switch (lane) {
        LLVM_OF_ROW(0);
        LLVM_OF_ROW(1);
        LLVM_OF_ROW(2);
        LLVM_OF_ROW(3);
        LLVM_OF_ROW(4);
        LLVM_OF_ROW(5);
        LLVM_OF_ROW(6);
        LLVM_OF_ROW(7);
        LLVM_OF_ROW(8);
        LLVM_OF_ROW(9);
        LLVM_OF_ROW(10);
        LLVM_OF_ROW(11);
        LLVM_OF_ROW(12);
        LLVM_OF_ROW(13);
        LLVM_OF_ROW(14);
    default:
        return LLVM_DPP(x, 0x15f);
    }
#undef LLVM_OF_ROW
}

// Of the bytes 0 to 3 of a and 4 to 7 of b those whose numbers are the selector's bytes (CDNA ISA, V_PERM_B32).
INLINE uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector) { return __builtin_amdgcn_perm(b, a, selector); }

#if __has_builtin(__builtin_amdgcn_make_buffer_rsrc)
DEVICE float llvm_buffer_add(float, buffer, int, int, int) __asm("llvm.amdgcn.raw.ptr.buffer.atomic.fadd.f32");
#else
DEVICE float llvm_buffer_add(float, buffer, int, int, int) __asm("llvm.amdgcn.raw.buffer.atomic.fadd.f32");
#endif

// Adds to a number in memory, as a whole; nothing where the offset is past the end.
INLINE void buffer_add_f32(float x, buffer to, int offset) { (void)llvm_buffer_add(x, to, offset, 0, 0); }

#endif
