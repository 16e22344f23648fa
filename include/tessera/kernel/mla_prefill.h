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

struct tessera_mla_prefill_instance {
    tessera_instance base;
    tessera_attention_pages_tile tile;
    tessera_mla_prefill_cpu_run *find; // CPU instances
};

TESSERA_TABLE_CALLS(mla_prefill)

#ifdef __cplusplus
}
#endif
#endif
