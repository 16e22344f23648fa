// SPDX-License-Identifier: MIT
// The task of a workgroup: BM queries of one sequence and head, or, MERGED, BM rows that are queries of all heads of a
// key head, row = query * group + head. PAGED: keys may lie in a cache.
//
// Takes args, MERGED, PAGED, TRANSPOSES_HEADS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_TASK_H
#define TESSERA_DEVICE_ATTENTION_CDNA_TASK_H

#include "tessera/device/attention/cdna/head_order.h"
#include "tessera/device/attention/cdna/operands.h"
#include "tessera/device/attention/gpu/lengths.h"
#if MERGED
#include "tessera/kernel/fmha_fwd_cdna.h"
#endif

struct task {
    int head, head_k, batch; // query head and its key head, sequence
    int seqlen_q, seqlen_k;
    int first;                // the first query, or row
    int64_t token_q, token_k; // group mode: the sequence's first token
    int mask_y, mask_x;       // query i sees i - mask_y < j < i + mask_x
    int sink;                 // and also j < min(sink, i + mask_x), where i < seqlen_k
};

#if PAGED
// How many keys the list of a sequence's pages has, if pages are listed, but at most `most`.
INLINE int listed_keys(const args *a, int b, int most) {
    const struct tessera_fmha_fwd_cdna_args *const p = (const struct tessera_fmha_fwd_cdna_args *)a;
    if (!p->pages.begin) return most;
    const int pages = read_int(p->pages.begin, b + 1) - read_int(p->pages.begin, b);
    const int in_last = p->last ? read_int(p->last, b) : p->pages.page_size;
    return pages > 0 ? min_i32(most, (pages - 1) * p->pages.page_size + in_last) : 0;
}
#endif

INLINE void find_lengths(struct task *task, const args *a) {
    const int b = task->batch;
    if (a->seqstart_q) {
        const int tokens_k = !MERGED || a->seqstart_k; // keys in a cache have no tokens
        task->token_q = read_int(a->seqstart_q, b);
        if (tokens_k) task->token_k = read_int(a->seqstart_k, b);
        task->seqlen_q = read_int(a->seqstart_q, b + 1) - (int)task->token_q;
        if (tokens_k) task->seqlen_k = read_int(a->seqstart_k, b + 1) - (int)task->token_k;
    }
    task->seqlen_q = logical_length(a->seqlen_q_of, a->cu_seqlen_q, b, task->seqlen_q);
    task->seqlen_k = logical_length(a->seqlen_k_of, a->cu_seqlen_k, b, task->seqlen_k);
#if PAGED
    task->seqlen_k = listed_keys(a, b, task->seqlen_k);
#endif
}

INLINE void find_mask(struct task *task, const args *a) {
    const int shift = task->seqlen_q - task->seqlen_k;
    task->mask_y = a->mask_y + a->shift_y * shift;
    task->mask_x = a->mask_x - a->shift_x * shift;
    task->sink = task->mask_y < task->seqlen_q ? a->sink_size : 0;
}

#if MERGED
// Where a workgroup is in the grid that tessera/kernel/fmha_fwd_cdna.h describes.
INLINE int low_bits(int x, int count) { return x & ((1 << count) - 1); }
INLINE int sequence_of(const args *a) {
    const int log = ((const struct tessera_fmha_fwd_cdna_args *)a)->log_sequences;
    return (workgroup_z() << log) + low_bits(workgroup_x(), log);
}
INLINE int part_of_keys(const args *a) {
    const int log = ((const struct tessera_fmha_fwd_cdna_args *)a)->log_parts;
    return (workgroup_y() / a->blocks_q << log) + low_bits(workgroup_x(), log);
}
INLINE int is_outside(void) { // of what it reads nothing stays in registers
    const struct tessera_fmha_fwd_cdna_args *const p = (const struct tessera_fmha_fwd_cdna_args *)kernel_argument();
    return sequence_of(&p->call) >= p->sequences || part_of_keys(&p->call) >= p->parts;
}

INLINE struct task find_task(const args *a) {
    const struct tessera_fmha_fwd_cdna_args *const p = (const struct tessera_fmha_fwd_cdna_args *)a;
    const int head_k = workgroup_x() >> (p->log_sequences + p->log_parts), block = workgroup_y() % a->blocks_q;
    struct task task = {head_k * a->group, head_k, sequence_of(a), a->seqlen_q, a->seqlen_k, 0, 0, 0, 0, 0, 0};
    find_lengths(&task, a);
    task.first = BM * (a->blocks_q - 1 - block);
    find_mask(&task, a);
    return task;
}

INLINE int row_query(const args *a, int row) { return (int)((uint32_t)row / (uint32_t)a->group); }
INLINE int count_rows(const args *a, const struct task *task) { return task->seqlen_q * a->group; }
#else
INLINE int divide(int n, uint32_t over, uint32_t shift) { return (int)(multiply_high((uint32_t)n + 1, over) >> shift); }

// Hardware deals workgroups to the dies of a GPU in turns, x first. Query heads of one key head are `together` apart in
// x, so that each key head's K and V stay in one die's L2 where that is a multiple of the number of dies;
// TRANSPOSES_HEADS has another order (head_order.h).
INLINE struct task task_at(const args *a, int x, int y, int z) {
#if TRANSPOSES_HEADS
    const uint32_t group = (uint32_t)a->group, of_group = transposed_head((uint32_t)x, group, (uint32_t)a->together);
    const int key = (int)(of_group / group), member = (int)(of_group % group);
#else
    const int member = divide(x, a->over_together, a->shift_together), key = x - member * a->together;
#endif
    const int number = z * a->together + key, b = divide(number, a->over_nhead_k, a->shift_nhead_k);
    const int head_k = number - b * a->nhead_k, head = head_k * a->group + member;
    struct task task = {head, head_k, b, a->seqlen_q, a->seqlen_k, 0, 0, 0, 0, 0, 0};
    find_lengths(&task, a);
    task.first = BM * (a->blocks_q - 1 - y);
    find_mask(&task, a);
    return task;
}
INLINE struct task find_task(const args *a) { return task_at(a, workgroup_x(), workgroup_y(), workgroup_z()); }

// The y of the block that the workgroup takes in a turn, in a grid of one turn: there and back, so that workgroups have
// as much to do where a mask lets blocks differ. Where turns do not divide blocks_q it may be none.
INLINE int block_of_turn(const args *a, int turn) {
    const int rows = a->rows;
    return turn % 2 ? (turn + 1) * rows - 1 - workgroup_y() : turn * rows + workgroup_y();
}

INLINE int row_query(const args *a, int row) {
    (void)a;
    return row;
}
INLINE int count_rows(const args *a, const struct task *task) {
    (void)a;
    return task->seqlen_q;
}
#endif

// Element (query task->first, 0) of a tensor of queries, and element (key `key`, 0) of a tensor of keys.
INLINE int64_t query_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head * nhead_stride + (task->token_q + task->first) * stride;
}
INLINE int64_t key_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head_k * nhead_stride + task->token_k * stride;
}

#endif
