// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_bwd: its dq_dk_dv. The form is in tessera/operation.h.
#ifndef TESSERA_KERNEL_FMHA_BWD_H
#define TESSERA_KERNEL_FMHA_BWD_H

#include "tessera/kernel/fmha_bwd_cpu.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tessera_fmha_bwd_tile {
    uint16_t bm0, bn0;   // queries and keys of a block
    uint16_t wm, wn, wk; // CPU: register tile; GPU: shape of a matrix product
    uint16_t dq, dv;     // head dims in products; 0: those of the call
    uint16_t max_q; // the most queries of a call, which are all in one tile, so that dq has no parts; 0: any number
    uint16_t is_ordered; // 1: deterministic calls add to dq in a fixed order, so that it has one part, too
} tessera_fmha_bwd_tile;

struct tessera_fmha_bwd_instance {
    tessera_instance base;
    tessera_fmha_bwd_tile tile;
    tessera_fmha_bwd_cpu_run *run; // CPU instances
    tessera_fmha_bwd_cpu_scratch *scratch_bytes;
    uint32_t shared_bytes; // NVIDIA GPU instances: of a workgroup, which the launch asks for
};

TESSERA_TABLE_CALLS(fmha_bwd)

#ifdef __cplusplus
}
#endif
#endif
