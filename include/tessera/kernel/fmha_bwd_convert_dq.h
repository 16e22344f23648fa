// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_bwd's sub-kernel convert_dq.
#ifndef TESSERA_KERNEL_FMHA_BWD_CONVERT_DQ_H
#define TESSERA_KERNEL_FMHA_BWD_CONVERT_DQ_H

#include "tessera/kernel/fmha_bwd_cpu.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tessera_fmha_bwd_traits tessera_fmha_bwd_convert_dq_traits;

typedef struct tessera_fmha_bwd_convert_dq_instance {
    tessera_instance base;
    struct {
        uint16_t bm0; // rows of a task
    } tile;
    tessera_fmha_bwd_convert_dq_cpu_run *run; // CPU instances
} tessera_fmha_bwd_convert_dq_instance;

TESSERA_API const tessera_table *tessera_fmha_bwd_convert_dq_get_table(void);

#ifdef __cplusplus
}
#endif
#endif
