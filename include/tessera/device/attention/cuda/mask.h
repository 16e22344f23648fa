// SPDX-License-Identifier: MIT
// Sets scores to -inf where the query does not see the key.
//
// Takes args, KEYS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_MASK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_MASK_H

#include "tessera/device/attention/cuda/task.h"

// Keys `begin` to end - 1 and those before `sink` stay, counted from the thread's first key.
struct seen {
    int begin, end, sink;
};

INLINE struct seen seen_by(const struct task *task, int query, int first) {
    const int end = min_i32(task->seqlen_k, query + task->mask_x) - first;
    return (struct seen){query - task->mask_y + 1 - first, end,
                         query < task->seqlen_k ? min_i32(task->sink - first, end) : 0};
}

// The usual case: all keys before `end` are seen.
INLINE void hide_behind(float s[SCORES], const struct seen seen[2]) {
    UNROLL
    for (int i = 0; i < SCORES; i++)
        if (KEY(i / 4, i % 2) >= seen[i / 2 % 2].end) s[i] = -INFINITY_F32;
}
INLINE void hide_around(float s[SCORES], const struct seen seen[2]) {
    UNROLL
    for (int i = 0; i < SCORES; i++) {
        const struct seen *const row = &seen[i / 2 % 2];
        const int key = KEY(i / 4, i % 2);
        if ((key < row->begin || key >= row->end) && key >= row->sink) s[i] = -INFINITY_F32;
    }
}

INLINE void hide(float s[SCORES], const args *a, const struct task *task, int tile) {
    const int first = tile + thread_key();
    const struct seen seen[2] = {seen_by(task, own_query(a, task, 0), first),
                                 seen_by(task, own_query(a, task, 1), first)};
    if (any_lane(max_i32(seen[0].begin, seen[1].begin) > 0)) // the sink only matters beside a left edge
        hide_around(s, seen);
    else
        hide_behind(s, seen);
}

#endif
