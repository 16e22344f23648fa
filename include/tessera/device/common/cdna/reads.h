// SPDX-License-Identifier: MIT
// Reads of single numbers that all lanes share.
#ifndef TESSERA_DEVICE_COMMON_CDNA_READS_H
#define TESSERA_DEVICE_COMMON_CDNA_READS_H

#include "tessera/isa/cdna.h"

INLINE int read_int(const int32_t *p, int index) { return ((CONSTANT const int32_t *)(uint64_t)p)[index]; }
INLINE int64_t read_i64(const int64_t *p, int index) { return ((CONSTANT const int64_t *)(uint64_t)p)[index]; }
INLINE uint64_t read_u64(const uint64_t *p) { return *(CONSTANT const uint64_t *)(uint64_t)p; }
INLINE float read_float(const void *p, int64_t index) { return ((CONSTANT const float *)(uint64_t)p)[index]; }

#endif
