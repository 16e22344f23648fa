// SPDX-License-Identifier: MIT
// Arithmetic of sizes.
#ifndef TESSERA_RUNTIME_INTEGERS_H
#define TESSERA_RUNTIME_INTEGERS_H

#include <stdint.h>

static inline int64_t tessera_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t tessera_round_up(int64_t a, int64_t b) { return tessera_ceil_div(a, b) * b; }
// A stride may be any number where nothing lies a stride further: its product with the size of an element may wrap.
static inline int64_t tessera_stride_bytes(int64_t stride, int64_t element) {
    return (int64_t)((uint64_t)stride * (uint64_t)element);
}
static inline int64_t tessera_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tessera_max(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
