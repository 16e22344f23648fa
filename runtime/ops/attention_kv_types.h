// SPDX-License-Identifier: MIT
// How rows of numbers lie in a cache of each type. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ATTENTION_KV_TYPES_H
#define TESSERA_RUNTIME_OPS_ATTENTION_KV_TYPES_H

#include <stdbool.h>

#include "tessera/attention.h"

// How kernels read the numbers: templates/attention_pages/numbers.c.j2.
struct tessera_kv_type {
    int32_t bytes;     // of an element, which strides count; 0: as in q
    int32_t numbers;   // in an element
    int32_t tail;      // elements of a row behind its numbers, which are its norm
    bool takes_scales; // fp32, of the tensor, of a page's head, or of a row
    bool has_norms;    // fp16, in the tail or in place of scales; and centroids
};
extern const struct tessera_kv_type tessera_kv_types[TESSERA_KV_CACHE_DTYPE_COUNT];

#endif
