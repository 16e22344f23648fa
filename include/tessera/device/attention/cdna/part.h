// SPDX-License-Identifier: MIT
// A workgroup's part of the problem.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_PART_H
#define TESSERA_DEVICE_ATTENTION_CDNA_PART_H

#include "tessera/device/attention/cdna/operands.h"

struct part {
    int head, head_k, batch; // query head and its key head, sequence
    int seqlen_q, seqlen_k;
    int first;                // query
    int64_t token_q, token_k; // group mode: the sequence's first
    int mask_y, mask_x;       // query i sees i - mask_y < j < i + mask_x
    int sink;                 // and j < min(sink, i + mask_x), where i < seqlen_k
};

INLINE int logical_length(const int32_t *lengths, const int32_t *cumulative, int b, int physical) {
    if (lengths) return min_i32(physical, read_int(lengths, b));
    if (cumulative) return min_i32(physical, read_int(cumulative, b + 1) - read_int(cumulative, b));
    return physical;
}

// Workgroups go to the dies of a GPU in turns, x first: the query heads of a key head are nhead_k apart, so that where
// nhead_k is a multiple of the dies each key head's K and V stay in one die's L2.
INLINE struct part find_part(const args *a) {
    const int x = workgroup_x(), b = workgroup_z();
    const int member = (int)multiply_high((uint32_t)x + 1, a->over_nhead_k), head_k = x - member * a->nhead_k;
    struct part p = {head_k * a->group + member, head_k, b, a->seqlen_q, a->seqlen_k, 0, 0, 0, 0, 0, 0};
    if (a->seqstart_q) {
        p.token_q = read_int(a->seqstart_q, b);
        p.token_k = read_int(a->seqstart_k, b);
        p.seqlen_q = read_int(a->seqstart_q, b + 1) - (int)p.token_q;
        p.seqlen_k = read_int(a->seqstart_k, b + 1) - (int)p.token_k;
    }
    p.seqlen_q = logical_length(a->seqlen_q_of, a->cu_seqlen_q, b, p.seqlen_q);
    p.seqlen_k = logical_length(a->seqlen_k_of, a->cu_seqlen_k, b, p.seqlen_k);
    p.first = BM * (a->blocks_q - 1 - workgroup_y());
    const int shift = p.seqlen_q - p.seqlen_k;
    p.mask_y = a->mask_y + a->shift_y * shift;
    p.mask_x = a->mask_x - a->shift_x * shift;
    p.sink = p.mask_y < p.seqlen_q ? a->sink_size : 0;
    return p;
}

// Element (query p->first, 0) of a tensor of queries, and element (key `key`, 0) of a tensor of keys.
INLINE int64_t query_element(const struct part *p, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return p->batch * batch_stride + p->head * nhead_stride + (p->token_q + p->first) * stride;
}
INLINE int64_t key_element(const struct part *p, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return p->batch * batch_stride + p->head_k * nhead_stride + p->token_k * stride;
}

#endif
