// SPDX-License-Identifier: MIT
// Sets scores to -inf where the query does not see the key.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MASK_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MASK_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"

// Keys begin .. end - 1 and those before `sink` stay, counted from the lane's first key.
INLINE void hide(mma_sums s[KEY_BLOCKS], const struct task *task, int query, int tile) {
    const int first = here(first_key(tile)), begin = query - task->mask_y + 1 - first;
    const int end = min_i32(task->seqlen_k, query + task->mask_x) - first;
    const uint32_t count = (uint32_t)max_i32(end - begin, 0);
    const int sink = query < task->seqlen_k ? min_i32(task->sink - first, end) : 0;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if ((uint32_t)(KEY(b, e) - begin) >= count && KEY(b, e) >= sink) s[b][e] = -INFINITY_F32;
            one_after_the_other();
        }
    }
}

#endif
