// SPDX-License-Identifier: MIT
// Dropout: a random byte of Philox decides about each score.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_DROPOUT_H
#define TESSERA_DEVICE_ATTENTION_CUDA_DROPOUT_H

#include "tessera/device/attention/cuda/random.h"
#include "tessera/device/attention/cuda/task.h"

// The bytes of a row's scores in 32 keys: byte e of word j, counted from the thread's first, is that of COLUMN(j, e).
struct random_bytes {
    uint32_t word[4];
};

INLINE struct random_bytes draw(const args *a, const struct task *task, int query, int block) {
    const uint32_t head = (uint32_t)(task->batch * (int)a->call.nhead_q + task->head);
    const u32x4 bits = random_bits(DROP_SEED(a->call), DROP_OFFSET(a->call), head, query, block, lane_id() % 4 / 2);
    return (struct random_bytes){{bits.x, bits.y, bits.z, bits.w}};
}

INLINE void store_bytes(const struct random_bytes *x, const args *a, const struct task *task, int query, int key) {
    const int64_t first = sequence_element(task, a->call.batch_stride_randval, a->call.stride_randval) +
                          task->head * a->call.nhead_stride_randval;
    uint8_t *const to = a->call.rand_val + first + query * a->call.stride_randval + key;
    UNROLL
    for (int j = 0; j < 4; j++) {
        UNROLL
        for (int e = 0; e < 2; e++)
            if (query < task->seqlen_q && key + COLUMN(j, e) < task->seqlen_k)
                store_1(to + COLUMN(j, e), x->word[j] >> 8 * e);
    }
}

// Two lanes that are neighbours need the same 16 bytes of Philox for each of two rows, half of them each: the even lane
// draws those of the first row, and the odd one those of the second.
INLINE void drop(float s[SCORES], const args *a, const struct task *task, int tile) {
    const int query = own_query(a, task, 0);
    const int odd = lane_id() % 2;
    UNROLL
    for (int b = 0; b < BN / 32; b++) {
        const struct random_bytes own = draw(a, task, query + 8 * odd, tile / 32 + b);
        struct random_bytes of_row[2];
        UNROLL
        for (int j = 0; j < 4; j++) {
            const uint32_t other = other_lane_bits(own.word[j], 1);
            of_row[0].word[j] = (odd ? other : own.word[j]) >> 16 * odd;
            of_row[1].word[j] = (odd ? own.word[j] : other) >> 16 * odd;
        }
        UNROLL
        for (int r = 0; r < 2; r++) {
            if (a->call.features & TESSERA_GPU_RANDVAL)
                store_bytes(&of_row[r], a, task, query + 8 * r, tile + 32 * b + thread_column());
            UNROLL
            for (int j = 0; j < 4; j++) {
                UNROLL
                for (int e = 0; e < 2; e++)
                    if ((of_row[r].word[j] >> 8 * e & 255) > a->call.keep_below) s[ELEMENT(4 * b + j, r, e)] = 0.0f;
            }
        }
    }
}

#endif
