// SPDX-License-Identifier: MIT
// A task: BM rows of one sequence, or with STRIPS perhaps a warpgroup's ROWS of them, and the tiles of keys that any of
// them sees. Rows are the queries of a head; where they are MERGED they are those of all query heads of a key head,
// query by query, and a task may have a part of the tiles, and the rows of HEADS key heads.
//
// Takes args, BM, BN, STRIPS, MERGED, HEADS, PAGED, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TASK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TASK_H

#include "tessera/device/attention/cuda/share.h"
#include "tessera/device/common/cuda/reads.h"

#include "tessera/device/attention/gpu/lengths.h"

// 64 bytes, which the producing warp hands to the others.
struct task {
    int head, head_k, batch; // query head (MERGED: the first) and its key head (of HEADS the first), sequence
    int first;               // the first row; below 0: there are no more tasks
    int seqlen_q, seqlen_k;  // logical lengths
    int token_q, token_k;    // group mode: the sequence's first tokens
    int mask_y, mask_x;      // query i sees i - mask_y < j < i + mask_x
    int sink;                // and also j < min(sink, i + mask_x), where i < seqlen_k
    int tiles;               // that any query sees: the first `sink_tiles`, and others from tile `begin` on
    int begin, sink_tiles;
#if MERGED
    int part, from; // the number of its part of the tiles, and the first of them
#else
    int rows;   // that it has at most
    int paired; // with PAIRS, whether the cluster's other workgroup has a task of the same keys
#endif
};

// ---- rows

#if MERGED
INLINE int row_query(const args *a, int row) { return row / a->call.group; }
INLINE int row_head(const args *a, const struct task *task, int row) { return task->head + row % a->call.group; }
INLINE int count_rows(const args *a, const struct task *task) { return task->seqlen_q * a->call.group; }
INLINE int first_tile(const struct task *task) { return task->from; }
INLINE int most_rows(const struct task *task) {
    (void)task;
    return BM;
}
INLINE int is_paired(const struct task *task) {
    (void)task;
    return 0;
}
#else
INLINE int row_query(const args *a, int row) {
    (void)a;
    return row;
}
INLINE int row_head(const args *a, const struct task *task, int row) {
    (void)a, (void)row;
    return task->head;
}
INLINE int count_rows(const args *a, const struct task *task) {
    (void)a;
    return task->seqlen_q;
}
INLINE int first_tile(const struct task *task) {
    (void)task;
    return 0;
}
INLINE int most_rows(const struct task *task) { return task->rows; }
INLINE int is_paired(const struct task *task) { return PAIRS && task->paired; }
#endif
INLINE int end_row(const args *a, const struct task *task) {
    return min_i32(task->first + most_rows(task), count_rows(a, task));
}

// Keys that sequence b has room for, if no tensor has the tokens of all.
#if PAGED
INLINE int keys_of_list(const args *a, int b) {
    const struct tessera_fmha_fwd_cuda_pages *const pages = &a->pages;
    if (!pages->begin) return a->call.seqlen_k;
    const int listed = pages->begin[b + 1] - pages->begin[b], in_last = pages->last ? pages->last[b] : pages->page_size;
    return listed > 0 ? min_i32(a->call.seqlen_k, (listed - 1) * pages->page_size + in_last) : 0;
}
INLINE int is_left_alone(const args *a, const struct task *task) {
    return task->seqlen_q <= a->call.min_seqlen_q || task->seqlen_q > a->queries;
}
#else
INLINE int keys_of_list(const args *a, int b) {
    (void)b;
    return a->call.seqlen_k;
}
INLINE int is_left_alone(const args *a, const struct task *task) { return task->seqlen_q <= a->call.min_seqlen_q; }
#endif

INLINE void find_lengths(struct task *task, const args *a) {
    const int b = task->batch;
    task->token_q = task->token_k = 0;
    task->seqlen_q = a->call.seqlen_q;
    task->seqlen_k = keys_of_list(a, b);
    if (a->call.seqstart_q) {
        task->token_q = a->call.seqstart_q[b];
        task->seqlen_q = a->call.seqstart_q[b + 1] - task->token_q;
    }
    if (a->call.seqstart_k) {
        task->token_k = a->call.seqstart_k[b];
        task->seqlen_k = a->call.seqstart_k[b + 1] - task->token_k;
    }
    task->seqlen_q = logical_length(a->call.seqlen_q_of, a->call.cu_seqlen_q, b, task->seqlen_q);
    task->seqlen_k = logical_length(a->call.seqlen_k_of, a->call.cu_seqlen_k, b, task->seqlen_k);
}

