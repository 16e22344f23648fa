// SPDX-License-Identifier: MIT
// Finds where a sequence of a call begins and how long it is.
#include "ops/fmha_fwd_internal.h"

struct tessera_attention_lengths tessera_fmha_fwd_get_lengths(const struct tessera_fmha_fwd_call *call) {
    struct tessera_attention_lengths lengths = TESSERA_ATTENTION_LENGTHS(&call->traits, &call->args);
    lengths.is_cached = call->cache != NULL;
    return lengths;
}

struct tessera_attention_sequence tessera_fmha_fwd_get_sequence(const struct tessera_fmha_fwd_call *call, int32_t b) {
    const struct tessera_attention_lengths lengths = tessera_fmha_fwd_get_lengths(call);
    struct tessera_attention_sequence s = tessera_attention_get_sequence(&lengths, b);
    if (call->cache) tessera_attention_set_keys(call->cache, &s);
    return s;
}
