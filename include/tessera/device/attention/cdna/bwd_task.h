// SPDX-License-Identifier: MIT
// Backward: the task of a workgroup: BN keys of a sequence and head of dk, against all queries that may see them.
//
// HEADS_FIRST: of workgroups that follow on one another each has another head, so that heads share what an XCD's L2
// holds, and under a mask those with the most queries, which have the first keys, begin first.
//
// Takes BM, BN, WAVES, TASK_BYTES, HEADS_FIRST.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_TASK_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_TASK_H

#include "tessera/device/common/cdna/buffers.h"

#include "tessera/device/attention/gpu/backward.h"

// What queries of a sequence see: i sees i - mask_y < j < i + mask_x, and, where i < seqlen_k, j < min(sink, i +
// mask_x).
struct sight {
    int seqlen_q, seqlen_k;
    int mask_y, mask_x, sink;
};

struct task {
    struct sequence of;
    struct sight sight;
    int head_dk; // of dk and dv
    int head;    // query head
    int first;   // key
    int part;    // of dq
};

INLINE int count_tasks(const args *a) {
    if (!a->share) return 1;
    const int heads = a->nhead_q / a->dkv_group, all = a->batch * heads * a->blocks_k;
    return min_i32((int)a->share, all - workgroup_x() * (int)a->share);
}

// Task `number` of the workgroup, with the first query head.
INLINE struct task find_task(const args *a, int number) {
    const uint32_t heads = (uint32_t)(a->nhead_q / a->dkv_group);
    int block = workgroup_x(), head = workgroup_y(), batch = workgroup_z(), part = 0;
    if (a->share) {
        const uint32_t job = (uint32_t)(workgroup_x() * (int)a->share + number), blocks = (uint32_t)a->blocks_k;
        const uint32_t heads_before = job / blocks;
        part = uniform(workgroup_x() - (int)(heads_before * blocks / (uint32_t)a->share));
        block = uniform((int)(job - heads_before * blocks));
        batch = uniform((int)(heads_before / heads));
        head = uniform((int)(heads_before % heads));
    } else if (HEADS_FIRST) {
        const uint32_t job = (uint32_t)(block + head * a->blocks_k);
        block = uniform((int)(job / heads));
        head = uniform((int)(job % heads));
    }
    if (a->is_dq_stored) part = block;
    const struct sequence of = find_sequence(a, batch);
    const int shift = of.seqlen_q - of.seqlen_k, mask_y = a->mask_y + a->shift_y * shift;
    const struct sight sight = {of.seqlen_q, of.seqlen_k, mask_y, a->mask_x - a->shift_x * shift,
                                mask_y < of.seqlen_q ? a->sink_size : 0};
    const struct task task = {of, sight, head, head * a->dkv_group, block * BN, part};
    return task;
}

// ---- the task of the wave
//
// Each wave keeps its own in LDS, so that none waits for another: there code that seldom runs, or once for each head,
// reads what it needs. Kept in registers it would take scalars from the loop, and found anew each time as long again to
// compile.

union kept_task {
    struct task task;
    int words[sizeof(struct task) / 4];
};
_Static_assert(sizeof(union kept_task) == TASK_BYTES, "LDS of a tile is counted with so many for a wave");
LDS union kept_task tasks_of_waves[WAVES];

INLINE void keep_task(const struct task *task) { tasks_of_waves[wave_id()].task = *task; }
INLINE struct task kept_task(void) {
    union kept_task kept;
    UNROLL
    for (unsigned n = 0; n < sizeof(kept) / 4; n++) kept.words[n] = uniform(tasks_of_waves[wave_id()].words[n]);
    return kept.task;
}
// On to the next query head of those that the task sums over, if there is one.
INLINE int next_head(void) {
    const struct task task = kept_task();
    const int next = task.head + 1;
    tasks_of_waves[wave_id()].task.head = next;
    return next < (task.head_dk + 1) * ((const args *)kernel_argument())->dkv_group;
}

// Whether it has keys, or a part of dq that it must write.
INLINE int has_work(const args *a, const struct task *task) {
    return task->first < task->sight.seqlen_k || (a->is_dq_stored_all && task->first < task->of.physical_k);
}

// The queries `begin` to `end` - 1 that see one of the keys `first` to `last`.
struct span {
    int begin, end;
};
INLINE struct span queries_of_keys(const struct sight *s, int first, int last) {
    const int end = min_i32(last + s->mask_y, s->seqlen_q), end_of_sink = min_i32(s->seqlen_k, s->seqlen_q);
    const struct span span = {max_i32(first - s->mask_x + 1, 0), first < s->sink ? max_i32(end, end_of_sink) : end};
    return span;
}

// The tiles of queries: all of them where something is stored of every pair, or every row of a part of dq.
INLINE struct span find_tiles(const args *a, const struct task *task) {
    const int last = min_i32(task->first + BN, task->sight.seqlen_k) - 1;
    const int all = a->features & TESSERA_GPU_RANDVAL || a->dbias || a->is_dq_stored_all;
    struct span s = queries_of_keys(&task->sight, task->first, last);
    if (all) s.begin = 0, s.end = task->sight.seqlen_q;
    s.begin = s.begin / BM * BM;
    return s;
}

// Element (query, 0) of the task's head in a tensor of queries.
INLINE int64_t query_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride,
                             int query) {
    return element_of(task->of.batch, batch_stride, task->head, nhead_stride, task->of.token_q + query, stride);
}
// Element (first key, 0) of a head in a tensor of keys.
INLINE int64_t key_element(const struct task *task, int head, int64_t batch_stride, int64_t nhead_stride,
                           int64_t stride) {
    return element_of(task->of.batch, batch_stride, head, nhead_stride, task->of.token_k + task->first, stride);
}

#endif
