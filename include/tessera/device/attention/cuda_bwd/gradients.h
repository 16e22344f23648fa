// SPDX-License-Identifier: MIT
// What a warpgroup does to its 64 keys' scores of a step: probabilities, and the gradients of scores. Rows are keys and
// columns are queries.
//
// Takes launch, TWO.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_GRADIENTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_GRADIENTS_H

#include "tessera/device/attention/cuda_bwd/task.h"

// A key is seen by the queries from `begin` to end - 1.
struct seen {
    int begin, end;
};
INLINE struct seen seen_of(const struct task *task, int key) {
    struct seen x = {key - task->mask_x + 1, key + task->mask_y};
    if (key < task->sink) x.end = max_i32(x.end, task->seqlen_k);
    if (key >= task->seqlen_k) x.end = 0;
    return x;
}

// Queries of which tiles that begin at `begin` or behind and end at `end` or before see all keys of the warpgroup.
INLINE struct seen whole_of(uint32_t task_at) {
    struct task task;
    get_task(task_at, &task);
    const int first = task.first + 64 * (thread_id() / WARPGROUP - 1), last = first + 63;
    return (struct seen){of_first_lane(last - task.mask_x + 1),
                         of_first_lane(last < task.seqlen_k ? first + task.mask_y : 0)};
}

// Probabilities of keys that a query does not see become 0.
INLINE void hide(float p[SCORES], const struct seen seen[2], int query) {
    const int first = query + 2 * (thread_id_again() % 4);
    UNROLL
    for (int i = 0; i < SCORES; i++) {
        const struct seen *const row = &seen[i / 2 % 2];
        const int column = first + COLUMN(i / 4, i % 2);
        if (column < row->begin || column >= row->end) p[i] = 0.0f;
    }
}

// The same of packed numbers, whatever they were.
INLINE void hide_packed(uint32_t words[P_WORDS], const struct seen seen[2], int query) {
    const int first = query + 2 * (thread_id_again() % 4);
    UNROLL
    for (int i = 0; i < P_WORDS; i++) {
        const struct seen *const row = &seen[i % 2];
        const int column = first + COLUMN(i / 2, 0);
        if (column < row->begin || column >= row->end) words[i] &= 0xffff0000;
        if (column + 1 < row->begin || column + 1 >= row->end) words[i] &= 0x0000ffff;
    }
}

INLINE void make_probabilities(float s[SCORES], uint32_t lse, float scale) {
    UNROLL
    for (int j = 0; j < BM / 8; j++) {
        const f32x2 x = shared_load_f32x2(lse + 32 * j);
        UNROLL
        for (int r = 0; r < 2; r++) {
            s[ELEMENT(j, r, 0)] = exp2_fast(fused(s[ELEMENT(j, r, 0)], scale, x.x));
            s[ELEMENT(j, r, 1)] = exp2_fast(fused(s[ELEMENT(j, r, 1)], scale, x.y));
        }
    }
}

// dp becomes ds = p (dp - d).
INLINE void differentiate(float dp[SCORES], const float p[SCORES], uint32_t d) {
    UNROLL
    for (int j = 0; j < BM / 8; j++) {
        const f32x2 x = shared_load_f32x2(d + 32 * j);
        UNROLL
        for (int r = 0; r < 2; r++) {
            dp[ELEMENT(j, r, 0)] = p[ELEMENT(j, r, 0)] * (dp[ELEMENT(j, r, 0)] - x.x);
            dp[ELEMENT(j, r, 1)] = p[ELEMENT(j, r, 1)] * (dp[ELEMENT(j, r, 1)] - x.y);
        }
    }
}

INLINE void pack(uint32_t words[P_WORDS], const float x[SCORES]) {
    UNROLL
    for (int i = 0; i < P_WORDS; i++) words[i] = TWO(x[2 * i], x[2 * i + 1]);
}

#if DQ_TURNED
// Stores the warpgroup's part of dS: rows are queries, and the warpgroup's keys are a slice. Of eight rows number n has
// query n / 2 + 4 (n % 2), so that those that a lane has of dQ are four apart (put_boxes()). Products see it after
// finish_stores().
INLINE void put_ds(uint32_t at, const uint32_t words[P_WORDS], int thread) {
    const int matrix = thread % 32 / 8, row = thread % 4 * 2 + thread % 8 / 4, warp = thread / 32 % 4;
    const int piece = 2 * warp + matrix % 2;
    const uint32_t to =
        at + (thread / WARPGROUP - 1) * BM * SLICE + (matrix / 2 * 8 + row) * SLICE + (piece ^ row) * 16;
    UNROLL
    for (int j = 0; j < BM / 8; j += 2) store_transposed(to + 8 * j * SLICE, &words[2 * j]);
}
#else
// Stores the warpgroup's part of dS^T: rows are keys, 64 queries a slice. Products see it after finish_stores().
INLINE void put_ds(uint32_t at, const uint32_t words[P_WORDS], int thread) {
    const int matrix = thread % 32 / 8, row = thread / 32 * 16 - 64 + matrix % 2 * 8 + thread % 8; // warps from 4 on
    UNROLL
    for (int j = 0; j < BM / 8; j += 2) {
        const int piece = j % 8 + matrix / 2;
        store_matrices(at + j / 8 * BN * SLICE + row * SLICE + (piece ^ thread % 8) * 16, &words[2 * j]);
    }
}
#endif

#endif
