// SPDX-License-Identifier: MIT
// The rows of the dispatch table of paged_attention. Not for callers.
#ifndef TESSERA_KERNEL_PAGED_ATTENTION_H
#define TESSERA_KERNEL_PAGED_ATTENTION_H

#include "tessera/kernel/attention_pages.h"
#include "tessera/operation.h"
#include "tessera/paged_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tessera_paged_attention_instance {
    tessera_instance base;
    tessera_attention_pages_tile tile;
    tessera_attention_pages_cpu_run *find; // CPU instances
};

TESSERA_TABLE_CALLS(paged_attention)

#ifdef __cplusplus
}
#endif
#endif
