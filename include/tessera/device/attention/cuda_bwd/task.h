// SPDX-License-Identifier: MIT
// A task: BN keys of one sequence, and the queries of one head, or of all heads that share the keys, that see any of
// them.
//
// Takes launch, GENERAL.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_TASK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_TASK_H

#include "tessera/device/attention/cuda_bwd/pipe.h"

#include "tessera/device/common/cuda/reads.h"

#include "tessera/device/attention/gpu/backward.h"

// 64 bytes, which the producing warp hands to the others.
struct task {
    int head, head_k, batch; // first query head, key head, sequence
    int first;               // the first key; below 0: there are no more tasks
    int seqlen_q, seqlen_k;  // logical lengths
    int token_q, token_k;    // group mode: the sequence's first tokens
    int mask_y, mask_x;      // query i sees i - mask_y < j < i + mask_x
    int sink;                // and also j < min(sink, i + mask_x), where i < seqlen_k
    int begin, tiles;        // of queries of each head, the first one and how many
    int steps;               // tiles of all heads of the task
    int end_before;          // of the queries of the block of keys before
    int unused;
};

// Whether keys have tiles of queries that do not see them, too: gradients of a bias and bytes of dropout are stored for
// all.
INLINE int has_all_queries(const launch *a) {
    return GENERAL && (a->call.dbias || a->call.features & TESSERA_GPU_RANDVAL);
}

// The end of the queries of the block whose first key is `first`.
INLINE int end_of_queries(const struct task *task, const launch *a, int first) {
    const int last = min_i32(first + BN, task->seqlen_k) - 1;
    int end = last + task->mask_y;
    if (first < task->sink) end = max_i32(end, task->seqlen_k);
    return has_all_queries(a) ? task->seqlen_q : min_i32(end, task->seqlen_q);
}

INLINE void find_tiles(struct task *task, const launch *a) {
    const int begin = has_all_queries(a) ? 0 : max_i32(0, task->first - task->mask_x + 1);
    const int end = end_of_queries(task, a, task->first);
    task->begin = begin / BM;
    task->tiles = max_i32(0, (max_i32(end, 0) + BM - 1) / BM - task->begin);
    task->steps = task->tiles * a->call.dkv_group;
    task->end_before = task->first > 0 ? end_of_queries(task, a, task->first - BN) : 0;
}

// A task's head of dk, counted over sequences, and block of keys.
struct number {
    int head, block;
};
INLINE struct number split_number(const launch *a, int number) {
    const int blocks = a->call.blocks_k, together = a->heads_together, all = a->tasks / blocks;
    const int group = number / (together * blocks), rest = number - group * together * blocks;
    const int heads = min_i32(together, all - group * together), block = rest / heads;
    return (struct number){group * together + rest - block * heads, block};
}

// Finds task number `number`; returns whether there is anything to do.
INLINE int find_task(struct task *task, const launch *a, int number) {
    const struct number at = split_number(a, number);
    const int head = at.head % a->heads;
    const struct sequence s = find_sequence(&a->call, at.head / a->heads);
    const int shift = s.seqlen_q - s.seqlen_k;
    task->batch = s.batch;
    task->head = head * a->call.dkv_group;
    task->head_k = task->head / a->call.group;
    task->first = BN * at.block;
    task->seqlen_q = s.seqlen_q;
    task->seqlen_k = s.seqlen_k;
    task->token_q = (int)s.token_q;
    task->token_k = (int)s.token_k;
    task->mask_y = a->call.mask_y + a->call.shift_y * shift;
    task->mask_x = a->call.mask_x - a->call.shift_x * shift;
    task->sink = task->mask_y < task->seqlen_q ? a->call.sink_size : 0;
    find_tiles(task, a);
    return task->first < s.seqlen_k;
}

// Hands a task over, by one lane.
INLINE void put_task(uint32_t at, const struct task *task) {
    typedef struct {
        u32x4 of[4];
    } words;
    const words x = SAME_BITS(words, *task);
    UNROLL
    for (int i = 0; i < 4; i++) shared_store_16(at + 16 * i, x.of[i]);
}
INLINE void get_task(uint32_t at, struct task *task) {
    u32x4 x[4];
    UNROLL
    for (int i = 0; i < 4; i++) x[i] = shared_load_16(at + 16 * i);
    *task = SAME_BITS(struct task, x);
}

// The number of the next task: from a counter that all share, or dealt out.
INLINE int next_number(const launch *a, int round) {
    const int workgroups = workgroup_count();
    if (round == 0) return workgroup_x();
    if (a->counter) return workgroups + take_number(a->counter);
    return round * workgroups + workgroup_x();
}

INLINE int next_task(struct task *task, const launch *a, int *round) {
    int number;
    do number = next_number(a, (*round)++);
    while ((uint32_t)number < (uint32_t)a->tasks && !find_task(task, a, number));
    return (uint32_t)number < (uint32_t)a->tasks;
}

// Hands task number n of the workgroup, or the end, to all warps; returns whether it is a task. It is found when the
// one before comes to its end, so that workgroups take numbers in the order in which they begin.
INLINE int deal_task(const launch *a, uint32_t base, uint32_t n, int *round) {
    const struct place place = task_place(base, n);
    struct task task;
    if (n > 0) wait_for(base + AT_LATE, (n - 1) % 2);
    wait_until_empty(place);
    if (!next_task(&task, a, round)) task.first = -1;
    if (lane_id() == 0) {
        put_task(place.at, &task);
        arrive(place.full);
    }
    return task.first >= 0;
}

// A number of a task in shared memory; the same for the compiler to know that it is the same in all lanes.
#define TASK_FIELD_OF_LANE(at, name) ((int)shared_load_4((at) + OFFSET_OF(struct task, name)))
#define TASK_FIELD(at, name) of_first_lane(TASK_FIELD_OF_LANE(at, name))

// Waits for task number n, which stays where it is until release(). Returns whether there is one.
INLINE int await_task(uint32_t base, uint32_t n) {
    const struct place place = task_place(base, n);
    wait_until_full(place);
    return TASK_FIELD(place.at, first) >= 0;
}

// The first query of a step of one of a task's heads. The last tiles come first: under any mask they are those that the
// blocks of keys before come to first, too, on whose sums of dq a task waits where it adds to them by turns.
INLINE int query_of(uint32_t task_at, int tile) {
    return (TASK_FIELD(task_at, begin) + TASK_FIELD(task_at, tiles) - 1 - tile) * BM;
}

// Element (head, query, 0) of a tensor of queries, and element (key 0, 0) of a tensor of keys.
INLINE int64_t query_element(const struct task *task, int head, int query, int64_t batch_stride, int64_t nhead_stride,
                             int64_t stride) {
    return task->batch * batch_stride + head * nhead_stride + (int64_t)(task->token_q + query) * stride;
}
INLINE int64_t key_element(const struct task *task, int head, int64_t batch_stride, int64_t nhead_stride,
                           int64_t stride) {
    return task->batch * batch_stride + head * nhead_stride + (int64_t)(task->token_k + task->first) * stride;
}

#endif
