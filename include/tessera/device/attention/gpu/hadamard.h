// SPDX-License-Identifier: MIT
// Rows on GPUs and their Walsh-Hadamard transform: a row of HDIM numbers, of which each of ROW_LANES lanes that follow
// one another has 8, one after the other. All lanes of a row are active in all of it.
//
// Takes HDIM, VECTORS.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_HADAMARD_H
#define TESSERA_DEVICE_ATTENTION_GPU_HADAMARD_H

#include "tessera/device/attention/gpu/units.h"

enum { OWN = 8, ROW_LANES = HDIM / OWN };

// ---- memory

INLINE void load_own(int type, const char *from, float x[OWN]) {
    const int bytes = bytes_of_type(type);
#if VECTORS
    const unit first = load_unit(from, bytes);
    if (type == TESSERA_TYPE_FP32) {
        const unit second = load_unit(from + sizeof first, bytes);
        UNROLL
        for (int i = 0; i < OWN / 2; i++) x[i] = AS_F32(first.word[i]), x[OWN / 2 + i] = AS_F32(second.word[i]);
        return;
    }
    UNROLL
    for (int i = 0; i < OWN / 2; i++) {
        x[2 * i] = number_of(type, first.word[i]);
        x[2 * i + 1] = number_of(type, first.word[i] >> 16);
    }
#else
    UNROLL
    for (int i = 0; i < OWN; i++) x[i] = number_of(type, load_unit(from + i * bytes, bytes).word[0]);
#endif
}

INLINE void store_own(int type, char *to, const float x[OWN]) {
    const int bytes = bytes_of_type(type);
#if VECTORS
    unit first, second;
    if (type == TESSERA_TYPE_FP32) {
        UNROLL
        for (int i = 0; i < OWN / 2; i++) first.word[i] = AS_U32(x[i]), second.word[i] = AS_U32(x[OWN / 2 + i]);
        store_unit(to + sizeof first, second, bytes);
    } else {
        UNROLL
        for (int i = 0; i < OWN / 2; i++) first.word[i] = bits_of_two(type, x[2 * i], x[2 * i + 1]);
    }
    store_unit(to, first, bytes);
#else
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const unit one = {{type == TESSERA_TYPE_FP32 ? AS_U32(x[i]) : bits_of_two(type, x[i], 0.0f)}};
        store_unit(to + i * bytes, one, bytes);
    }
#endif
}

// ---- arithmetic

// Each becomes its row times H / sqrt(HDIM): first by the bits of an element's place in its lane, then by those of the
// lane, which keeps the sum where its bit is 0 and the difference where it is 1.
INLINE void rotate_own(float x[OWN], int lane) {
    const float scale = HDIM == 64 ? 0.125f : HDIM == 128 ? 0x1.6a09e6p-4f : 0.0625f;
    UNROLL
    for (int bit = 1; bit < OWN; bit *= 2) {
        UNROLL
        for (int i = 0; i < OWN; i++) {
            if (i & bit) continue;
            const float a = x[i], b = x[i + bit];
            x[i] = a + b, x[i + bit] = a - b;
        }
    }
    UNROLL
    for (int bit = 1; bit < ROW_LANES; bit *= 2) {
        const float sign = lane & bit ? -1.0f : 1.0f;
        UNROLL
        for (int i = 0; i < OWN; i++) x[i] = AS_F32(other_lane_bits(AS_U32(x[i]), bit)) + sign * x[i];
    }
    UNROLL
    for (int i = 0; i < OWN; i++) x[i] *= scale;
}

// The sum of x over the row's lanes, the same bits in each.
INLINE float sum_of_row(float x) {
    UNROLL
    for (int bit = 1; bit < ROW_LANES; bit *= 2) x += AS_F32(other_lane_bits(AS_U32(x), bit));
    return x;
}

#endif
