// SPDX-License-Identifier: MIT
// The words that kernels for CDNA2, 3 and 4 are written in. C11 and HIP (C++17); clang 15 and newer.
//
// A wave has 64 lanes. 16-bit floating-point numbers are passed as bits, two in each 32-bit word, the first in the low
// half. Words that access LDS or memory, and matrix products, are builtins or LLVM intrinsics, so that the compiler
// inserts waits and wait states.
#ifndef TESSERA_ISA_CDNA_H
#define TESSERA_ISA_CDNA_H

#include <stdint.h>

#ifdef __HIP__
#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global))
#define LDS __attribute__((shared)) static
#else
#define DEVICE
#ifdef __cplusplus
#define KERNEL extern "C" __attribute__((amdgpu_kernel))
#else
#define KERNEL __attribute__((amdgpu_kernel))
#endif
#define LDS __attribute__((address_space(3), loader_uninitialized)) static
#endif
#define ARGUMENT // of a kernel's one argument
#define INLINE static inline DEVICE __attribute__((always_inline, unused))
#define WORKGROUP(threads) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define WAVES_PER_SIMD(count) __attribute__((amdgpu_waves_per_eu(count, count)))
#define UNROLL _Pragma("unroll")

#define GLOBAL __attribute__((address_space(1)))   // memory
#define SHARED __attribute__((address_space(3)))   // LDS
#define CONSTANT __attribute__((address_space(4))) // memory that no kernel writes: read by scalar loads

typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef uint32_t u32x2 __attribute__((ext_vector_type(2)));
typedef uint32_t u32x4 __attribute__((ext_vector_type(4)));

// Functions, since clang's __builtin_bit_cast of a vector's component (v.y, v.hi) takes the vector's first bytes.
INLINE float AS_F32(uint32_t x) { return __builtin_bit_cast(float, x); }
INLINE uint32_t AS_U32(float x) { return __builtin_bit_cast(uint32_t, x); }

#include "tessera/isa/gpu_philox.h"

#define INFINITY_F32 __builtin_inff()
#define GREATEST_F32 0x1.fffffep127f
#define LOG2E 0x1.715476p0f // rounded to fp32
#define LN2 0x1.62e43p-1f

// ---- lanes and waves

enum { WAVE_LANES = 64 };

