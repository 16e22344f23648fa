// SPDX-License-Identifier: MIT
// What keys and values of a quantised cache are scaled by, applied to scores and to probabilities.
//
// Takes args, KEYS, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WEIGHTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WEIGHTS_H

#include "tessera/device/attention/cuda_pages/numbers.h"

// What row lane % KEYS of a part is scaled by.
#if HEADS > 1
// Of the warp's rows of a head, in a part of 8 bits.
INLINE float own_scale(uint32_t part, int first_key, int head) {
    return AS_F32(shared_load_4(part + RAW_SCALES + 4 * (HEADS * (first_key + here(lane_id()) % KEYS) + head)));
}
#else
INLINE float own_scale(uint32_t raw) {
    const int row = lane_id() % KEYS;
    const uint32_t at = raw + RAW_SCALES + RAW_SCALE * row;
    if (KV != TESSERA_KV_TURBO4) return AS_F32(shared_load_4(at));
    return unpack_fp16((uint32_t)(shared_load_8(at) >> (shared_load_2(raw + RAW_SHIFTS + 2 * row) >> 8)));
}
#endif

// Multiplies scores by what their keys are scaled by, and by a number for each of the thread's rows.
INLINE void scale_columns(float s[SCORES], float own, const float of_rows[2]) {
    const int first = HEADS > 1 ? here(thread_column()) : thread_column(); // registers are few
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) {
        UNROLL
        for (int e = 0; e < BESIDE; e++) {
            const float scale = AS_F32(of_lane(AS_U32(own), COLUMN(j, e) + first));
            UNROLL
            for (int r = 0; r < 2; r++) s[ELEMENT(j, r, e)] *= scale * of_rows[r];
        }
    }
}
INLINE void scale_rows(float s[SCORES], const float of_rows[2]) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] *= of_rows[ROW_OF(i)];
}

// fp16 has no room for P, which is as much as 2^(P_SHIFT + HEADROOM), times the scale of a value: scales are divided by
// a power of 2 that is greater than all so far, which O is multiplied by in the end.
INLINE float first_unit(const args *a) { return a->pages.v_scale.base ? 0x1p-100f : 1.0f; }

// The unit for these scales too; where it is greater than before O is to be multiplied by less.
INLINE int raise_unit(float *unit, float own, float alpha[2]) {
    const uint32_t greatest = greatest_of_lanes(AS_U32(abs_f32(own))); // bits are in the order of numbers
    if (greatest < AS_U32(*unit)) return 0;
    const float next = AS_F32((uint32_t)min_i32((int)(greatest & 0x7f800000), 0x7d000000) + 0x00800000);
    const float by = *unit * over_unit(next);
    alpha[0] *= by, alpha[1] *= by;
    *unit = next;
    return 1;
}

#endif
