// SPDX-License-Identifier: MIT
// The types and operations of generated programs. C defines the operations' results for all values.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef _Float16 f16;
typedef float f32;
typedef double f64;
typedef f16 h2 __attribute__((ext_vector_type(2)));
typedef i16 s2 __attribute__((ext_vector_type(2)));
typedef f32 f2 __attribute__((ext_vector_type(2)));
typedef f32 f4 __attribute__((ext_vector_type(4)));
typedef i32 n4 __attribute__((ext_vector_type(4)));
#define NOINLINE __attribute__((noinline))
#ifdef HOST
#define GLOBAL
#else
#define GLOBAL __attribute__((address_space(1)))
#endif
#ifdef __HIP__
#pragma clang force_cuda_host_device begin
#define KERNEL extern "C" __attribute__((global, visibility("protected"))) void
#else
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"))) void
#endif
// What is not a number is one value, and so is 0: LLVM makes v_min of (x < 0 ? x : 0) and -x of 0 - x; what does not
// fit an integer saturates.
static inline u64 bits16(f16 x) {
    u16 b;
    __builtin_memcpy(&b, &x, 2);
    return x != x ? 0x7e00 : x == 0 ? 0 : b;
}
static inline u64 bits32(f32 x) {
    u32 b;
    __builtin_memcpy(&b, &x, 4);
    return x != x ? 0x7fc00000 : x == 0 ? 0 : b;
}
static inline u64 bits64(f64 x) {
    u64 b;
    __builtin_memcpy(&b, &x, 8);
    return x != x ? 0x7ff8000000000000ul : x == 0 ? 0 : b;
}
static inline f32 make32(u32 b) {
    f32 x;
    __builtin_memcpy(&x, &b, 4);
    return x;
}
static inline f64 make64(u64 b) {
    f64 x;
    __builtin_memcpy(&x, &b, 8);
    return x;
}
static inline f16 make16(u16 b) {
    f16 x;
    __builtin_memcpy(&x, &b, 2);
    return x;
}
// Up to clang 16 sqrtf is v_sqrt_f32, which takes denormals as 0.
static inline f32 sqrt32(f32 x) {
    x = __builtin_fabsf(x);
    return __builtin_sqrtf(x < 1.2e-38f ? 0.0f : x);
}
static inline i32 int32(f64 x) {
    return x != x ? 0 : x > 2147483520.0 ? 2147483647 : x < -2147483520.0 ? -2147483647 : (i32)x;
}
static inline u32 uint32(f32 x) { return !(x > 0) ? 0 : x > 4294967040.0f ? 0xffffffff : (u32)x; }
static inline i64 int64(f64 x) {
    return x != x ? 0 : x > 9.2e18 ? 9200000000000000000l : x < -9.2e18 ? -9200000000000000000l : (i64)x;
}
static inline i32 half_int(f16 x) { return x != x ? 0 : x > (f16)60000 ? 60000 : x < (f16)-60000 ? -60000 : (i32)x; }
// Values that a compiler cannot see through: LLVM 22 divides some constants wrongly at -O0, and gives -0 as +0 where it
// folds a product and its rounding to half into v_fma_mix; LLVM 14 multiplies some unsigned numbers as signed ones.
#ifndef __AMDGCN__
#define OPAQUE(x) __asm__("" : "+r"(x))
#else
#define OPAQUE(x) __asm__("" : "+v"(x))
#endif
static inline u32 opaque32(u32 x) {
    OPAQUE(x);
    return x;
}
static inline u64 opaque64(u64 x) {
    OPAQUE(x);
    return x;
}
static inline f16 half32(f32 x) {
    u32 b;
    __builtin_memcpy(&b, &x, 4);
    OPAQUE(b);
    return (f16)make32(b);
}
