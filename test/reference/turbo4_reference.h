// SPDX-License-Identifier: MIT
// Rows rotated and quantised as tessera/hadamard_rotate.h and tessera/kv_cache_quantize_turbo4.h have it, in fp64, and
// how far fp32 may be off. Shares no code with the library.
#ifndef TURBO4_REFERENCE_H
#define TURBO4_REFERENCE_H

#include "elements.h"
#include "tessera/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TURBO4_MOST_HDIM = 512 };

tessera_type turbo4_type(tessera_fmha_dtype dtype); // of rows: fp32, fp16, bf16

// y = H x / sqrt(hdim), as the sums of the header.
void hadamard_rotate_row(const double *x, int32_t hdim, double *y);
// How far a number of type `type` may be off that should be y, an element of the rotated row of x: the sums' rounding
// in fp32, and that to the type.
double hadamard_bound(tessera_type type, const double *x, int32_t hdim, double y);

// Whether a slot holds row x. Of fp16 norms the last bit is not certain, of numbers which of two centroids is nearer
// where that is as near as fp32 tells them apart. Returns NULL, or what is wrong.
const char *turbo4_wrong(const double *x, int32_t hdim, const float centroids[16], const uint8_t *numbers,
                         uint16_t norm);

#ifdef __cplusplus
}
#endif
#endif
