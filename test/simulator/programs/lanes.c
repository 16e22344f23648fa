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

#if defined(__gfx950__)
// Transposing reads of LDS that holds rows of sixteen elements; each lane points at its part of a row.
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef i32 i32x2 __attribute__((ext_vector_type(2)));
typedef i32 i32x3 __attribute__((ext_vector_type(3)));
#define LDS_POINTER(type, bytes) ((__attribute__((address_space(3))) type *)(bytes))
KERNEL transpose(GLOBAL const u32 *in, GLOBAL u32 *out) {
    LDS u32 words[64 * 4];
    __attribute__((address_space(3))) u8 *bytes = (__attribute__((address_space(3))) u8 *)words;
    for (u32 k = 0; k < 4; k++) words[64 * k + LANE] = in[64 * k + LANE];
    barrier();
    const i16x4 h = __builtin_amdgcn_ds_read_tr16_b64_v4i16(LDS_POINTER(i16x4, bytes + 8 * LANE));
    const i32x2 b = __builtin_amdgcn_ds_read_tr8_b64_v2i32(LDS_POINTER(i32x2, bytes + 8 * LANE));
    const i32x2 n = __builtin_amdgcn_ds_read_tr4_b64_v2i32(LDS_POINTER(i32x2, bytes + 8 * LANE));
    const i32x3 s = __builtin_amdgcn_ds_read_tr6_b96_v3i32(LDS_POINTER(i32x3, bytes + 16 * LANE));
    GLOBAL u32 *to = out + 9 * LANE;
    __builtin_memcpy((void *)to, &h, 8);
    __builtin_memcpy((void *)(to + 2), &b, 8);
    __builtin_memcpy((void *)(to + 4), &n, 8);
    __builtin_memcpy((void *)(to + 6), &s, 12);
}
#endif
