// SPDX-License-Identifier: MIT
// The words that kernels for NVIDIA's sm_90a are written in. Clang's CUDA, which is C++: only there do bounds of a
// launch and constant arguments survive.
//
// A wave, which NVIDIA calls a warp, has 32 lanes. 16-bit floating-point numbers are passed as bits, two in each 32-bit
// word, the first in the low half. Instructions are named as in the PTX ISA 8.0.
#ifndef TESSERA_ISA_SM90_H
#define TESSERA_ISA_SM90_H

#include <stdint.h>

// ---- plain words: for kernels of any kind. Those that cdna.h has too mean the same there.

#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global))
#define ARGUMENT const __attribute__((grid_constant)) // of a kernel's one argument: it is read where it lies
#define LDS __attribute__((shared)) static            // memory of a workgroup
#define INLINE static inline DEVICE __attribute__((always_inline, unused))
#define WORKGROUP(threads) __attribute__((launch_bounds(threads)))
#define WORKGROUPS(threads, count) __attribute__((launch_bounds(threads, count))) // a unit has registers for `count`
#define UNROLL _Pragma("unroll")
#define SELDOM(condition) __builtin_expect(condition, 0) // behind it code stands out of the way

#define GLOBAL __attribute__((address_space(1))) // memory
#define OFFSET_OF(type, member) __builtin_offsetof(type, member)

typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef uint32_t u32x2 __attribute__((ext_vector_type(2)));
typedef uint32_t u32x4 __attribute__((ext_vector_type(4)));

INLINE float AS_F32(uint32_t x) { return __builtin_bit_cast(float, x); }
INLINE uint32_t AS_U32(float x) { return __builtin_bit_cast(uint32_t, x); }

#define INFINITY_F32 __builtin_inff()

enum { WAVE_LANES = 32 };

// ---- lanes and waves

INLINE int thread_id(void) { return __nvvm_read_ptx_sreg_tid_x(); } // in the workgroup
INLINE int lane_id(void) { return thread_id() % WAVE_LANES; }       // a workgroup's threads lie along x
INLINE int wave_id(void) { return thread_id() / WAVE_LANES; }

