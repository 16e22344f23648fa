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

// The lane's four numbers of x and of y go to a row in which those of lane l and of lane l + 32 follow one another, y's
// behind x's: lane l stores the eight of x, lane l + 32 those of y, each at an offset in bytes: accesses are of 16.
INLINE void store_eight(buffer to, int offset, f32x4 x, f32x4 y) {
    uint32_t a0 = TWO_OF_O(x.x, x.y), a1 = TWO_OF_O(x.z, x.w), b0 = TWO_OF_O(y.x, y.y), b1 = TWO_OF_O(y.z, y.w);
    swap_halves(&a0, &b0);
    swap_halves(&a1, &b1);
    buffer_store_16(to, offset, (u32x4){a0, a1, b0, b1});
}
#endif

#endif
