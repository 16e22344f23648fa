// SPDX-License-Identifier: MIT
// Changes that scores take before softmax, beside their scale: soft cap, bias and ALiBi, and the gradients of the soft
// cap and of a bias. UNPACK widens an element of a bias. Rows are keys and columns are queries.
//
// Takes launch, TWO, UNPACK.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_ADJUST_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_ADJUST_H

#include "tessera/device/attention/cuda/cap.h"
#include "tessera/device/attention/cuda_bwd/task.h"

// Where a thread's scores of a step are in their sequence: a query head, and the first query and key.
struct block {
    int head, query, key;
};

// ---- tensors of queries and keys, of which a thread reads or writes single elements

// The thread's first element of such a tensor, and how many queries and keys there are from it on.
struct pairs {
    int64_t first;
    int queries, keys;
};
INLINE struct pairs find_pairs(uint32_t task_at, struct block b, int64_t batch_stride, int64_t nhead_stride,
                               int64_t stride) {
    struct task task;
    get_task(task_at, &task);
    const int64_t first = query_element(&task, b.head, b.query, batch_stride, nhead_stride, stride) + b.key;
    return (struct pairs){first, task.seqlen_q - b.query, task.seqlen_k - b.key};
}

INLINE void add_bias(float s[SCORES], const launch *a, uint32_t task_at, struct block b) {
    const struct pairs pairs =
        find_pairs(task_at, b, a->call.batch_stride_bias, a->call.nhead_stride_bias, a->call.stride_bias);
    const char *const from = (const char *)a->call.bias + 2 * pairs.first;
    const int stride = here(2 * (int)a->call.stride_bias);
    UNROLL
    for (int i = 0; i < SCORES; i++) {
        const int column = COLUMN(i / 4, i % 2), row = i / 2 % 2 * 8;
        const int there = column < pairs.queries && row < pairs.keys;
        s[i] += LOG2E * UNPACK(load_2(from + column * stride + 2 * row, there));
    }
}

// Stores gradients of scores, of which words have pairs, as those of the bias.
INLINE void store_dbias(const uint32_t ds[P_WORDS], const launch *a, uint32_t task_at, struct block b) {
    const struct pairs pairs =
        find_pairs(task_at, b, a->call.batch_stride_dbias, a->call.nhead_stride_dbias, a->call.stride_dbias);
    char *const to = (char *)a->call.dbias + 2 * pairs.first;
    const int stride = here(2 * (int)a->call.stride_dbias);
    UNROLL
    for (int i = 0; i < SCORES; i++) {
        const int column = COLUMN(i / 4, i % 2), row = i / 2 % 2 * 8;
        if (column < pairs.queries && row < pairs.keys)
            store_2(to + column * stride + 2 * row, ds[i / 2] >> 16 * (i % 2));
    }
}

// ---- scores in units of log2

INLINE void add_alibi(float s[SCORES], const launch *a, uint32_t task_at, struct block b) {
    const int lengths = TASK_FIELD(task_at, seqlen_k) - TASK_FIELD(task_at, seqlen_q);
    const int shift = a->call.features & TESSERA_GPU_ALIBI_SHIFT ? lengths : 0;
    const int vertical = a->call.features & TESSERA_GPU_ALIBI_VERTICAL;
    const float *const slopes = (const float *)a->call.bias + TASK_FIELD(task_at, batch) * a->call.batch_stride_bias;
    const float slope = LOG2E * slopes[b.head];
    const float zero = (float)(vertical ? 0 : b.query + shift) - (float)b.key;
    UNROLL
    for (int i = 0; i < SCORES; i++) {
        const int column = COLUMN(i / 4, i % 2), row = i / 2 % 2 * 8;
        s[i] += (vertical ? slope : -slope) * abs_f32(zero + (float)((vertical ? 0 : column) - row));
    }
}

// Turns products K Q^T into scores where anything but their scale changes them. Returns the scale that is left.
INLINE float adjust(float s[SCORES], const launch *a, uint32_t task_at, struct block b) {
    const uint32_t features = a->call.features;
    const float scale = a->call.scale_log2;
    if (!(features & (TESSERA_GPU_SOFT_CAP | TESSERA_GPU_BIAS | TESSERA_GPU_ALIBI))) return scale;
    if (features & TESSERA_GPU_SOFT_CAP) {
        UNROLL
        for (int i = 0; i < SCORES; i++) s[i] = capped(s[i], a->call.cap_log2, a->call.cap_scale * scale);
        return 1.0f;
    }
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] *= scale;
    if (features & TESSERA_GPU_BIAS) add_bias(s, a, task_at, b);
    if (features & TESSERA_GPU_ALIBI) add_alibi(s, a, task_at, b);
    return 1.0f;
}

// Gradients of scores to those of the numbers before the soft cap: by its derivative 1 - tanh^2, where the logarithm of
// a probability tells the score, or nothing: a probability of 0 has no gradient.
INLINE void differentiate_cap(float ds[SCORES], const float p[SCORES], uint32_t lse, float cap_log2) {
    const float over = reciprocal(cap_log2);
    UNROLL
    for (int j = 0; j < BM / 8; j++) {
        const f32x2 x = shared_load_f32x2(lse + 32 * j);
        UNROLL
        for (int i = 4 * j; i < 4 * j + 4; i++) {
            const float tanh = (log2_fast(p[i]) - (i % 2 ? x.y : x.x)) * over;
            ds[i] *= max_f32(fused(-tanh, tanh, 1.0f), 0.0f);
        }
    }
}

#endif
