// SPDX-License-Identifier: MIT
// The CPU vocabulary on Advanced SIMD (armv8-a, aarch64). docs/vocabulary.md says what each word means.
#ifndef TESSERA_ISA_CPU_NEON_H
#define TESSERA_ISA_CPU_NEON_H

#include <arm_neon.h>

#include "tessera/isa/common.h"

#define LANES 4

typedef float32x4_t vf; // LANES floats
typedef int32x4_t vi;   // LANES 32-bit integers

// memory
INLINE vf v_load(const float *p) { return vld1q_f32(p); }
INLINE void v_store(float *p, vf x) { vst1q_f32(p, x); }
INLINE vi v_load_i(const void *p) { return vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p)); }
INLINE void v_store_i(void *p, vi x) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_s32(x)); }
INLINE void v_stream_i(void *p, vi x) { memcpy(p, &x, sizeof x); }
INLINE void stream_end(void) {}
INLINE void v_load_split(const float *p, vf x[2]) {
    const float32x4x2_t both = vld2q_f32(p);
    x[0] = both.val[0];
    x[1] = both.val[1];
}
INLINE vi v_load_u4(const uint8_t *p) {
    int32x4_t bytes = {p[0], p[0], p[1], p[1]};
    uint32x4_t nibbles = vshlq_u32(vreinterpretq_u32_s32(bytes), (int32x4_t){0, -4, 0, -4});
    return vreinterpretq_s32_u32(vandq_u32(nibbles, vdupq_n_u32(15)));
}
INLINE vf v_lookup(const float *p, vi codes) {
    const uint8x16x4_t table = vld1q_u8_x4((const uint8_t *)p);
    const int32x4_t bytes = vmlaq_n_s32(vdupq_n_s32(0x03020100), codes, 0x04040404);
    return vreinterpretq_f32_u8(vqtbl4q_u8(table, vreinterpretq_u8_s32(bytes)));
}
INLINE vi v_load_u16(const uint16_t *p) { return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p))); }
INLINE vi v_load_u8(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}
INLINE vi v_load_s8(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four))));
}
INLINE void v_store_u16(uint16_t *p, vi x) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(x))); }
INLINE void v_store_u8(uint8_t *p, vi x) {
    uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(x));
    uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
    memcpy(p, &four, sizeof four);
}
INLINE vf v_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
INLINE void v_store_f16(uint16_t *p, vf x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
INLINE void v_stream_u8(uint8_t *p, vi x) { v_store_u8(p, x); }
INLINE void v_stream_u16(uint16_t *p, vi x) { v_store_u16(p, x); }
INLINE void v_stream_f16(uint16_t *p, vf x) { v_store_f16(p, x); }

// floats
INLINE vf v_set1(float x) { return vdupq_n_f32(x); }
INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
INLINE vf v_quotient(vf a, vf b) { return vdivq_f32(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
INLINE vf v_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); } // not vmaxq: NaN gives b
INLINE vf v_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
INLINE vf v_abs(vf a) { return vabsq_f32(a); }
INLINE vf v_round(vf a) { return vrndnq_f32(a); }
INLINE vf v_scale2(vf a, vf n) {
    int32x4_t shifted = vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vcvtq_s32_f32(n), 23));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_s32(shifted), vcltq_f32(n, vdupq_n_f32(-125.0f))));
}

// integers
INLINE vi v_set1_i(int32_t x) { return vdupq_n_s32(x); }
INLINE vi v_add_i(vi a, vi b) { return vaddq_s32(a, b); }
INLINE vi v_sub_i(vi a, vi b) { return vsubq_s32(a, b); }
INLINE vi v_and_i(vi a, vi b) { return vandq_s32(a, b); }
INLINE vi v_or_i(vi a, vi b) { return vorrq_s32(a, b); }
INLINE vi v_xor_i(vi a, vi b) { return veorq_s32(a, b); }
INLINE vi v_shl_i(vi a, int bits) { return vshlq_s32(a, vdupq_n_s32(bits)); }
INLINE vi v_shr_i(vi a, int bits) {
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-bits)));
}
INLINE vi v_max_i(vi a, vi b) { return vmaxq_s32(a, b); }
INLINE vi v_to_i(vf a) { return vcvtnq_s32_f32(a); }
INLINE vf v_to_f(vi a) { return vcvtq_f32_s32(a); }
INLINE vf v_as_f(vi a) { return vreinterpretq_f32_s32(a); }
INLINE vi v_as_i(vf a) { return vreinterpretq_s32_f32(a); }
INLINE void v_mul_wide(vi a, uint32_t b, vi *high, vi *low) {
    uint32x4_t x = vreinterpretq_u32_s32(a);
    uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(x), b));
    uint32x4_t second = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(x), b));
    *low = vreinterpretq_s32_u32(vuzp1q_u32(first, second));
    *high = vreinterpretq_s32_u32(vuzp2q_u32(first, second));
}

// choices
INLINE vf v_if_gt_i(vi a, vi b, vf then, vf otherwise) { return vbslq_f32(vcgtq_s32(a, b), then, otherwise); }
INLINE vf v_if_equal(vf a, vf b, vf then, vf otherwise) { return vbslq_f32(vceqq_f32(a, b), then, otherwise); }

// x[r] lane c becomes x[c] lane r.
INLINE void v_transpose(vf x[LANES]) {
    float32x4x2_t a = vtrnq_f32(x[0], x[1]), b = vtrnq_f32(x[2], x[3]);
    x[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    x[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    x[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    x[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

// over all lanes
INLINE float v_sum(vf a) { return vaddvq_f32(a); }
INLINE float v_greatest(vf a) { return vmaxvq_f32(a); }

// Lane r gets the sum of the lanes of x[r], by adding pairs again and again.
INLINE vf v_sums(vf x[LANES]) { return vpaddq_f32(vpaddq_f32(x[0], x[1]), vpaddq_f32(x[2], x[3])); }

// products: acc + a * b, where a is one fp32 word of memory in all lanes
INLINE vf v_word(const void *p) { return vld1q_dup_f32((const float *)p); }
INLINE vf v_mac(vf acc, vf a, vf b) { return vfmaq_f32(acc, a, b); }
INLINE vf v_mac_word(vf acc, const float *p, vf b) { return v_mac(acc, v_word(p), b); }

#endif
