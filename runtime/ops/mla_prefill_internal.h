// SPDX-License-Identifier: MIT
// Declarations that the files of mla_prefill share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_MLA_PREFILL_INTERNAL_H
#define TESSERA_RUNTIME_OPS_MLA_PREFILL_INTERNAL_H

#include "ops/fmha_fwd_over_cache.h"
#include "tessera/kernel/mla_prefill.h"

struct tessera_mla_prefill_call {
    tessera_mla_prefill_traits traits;
    tessera_mla_prefill_args args;
    struct tessera_over_cache over; // the call of fmha_fwd that attends on CPUs, and what all devices check
};

// The call of fmha_fwd as if keys, without their rotated part, lay in no cache.
static inline struct tessera_fmha_fwd_call tessera_mla_prefill_attention(const struct tessera_mla_prefill_call *call) {
    struct tessera_fmha_fwd_call attention = call->over.attention;
    attention.cache = NULL;
    return attention;
}

// On AMD's GPUs (mla_prefill_cdna.c): estimated cycles, limits that other devices do not have, and the launch.
double tessera_mla_prefill_cdna_cost(const tessera_mla_prefill_instance *row,
                                     const struct tessera_fmha_fwd_shape *attention, int64_t units);
tessera_status tessera_mla_prefill_cdna_check(const tessera_mla_prefill_instance *row,
                                              const struct tessera_mla_prefill_call *call);
tessera_status tessera_mla_prefill_cdna_steps(const tessera_mla_prefill_instance *row,
                                              const struct tessera_mla_prefill_call *call, struct tessera_plan *plan);

#endif
