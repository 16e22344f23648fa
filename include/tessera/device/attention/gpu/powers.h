// SPDX-License-Identifier: MIT
// Powers of 2 by which numbers are brought into the range of fp16, and numbers of bf16 that become fp16 by them.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_POWERS_H
#define TESSERA_DEVICE_ATTENTION_GPU_POWERS_H

// Of numbers of bf16, of which fp16 has all bits: over it the greatest is below 2^15. What is lost then is less than
// 2^-39 of that.
INLINE float unit_of(float greatest) { return AS_F32((max_u32(AS_U32(greatest) >> 23, 15) - 14) << 23); }
INLINE float over_unit(float unit) { return AS_F32(0x7f000000 - AS_U32(unit)); } // 1 / unit

// The greater of `most` and the sizes of two numbers of bf16.
INLINE float greatest_bf16(float most, uint32_t x) {
    return max_f32(most, max_f32(abs_f32(unpack_bf16(x)), abs_f32(unpack_bf16(x >> 16))));
}
// Two numbers of bf16, times `by`, as fp16.
INLINE uint32_t fp16_of_bf16(uint32_t x, float by) { return pack_fp16(unpack_bf16(x) * by, unpack_bf16(x >> 16) * by); }

#endif
