// SPDX-License-Identifier: MIT
// Buffers with bounds, and loads that go straight to LDS.
#include "device.h"

typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef __amdgpu_buffer_rsrc_t buffer;

static inline buffer make_buffer(GLOBAL u32 *base, u32 bytes) {
    return __builtin_amdgcn_make_buffer_rsrc((void *)base, 0, bytes, 0x00020000);
}

// Words behind the buffer's end read as 0, of a wide load too; stores there are dropped.
KERNEL bounds(GLOBAL u32 *in, GLOBAL u32 *out, u32 bytes, u32 scalar) {
    const buffer from = make_buffer(in, bytes), to = make_buffer(out, 64 * 4 * 4 - 64);
    const u32x4 wide = __builtin_amdgcn_raw_buffer_load_b128(from, LANE * 4, scalar, 0);
    const u32 byte = __builtin_amdgcn_raw_buffer_load_b8(from, LANE, 0, 0);
    const u32 half = __builtin_amdgcn_raw_buffer_load_b16(from, LANE * 2, 0, 0);
    const u32x4 result = {wide.x + byte, wide.y + half, wide.z, wide.w};
    __builtin_amdgcn_raw_buffer_store_b128(result, to, LANE * 16, 0, 0);
}

#if !defined(__gfx90a__)
// Lane i's word comes to stand at word i of LDS.
KERNEL straight(GLOBAL u32 *in, GLOBAL u32 *out) {
    LDS u32 words[128];
    const u32 i = LANE;
    __builtin_amdgcn_global_load_lds(in + 2 * i, words, 4, 0, 0);
    __builtin_amdgcn_raw_ptr_buffer_load_lds(make_buffer(in, 256), words + 64, 4, i * 8, 0, 0, 0);
    __builtin_amdgcn_s_waitcnt(0);
    barrier();
    out[i] = words[i];
    out[64 + i] = words[64 + i];
}
#endif
