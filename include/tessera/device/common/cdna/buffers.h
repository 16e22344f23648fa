// SPDX-License-Identifier: MIT
// Buffers over rows of a tensor.
#ifndef TESSERA_DEVICE_COMMON_CDNA_BUFFERS_H
#define TESSERA_DEVICE_COMMON_CDNA_BUFFERS_H

#include "tessera/device/common/cdna/reads.h"

enum { OUTSIDE = INT32_MIN }; // an offset outside of every buffer

// The bytes of `rows` rows, but no fewer than 0 and no more than `most`, of `width` elements of `bits`.
INLINE uint32_t bytes_of_rows(int rows, int most, int64_t stride, int width, int bits) {
    rows = min_i32(rows, most);
    const uint32_t elements = rows > 0 ? (uint32_t)(rows - 1) * (uint32_t)stride + (uint32_t)width : 0;
    return bits < 8 ? (elements + 1) / 2 : elements * (uint32_t)(bits / 8);
}

// A buffer over these rows, from element `first` on. Loads past its end return zero, and stores there do nothing.
INLINE buffer rows_of(const void *base, int64_t first, int rows, int most, int64_t stride, int width, int bits) {
    const uint32_t bytes = bytes_of_rows(rows, most, stride, width, bits);
    return make_buffer((const char *)base + first * bits / 8, bytes);
}

#endif
