// SPDX-License-Identifier: MIT
// The rows of the dispatch table of layernorm2d_fwd. Its form: tessera/operation.h.
#ifndef TESSERA_KERNEL_LAYERNORM2D_FWD_H
#define TESSERA_KERNEL_LAYERNORM2D_FWD_H

#include "tessera/kernel/rows.h"
#include "tessera/layernorm2d_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

TESSERA_TABLE_CALLS(layernorm2d_fwd)

#ifdef __cplusplus
}
#endif
#endif