INLINE void find_tiles(struct task *task, const args *a) {
    const int first = row_query(a, task->first), last = row_query(a, end_row(a, task) - 1);
    const int all = a->call.features & TESSERA_GPU_RANDVAL; // bytes of dropout are stored for hidden keys too
    const int end = all ? task->seqlen_k : min_i32(task->seqlen_k, last + task->mask_x);
    const int sink_end = first < task->seqlen_k ? min_i32(task->sink, end) : 0;
    task->begin = all ? 0 : max_i32(0, first - task->mask_y + 1) / BN;
    task->sink_tiles = min_i32((max_i32(sink_end, 0) + BN - 1) / BN, task->begin);
    task->tiles = task->sink_tiles + max_i32((max_i32(end, 0) + BN - 1) / BN - task->begin, 0);
}

// The first key of tile i of the task.
INLINE int tile_key(const struct task *task, int number) {
    const int i = number + first_tile(task);
    return BN * (i < task->sink_tiles ? i : i - task->sink_tiles + task->begin);
}

#if MERGED
// The task as it is for one of its key heads.
INLINE struct task of_head(const struct task *task, const args *a, int head) {
    struct task x = *task;
    x.head_k += head;
    x.head += head * a->call.group;
    return x;
}

// The number of a row's partial result.
INLINE int64_t partial_row(const args *a, const struct task *task, int row) {
    const int64_t head = (int64_t)task->batch * a->call.nhead_q + row_head(a, task, row);
    return (head * a->queries + row_query(a, row)) * a->parts + task->part;
}

// Keeps the task's part of the tiles: parts are of `part_tiles`, or of more where a sequence has more than the host
// knew of.
INLINE void find_part(struct task *task, const args *a) {
    const int each = max_i32(a->part_tiles, (task->tiles + a->parts - 1) / a->parts);
    task->from = task->part * each;
    task->tiles = max_i32(min_i32(each, task->tiles - task->from), 0);
}

// Says of a task's rows that its part has no keys. Returns whether results were asked for in parts.
INLINE int leave_out(const struct task *task, const args *a) {
    if (a->parts == 1) return 0;
    const int rows = min_i32(BM, count_rows(a, task) - task->first);
    for (int n = lane_id(); n < HEADS * rows; n += 32) {
        const int head = HEADS > 1 ? n / rows : 0;
        const struct task own = of_head(task, a, head);
        a->lse_acc[partial_row(a, &own, task->first + n - head * rows)] = -INFINITY_F32;
    }
    return 1;
}

// Parts follow one another, so that those that long sequences alone have come last.
INLINE void find_place(struct task *task, const args *a, int number) {
    const int blocks = a->call.blocks_q, heads = a->call.nhead_k / HEADS, of_part = a->tasks / a->parts;
    task->part = number / of_part;
    const int rest = number - task->part * of_part, head = rest / blocks;
    task->batch = head / heads;
    task->head_k = HEADS * (head - task->batch * heads);
    task->head = task->head_k * a->call.group;
    task->first = BM * (blocks - 1 - (rest - head * blocks));
}
#else
INLINE void find_part(struct task *task, const args *a) { (void)task, (void)a; }
INLINE int leave_out(const struct task *task, const args *a) {
    (void)task, (void)a;
    return 0;
}

INLINE void find_rows(struct task *task, const args *a, int head, int first) {
    task->batch = head / a->call.nhead_q;
    task->head = head - task->batch * a->call.nhead_q;
    task->head_k = task->head / a->call.group;
    task->first = first;
}

// With PAIRS the first block of each head may come behind all others.
INLINE void find_block(struct task *task, const args *a, int number) {
    const int blocks = a->call.blocks_q - (PAIRS ? a->blocks_behind : 0), behind = number - a->heads * blocks;
    const int together = a->heads_together;
    task->rows = BM;
    if (PAIRS && behind >= 0) {
        find_rows(task, a, behind, 0);
        return;
    }
    const int group = number / (together * blocks), rest = number - group * together * blocks;
    const int heads = min_i32(together, a->heads - group * together), before = rest / heads;
    find_rows(task, a, group * together + rest - before * heads, BM * (a->call.blocks_q - 1 - before));
}

#if STRIPS
enum { BLOCK_STRIPS = BM / ROWS };

// Behind whole tasks there are strips of the other blocks, and of the rows behind each head's last block.
INLINE void find_block_or_strip(struct task *task, const args *a, int number) {
    const int strip = number - a->whole, of_blocks = BLOCK_STRIPS * (a->heads * a->call.blocks_q - a->whole);
    if (strip < 0) {
        find_block(task, a, number);
        return;
    }
    if (strip < of_blocks) {
        find_block(task, a, a->whole + strip / BLOCK_STRIPS);
        task->first += ROWS * (strip % BLOCK_STRIPS);
    } else {
        const int head = (strip - of_blocks) / a->strips_behind;
        const int behind = strip - of_blocks - head * a->strips_behind;
        find_rows(task, a, head, BM * a->call.blocks_q + ROWS * behind);
    }
    task->rows = ROWS;
}
#else
INLINE void find_block_or_strip(struct task *task, const args *a, int number) { find_block(task, a, number); }
#endif

