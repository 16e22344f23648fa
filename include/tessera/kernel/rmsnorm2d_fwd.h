// SPDX-License-Identifier: MIT
// The rows of the dispatch table of rmsnorm2d_fwd. Its form: tessera/operation.h.
#ifndef TESSERA_KERNEL_RMSNORM2D_FWD_H
#define TESSERA_KERNEL_RMSNORM2D_FWD_H

#include "tessera/kernel/rows.h"
#include "tessera/rmsnorm2d_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

TESSERA_TABLE_CALLS(rmsnorm2d_fwd)

#ifdef __cplusplus
}
#endif
#endif