INLINE int lane_id(void) { return (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

// The first lane's value in all lanes, which the compiler then keeps in a scalar register.
INLINE int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }
INLINE int thread_id(void) { return (int)__builtin_amdgcn_workitem_id_x(); } // in the workgroup
INLINE int wave_id(void) { return uniform(thread_id() >> 6); }

// The workgroup's place in the grid.
INLINE int workgroup_x(void) { return (int)__builtin_amdgcn_workgroup_id_x(); }
INLINE int workgroup_y(void) { return (int)__builtin_amdgcn_workgroup_id_y(); }
INLINE int workgroup_z(void) { return (int)__builtin_amdgcn_workgroup_id_z(); }

INLINE int any_lane(int condition) {
#if __has_builtin(__builtin_amdgcn_ballot_w64)
    return __builtin_amdgcn_ballot_w64(condition != 0) != 0;
#else
    return __builtin_amdgcn_uicmp((uint32_t)condition, 0, 33) != 0; // 33: LLVM's "not equal"
#endif
}

// The value of lane l + 32 or l - 32.
INLINE float other_half(float x) {
#if __has_builtin(__builtin_amdgcn_permlane32_swap) && defined(__gfx950__)
    const u32x2 swapped = __builtin_bit_cast(u32x2, __builtin_amdgcn_permlane32_swap(AS_U32(x), AS_U32(x), 0, 0));
    return AS_F32(lane_id() < 32 ? swapped.y : swapped.x);
#else
    return AS_F32(__builtin_amdgcn_ds_bpermute((lane_id() ^ 32) * 4, (int)AS_U32(x)));
#endif
}

// Lanes 32 to 63 of a change places with lanes 0 to 31 of b.
INLINE void swap_halves(uint32_t *a, uint32_t *b) {
#if __has_builtin(__builtin_amdgcn_permlane32_swap) && defined(__gfx950__)
    const u32x2 swapped = __builtin_bit_cast(u32x2, __builtin_amdgcn_permlane32_swap(*a, *b, 0, 0));
    *a = swapped.x, *b = swapped.y;
#else
    const int upper = lane_id() >= 32;
    const uint32_t moved = AS_U32(other_half(AS_F32(upper ? *a : *b)));
    *(upper ? a : b) = moved;
#endif
}

// Reductions over all lanes of the wave, which must all be active; every lane gets the result. Within rows of 16 lanes
// a lane combines with its neighbour, the neighbouring pair, and its mirror image in 8 and in 16 lanes; then a row's
// last lane goes to the next row, and the second row's to the last two (CDNA 3 ISA, "DPP"). Lane 63 has them all.
#define LLVM_DPP(x, control) ((uint32_t)__builtin_amdgcn_update_dpp(0, (int)(x), control, 0xf, 0xf, 1))
#define OVER_LANES(x, operation)                                                                                       \
    x = operation(x, LLVM_DPP(x, 0xb1));  /* quad_perm:[1,0,3,2] */                                                    \
    x = operation(x, LLVM_DPP(x, 0x4e));  /* quad_perm:[2,3,0,1] */                                                    \
    x = operation(x, LLVM_DPP(x, 0x141)); /* row_half_mirror */                                                        \
    x = operation(x, LLVM_DPP(x, 0x140)); /* row_mirror */                                                             \
    x = operation(x, LLVM_DPP(x, 0x142)); /* row_bcast:15 */                                                           \
    x = operation(x, LLVM_DPP(x, 0x143)); /* row_bcast:31 */                                                           \
    return (uint32_t)__builtin_amdgcn_readlane((int)x, 63)
INLINE uint32_t add_bits_f32(uint32_t a, uint32_t b) { return AS_U32(AS_F32(a) + AS_F32(b)); }
INLINE uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
INLINE uint32_t sum_bits_of_lanes(uint32_t x) { OVER_LANES(x, add_bits_f32); }
INLINE uint32_t greatest_of_lanes(uint32_t x) { OVER_LANES(x, max_u32); }
INLINE float sum_of_lanes(float x) { return AS_F32(sum_bits_of_lanes(AS_U32(x))); }

// The kernel's argument as a new pointer: members that are read through it are loaded there and take no registers
// before. The empty assembly keeps the compiler from loading them earlier.
INLINE const void *kernel_argument(void) {
    CONSTANT const void *p = (CONSTANT const void *)__builtin_amdgcn_kernarg_segment_ptr();
    __asm__ volatile("" : "+s"(p));
    return (const void *)p;
}

// Waits until a scalar that is read from memory has arrived. For several such scalars the compiler waits once.
INLINE void at_hand(const void *x) { __asm__ volatile("" ::"s"(x)); }

// What NVIDIA's kernels begin by. Here launches of a stream follow one another.
INLINE void await_launch_before(void) {}
INLINE void let_next_launch_begin(void) {}

// The same number, but the compiler computes nothing from it before this point: for code that rarely runs.
INLINE int here(int x) {
    __asm__ volatile("" : "+v"(x));
    return x;
}

INLINE int uniform_here(int x) { // for x that is the same in all lanes
    __asm__ volatile("" : "+s"(x));
    return x;
}
INLINE const char *pointer_here(const char *p) { // likewise
    __asm__ volatile("" : "+s"(p));
    return p;
}
INLINE float here_f32(float x) {
    __asm__ volatile("" : "+v"(x));
    return x;
}

// The compiler makes no one piece of what stands before this, and of what stands before another text.
#define KEEP_APART(text) __asm__ volatile("; " text)

// Numbers whose values do not matter: whatever the registers hold.
INLINE f32x16 any_f32x16(void) {
    f32x16 x;
    __asm__ volatile("" : "=v"(x));
    return x;
}
INLINE uint32_t any_u32(void) {
    uint32_t x;
    __asm__ volatile("" : "=v"(x));
    return x;
}

// The compiler moves no instruction across this, which saves registers: side by side each computation would take its
// own.
INLINE void one_after_the_other(void) { __builtin_amdgcn_sched_barrier(0); }

// Waits for every wave of the workgroup; each sees what the others wrote to LDS before.
INLINE void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// ---- memory through buffer resources: bytes past the end read as zero and are not written
//
// Each lane has the whole offset, since a scalar offset would not be compared with the end.

// CDNA ISA, "Buffer Resource Descriptor": word 3 of a raw buffer, 32-bit data format.
enum { BUFFER_RAW = 0x00027000 };

#if __has_builtin(__builtin_amdgcn_make_buffer_rsrc)
typedef __amdgpu_buffer_rsrc_t buffer;

INLINE buffer make_buffer(const void *base, uint32_t bytes) {
    return __builtin_amdgcn_make_buffer_rsrc((void *)base, 0, (int)bytes, BUFFER_RAW);
}
INLINE u32x4 buffer_load_16(buffer from, int offset) {
    return __builtin_amdgcn_raw_buffer_load_b128(from, offset, 0, 0);
}
INLINE uint32_t buffer_load_1(buffer from, int offset) {
    return __builtin_amdgcn_raw_buffer_load_b8(from, offset, 0, 0);
}
INLINE uint32_t buffer_load_2(buffer from, int offset) {
    return __builtin_amdgcn_raw_buffer_load_b16(from, offset, 0, 0);
}
INLINE u32x2 buffer_load_8(buffer from, int offset) { return __builtin_amdgcn_raw_buffer_load_b64(from, offset, 0, 0); }
INLINE uint32_t buffer_load_4(buffer from, int offset) {
    return __builtin_amdgcn_raw_buffer_load_b32(from, offset, 0, 0);
}
INLINE void buffer_store_16(buffer to, int offset, u32x4 x) {
    __builtin_amdgcn_raw_buffer_store_b128(x, to, offset, 0, 0);
}
INLINE void buffer_store_8(buffer to, int offset, u32x2 x) {
    __builtin_amdgcn_raw_buffer_store_b64(x, to, offset, 0, 0);
}
INLINE void buffer_store_4(buffer to, int offset, uint32_t x) {
    __builtin_amdgcn_raw_buffer_store_b32(x, to, offset, 0, 0);
}
INLINE void buffer_store_2(buffer to, int offset, uint32_t x) {
    __builtin_amdgcn_raw_buffer_store_b16((uint16_t)x, to, offset, 0, 0);
}
INLINE void buffer_store_1(buffer to, int offset, uint32_t x) {
    __builtin_amdgcn_raw_buffer_store_b8((uint8_t)x, to, offset, 0, 0);
}
#else
typedef u32x4 buffer;

DEVICE u32x4 llvm_buffer_load_16(u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.v4i32");
DEVICE uint8_t llvm_buffer_load_1(u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.i8");
DEVICE uint16_t llvm_buffer_load_2(u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.i16");
DEVICE u32x2 llvm_buffer_load_8(u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.v2i32");
DEVICE uint32_t llvm_buffer_load_4(u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.i32");
DEVICE void llvm_buffer_store_16(u32x4, u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.store.v4i32");
DEVICE void llvm_buffer_store_8(u32x2, u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.store.v2i32");
DEVICE void llvm_buffer_store_4(uint32_t, u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.store.i32");
DEVICE void llvm_buffer_store_2(uint16_t, u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.store.i16");
DEVICE void llvm_buffer_store_1(uint8_t, u32x4, int, int, int) __asm("llvm.amdgcn.raw.buffer.store.i8");

INLINE buffer make_buffer(const void *base, uint32_t bytes) {
    const uint64_t address = (uint64_t)base;
    const buffer b = {(uint32_t)address, (uint32_t)(address >> 32), bytes, BUFFER_RAW};
    return b;
}
INLINE u32x4 buffer_load_16(buffer from, int offset) { return llvm_buffer_load_16(from, offset, 0, 0); }
INLINE uint32_t buffer_load_1(buffer from, int offset) { return llvm_buffer_load_1(from, offset, 0, 0); }
INLINE uint32_t buffer_load_2(buffer from, int offset) { return llvm_buffer_load_2(from, offset, 0, 0); }
INLINE u32x2 buffer_load_8(buffer from, int offset) { return llvm_buffer_load_8(from, offset, 0, 0); }
INLINE uint32_t buffer_load_4(buffer from, int offset) { return llvm_buffer_load_4(from, offset, 0, 0); }
INLINE void buffer_store_16(buffer to, int offset, u32x4 x) { llvm_buffer_store_16(x, to, offset, 0, 0); }
INLINE void buffer_store_8(buffer to, int offset, u32x2 x) { llvm_buffer_store_8(x, to, offset, 0, 0); }
INLINE void buffer_store_4(buffer to, int offset, uint32_t x) { llvm_buffer_store_4(x, to, offset, 0, 0); }
INLINE void buffer_store_2(buffer to, int offset, uint32_t x) { llvm_buffer_store_2((uint16_t)x, to, offset, 0, 0); }
INLINE void buffer_store_1(buffer to, int offset, uint32_t x) { llvm_buffer_store_1((uint8_t)x, to, offset, 0, 0); }
#endif

// ---- arithmetic

INLINE float exp2_fast(float x) { // within 1 ulp; results below 2^-126 are 0
#if __has_builtin(__builtin_amdgcn_exp2f)
    return __builtin_amdgcn_exp2f(x);
#else
    return __builtin_exp2f(x);
#endif
}
INLINE float log2_fast(float x) { // within 1 ulp for normal x
#if __has_builtin(__builtin_amdgcn_logf)
    return __builtin_amdgcn_logf(x);
#else
    return __builtin_log2f(x);
#endif
}
INLINE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); } // within 1 ulp

// 1 / sqrt(x) within 1 ulp. The instruction takes numbers below 2^-126 for 0.
INLINE float inverse_sqrt(float x) {
    const int small = x < 0x1p-100f;
    const float y = __builtin_amdgcn_rsqf(small ? x * 0x1p100f : x);
    return small ? y * 0x1p50f : y;
}

INLINE float abs_f32(float x) { return __builtin_fabsf(x); }
INLINE float max_f32(float a, float b) { return __builtin_fmaxf(a, b); }
INLINE float min_f32(float a, float b) { return __builtin_fminf(a, b); }
INLINE uint32_t multiply_high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
INLINE int trailing_zeros(uint32_t x) { return __builtin_ctz(x); } // of x != 0
INLINE int min_i32(int a, int b) { return a < b ? a : b; }
INLINE int max_i32(int a, int b) { return a > b ? a : b; }

// ---- numbers of 8 and 16 bits in words

// In each byte the low (high) half of a's byte, then that of b's.
INLINE uint32_t even_nibbles(uint32_t a, uint32_t b) { return (a & 0x0f0f0f0f) | (b << 4 & 0xf0f0f0f0); }
INLINE uint32_t odd_nibbles(uint32_t a, uint32_t b) { return (a >> 4 & 0x0f0f0f0f) | (b & 0xf0f0f0f0); }
// Bytes 0, 1 (2, 3) of a interleaved with those of b: a0 b0 a1 b1.
INLINE uint32_t low_bytes(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x05010400); }
INLINE uint32_t high_bytes(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x07030602); }
// Bytes 0, 1 (2, 3) of a, then those of b.
INLINE uint32_t low_halves(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x05040100); }
INLINE uint32_t high_halves(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x07060302); }

INLINE uint32_t pack_fp16(float a, float b) { // to nearest even
    typedef _Float16 half2 __attribute__((ext_vector_type(2)));
    const half2 h = {(_Float16)a, (_Float16)b};
    return __builtin_bit_cast(uint32_t, h);
}

#ifdef __gfx950__
INLINE uint32_t pack_bf16(float a, float b) { // to nearest even
    typedef __bf16 bf16x2 __attribute__((ext_vector_type(2)));
    const bf16x2 x = {(__bf16)a, (__bf16)b};
    return __builtin_bit_cast(uint32_t, x);
}
#else
INLINE uint32_t bf16_round(float x) { // in bits 16 to 31
    const uint32_t bits = AS_U32(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return x == x ? rounded : bits | 0x00400000;
}
INLINE uint32_t pack_bf16(float a, float b) { // to nearest even; NaN stays NaN
    return high_halves(bf16_round(a), bf16_round(b));
}
#endif

// The number in the low half, as fp32.
INLINE float unpack_fp16(uint32_t x) { return (float)__builtin_bit_cast(_Float16, (uint16_t)x); }
INLINE float unpack_bf16(uint32_t x) { return AS_F32(x << 16); }

// Round numbers of softmax: to nearest even, to nearest with halves away from zero, towards zero. They are 0 or
// greater, or NaN, which may become any number, since the row's sum is NaN then.
#ifdef __gfx950__
INLINE uint32_t pack_p_bf16_rtne(float a, float b) { return pack_bf16(a, b); }
#else
INLINE uint32_t pack_p_bf16_rtne(float a, float b) {
    const uint32_t x = AS_U32(a), y = AS_U32(b);
    return high_halves(x + 0x7fff + (x >> 16 & 1), y + 0x7fff + (y >> 16 & 1));
}
#endif
INLINE uint32_t pack_p_bf16_rtna(float a, float b) { return high_halves(AS_U32(a) + 0x8000, AS_U32(b) + 0x8000); }
INLINE uint32_t pack_p_bf16_rtz(float a, float b) { return high_halves(AS_U32(a), AS_U32(b)); }

// Rounds numbers from -128 to 127 to the nearest integers, ties to even, as bytes; NaN becomes 0.
INLINE uint32_t int8_of(float x) { return AS_U32((x == x ? x : 0.0f) + 0x1.8p23f); } // in the low byte
INLINE uint32_t pack_int8(float a, float b, float c, float d) {
    return low_halves(low_bytes(int8_of(a), int8_of(b)), low_bytes(int8_of(c), int8_of(d)));
}

#if defined(__gfx942__) || defined(__gfx950__)
// From here on conversions to fp8 turn numbers that are too large into the greatest one instead of NaN: bit 23 of MODE,
// FP16_OVFL (CDNA 3 ISA, "Mode register").
INLINE void saturate(void) { __builtin_amdgcn_s_setreg(1 | 23 << 6, 1); }

#ifdef __gfx950__
#define GREATEST_FP8 448.0f // of OCP's E4M3
#else
#define GREATEST_FP8 240.0f // of E4M3 FNUZ
#endif
INLINE uint32_t pack_fp8(float a, float b, float c, float d) { // to nearest even; NaN stays NaN
    const int low = __builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, 0);
    return (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(c, d, low, 1);
}

// The same in the register of `over`, whose number is lost: two instructions and no other register.
INLINE uint32_t pack_fp8_over(uint32_t over, float a, float b, float c, float d) {
    const int low = __builtin_amdgcn_cvt_pk_fp8_f32(a, b, (int)over, 0);
    return (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(c, d, low, 1);
}
#endif

// ---- random bits

// Philox4x32-10. The seed is the same in all lanes; without the empty assembly the compiler would keep the 20 keys of
// the rounds in registers from one call to the next.
INLINE u32x4 philox(u32x4 counter, uint64_t seed) {
    __asm__ volatile("" : "+s"(seed));
    return philox_rounds(counter, seed);
}

// ---- matrix products
//
// c += a b for a of 32 rows x k and b of k x 32 columns. Lane l holds 16 bytes of a's row l % 32 and of b's column
// l % 32; two lanes' 16 bytes make up k, in any order that is the same for a and b. Of c it holds column l % 32, where
// element r is row 8 (r / 4) + 4 (l / 32) + r % 4.
//
// Small ones are of 16 rows and columns: lane l holds 16 bytes of row and of column l % 16, four lanes' make up k, and
// of c element r is row 4 (l / 16) + r.

INLINE f32x16 mma_fp32(u32x4 a, u32x4 b, f32x16 c) {
    UNROLL
    for (int i = 0; i < 4; i++) c = __builtin_amdgcn_mfma_f32_32x32x2f32(AS_F32(a[i]), AS_F32(b[i]), c, 0, 0, 0);
    return c;
}

#ifdef __gfx950__
enum { MFMA_OF_16_BITS = 1 }; // instructions of a product
INLINE f32x16 mma_fp16(u32x4 a, u32x4 b, f32x16 c) {
    typedef _Float16 half8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_mfma_f32_32x32x16_f16(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b), c, 0, 0,
                                                  0);
}
INLINE f32x16 mma_bf16(u32x4 a, u32x4 b, f32x16 c) {
    typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_mfma_f32_32x32x16_bf16(__builtin_bit_cast(bf16x8, a), __builtin_bit_cast(bf16x8, b), c, 0,
                                                   0, 0);
}
INLINE f32x4 mma_small_fp16(u32x4 a, u32x4 b, f32x4 c) {
    typedef _Float16 half8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b), c, 0, 0,
                                                  0);
}
INLINE f32x4 mma_small_bf16(u32x4 a, u32x4 b, f32x4 c) {
    typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(bf16x8, a), __builtin_bit_cast(bf16x8, b), c, 0,
                                                   0, 0);
}
// Instruction number `part` of a product.
#define mma_part_fp16(a, b, c, part) mma_fp16(a, b, c)
#define mma_part_bf16(a, b, c, part) mma_bf16(a, b, c)

typedef int i32x8 __attribute__((ext_vector_type(8)));
INLINE i32x8 as_i32x8(u32x4 a, u32x4 b) {
    return (i32x8){(int)a.x, (int)a.y, (int)a.z, (int)a.w, (int)b.x, (int)b.y, (int)b.z, (int)b.w};
}

// Wide products: k is 64. Half h of the wave, lanes 32 h to 32 h + 31, holds fp8 numbers k = 16 h + 0..15 in its first
// 16 bytes and 32 + 16 h + 0..15 in its second, or fp4 numbers 32 h + 0..31 (CDNA 4 ISA, 7.1.5.1 "Dense Matrix Layout";
// CK, test/mx_mfma_op/mx_mfma_op.hpp). Without scales any order works that is the same for a and b.
INLINE f32x16 mma_wide_fp8(u32x4 a0, u32x4 a1, u32x4 b0, u32x4 b1, f32x16 c) {
    return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(as_i32x8(a0, a1), as_i32x8(b0, b1), c, 0, 0, 0, 0, 0, 0);
}

// The result of a product that takes 16 passes, as wide ones of fp8 do, may be read 20 wait states later. LLVM (22:
// GCNHazardRecognizer.cpp, checkMAIVALUHazards) requires only 19, and adds none where instructions between happen to
// make up so many. This adds one, which LLVM does not count, as it is inline assembly.
INLINE f32x16 settled(f32x16 x) {
    __asm__ volatile("s_nop 0" : "+v"(x));
    return x;
}

// Wide products of OCP's fp8 and fp4 (low nibble first), times 2^(scale - 127), where the scale is a word's byte 0; 255
// is NaN. Half h of the wave holds the scales of k = 32 h + 0..31, also for fp8, where each half holds 16 of these
// numbers (CDNA 4 ISA, 7.2.1).
enum { MX_FP8 = 0, MX_FP4 = 4 }; // CDNA 4 ISA, "V_MFMA_SCALE_F32_32X32X64_F8F6F4": CBSZ, BLGP
INLINE f32x16 mma_mxfp8(u32x4 a0, u32x4 a1, u32x4 b0, u32x4 b1, f32x16 c, uint32_t scale_a, uint32_t scale_b) {
    return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(as_i32x8(a0, a1), as_i32x8(b0, b1), c, MX_FP8, MX_FP8, 0,
                                                           (int)scale_a, 0, (int)scale_b);
}
INLINE f32x16 mma_mxfp4(u32x4 a, u32x4 b, f32x16 c, uint32_t scale_a, uint32_t scale_b) {
    const u32x4 none = {0, 0, 0, 0};
    return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(as_i32x8(a, none), as_i32x8(b, none), c, MX_FP4, MX_FP4, 0,
                                                           (int)scale_a, 0, (int)scale_b);
}
INLINE f32x16 mma_mxfp4_mxfp8(u32x4 a, u32x4 b0, u32x4 b1, f32x16 c, uint32_t scale_a, uint32_t scale_b) {
    const u32x4 none = {0, 0, 0, 0};
    return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(as_i32x8(a, none), as_i32x8(b0, b1), c, MX_FP4, MX_FP8, 0,
                                                           (int)scale_a, 0, (int)scale_b);
}
#else
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef short short4 __attribute__((ext_vector_type(4)));
INLINE half4 as_half4(u32x2 x) { return __builtin_bit_cast(half4, x); }
INLINE short4 as_short4(u32x2 x) { return __builtin_bit_cast(short4, x); }

enum { MFMA_OF_16_BITS = 2 };
// Instruction number `part` of a product.
INLINE f32x16 mma_part_fp16(u32x4 a, u32x4 b, f32x16 c, int part) {
    return __builtin_amdgcn_mfma_f32_32x32x8f16(as_half4(part ? a.hi : a.lo), as_half4(part ? b.hi : b.lo), c, 0, 0, 0);
}
INLINE f32x16 mma_part_bf16(u32x4 a, u32x4 b, f32x16 c, int part) {
    const short4 x = as_short4(part ? a.hi : a.lo), y = as_short4(part ? b.hi : b.lo);
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x, y, c, 0, 0, 0);
}
INLINE f32x16 mma_fp16(u32x4 a, u32x4 b, f32x16 c) { return mma_part_fp16(a, b, mma_part_fp16(a, b, c, 0), 1); }
INLINE f32x16 mma_bf16(u32x4 a, u32x4 b, f32x16 c) { return mma_part_bf16(a, b, mma_part_bf16(a, b, c, 0), 1); }
INLINE f32x4 mma_small_fp16(u32x4 a, u32x4 b, f32x4 c) {
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a.lo), as_half4(b.lo), c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a.hi), as_half4(b.hi), c, 0, 0, 0);
}
INLINE f32x4 mma_small_bf16(u32x4 a, u32x4 b, f32x4 c) {
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a.lo), as_short4(b.lo), c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(as_short4(a.hi), as_short4(b.hi), c, 0, 0, 0);
}
#endif

