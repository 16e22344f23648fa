// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_fwd_pagedkv. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_PAGEDKV_H
#define TESSERA_KERNEL_FMHA_FWD_PAGEDKV_H

#include "tessera/fmha_fwd_pagedkv.h"
#include "tessera/kernel/attention_pages.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tessera_fmha_fwd_pagedkv_instance {
    tessera_instance base;
    tessera_attention_pages_tile tile;
    tessera_attention_pages_cpu_run *find; // CPU instances
};

TESSERA_TABLE_CALLS(fmha_fwd_pagedkv)

#ifdef __cplusplus
}
#endif
#endif
