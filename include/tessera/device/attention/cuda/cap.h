// SPDX-License-Identifier: MIT
// The soft cap of a score, in units of log2.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_CAP_H
#define TESSERA_DEVICE_ATTENTION_CUDA_CAP_H

#include "tessera/isa/sm90_async.h"

INLINE float capped(float s, float cap_log2, float cap_scale) { // cap tanh(s / cap)
    return fused(-2.0f * cap_log2, reciprocal(1.0f + exp2_fast(s * cap_scale)), cap_log2);
}

#endif