#if defined(__gfx942__) || defined(__gfx950__)
INLINE long as_long(u32x2 x) { return __builtin_bit_cast(long, x); }

INLINE f32x16 mma_part_fp8(u32x4 a, u32x4 b, f32x16 c, int part) {
    const long x = as_long(part ? a.hi : a.lo), y = as_long(part ? b.hi : b.lo);
    return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, c, 0, 0, 0);
}
INLINE f32x16 mma_fp8(u32x4 a, u32x4 b, f32x16 c) { return mma_part_fp8(a, b, mma_part_fp8(a, b, c, 0), 1); }
#endif

// ---- memory straight to LDS
//
// Lane l's bytes go to `to` plus l times their number; `to` is the same in all lanes. Bytes outside of the buffer
// arrive as zeros.

#if __has_builtin(__builtin_amdgcn_raw_ptr_buffer_load_lds)
#define LLVM_LOAD_TO_LDS __builtin_amdgcn_raw_ptr_buffer_load_lds
#elif __has_builtin(__builtin_amdgcn_make_buffer_rsrc)
DEVICE void llvm_load_to_lds(buffer, SHARED void *, int, int, int, int,
                             int) __asm("llvm.amdgcn.raw.ptr.buffer.load.lds");
#define LLVM_LOAD_TO_LDS llvm_load_to_lds
#else
DEVICE void llvm_load_to_lds(buffer, SHARED void *, int, int, int, int, int) __asm("llvm.amdgcn.raw.buffer.load.lds");
#define LLVM_LOAD_TO_LDS llvm_load_to_lds
#endif

