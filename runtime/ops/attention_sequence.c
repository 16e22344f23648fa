// SPDX-License-Identifier: MIT
// Finds where a sequence of a call begins and how long it is, and what its queries see.
#include "integers.h"
#include "ops/attention.h"

static int32_t logical_length(const int32_t *seqlen, const int32_t *cu_seqlen, int32_t b, int32_t physical) {
    if (seqlen) return seqlen[b];
    if (!cu_seqlen) return physical;
    return (int32_t)tessera_max(-1, tessera_min((int64_t)cu_seqlen[b + 1] - cu_seqlen[b], INT32_MAX));
}

struct tessera_attention_sequence tessera_attention_get_sequence(const struct tessera_attention_lengths *l, int32_t b) {
    struct tessera_attention_sequence s = {.batch = b, .physical_q = l->seqlen_q, .physical_k = l->seqlen_k};
    if (l->is_group_mode) {
        s.token_q = l->seqstart_q[b];
        s.token_k = l->seqstart_k[b];
        s.physical_q = l->seqstart_q[b + 1] - l->seqstart_q[b];
        s.physical_k = l->seqstart_k[b + 1] - l->seqstart_k[b];
    }
    s.seqlen_q = logical_length(l->is_group_mode ? l->seqlen_q_ptr : NULL, l->cu_seqlen_q, b, s.physical_q);
    s.seqlen_k = logical_length(l->is_group_mode ? l->seqlen_k_ptr : NULL, l->cu_seqlen_k, b, s.physical_k);
    return s;
}

static int32_t clamp(int64_t value) {
    return (int32_t)tessera_max(-TESSERA_ATTENTION_MAX_SEQLEN, tessera_min(value, TESSERA_ATTENTION_MAX_SEQLEN));
}

struct tessera_attention_mask tessera_attention_get_mask(tessera_mask type, int32_t left, int32_t right,
                                                         int32_t sink_size,
                                                         const struct tessera_attention_sequence *s) {
    const int64_t shift = (int64_t)s->seqlen_k - s->seqlen_q;
    const int64_t edge = type == TESSERA_MASK_GENERIC ? 0 : 1, moved = type == TESSERA_MASK_BOTTOM_RIGHT ? shift : 0;
    struct tessera_attention_mask mask;
    mask.mask_y = type == TESSERA_MASK_NONE || left < 0 ? TESSERA_ATTENTION_MAX_SEQLEN : clamp(edge + left - moved);
    mask.mask_x = type == TESSERA_MASK_NONE || right < 0 ? TESSERA_ATTENTION_MAX_SEQLEN : clamp(edge + right + moved);
    mask.sink = mask.mask_y < s->seqlen_q ? sink_size : 0;
    mask.alibi_vertical = type != TESSERA_MASK_NONE && left < 0 && right == 0;
    mask.alibi_shift = type == TESSERA_MASK_TOP_LEFT || type == TESSERA_MASK_GENERIC ? 0 : clamp(shift);
    return mask;
}
