// SPDX-License-Identifier: MIT
// The task of a workgroup: BM queries of one sequence and head.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_TASK_H
#define TESSERA_DEVICE_ATTENTION_CDNA_TASK_H

#include "tessera/device/attention/cdna/operands.h"

struct task {
    int head, head_k, batch; // query head and its key head, sequence
    int seqlen_q, seqlen_k;
    int first;                // the first query
    int64_t token_q, token_k; // group mode: the sequence's first token
    int mask_y, mask_x;       // query i sees i - mask_y < j < i + mask_x
    int sink;                 // and also j < min(sink, i + mask_x), where i < seqlen_k
};

INLINE int logical_length(const int32_t *lengths, const int32_t *cumulative, int b, int physical) {
    if (lengths) return min_i32(physical, read_int(lengths, b));
    if (cumulative) return min_i32(physical, read_int(cumulative, b + 1) - read_int(cumulative, b));
    return physical;
}

// Hardware deals workgroups to the dies of a GPU in turns, x first. Query heads of one key head are nhead_k apart in x,
// so that each key head's K and V stay in one die's L2 where nhead_k is a multiple of the number of dies.
INLINE struct task find_task(const args *a) {
    const int x = workgroup_x(), b = workgroup_z();
    const int member = (int)multiply_high((uint32_t)x + 1, a->over_nhead_k), head_k = x - member * a->nhead_k;
    struct task task = {head_k * a->group + member, head_k, b, a->seqlen_q, a->seqlen_k, 0, 0, 0, 0, 0, 0};
    if (a->seqstart_q) {
        task.token_q = read_int(a->seqstart_q, b);
        task.token_k = read_int(a->seqstart_k, b);
        task.seqlen_q = read_int(a->seqstart_q, b + 1) - (int)task.token_q;
        task.seqlen_k = read_int(a->seqstart_k, b + 1) - (int)task.token_k;
    }
    task.seqlen_q = logical_length(a->seqlen_q_of, a->cu_seqlen_q, b, task.seqlen_q);
    task.seqlen_k = logical_length(a->seqlen_k_of, a->cu_seqlen_k, b, task.seqlen_k);
    task.first = BM * (a->blocks_q - 1 - workgroup_y());
    const int shift = task.seqlen_q - task.seqlen_k;
    task.mask_y = a->mask_y + a->shift_y * shift;
    task.mask_x = a->mask_x - a->shift_x * shift;
    task.sink = task.mask_y < task.seqlen_q ? a->sink_size : 0;
    return task;
}

// Element (query task->first, 0) of a tensor of queries, and element (key `key`, 0) of a tensor of keys.
INLINE int64_t query_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head * nhead_stride + (task->token_q + task->first) * stride;
}
INLINE int64_t key_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head_k * nhead_stride + task->token_k * stride;
}

#endif