INLINE void load_to_lds_4(buffer from, int offset, SHARED void *to) { LLVM_LOAD_TO_LDS(from, to, 4, offset, 0, 0, 0); }

#ifdef __gfx950__
INLINE void load_to_lds_16(buffer from, int offset, SHARED void *to) {
    LLVM_LOAD_TO_LDS(from, to, 16, offset, 0, 0, 0);
}
// Further from the buffer's first byte by as much in all lanes, which takes no vector instruction, and is not compared
// with the buffer's end.
INLINE void load_further_to_lds_16(buffer from, int offset, int further, SHARED void *to) {
    LLVM_LOAD_TO_LDS(from, to, 16, offset, further, 0, 0);
}

// The `from` of lane 16 i + 4 k + j points to elements 4 j to 4 j + 3 of row k, of 16 bits each. Lane 16 i + c gets
// element c of rows 0 to 3.
INLINE u32x2 read_transposed(SHARED const void *from) {
    typedef short short4 __attribute__((ext_vector_type(4)));
    return __builtin_bit_cast(u32x2, __builtin_amdgcn_ds_read_tr16_b64_v4i16((SHARED short4 *)from));
}

// The `from` of lane 16 i + 2 k + j points to elements 8 j to 8 j + 7 of row k, of 8 bits each. Lane 16 i + c gets
// element c of rows 0 to 7.
INLINE u32x2 read_transposed_8(SHARED const void *from) {
    typedef int int2 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(u32x2, __builtin_amdgcn_ds_read_tr8_b64_v2i32((SHARED int2 *)from));
}
#endif

