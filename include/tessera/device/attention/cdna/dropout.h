// SPDX-License-Identifier: MIT
// Dropout: a random byte of Philox decides about each score.
//
// Takes args, MERGED.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DROPOUT_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DROPOUT_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"

// Stores a lane's bytes of a block, for keys that exist.
#if MERGED
INLINE void store_bytes(u32x4 bits, const args *a, const struct task *task, const struct row *r, int first) {
    const int64_t row = (task->token_q + r->query) * a->stride_randval;
    GLOBAL uint8_t *const to = (GLOBAL uint8_t *)(uint64_t)a->rand_val + task->batch * a->batch_stride_randval +
                               r->head * a->nhead_stride_randval + row;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int key = first + KEY(0, e);
        if (key < task->seqlen_k) to[key] = (uint8_t)(bits[e / 4] >> 8 * (e % 4));
        one_after_the_other();
    }
}
#else
INLINE void store_bytes(u32x4 bits, const args *a, const struct task *task, const struct row *r, int first) {
    const int64_t element = query_element(task, a->batch_stride_randval, a->nhead_stride_randval, a->stride_randval);
    const buffer to =
        rows_of(a->rand_val, element, task->seqlen_q - task->first, BM, a->stride_randval, task->seqlen_k, 8);
    const int row = (r->query - task->first) * (int)a->stride_randval;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int key = first + KEY(0, e);
        buffer_store_1(to, key < task->seqlen_k ? row + key : OUTSIDE, bits[e / 4] >> 8 * (e % 4));
        one_after_the_other();
    }
}

#endif

// The 16 bytes of one call of Philox are those of a lane's 16 scores of a block.
INLINE void drop(f32x16 s[KEY_BLOCKS], const struct row *r, int tile) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a);
    struct row row = *r;
    row.query = here(r->query);
    const uint64_t seed = a->drop_seed_ptr ? read_u64(a->drop_seed_ptr) : a->drop_seed;
    const uint64_t offset = a->drop_offset_ptr ? read_u64(a->drop_offset_ptr) : a->drop_offset;
    const uint32_t head = (uint32_t)(task.batch * (int)a->nhead_q + HEAD(&task, r));
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        const uint32_t c = (uint32_t)(2 * (tile / 32 + b) + lane_id() / 32);
        const u32x4 counter = {(uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)row.query + (c << 24),
                               (c >> 8) + (head << 12)};
        const u32x4 bits = philox(counter, seed);
        if (a->features & TESSERA_GPU_RANDVAL) store_bytes(bits, a, &task, &row, first_key(tile) + 32 * b);
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if ((bits[e / 4] >> 8 * (e % 4) & 255) > a->keep_below) s[b][e] = 0.0f;
            one_after_the_other();
        }
    }
}

#endif
