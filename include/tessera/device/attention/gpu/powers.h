// SPDX-License-Identifier: MIT
// Powers of 2 by which numbers are brought into the range of fp16.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_POWERS_H
#define TESSERA_DEVICE_ATTENTION_GPU_POWERS_H

// Of numbers of bf16, of which fp16 has all bits: over it the greatest is below 2^15. What is lost then is less than
// 2^-39 of that.
INLINE float unit_of(float greatest) { return AS_F32((max_u32(AS_U32(greatest) >> 23, 15) - 14) << 23); }
INLINE float over_unit(float unit) { return AS_F32(0x7f000000 - AS_U32(unit)); } // 1 / unit

#endif
