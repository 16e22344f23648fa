// SPDX-License-Identifier: MIT
// Moves between lanes.
#include "device.h"

#define DPP(value, control, rows, banks, bound) __builtin_amdgcn_update_dpp(0x5a5a, value, control, rows, banks, bound)

// Row r of out holds what control r gives; lanes hold 100 + lane.
KERNEL dpp(GLOBAL u32 *out) {
    const u32 v = 100 + LANE;
    u32 row = 0;
#define PUT(x) out[64 * row++ + LANE] = (x)
    PUT(DPP(v, 0x1b, 15, 15, 0));  // quad_perm 3,2,1,0
    PUT(DPP(v, 0x103, 15, 15, 0)); // row_shl 3
    PUT(DPP(v, 0x103, 15, 15, 1));
    PUT(DPP(v, 0x115, 15, 15, 0)); // row_shr 5
    PUT(DPP(v, 0x121, 15, 15, 0)); // row_ror 1
    PUT(DPP(v, 0x140, 15, 15, 0)); // row_mirror
    PUT(DPP(v, 0x141, 15, 15, 0)); // row_half_mirror
    PUT(DPP(v, 0x142, 10, 15, 0)); // row_bcast 15, rows 1 and 3
    PUT(DPP(v, 0x143, 12, 15, 0)); // row_bcast 31
    PUT(DPP(v, 0x154, 15, 15, 0)); // row_newbcast 4
    PUT(DPP(v, 0x1b, 5, 3, 0));    // masks of rows and banks
    PUT(DPP(v, 0x130, 15, 15, 1)); // wave_shl
    PUT(DPP(v, 0x138, 15, 15, 0)); // wave_shr
}

KERNEL shuffles(GLOBAL u32 *out) {
    const u32 v = 100 + LANE;
    u32 row = 0;
    PUT(__builtin_amdgcn_ds_bpermute(4 * (63 - LANE), v));
    PUT(__builtin_amdgcn_ds_permute(4 * ((LANE * 5) & 63), v));
    PUT(__builtin_amdgcn_ds_swizzle(v, 0x041f)); // xor 1
    PUT(__builtin_amdgcn_ds_swizzle(v, 0x7c1f)); // xor 31
    PUT(__builtin_amdgcn_ds_swizzle(v, 0x804e)); // quads 2, 3, 0, 1
    PUT(__builtin_amdgcn_readfirstlane(v + 1));
    PUT(__builtin_amdgcn_readlane(v, 42));
    PUT((u32)__builtin_amdgcn_ballot_w64(v % 3 == 0));
    PUT((u32)(__builtin_amdgcn_ballot_w64(v % 3 == 0) >> 32));
}
