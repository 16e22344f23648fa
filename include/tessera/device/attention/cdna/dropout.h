// SPDX-License-Identifier: MIT
// Dropout: a random byte of Philox decides about each score.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DROPOUT_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DROPOUT_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"

// Stores a lane's bytes of a block, for keys that exist.
INLINE void store_bytes(u32x4 bits, const args *a, const struct task *task, int query, int first) {
    const int64_t element = query_element(task, a->batch_stride_randval, a->nhead_stride_randval, a->stride_randval);
    const buffer to =
        rows_of(a->rand_val, element, task->seqlen_q - task->first, BM, a->stride_randval, task->seqlen_k, 8);
    const int row = (query - task->first) * (int)a->stride_randval;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int key = first + KEY(0, e);
        buffer_store_1(to, key < task->seqlen_k ? row + key : OUTSIDE, bits[e / 4] >> 8 * (e % 4));
        one_after_the_other();
    }
}

// The 16 bytes of one call of Philox are those of a lane's 16 scores of a block.
INLINE void drop(f32x16 s[KEY_BLOCKS], int query, int tile) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a);
    query = here(query);
    const uint64_t seed = a->drop_seed_ptr ? read_u64(a->drop_seed_ptr) : a->drop_seed;
    const uint64_t offset = a->drop_offset_ptr ? read_u64(a->drop_offset_ptr) : a->drop_offset;
    const uint32_t head = (uint32_t)(task.batch * (int)a->nhead_q + task.head);
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        const uint32_t c = (uint32_t)(2 * (tile / 32 + b) + lane_id() / 32);
        const u32x4 counter = {(uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)query + (c << 24),
                               (c >> 8) + (head << 12)};
        const u32x4 bits = philox(counter, seed);
        if (a->features & TESSERA_GPU_RANDVAL) store_bytes(bits, a, &task, query, first_key(tile) + 32 * b);
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if ((bits[e / 4] >> 8 * (e % 4) & 255) > a->keep_below) s[b][e] = 0.0f;
            one_after_the_other();
        }
    }
}

#endif
