// SPDX-License-Identifier: MIT
// Launches, LDS, barriers, atomics, scratch and calls. test_programs.py has the result that each kernel must give.
#include "device.h"

// Where a work-item is: packed ids and sizes, in workgroups that may be partial.
KERNEL ids(GLOBAL u32 *out, u32 width, u32 height) {
    const u32 x = __builtin_amdgcn_workgroup_id_x() * 8 + __builtin_amdgcn_workitem_id_x();
    const u32 y = __builtin_amdgcn_workgroup_id_y() * 4 + __builtin_amdgcn_workitem_id_y();
    const u32 z = __builtin_amdgcn_workgroup_id_z() * 2 + __builtin_amdgcn_workitem_id_z();
    GLOBAL u32 *item = out + 4 * (x + width * (y + height * z));
    item[0] = x | y << 8 | z << 16;
    item[1] = __builtin_amdgcn_workgroup_size_x() | __builtin_amdgcn_workgroup_size_y() << 8 |
              __builtin_amdgcn_workgroup_size_z() << 16;
    item[2] =
        __builtin_amdgcn_grid_size_x() | __builtin_amdgcn_grid_size_y() << 8 | __builtin_amdgcn_grid_size_z() << 16;
    item[3] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

// A sum over 256 work-items through LDS.
KERNEL reduce(GLOBAL const f32 *in, GLOBAL f32 *out) {
    LDS f32 part[256];
    const u32 i = LANE;
    part[i] = in[GROUP * 256 + i];
    barrier();
    for (u32 step = 128; step > 0; step /= 2) {
        if (i < step) part[i] += part[i + step];
        barrier();
    }
    if (i == 0) out[GROUP] = part[0];
}

// A barrier is missing between the store and the load.
KERNEL race(GLOBAL u32 *out) {
    LDS volatile u32 words[256];
    words[LANE] = 0;
    barrier();
    words[LANE] = LANE + 1;
    out[LANE] = words[LANE ^ 64];
}

// LDS of all widths, through dynamic memory behind the static one: each work-item reads its neighbour's.
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
KERNEL widths(GLOBAL u32 *out) {
    LDS u32x4 wide[64];
    LDS u64 two[64];
    LDS u16 half[64];
    LDS u8 byte[64];
    const u32 i = LANE, n = (i + 1) & 63;
    wide[i] = (u32x4){i, i * 2, i * 3, i * 5};
    two[i] = (u64)i << 33 | i;
    half[i] = (u16)(i * 1000);
    byte[i] = (u8)(i * 7);
    barrier();
    const u32x4 w = wide[n];
    out[8 * i + 0] = w.x;
    out[8 * i + 1] = w.y;
    out[8 * i + 2] = w.z;
    out[8 * i + 3] = w.w;
    out[8 * i + 4] = (u32)(two[n] >> 32);
    out[8 * i + 5] = (u32)two[n];
    out[8 * i + 6] = half[n];
    out[8 * i + 7] = (u32)(signed char)byte[n];
}

// Every integer atomic on its own word, from all work-items of all groups; results do not depend on their order.
KERNEL atomics(GLOBAL u32 *words, GLOBAL u64 *wide, GLOBAL f32 *floats, GLOBAL u32 *seen) {
    const u32 i = GROUP * 128 + LANE;
    __atomic_fetch_add(&words[0], i, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&words[1], i * 3, __ATOMIC_RELAXED);
    __atomic_fetch_and(&words[2], ~(1u << (i & 31)) | i << 20, __ATOMIC_RELAXED);
    __atomic_fetch_or(&words[3], 1u << (i % 29), __ATOMIC_RELAXED);
    __atomic_fetch_xor(&words[4], i * 2654435761u, __ATOMIC_RELAXED);
    __atomic_fetch_max(&words[5], i * 2654435761u, __ATOMIC_RELAXED);
    __atomic_fetch_min(&words[6], i * 2654435761u, __ATOMIC_RELAXED);
    __atomic_fetch_max((GLOBAL i32 *)&words[7], (i32)(i * 2654435761u), __ATOMIC_RELAXED);
    __atomic_fetch_min((GLOBAL i32 *)&words[8], (i32)(i * 2654435761u), __ATOMIC_RELAXED);
    __atomic_fetch_add(&wide[0], (u64)i << 30, __ATOMIC_RELAXED);
    __atomic_fetch_max(&wide[1], (u64)i * 0x9e3779b97f4a7c15ul, __ATOMIC_RELAXED);
    seen[__atomic_fetch_add(&words[9], 1, __ATOMIC_RELAXED)] = 1;
    u32 old = __atomic_load_n(&words[10], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&words[10], &old, old * 2 + 1 > 4000000000u ? old : old + i, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_add(&floats[0], 0.5f, __ATOMIC_RELAXED);
}

// The same on LDS, with what they return.
KERNEL lds_atomics(GLOBAL u32 *out) {
    LDS u32 sum, slots[256];
    LDS u64 wide;
    LDS f32 floating;
    const u32 i = LANE;
    if (i == 0) {
        sum = 5;
        wide = 7;
        floating = 1;
    }
    slots[i] = 0;
    barrier();
    slots[__atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED) - 5] = i + 1;
    __atomic_fetch_add(&wide, (u64)i << 32 | 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&floating, 0.25f, __ATOMIC_RELAXED);
    barrier();
    out[i] = slots[i] != 0;
    out[256] = sum;
    out[257] = (u32)wide;
    out[258] = (u32)(wide >> 32);
    out[259] = (u32)(floating * 4);
}

// Scratch that no register can hold, and recursion.
static NOINLINE u32 ackermann(u32 m, u32 n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL recursion(GLOBAL u32 *out) { out[LANE] = ackermann(LANE & 1, LANE % 5) + ackermann(2, LANE & 3); }

KERNEL sieve(GLOBAL u32 *out) {
    u8 composite[400];
    for (u32 i = 0; i < 400; i++) composite[i] = 0;
    u32 count = 0;
    for (u32 i = 2; i < 100 + LANE; i++) {
        if (composite[i]) continue;
        count++;
        for (u32 k = i * i; k < 400; k += i) composite[k] = 1;
    }
    out[LANE] = count;
}

// A function that each lane chooses.
static NOINLINE u32 twice(u32 x) { return 2 * x; }
static NOINLINE u32 square(u32 x) { return x * x; }
static NOINLINE u32 negate(u32 x) { return 0u - x; }
KERNEL pointers(GLOBAL u32 *out) {
    u32 (*const table[])(u32) = {twice, square, negate};
    out[LANE] = table[LANE % 3](LANE + 10);
}

// Globals: constants, and words that the host writes before and reads after.
__attribute__((address_space(4))) const u32 primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
__attribute__((visibility("protected"), used)) GLOBAL u32 counter = 40;
KERNEL globals(GLOBAL u32 *out) {
    out[LANE] = primes[LANE & 7] + counter;
    if (LANE == 0) counter += 2;
}

// Faults.
KERNEL store_at(GLOBAL u32 *out, i32 index) {
    if (LANE == 37) out[index] = 1;
}
KERNEL load_at(GLOBAL u32 *out, GLOBAL const u32 *in, i32 index) { out[LANE] = in[LANE == 5 ? index : 0]; }
KERNEL lds_at(GLOBAL u32 *out, u32 index) {
    LDS u32 words[16];
    words[LANE & 15] = LANE;
    barrier();
    out[LANE] = words[index];
}
KERNEL traps(GLOBAL u32 *out, u32 item) {
    if (GROUP * 64 + LANE == item) __builtin_trap();
    out[GROUP * 64 + LANE] = 1;
}
KERNEL endless(GLOBAL volatile u32 *out) {
    while (out[0] == 0) {
    }
}
KERNEL misaligned(GLOBAL u8 *out) { __atomic_fetch_add((GLOBAL u32 *)(out + 2), 1u, __ATOMIC_RELAXED); }
KERNEL read_only(GLOBAL u32 *out) {
    *(GLOBAL u32 *)(u64)&primes[0] = 1;
    out[0] = primes[0];
}
