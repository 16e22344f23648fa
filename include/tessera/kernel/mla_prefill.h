// SPDX-License-Identifier: MIT
// The rows of the dispatch table of mla_prefill. Not for callers.
#ifndef TESSERA_KERNEL_MLA_PREFILL_H
#define TESSERA_KERNEL_MLA_PREFILL_H

#include "tessera/kernel/attention_pages.h"
#include "tessera/mla_prefill.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

// Kernels of CPUs find both parts of the keys of a block.
typedef tessera_attention_pages_cpu_run tessera_mla_prefill_cpu_run;

// On GPUs queries of a work item and keys of a tile.
typedef struct tessera_mla_prefill_tile {
    uint16_t rows, keys;
} tessera_mla_prefill_tile;

struct tessera_mla_prefill_instance {
    tessera_instance base;
    tessera_mla_prefill_tile tile;
    tessera_mla_prefill_cpu_run *find; // CPU instances
    // GPU instances:
    float start;        // the time of a work item beside its tiles, in tiles
    uint8_t persistent; // 1: a workgroup takes one work item after the other
};

TESSERA_TABLE_CALLS(mla_prefill)

#ifdef __cplusplus
}
#endif
#endif
