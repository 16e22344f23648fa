// SPDX-License-Identifier: MIT
// Epilogue "quant": fp8, rounded to nearest even and saturated.
#ifndef TESSERA_DEVICE_COMMON_CUDA_QUANT_H
#define TESSERA_DEVICE_COMMON_CUDA_QUANT_H

#include "tessera/isa/sm90_async.h"

INLINE uint32_t pair_of(float a, float b) { return pack_fp8(a, b, 0.0f, 0.0f); }
INLINE void store_pairs(void *to, const uint32_t pairs[4]) {
    store_8(to, (u32x2){pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16});
}

#endif
