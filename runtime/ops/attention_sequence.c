// SPDX-License-Identifier: MIT
// Finds where a sequence of a call begins and how long it is, and what its queries see.
#include "guard.h"
#include "integers.h"
#include "ops/attention.h"

void tessera_attention_add_lengths(const struct tessera_attention_lengths *l, int32_t batch,
                                   struct tessera_tensors *all) {
    const bool group = l->is_group_mode, seqlen_q = group && l->seqlen_q_ptr, seqlen_k = group && l->seqlen_k_ptr;
    const int64_t bounds = (int64_t)batch + 1;
    if (group) tessera_add_array(all, "seqstart_q_ptr", l->seqstart_q, 32, bounds);
    if (group && !l->is_cached) tessera_add_array(all, "seqstart_k_ptr", l->seqstart_k, 32, bounds);
    if (seqlen_q) tessera_add_array(all, "seqlen_q_ptr", l->seqlen_q_ptr, 32, batch);
    if (seqlen_k) tessera_add_array(all, "seqlen_k_ptr", l->seqlen_k_ptr, 32, batch);
    if (l->cu_seqlen_q && !seqlen_q) tessera_add_array(all, "cu_seqlen_q_ptr", l->cu_seqlen_q, 32, bounds);
    if (l->cu_seqlen_k && !seqlen_k) tessera_add_array(all, "cu_seqlen_k_ptr", l->cu_seqlen_k, 32, bounds);
}

static int32_t logical_length(const int32_t *seqlen, const int32_t *cu_seqlen, int32_t b, int32_t physical) {
    if (seqlen) return seqlen[b];
    if (!cu_seqlen) return physical;
    return (int32_t)tessera_max(-1, tessera_min((int64_t)cu_seqlen[b + 1] - cu_seqlen[b], INT32_MAX));
}

struct tessera_attention_sequence tessera_attention_get_sequence(const struct tessera_attention_lengths *l, int32_t b) {
    struct tessera_attention_sequence s = {.batch = b, .physical_q = l->seqlen_q, .physical_k = l->seqlen_k};
    if (l->is_group_mode) {
        s.token_q = l->seqstart_q[b];
        s.physical_q = l->seqstart_q[b + 1] - l->seqstart_q[b];
    }
    if (l->is_group_mode && !l->is_cached) {
        s.token_k = l->seqstart_k[b];
        s.physical_k = l->seqstart_k[b + 1] - l->seqstart_k[b];
    }
    s.seqlen_q = logical_length(l->is_group_mode ? l->seqlen_q_ptr : NULL, l->cu_seqlen_q, b, s.physical_q);
    s.seqlen_k = logical_length(l->is_group_mode ? l->seqlen_k_ptr : NULL, l->cu_seqlen_k, b, s.physical_k);
    return s;
}

tessera_status tessera_attention_check_room(const struct tessera_attention_sequence *s) {
    GUARD(within(s->seqlen_q, 0, s->physical_q), "sequence %d has %d queries: 0 to its room of %d", s->batch,
          s->seqlen_q, s->physical_q);
    GUARD(within(s->seqlen_k, 0, s->physical_k), "sequence %d has %d keys: 0 to its room of %d", s->batch, s->seqlen_k,
          s->physical_k);
    return TESSERA_SUCCESS;
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
