// SPDX-License-Identifier: MIT
// What emitted kernels of kv_cache_quantize_turbo4 receive, and the rows of its table. Not for callers.
#ifndef TESSERA_KERNEL_KV_CACHE_QUANTIZE_TURBO4_H
#define TESSERA_KERNEL_KV_CACHE_QUANTIZE_TURBO4_H

#include "tessera/kv_cache_quantize_turbo4.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

// Keys or values: new rows, their slots, and their norms, which may lie in the slots.
struct tessera_turbo4_rows {
    const void *from;
    uint8_t *slots, *norms;
    int64_t token, head;                    // strides of `from`, in elements
    int64_t page, head_of_page, row;        // of the slots, in bytes
    int64_t norm_page, norm_head, norm_row; // of the norms, in bytes
    int32_t hdim;
};

// A CPU kernel reads it through a pointer; of a GPU kernel it is the one argument. Everything that can be checked was.
struct tessera_kv_cache_quantize_turbo4_problem {
    struct tessera_turbo4_rows k, v;
    const float *centroids;
    const int64_t *slot_mapping;
    int32_t nhead, page_size;
    int32_t rows, room; // of all tokens and heads, of all pages; GPUs
    int32_t has_rotation;
    int32_t type; // tessera_type
};

// Quantises the key and the value of rows begin .. end - 1; row t * nhead + g is that of token t and head g.
typedef void tessera_kv_cache_quantize_turbo4_cpu_run(const struct tessera_kv_cache_quantize_turbo4_problem *problem,
                                                      int64_t begin, int64_t end);

typedef struct tessera_kv_cache_quantize_turbo4_tile {
    uint16_t rows; // of a workgroup; CPU: 1
} tessera_kv_cache_quantize_turbo4_tile;

struct tessera_kv_cache_quantize_turbo4_instance {
    tessera_instance base;
    tessera_kv_cache_quantize_turbo4_tile tile;
    tessera_kv_cache_quantize_turbo4_cpu_run *run; // CPU instances
};

TESSERA_TABLE_CALLS(kv_cache_quantize_turbo4)

#ifdef __cplusplus
}
#endif
#endif
