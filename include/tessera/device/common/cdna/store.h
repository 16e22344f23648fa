// SPDX-License-Identifier: MIT
// Epilogue "store": stores four numbers, rounded to nearest even where O has 16 bits. TWO_OF_O packs two.
//
// Takes O_BITS.
#ifndef TESSERA_DEVICE_COMMON_CDNA_STORE_H
#define TESSERA_DEVICE_COMMON_CDNA_STORE_H

#include "tessera/isa/cdna.h"

#if O_BITS == 32
INLINE void store_four(buffer to, int element, f32x4 x) {
    buffer_store_16(to, 4 * element, (u32x4){AS_U32(x.x), AS_U32(x.y), AS_U32(x.z), AS_U32(x.w)});
}
#else
INLINE void store_four(buffer to, int element, f32x4 x) {
    buffer_store_8(to, 2 * element, (u32x2){TWO_OF_O(x.x, x.y), TWO_OF_O(x.z, x.w)});
}
#endif

#endif
