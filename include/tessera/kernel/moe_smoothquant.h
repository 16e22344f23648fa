// SPDX-License-Identifier: MIT
// The rows of the dispatch table of moe_smoothquant. Its form: tessera/operation.h.
#ifndef TESSERA_KERNEL_MOE_SMOOTHQUANT_H
#define TESSERA_KERNEL_MOE_SMOOTHQUANT_H

#include "tessera/kernel/rows.h"
#include "tessera/moe_smoothquant.h"

#ifdef __cplusplus
extern "C" {
#endif

TESSERA_TABLE_CALLS(moe_smoothquant)

#ifdef __cplusplus
}
#endif
#endif
