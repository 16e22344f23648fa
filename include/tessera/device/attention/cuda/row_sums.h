// SPDX-License-Identifier: MIT
// Sums over the 16 lanes of a row, each of which gets it. All lanes of the wave must be active.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_ROW_SUMS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_ROW_SUMS_H

#include "tessera/isa/sm90_async.h"

INLINE float sum_of_row_lanes(float x) {
    UNROLL
    for (int apart = 8; apart > 0; apart /= 2) x += __nvvm_shfl_sync_bfly_f32(~0u, x, apart, WAVE_LANES - 1);
    return x;
}

#endif