// The workgroup's place in the grid.
INLINE int workgroup_x(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
INLINE int workgroup_y(void) { return __nvvm_read_ptx_sreg_ctaid_y(); }
INLINE int workgroup_z(void) { return __nvvm_read_ptx_sreg_ctaid_z(); }

// A number that is the same in all lanes. CDNA keeps it in a scalar register.
INLINE int uniform(int x) { return x; }

// Reductions over all lanes of the wave, which must all be active; every lane gets the result.
INLINE float sum_of_lanes(float x) {
    UNROLL
    for (int apart = WAVE_LANES / 2; apart > 0; apart /= 2)
        x += __nvvm_shfl_sync_bfly_f32(~0u, x, apart, WAVE_LANES - 1);
    return x;
}
INLINE uint32_t greatest_of_lanes(uint32_t x) {
    uint32_t most;
    __asm__ volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
    return most;
}

// Waits for every wave of the workgroup; each sees what the others wrote before.
INLINE void barrier(void) { __asm__ volatile("barrier.sync.aligned 0;" ::: "memory"); }

// CDNA's kernels wait here until an argument has arrived. Here arguments are constants that instructions name.
INLINE void at_hand(const void *x) { (void)x; }

INLINE uint32_t any_u32(void) { return 0; } // a number whose value does not matter

// ---- launches of a plan, which may overlap: the next one's workgroups come to where there is room for them once all
// of this one have ended, or said that they may. PTX ISA, "griddepcontrol".

// Every kernel begins by waiting until the launch before has ended and what it wrote can be read.
INLINE void await_launch_before(void) { __asm__ volatile("griddepcontrol.wait;" ::: "memory"); }
// Not where the next launch has few workgroups: they would all go to the few units that have room by then.
INLINE void let_next_launch_begin(void) { __asm__ volatile("griddepcontrol.launch_dependents;"); }

// ---- memory: so many bytes, from an address that is a multiple of them

// Loads that read memory only where `there`, and zeros elsewhere. `_once` is for what no other workgroup reads: it
// takes no room in L1.
#define LOAD_16(space, there, from, x)                                                                                 \
    __asm__ volatile("{\n\t"                                                                                           \
                     ".reg .pred p;\n\t"                                                                               \
                     "setp.ne.s32 p, %5, 0;\n\t"                                                                       \
                     "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"                        \
                     "@p ld.global" space ".v4.b32 {%0, %1, %2, %3}, [%4];\n\t"                                        \
                     "}"                                                                                               \
                     : "=&r"((x)[0]), "=&r"((x)[1]), "=&r"((x)[2]), "=&r"((x)[3])                                      \
                     : "l"(from), "r"(there))
INLINE u32x4 load_16(const void *from, int there) {
    uint32_t x[4];
    LOAD_16("", there, from, x);
    return (u32x4){x[0], x[1], x[2], x[3]};
}
INLINE u32x4 load_16_once(const void *from, int there) {
    uint32_t x[4];
    LOAD_16(".L1::no_allocate", there, from, x);
    return (u32x4){x[0], x[1], x[2], x[3]};
}
#define LOAD_WORD(type, there, from, x)                                                                                \
    __asm__ volatile("{\n\t"                                                                                           \
                     ".reg .pred p;\n\t"                                                                               \
                     "setp.ne.s32 p, %2, 0;\n\t"                                                                       \
                     "mov.b32 %0, 0;\n\t"                                                                              \
                     "@p ld.global." type " %0, [%1];\n\t"                                                             \
                     "}"                                                                                               \
                     : "=&r"(x)                                                                                        \
                     : "l"(from), "r"(there))
INLINE uint32_t load_4(const void *from, int there) {
    uint32_t x;
    LOAD_WORD("u32", there, from, x);
    return x;
}
INLINE uint32_t load_2(const void *from, int there) {
    uint32_t x;
    LOAD_WORD("u16", there, from, x);
    return x;
}

INLINE void store_16(void *to, u32x4 x) { *(GLOBAL u32x4 *)to = x; }
INLINE void store_8(void *to, u32x2 x) { *(GLOBAL u32x2 *)to = x; }
INLINE void store_4(void *to, uint32_t x) { *(GLOBAL uint32_t *)to = x; }
INLINE void store_2(void *to, uint32_t x) { *(GLOBAL uint16_t *)to = (uint16_t)x; }
INLINE void store_1(void *to, uint32_t x) { *(GLOBAL uint8_t *)to = (uint8_t)x; }

// ---- arithmetic

INLINE float reciprocal(float x) { // within 1 ulp; 0 where it is below 2^-126
    float y;
    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
INLINE float inverse_sqrt(float x) { // 1 / sqrt(x) within a relative error of 2^-22.9
    float y;
    __asm__("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

INLINE float exp2_fast(float x) { // within 2^-22.5 relatively; results below 2^-126 are 0
    float y;
    __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
INLINE float log2_fast(float x) {
    float y;
    __asm__("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#define LOG2E 0x1.715476p0f // rounded to fp32
#define LN2 0x1.62e43p-1f

INLINE float abs_f32(float x) { return __builtin_fabsf(x); }
INLINE float max_f32(float a, float b) { return __builtin_fmaxf(a, b); }
INLINE int min_i32(int a, int b) { return a < b ? a : b; }
INLINE int max_i32(int a, int b) { return a > b ? a : b; }
INLINE uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

// ---- numbers of 8 and 16 bits in words

INLINE uint32_t pack_fp16(float a, float b) { // to nearest even; NaN stays NaN
    uint32_t x;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(b), "f"(a));
    return x;
}
INLINE uint32_t pack_bf16(float a, float b) { // to nearest even; NaN stays NaN
    uint32_t x;
    __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(b), "f"(a));
    return x;
}

// The number in the low half, as fp32.
INLINE float unpack_fp16(uint32_t x) {
    float y;
    __asm__("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((uint16_t)x));
    return y;
}
INLINE float unpack_bf16(uint32_t x) { return AS_F32(x << 16); }

// Rounds numbers to the nearest integers, ties to even, as bytes; saturated, and NaN becomes 0.
INLINE uint32_t pack_int8(float a, float b, float c, float d) {
    uint32_t x;
    __asm__("{\n\t"
            ".reg .b32 a, b, c, d, high;\n\t"
            "cvt.rni.s32.f32 a, %1;\n\tcvt.rni.s32.f32 b, %2;\n\tcvt.rni.s32.f32 c, %3;\n\tcvt.rni.s32.f32 d, %4;\n\t"
            "cvt.pack.sat.s8.s32.b32 high, d, c, 0;\n\t"
            "cvt.pack.sat.s8.s32.b32 %0, b, a, high;\n\t"
            "}"
            : "=r"(x)
            : "f"(a), "f"(b), "f"(c), "f"(d));
    return x;
}

#define GREATEST_FP8 448.0f                                    // of OCP's E4M3
INLINE uint32_t pack_fp8(float a, float b, float c, float d) { // to nearest even, saturated; NaN stays NaN
    uint32_t x;
    __asm__("{\n\t"
            ".reg .b16 low, high;\n\t"
            "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
            "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
            "mov.b32 %0, {low, high};\n\t"
            "}"
            : "=r"(x)
            : "f"(a), "f"(b), "f"(c), "f"(d));
    return x;
}

#endif
