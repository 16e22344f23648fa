// SPDX-License-Identifier: MIT
// The rows of the dispatch table of add_rmsnorm2d_rdquant. Its form: tessera/operation.h.
#ifndef TESSERA_KERNEL_ADD_RMSNORM2D_RDQUANT_H
#define TESSERA_KERNEL_ADD_RMSNORM2D_RDQUANT_H

#include "tessera/add_rmsnorm2d_rdquant.h"
#include "tessera/kernel/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

TESSERA_TABLE_CALLS(add_rmsnorm2d_rdquant)

#ifdef __cplusplus
}
#endif
#endif
