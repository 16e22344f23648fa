// SPDX-License-Identifier: MIT
// Finds where a sequence of a call begins and how long it is.
#include "ops/fmha_fwd_internal.h"

struct tessera_attention_sequence tessera_fmha_fwd_get_sequence(const struct tessera_fmha_fwd_call *call, int32_t b) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct tessera_attention_lengths lengths = {
        .is_group_mode = call->traits.is_group_mode,
        .seqlen_q = a->seqlen_q,
        .seqlen_k = a->seqlen_k,
        .seqstart_q = a->seqstart_q_ptr,
        .seqstart_k = a->seqstart_k_ptr,
        .seqlen_q_ptr = a->seqlen_q_ptr,
        .seqlen_k_ptr = a->seqlen_k_ptr,
        .cu_seqlen_q = a->cu_seqlen_q_ptr,
        .cu_seqlen_k = a->cu_seqlen_k_ptr,
    };
    return tessera_attention_get_sequence(&lengths, b);
}
