// SPDX-License-Identifier: MIT
// One matrix instruction a kernel: registers of all lanes in, registers out.
#include "device.h"

typedef f32 f32x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x16 __attribute__((ext_vector_type(16)));
typedef f32 f32x32 __attribute__((ext_vector_type(32)));
typedef i32 i32x4 __attribute__((ext_vector_type(4)));
typedef i32 i32x16 __attribute__((ext_vector_type(16)));
typedef i32 i32x32 __attribute__((ext_vector_type(32)));
typedef f64 f64x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x2 __attribute__((ext_vector_type(2)));
typedef f16 f16x4 __attribute__((ext_vector_type(4)));
typedef f16 f16x8 __attribute__((ext_vector_type(8)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef i32 i32x4v __attribute__((ext_vector_type(4)));

#define MATRIX(name, AB, CD, builtin)                                                                                  \
    KERNEL name(GLOBAL const AB *a, GLOBAL const AB *b, GLOBAL const CD *c, GLOBAL CD *d) {                            \
        d[LANE] = builtin(a[LANE], b[LANE], c[LANE], 0, 0, 0);                                                         \
    }
MATRIX(f32_32x32x1_2b_f32, f32, f32x32, __builtin_amdgcn_mfma_f32_32x32x1f32)
MATRIX(f32_16x16x1_4b_f32, f32, f32x16, __builtin_amdgcn_mfma_f32_16x16x1f32)
MATRIX(f32_4x4x1_16b_f32, f32, f32x4, __builtin_amdgcn_mfma_f32_4x4x1f32)
MATRIX(f32_32x32x2_f32, f32, f32x16, __builtin_amdgcn_mfma_f32_32x32x2f32)
MATRIX(f32_16x16x4_f32, f32, f32x4, __builtin_amdgcn_mfma_f32_16x16x4f32)
MATRIX(f32_32x32x4_2b_f16, f16x4, f32x32, __builtin_amdgcn_mfma_f32_32x32x4f16)
MATRIX(f32_16x16x4_4b_f16, f16x4, f32x16, __builtin_amdgcn_mfma_f32_16x16x4f16)
MATRIX(f32_4x4x4_16b_f16, f16x4, f32x4, __builtin_amdgcn_mfma_f32_4x4x4f16)
MATRIX(f32_32x32x8_f16, f16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8f16)
MATRIX(f32_16x16x16_f16, f16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16f16)
MATRIX(f32_32x32x4_2b_bf16, i16x4, f32x32, __builtin_amdgcn_mfma_f32_32x32x4bf16_1k)
MATRIX(f32_16x16x4_4b_bf16, i16x4, f32x16, __builtin_amdgcn_mfma_f32_16x16x4bf16_1k)
MATRIX(f32_4x4x4_16b_bf16, i16x4, f32x4, __builtin_amdgcn_mfma_f32_4x4x4bf16_1k)
MATRIX(f32_32x32x8_bf16, i16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
MATRIX(f32_16x16x16_bf16, i16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
MATRIX(i32_32x32x4_2b_i8, i32, i32x32, __builtin_amdgcn_mfma_i32_32x32x4i8)
MATRIX(i32_16x16x4_4b_i8, i32, i32x16, __builtin_amdgcn_mfma_i32_16x16x4i8)
MATRIX(i32_4x4x4_16b_i8, i32, i32x4, __builtin_amdgcn_mfma_i32_4x4x4i8)
MATRIX(f64_16x16x4_f64, f64, f64x4, __builtin_amdgcn_mfma_f64_16x16x4f64)
MATRIX(f64_4x4x4_4b_f64, f64, f64, __builtin_amdgcn_mfma_f64_4x4x4f64)
#if defined(__gfx90a__)
MATRIX(f32_32x32x2_2b_bf16, i16x2, f32x32, __builtin_amdgcn_mfma_f32_32x32x2bf16)
MATRIX(f32_16x16x2_4b_bf16, i16x2, f32x16, __builtin_amdgcn_mfma_f32_16x16x2bf16)
MATRIX(f32_4x4x2_16b_bf16, i16x2, f32x4, __builtin_amdgcn_mfma_f32_4x4x2bf16)
MATRIX(f32_32x32x4_bf16, i16x2, f32x16, __builtin_amdgcn_mfma_f32_32x32x4bf16)
MATRIX(f32_16x16x8_bf16, i16x2, f32x4, __builtin_amdgcn_mfma_f32_16x16x8bf16)
MATRIX(i32_32x32x8_i8, i32, i32x16, __builtin_amdgcn_mfma_i32_32x32x8i8)
MATRIX(i32_16x16x16_i8, i32, i32x4, __builtin_amdgcn_mfma_i32_16x16x16i8)
#else
MATRIX(i32_32x32x16_i8, u64, i32x16, __builtin_amdgcn_mfma_i32_32x32x16_i8)
MATRIX(i32_16x16x32_i8, u64, i32x4, __builtin_amdgcn_mfma_i32_16x16x32_i8)
MATRIX(f32_32x32x16_fp8_fp8, u64, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)
MATRIX(f32_32x32x16_fp8_bf8, u64, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8)
MATRIX(f32_32x32x16_bf8_fp8, u64, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8)
MATRIX(f32_32x32x16_bf8_bf8, u64, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8)
MATRIX(f32_16x16x32_fp8_fp8, u64, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
MATRIX(f32_16x16x32_fp8_bf8, u64, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8)
MATRIX(f32_16x16x32_bf8_fp8, u64, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8)
MATRIX(f32_16x16x32_bf8_bf8, u64, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8)
#endif
#if defined(__gfx942__)
MATRIX(f32_32x32x4_xf32, f32x2, f32x16, __builtin_amdgcn_mfma_f32_32x32x4_xf32)
MATRIX(f32_16x16x8_xf32, f32x2, f32x4, __builtin_amdgcn_mfma_f32_16x16x8_xf32)
#elif defined(__gfx950__)
MATRIX(f32_32x32x16_f16, f16x8, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_f16)
MATRIX(f32_16x16x32_f16, f16x8, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_f16)
MATRIX(f32_32x32x16_bf16, bf16x8, f32x16, __builtin_amdgcn_mfma_f32_32x32x16_bf16)
MATRIX(f32_16x16x32_bf16, bf16x8, f32x4, __builtin_amdgcn_mfma_f32_16x16x32_bf16)
MATRIX(i32_32x32x32_i8, i32x4v, i32x16, __builtin_amdgcn_mfma_i32_32x32x32_i8)
MATRIX(i32_16x16x64_i8, i32x4v, i32x4, __builtin_amdgcn_mfma_i32_16x16x64_i8)
#endif
