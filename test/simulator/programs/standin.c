// SPDX-License-Identifier: MIT
// Kernels for the tests of the stand-in for the HIP runtime.
#include "device.h"

__attribute__((visibility("protected"))) GLOBAL u32 table[4] = {10, 20, 30, 40};

// Arguments of several sizes, so that their places in the kernarg segment matter.
KERNEL fill(GLOBAL u32 *out, unsigned char low, u64 high, u32 count) {
    const u32 i = 64 * GROUP + LANE;
    if (i < count) out[i] = (u32)(high >> 32) + low + table[LANE % 4];
}

__attribute__((amdgpu_flat_work_group_size(1, 128))) KERNEL narrow(GLOBAL u32 *out) { out[LANE] = LANE; }

KERNEL counted(GLOBAL u32 *out) { __atomic_fetch_add(out, 1, __ATOMIC_RELAXED); }
