// SPDX-License-Identifier: MIT
// A task: BM queries of one sequence and head, and the tiles of keys that any of them sees.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TASK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TASK_H

#include "tessera/device/attention/cuda/sizes.h"

// 64 bytes, which the producing warp hands to the others.
struct task {
    int head, head_k, batch; // query head and its key head, sequence
    int first;               // the first query; below 0: there are no more tasks
    int seqlen_q, seqlen_k;  // logical lengths
    int token_q, token_k;    // group mode: the sequence's first tokens
    int mask_y, mask_x;      // query i sees i - mask_y < j < i + mask_x
    int sink;                // and also j < min(sink, i + mask_x), where i < seqlen_k
    int tiles;               // that any query sees: the first `sink_tiles`, and others from tile `begin` on
    int begin, sink_tiles;
    int unused[2];
};

INLINE int logical_length(const int32_t *lengths, const int32_t *cumulative, int b, int physical) {
    if (lengths) return min_i32(physical, lengths[b]);
    if (cumulative) return min_i32(physical, cumulative[b + 1] - cumulative[b]);
    return physical;
}

INLINE void find_lengths(struct task *task, const args *a) {
    const int b = task->batch;
    task->token_q = task->token_k = 0;
    task->seqlen_q = a->call.seqlen_q;
    task->seqlen_k = a->call.seqlen_k;
    if (a->call.seqstart_q) {
        task->token_q = a->call.seqstart_q[b];
        task->token_k = a->call.seqstart_k[b];
        task->seqlen_q = a->call.seqstart_q[b + 1] - task->token_q;
        task->seqlen_k = a->call.seqstart_k[b + 1] - task->token_k;
    }
    task->seqlen_q = logical_length(a->call.seqlen_q_of, a->call.cu_seqlen_q, b, task->seqlen_q);
    task->seqlen_k = logical_length(a->call.seqlen_k_of, a->call.cu_seqlen_k, b, task->seqlen_k);
}

INLINE void find_tiles(struct task *task, const args *a) {
    const int last = min_i32(task->first + BM, task->seqlen_q) - 1;
    const int all = a->call.features & TESSERA_GPU_RANDVAL; // bytes of dropout are stored for hidden keys too
    const int end = all ? task->seqlen_k : min_i32(task->seqlen_k, last + task->mask_x);
    const int sink_end = task->first < task->seqlen_k ? min_i32(task->sink, end) : 0;
    task->begin = all ? 0 : max_i32(0, task->first - task->mask_y + 1) / BN;
    task->sink_tiles = min_i32((max_i32(sink_end, 0) + BN - 1) / BN, task->begin);
    task->tiles = task->sink_tiles + max_i32((max_i32(end, 0) + BN - 1) / BN - task->begin, 0);
}

// The first key of tile i of those that the task sees.
INLINE int tile_key(const struct task *task, int i) {
    return BN * (i < task->sink_tiles ? i : i - task->sink_tiles + task->begin);
}

// Finds task number `number`; returns whether it has queries.
INLINE int find_task(struct task *task, const args *a, int number) {
    const int blocks = a->call.blocks_q, together = a->heads_together, nhead_q = a->call.nhead_q;
    const int group = number / (together * blocks), rest = number - group * together * blocks;
    const int heads = min_i32(together, nhead_q * (a->tasks / (nhead_q * blocks)) - group * together);
    const int before = rest / heads, head = group * together + rest - before * heads;
    task->batch = head / nhead_q;
    task->head = head - task->batch * nhead_q;
    task->head_k = task->head / a->call.group;
    task->first = BM * (blocks - 1 - before);
    find_lengths(task, a);
    const int shift = task->seqlen_q - task->seqlen_k;
    task->mask_y = a->call.mask_y + a->call.shift_y * shift;
    task->mask_x = a->call.mask_x - a->call.shift_x * shift;
    task->sink = task->mask_y < task->seqlen_q ? a->call.sink_size : 0;
    find_tiles(task, a);
    return task->first < task->seqlen_q && task->seqlen_q > a->call.min_seqlen_q;
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

// The query of the thread's first row.
INLINE int thread_query(const struct task *task) {
    return task->first + 64 * (thread_id() / WARPGROUP - 1) + thread_row();
}

// What a warpgroup that computes keeps of a task. Keys of tiles that begin at `begin` or behind and end at `end` or
// before are all seen by all of its queries.
struct walk {
    int tile;            // of the task's tiles, the current one
    int gap, sink_tiles; // keys between the first `sink_tiles` tiles and the others
    int begin, end;
};

INLINE struct walk find_walk(const struct task *task) {
    const int first = task->first + 64 * (thread_id() / WARPGROUP - 1), last = min_i32(first + 64, task->seqlen_q) - 1;
    return (struct walk){of_first_lane(task->tiles - 1), of_first_lane(BN * (task->begin - task->sink_tiles)),
                         of_first_lane(task->sink_tiles), of_first_lane(last - task->mask_y + 1),
                         of_first_lane(min_i32(task->seqlen_k, first + task->mask_x))};
}
INLINE int walk_key(const struct walk *walk) {
    return BN * walk->tile + (walk->tile < walk->sink_tiles ? 0 : walk->gap);
}
INLINE int is_whole(const struct walk *walk, int key) { return key >= walk->begin && key + BN <= walk->end; }

// How many tiles, from the current one on, all queries see whole.
INLINE int count_whole(const struct walk *walk) {
    const int first = max_i32(walk->sink_tiles, (walk->begin - walk->gap + BN - 1) / BN);
    return is_whole(walk, walk_key(walk)) && walk->tile >= walk->sink_tiles ? walk->tile - first + 1 : 0;
}

// Element (query task->first, 0) of a tensor of queries, and element (key 0, 0) of a tensor of keys.
INLINE int64_t query_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head * nhead_stride + (int64_t)(task->token_q + task->first) * stride;
}
INLINE int64_t key_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head_k * nhead_stride + task->token_k * stride;
}

#endif
