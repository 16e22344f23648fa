// SPDX-License-Identifier: MIT
// Finds where a sequence of a call begins and how long it is.
#include "ops/fmha_fwd_internal.h"

static int32_t logical_length(const int32_t *seqlen, const int32_t *cu_seqlen, int32_t b, int32_t physical) {
    if (seqlen) return seqlen[b];
    if (!cu_seqlen) return physical;
    return (int32_t)tessera_max(-1, tessera_min((int64_t)cu_seqlen[b + 1] - cu_seqlen[b], INT32_MAX));
}

struct tessera_fmha_fwd_sequence tessera_fmha_fwd_get_sequence(const struct tessera_fmha_fwd_call *call, int32_t b) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    struct tessera_fmha_fwd_sequence s = {.batch = b, .physical_q = a->seqlen_q, .physical_k = a->seqlen_k};
    if (group) {
        const int32_t *const q = a->seqstart_q_ptr, *const k = a->seqstart_k_ptr;
        s.token_q = q[b];
        s.token_k = k[b];
        s.physical_q = q[b + 1] - q[b];
        s.physical_k = k[b + 1] - k[b];
    }
    s.seqlen_q = logical_length(group ? a->seqlen_q_ptr : NULL, a->cu_seqlen_q_ptr, b, s.physical_q);
    s.seqlen_k = logical_length(group ? a->seqlen_k_ptr : NULL, a->cu_seqlen_k_ptr, b, s.physical_k);
    return s;
}
