// SPDX-License-Identifier: MIT
// The rows of the dispatch table of smoothquant. Its form: tessera/operation.h.
#ifndef TESSERA_KERNEL_SMOOTHQUANT_H
#define TESSERA_KERNEL_SMOOTHQUANT_H

#include "tessera/kernel/rows.h"
#include "tessera/smoothquant.h"

#ifdef __cplusplus
extern "C" {
#endif

TESSERA_TABLE_CALLS(smoothquant)

#ifdef __cplusplus
}
#endif
#endif
