// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_bwd's sub-kernel dot_do_o.
#ifndef TESSERA_KERNEL_FMHA_BWD_DOT_DO_O_H
#define TESSERA_KERNEL_FMHA_BWD_DOT_DO_O_H

#include "tessera/kernel/fmha_bwd_cpu.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef tessera_fmha_bwd_traits tessera_fmha_bwd_dot_do_o_traits;

typedef struct tessera_fmha_bwd_dot_do_o_instance {
    tessera_instance base;
    struct {
        uint16_t bm0; // rows of a task
    } tile;
    tessera_fmha_bwd_dot_do_o_cpu_run *run; // CPU instances
    tessera_fmha_bwd_dot_do_o_cpu_d_sink *d_sink;
} tessera_fmha_bwd_dot_do_o_instance;

TESSERA_API const tessera_table *tessera_fmha_bwd_dot_do_o_get_table(void);

#ifdef __cplusplus
}
#endif
#endif
