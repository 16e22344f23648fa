// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_fwd's sub-kernel combine.
#ifndef TESSERA_KERNEL_FMHA_FWD_COMBINE_H
#define TESSERA_KERNEL_FMHA_FWD_COMBINE_H

#include "tessera/fmha_fwd.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tessera_fmha_fwd_traits tessera_fmha_fwd_combine_traits;

typedef struct tessera_fmha_fwd_combine_instance {
    tessera_instance base;
    struct {
        uint16_t rows; // of a workgroup
    } tile;
} tessera_fmha_fwd_combine_instance;

TESSERA_API const tessera_table *tessera_fmha_fwd_combine_get_table(void);

#ifdef __cplusplus
}
#endif
#endif
