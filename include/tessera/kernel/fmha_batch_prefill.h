// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_batch_prefill. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_BATCH_PREFILL_H
#define TESSERA_KERNEL_FMHA_BATCH_PREFILL_H

#include "tessera/fmha_batch_prefill.h"
#include "tessera/kernel/attention_pages.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tessera_fmha_batch_prefill_instance {
    tessera_instance base;
    tessera_attention_pages_tile tile;
    tessera_attention_pages_cpu_run *find; // CPU instances
};

TESSERA_TABLE_CALLS(fmha_batch_prefill)

#ifdef __cplusplus
}
#endif
#endif
