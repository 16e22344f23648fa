// SPDX-License-Identifier: MIT
// Epilogue "store": elements of 16 bits, which TWO_OF_O rounds and packs.
#ifndef TESSERA_DEVICE_COMMON_CUDA_STORE_H
#define TESSERA_DEVICE_COMMON_CUDA_STORE_H

#include "tessera/isa/sm90_async.h"

INLINE uint32_t pair_of(float a, float b) { return TWO_OF_O(a, b); }
INLINE void store_pairs(void *to, const uint32_t pairs[4]) {
    store_16(to, (u32x4){pairs[0], pairs[1], pairs[2], pairs[3]});
}

#endif