// As barrier(), and each wave also sees what others have loaded to LDS. The wait includes accesses of LDS: at the head
// of a loop LLVM 22 merges the barrier's own wait into this one before it knows what the loop leaves in flight
// (SIInsertWaitcnts.cpp).
INLINE void barrier_after_loads(void) {
    __builtin_amdgcn_s_waitcnt(0);
    barrier();
}

// ---- bundles
//
// In loops whose order the generator has made, a bundle is one matrix product and the work that stands beside it.

// The kernel has no packed fp32 instructions, which wait for matrix products.
#define NO_PACKED_MATH __attribute__((target("no-packed-fp32-ops")))

// A bundle: a product and what stands beside it, in this order, planned to begin at a cycle of the loop's round. The
// compiler moves nothing out of it.
#define AT(cycle, ...) ((void)(cycle), __VA_ARGS__, one_after_the_other())

// A condition that seldom holds: what stands behind it is out of the way.
#define SELDOM(condition) __builtin_expect(condition, 0)

// The same numbers, which the compiler computes before this point and not later.
INLINE f32x16 pinned(f32x16 x) {
    __asm__ volatile("" : "+v"(x));
    return x;
}

// Waits until so many loads from memory, or accesses of LDS, at most are under way. They end in their order.
#define WAIT_FOR_LOADS(count) __builtin_amdgcn_s_waitcnt(((count)&15) | ((count) >> 4) << 14 | 0xf70)
#define WAIT_FOR_LDS(count) __builtin_amdgcn_s_waitcnt((count) << 8 | 0xc07f)

// Waits for every wave of the workgroup, and for nothing else. What a wave wrote to LDS or loaded there others see if
// it has waited for that before.
INLINE void meet(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// From here on the wave's instructions go before those of waves with a lower priority, 0 to 3; at first it is 0.
#define PRIORITY(level) __builtin_amdgcn_s_setprio(level)

// ---- the scheduler
//
// ORDER(kind, count): next come `count` of the surrounding instructions of a kind, then those of the next ORDER.

enum { ORDER_VALU = 0x2, ORDER_MFMA = 0x8, ORDER_LDS_READ = 0x100, ORDER_EXP = 0x400 };
#if __has_builtin(__builtin_amdgcn_sched_group_barrier)
#define ORDER(kind, count) __builtin_amdgcn_sched_group_barrier(kind, count, 0)
#else
#define ORDER(kind, count) ((void)0)
#endif

#endif
