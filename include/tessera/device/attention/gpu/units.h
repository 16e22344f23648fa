// SPDX-License-Identifier: MIT
// What a lane moves at once of a row: 16 bytes with VECTORS, or one element.
//
// Takes VECTORS.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_UNITS_H
#define TESSERA_DEVICE_ATTENTION_GPU_UNITS_H

#include "tessera/types.h"

typedef struct unit {
    uint32_t word[VECTORS ? 4 : 1];
} unit;

INLINE int bytes_of_type(int type) { return type == TESSERA_TYPE_FP32 ? 4 : type == TESSERA_TYPE_E4M3 ? 1 : 2; }

INLINE unit load_unit(const char *at, int bytes) {
    unit x;
#if VECTORS
    const u32x4 all = *(GLOBAL const u32x4 *)(uint64_t)at;
    UNROLL
    for (int i = 0; i < 4; i++) x.word[i] = all[i];
    (void)bytes;
#else
    if (bytes == 4)
        x.word[0] = *(GLOBAL const uint32_t *)(uint64_t)at;
    else if (bytes == 2)
        x.word[0] = *(GLOBAL const uint16_t *)(uint64_t)at;
    else
        x.word[0] = *(GLOBAL const uint8_t *)(uint64_t)at;
#endif
    return x;
}

INLINE void store_unit(char *at, unit x, int bytes) {
#if VECTORS
    *(GLOBAL u32x4 *)(uint64_t)at = (u32x4){x.word[0], x.word[1], x.word[2], x.word[3]};
    (void)bytes;
#else
    if (bytes == 4)
        *(GLOBAL uint32_t *)(uint64_t)at = x.word[0];
    else if (bytes == 2)
        *(GLOBAL uint16_t *)(uint64_t)at = (uint16_t)x.word[0];
    else
        *(GLOBAL uint8_t *)(uint64_t)at = (uint8_t)x.word[0];
#endif
}

// Numbers of `type`, fp32, fp16 or bf16, in a word: the lower half's, and two that are rounded to nearest even.
INLINE float number_of(int type, uint32_t bits) {
    return type == TESSERA_TYPE_FP32   ? AS_F32(bits)
           : type == TESSERA_TYPE_FP16 ? unpack_fp16(bits & 0xffff)
                                       : unpack_bf16(bits & 0xffff);
}
INLINE uint32_t bits_of_two(int type, float a, float b) {
    return type == TESSERA_TYPE_FP16 ? pack_fp16(a, b) : pack_bf16(a, b);
}

#endif
