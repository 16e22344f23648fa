// SPDX-License-Identifier: MIT
// Backward: where a sequence of a call begins and how long it is, and where its parts of dq are.
//
// Takes read_int, read_i64.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_BACKWARD_H
#define TESSERA_DEVICE_ATTENTION_GPU_BACKWARD_H

#include "tessera/device/attention/gpu/lengths.h"
#include "tessera/kernel/fmha_bwd_gpu.h"

typedef struct tessera_fmha_bwd_gpu_args args;

struct sequence {
    int batch;
    int seqlen_q, seqlen_k;     // logical lengths
    int physical_q, physical_k; // room that the tensors have for them
    int64_t token_q, token_k;   // group mode: the sequence's first token
};

INLINE struct sequence find_sequence(const args *a, int b) {
    struct sequence s = {b, 0, 0, a->seqlen_q, a->seqlen_k, 0, 0};
    if (a->seqstart_q) {
        s.token_q = read_int(a->seqstart_q, b);
        s.token_k = read_int(a->seqstart_k, b);
        s.physical_q = read_int(a->seqstart_q, b + 1) - (int)s.token_q;
        s.physical_k = read_int(a->seqstart_k, b + 1) - (int)s.token_k;
    }
    s.seqlen_q = logical_length(a->seqlen_q_of, a->cu_seqlen_q, b, s.physical_q);
    s.seqlen_k = logical_length(a->seqlen_k_of, a->cu_seqlen_k, b, s.physical_k);
    return s;
}

// Element (token, 0) of a head in a tensor. Numbers that are not negative, times strides, which may be: as unsigned
// ones they are multiplied by half as many instructions.
INLINE int64_t element_of(int batch, int64_t batch_stride, int head, int64_t nhead_stride, int64_t token,
                          int64_t stride) {
    return (int64_t)((uint32_t)batch * (uint64_t)batch_stride + (uint32_t)head * (uint64_t)nhead_stride +
                     (uint32_t)token * (uint64_t)stride);
}

// The parts of dq of a head, one after the other: [parts][queries with padding][hdim_q].
struct dq_parts {
    float *first;
    int64_t stride; // to the next part
    int count;
};
INLINE struct dq_parts find_dq_parts(const args *a, const struct sequence *s, int head) {
    const int count = read_int(a->nsplits, a->is_by_sequence ? s->batch : 0);
    const int64_t stride = (int64_t)s->physical_q * a->hdim_q;
    const int64_t begin =
        a->dq_acc_offsets ? read_i64(a->dq_acc_offsets, s->batch) : s->batch * a->nhead_q * count * stride;
    const struct dq_parts parts = {a->dq_acc + begin + head * count * stride, stride, count};
    return parts;
}

#endif
