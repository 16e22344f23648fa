// SPDX-License-Identifier: MIT
// Epilogue "quant": stores four numbers as fp8, rounded to nearest even and saturated.
#ifndef TESSERA_DEVICE_COMMON_CDNA_QUANT_H
#define TESSERA_DEVICE_COMMON_CDNA_QUANT_H

#include "tessera/isa/cdna.h"

INLINE void store_four(buffer to, int element, f32x4 x) { buffer_store_4(to, element, pack_fp8(x.x, x.y, x.z, x.w)); }

#endif
