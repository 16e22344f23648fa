// SPDX-License-Identifier: MIT
// Descales of whole tensors, which lie in the device's memory; for those of blocks: blocks.h. DESCALED: 8-bit types and
// caches, which may have them.
//
// Takes args, DESCALED.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_DESCALES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_DESCALES_H

#include "tessera/isa/sm90_async.h"

#if DESCALED
INLINE float descale_of(const args *a, const void *of) {
    return of && !(a->call.features & TESSERA_GPU_BLOCK) ? *(const float *)of : 1.0f;
}
#else
INLINE float descale_of(const args *a, const void *of) {
    (void)a, (void)of;
    return 1.0f;
}
#endif

// Whether rows of q have descales of their own, and their keys too.
INLINE int has_scaled_rows(const args *a) { return DESCALED && a->call.features & TESSERA_GPU_ROWS; }

// The factors of Q K^T, and of O at the end.
INLINE float score_scale(const args *a) {
    return a->call.scale_log2 * (has_scaled_rows(a) ? 1.0f : descale_of(a, a->call.q_descale)) *
           descale_of(a, a->call.k_descale);
}
INLINE float value_scale(const args *a) { return descale_of(a, a->call.v_descale); }

// Whether scores are scaled before softmax. A product of descales that is not positive is found here, not by the host.
INLINE int is_scaled(const args *a) {
    return a->call.features & TESSERA_GPU_SCALED || (DESCALED && !(score_scale(a) >= 0x1p-126f));
}

#endif
