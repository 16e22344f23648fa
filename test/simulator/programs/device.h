// SPDX-License-Identifier: MIT
// Macros and types that the test programs share. They are C for amdgcn, without any library.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long u64;
typedef int i32;
typedef float f32;
typedef double f64;
typedef _Float16 f16;

#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3), loader_uninitialized)) static
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"))) void
#define NOINLINE __attribute__((noinline))

#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()

static inline void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