INLINE void find_place(struct task *task, const args *a, int number) {
    if (PAIRS) task->paired = number < a->paired;
    find_block_or_strip(task, a, number);
}
#endif

// Finds task number `number`; returns whether there is something to do.
INLINE int find_task(struct task *task, const args *a, int number) {
    find_place(task, a, number);
    find_lengths(task, a);
    const int shift = task->seqlen_q - task->seqlen_k;
    task->mask_y = a->call.mask_y + a->call.shift_y * shift;
    task->mask_x = a->call.mask_x - a->call.shift_x * shift;
    task->sink = task->mask_y < task->seqlen_q ? a->call.sink_size : 0;
    if (task->first >= count_rows(a, task) || is_left_alone(a, task)) return 0;
    find_tiles(task, a);
    find_part(task, a);
    return task->tiles > 0 || !leave_out(task, a);
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

// The first row that the thread's warp or warpgroup has; the thread's rows 0 and 1, and their queries and heads.
#if KEYS_APART
INLINE int first_row(const struct task *task) { return task->first; }
INLINE int row_of_lane(int r) { return TURNED ? 2 * (lane_id() % 4) + r : lane_id() / 4 + 8 * r; } // of the task's
INLINE int own_row(const struct task *task, int r) { return task->first + row_of_lane(r); }
#else
INLINE int first_row(const struct task *task) { return task->first + ROWS * (thread_id() / WARPGROUP - 1); }
INLINE int own_row(const struct task *task, int r) { return first_row(task) + thread_row() + 8 * r; }
#endif
INLINE int has_rows(const args *a, const struct task *task) { return first_row(task) < end_row(a, task); }
INLINE int own_query(const args *a, const struct task *task, int r) { return row_query(a, own_row(task, r)); }
INLINE int own_head(const args *a, const struct task *task, int r) { return row_head(a, task, own_row(task, r)); }

// What a warp that computes keeps of a task. Keys of tiles that begin at `begin` or behind and end at `end` or before
// are all seen by all of the queries that its products have.
struct walk {
    int tile, from;      // of the task's tiles, the current one and that to end with
    int gap, sink_tiles; // keys between the first `sink_tiles` tiles and the others
    int begin, end;
};

INLINE struct walk find_walk(const args *a, const struct task *task) {
    const int row = first_row(task), first = row_query(a, row);
    const int last = row_query(a, min_i32(row + ROWS, count_rows(a, task)) - 1);
    const int from = MERGED ? of_first_lane(first_tile(task)) : 0;
    return (struct walk){of_first_lane(task->tiles - 1) + from,
                         from,
                         of_first_lane(BN * (task->begin - task->sink_tiles)),
                         of_first_lane(task->sink_tiles),
                         of_first_lane(last - task->mask_y + 1),
                         of_first_lane(min_i32(task->seqlen_k, first + task->mask_x))};
}
INLINE int walk_key(const struct walk *walk) {
    return BN * walk->tile + (walk->tile < walk->sink_tiles ? 0 : walk->gap);
}
INLINE int is_whole(const struct walk *walk, int key) { return key >= walk->begin && key + KEYS <= walk->end; }

// How many tiles, from the current one on, all queries see whole.
INLINE int count_whole(const struct walk *walk) {
    const int first = max_i32(max_i32(walk->sink_tiles, walk->from), (walk->begin - walk->gap + BN - 1) / BN);
    return is_whole(walk, walk_key(walk)) && walk->tile >= walk->sink_tiles ? walk->tile - first + 1 : 0;
}

// Element (query 0, head 0, 0) of the sequence in a tensor of queries, and element (key 0, 0) in one of keys.
INLINE int64_t sequence_element(const struct task *task, int64_t batch_stride, int64_t stride) {
    return task->batch * batch_stride + (int64_t)task->token_q * stride;
}
// The element (first query of the task, its head, 0), and how far on the thread's row r is.
#if MERGED
INLINE int64_t block_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return sequence_element(task, batch_stride, stride) + task->head * nhead_stride;
}
INLINE int64_t row_element(const args *a, const struct task *task, int r, int64_t nhead_stride, int64_t stride) {
    return (own_head(a, task, r) - task->head) * nhead_stride + own_query(a, task, r) * stride;
}
#else
INLINE int64_t block_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head * nhead_stride + (int64_t)(task->token_q + task->first) * stride;
}
INLINE int64_t row_element(const args *a, const struct task *task, int r, int64_t nhead_stride, int64_t stride) {
    (void)a, (void)nhead_stride;
    return (own_row(task, r) - task->first) * stride;
}
#endif
INLINE int64_t key_element(const struct task *task, int64_t batch_stride, int64_t nhead_stride, int64_t stride) {
    return task->batch * batch_stride + task->head_k * nhead_stride + task->token_k * stride;
}

#endif
