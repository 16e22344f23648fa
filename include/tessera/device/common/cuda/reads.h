// SPDX-License-Identifier: MIT
// Reads of single numbers that all lanes share.
#ifndef TESSERA_DEVICE_COMMON_CUDA_READS_H
#define TESSERA_DEVICE_COMMON_CUDA_READS_H

#include "tessera/isa/sm90.h"

INLINE int read_int(const int32_t *p, int index) { return ((GLOBAL const int32_t *)(uint64_t)p)[index]; }
INLINE int64_t read_i64(const int64_t *p, int index) { return ((GLOBAL const int64_t *)(uint64_t)p)[index]; }
INLINE float read_float(const float *p, int index) { return ((GLOBAL const float *)(uint64_t)p)[index]; }

#endif
