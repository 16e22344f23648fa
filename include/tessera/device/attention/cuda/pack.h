// SPDX-License-Identifier: MIT
// Makes the operand P of probabilities, which a thread has as it has scores. TWO_OF_P rounds and packs two of 16 bits.
//
// Takes BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PACK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PACK_H

#include "tessera/device/attention/cuda/sizes.h"

INLINE void pack_probabilities(const float e[SCORES], uint32_t p[P_WORDS]) {
    UNROLL
    for (int i = 0; i < P_WORDS; i++) {
#if BITS == 8
        const float *const of = &e[8 * (i / 2) + 2 * (i % 2)]; // 16 keys of a row; transpose.h says which they are in V
        p[i] = pack_fp8(of[0], of[1], of[4], of[5]);
#else
        p[i] = TWO_OF_P(e[2 * i], e[2 * i + 1]);
#endif
    }
}

#endif
