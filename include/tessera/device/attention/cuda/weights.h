// SPDX-License-Identifier: MIT
// What keys and values of a quantised cache are scaled by, applied to scores and to probabilities.
//
// Takes args, KV, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_WEIGHTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_WEIGHTS_H

#include "tessera/device/attention/cuda/pipe.h"

// Those of a tile of keys, or of values, and behind them the greatest ones of each warp.
INLINE uint32_t scales_place(uint32_t base, uint32_t n, int values) {
    return base + AT_SCALES + ((values ? STAGES : 0) + n % STAGES) * SCALES_BYTES;
}

INLINE void scale_columns(float s[SCORES], uint32_t scales, float over) {
    UNROLL
    for (int j = 0; j < BN / 8; j++) {
        const f32x2 x = shared_load_f32x2(scales + 4 * (COLUMN(j, 0) + thread_column()));
        UNROLL
        for (int r = 0; r < 2; r++) {
            s[ELEMENT(j, r, 0)] *= x.x * over;
            s[ELEMENT(j, r, 1)] *= x.y * over;
        }
    }
}

// fp16 has no room for P, which is as much as 2^(P_SHIFT + HEADROOM), times the scale of a value: scales are divided by
// a power of 2 that is greater than all so far, which O is multiplied by in the end.
INLINE float first_unit(const args *a) { return P_SHIFT > 0 && a->pages.v_scale.base ? 0x1p-100f : 1.0f; }
INLINE float over_unit(float unit) { return AS_F32(0x7f000000 - AS_U32(unit)); }

// The unit for these scales too; where it is greater than before O is to be multiplied by less.
INLINE int raise_unit(float *unit, uint32_t scales, float alpha[2]) {
    if (P_SHIFT == 0) return 0;
    const u32x4 x = shared_load_16(scales + 4 * BN);
    const uint32_t greatest = max_u32(max_u32(x.x, x.y), max_u32(x.z, x.w));
    if (greatest < AS_U32(*unit)) return 0;
    const float next = AS_F32((uint32_t)min_i32((int)(greatest & 0x7f800000), 0x7d000000) + 0x00800000);
    const float by = *unit * over_unit(next);
    alpha[0] *= by, alpha[1] *= by;
    *unit = next;
    return 1;
}

#endif
