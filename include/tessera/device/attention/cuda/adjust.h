// SPDX-License-Identifier: MIT
// Changes that scores take before softmax, beside their scale: soft cap, bias and ALiBi. UNPACK widens an element of a
// 16-bit bias. Without GENERAL there is only the scale.
//
// Takes args, KEYS, GENERAL, BIAS_BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_ADJUST_H
#define TESSERA_DEVICE_ATTENTION_CUDA_ADJUST_H

#include "tessera/device/attention/cuda/cap.h"
#include "tessera/device/attention/cuda/descales.h"
#include "tessera/device/attention/cuda/task.h"

INLINE void scale_scores(float s[SCORES], float scale) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] *= scale;
}

#if GENERAL
INLINE void soft_cap(float s[SCORES], float cap_log2, float cap_scale) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] = capped(s[i], cap_log2, cap_scale);
}

#if BIAS_BITS == 32
INLINE float bias_of(const void *element, int there) { return AS_F32(load_4(element, there)); }
#else
INLINE float bias_of(const void *element, int there) { return UNPACK(load_2(element, there)); }
#endif

// Where the bias of the thread's row r lies, from `key` on.
INLINE const char *bias_place(const args *a, const struct task *task, int r, int key) {
    const int64_t element = sequence_element(task, a->call.batch_stride_bias, a->call.stride_bias);
    const int64_t row = own_query(a, task, r) * a->call.stride_bias + own_head(a, task, r) * a->call.nhead_stride_bias;
    return (const char *)a->call.bias + (element + row + key) * (BIAS_BITS / 8);
}

INLINE void add_bias(float s[SCORES], const args *a, const struct task *task, int tile) {
    const int first = tile + thread_key();
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int left = own_query(a, task, r) < task->seqlen_q ? task->seqlen_k - first : 0; // keys
        const char *const from = bias_place(a, task, r, first);
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            UNROLL
            for (int e = 0; e < BESIDE; e++) {
                const char *const element_at = from + KEY(j, e) * (BIAS_BITS / 8);
                s[ELEMENT(j, r, e)] += LOG2E * bias_of(element_at, KEY(j, e) < left);
            }
        }
    }
}

#if BIAS_BITS == 16 && !TURNED
// Whether two keys' elements are a word.
INLINE int is_bias_in_words(const args *a) {
    const int64_t strides = a->call.batch_stride_bias | a->call.nhead_stride_bias | a->call.stride_bias;
    return (strides & 1) == 0 && ((uintptr_t)a->call.bias & 3) == 0;
}

// The same of a tile whose keys are all there, by words.
INLINE void add_bias_words(float s[SCORES], const args *a, const struct task *task, int tile) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int there = own_query(a, task, r) < task->seqlen_q;
        const char *const from = bias_place(a, task, r, tile + thread_key());
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            const uint32_t word = load_4(from + 2 * KEY(j, 0), there);
            s[ELEMENT(j, r, 0)] += LOG2E * UNPACK(word & 65535);
            s[ELEMENT(j, r, 1)] += LOG2E * UNPACK(word >> 16);
        }
    }
}
#else
INLINE int is_bias_in_words(const args *a) {
    (void)a;
    return 0;
}
INLINE void add_bias_words(float s[SCORES], const args *a, const struct task *task, int tile) {
    add_bias(s, a, task, tile);
}
#endif

INLINE void add_alibi(float s[SCORES], const args *a, const struct task *task, int tile) {
    const float *const slopes = (const float *)a->call.bias;
    const int shift = a->call.features & TESSERA_GPU_ALIBI_SHIFT ? task->seqlen_k - task->seqlen_q : 0;
    const int vertical = a->call.features & TESSERA_GPU_ALIBI_VERTICAL;
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int query = own_query(a, task, r);
        const float slope = LOG2E * slopes[task->batch * a->call.batch_stride_bias + own_head(a, task, r)];
        const float zero = (float)(vertical ? 0 : query + shift) - (float)(tile + thread_key());
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            UNROLL
            for (int e = 0; e < BESIDE; e++)
                s[ELEMENT(j, r, e)] += (vertical ? slope : -slope) * abs_f32(zero - (float)KEY(j, e));
        }
    }
}

// Turns products Q K^T into scores in units of log2. whole: all keys of the tile are there.
INLINE void adjust(float s[SCORES], const args *a, const struct task *task, int tile, int whole) {
    if (a->call.features & TESSERA_GPU_SOFT_CAP)
        soft_cap(s, a->call.cap_log2, a->call.cap_scale * score_scale(a));
    else
        scale_scores(s, score_scale(a));
    if (a->call.features & TESSERA_GPU_BIAS) {
        if (whole && is_bias_in_words(a))
            add_bias_words(s, a, task, tile);
        else
            add_bias(s, a, task, tile);
    }
    if (a->call.features & TESSERA_GPU_ALIBI) add_alibi(s, a, task, tile);
}
#else
INLINE void adjust(float s[SCORES], const args *a, const struct task *task, int tile, int whole) {
    (void)task, (void)tile, (void)whole;
    scale_scores(s, score_scale(a));
}
#endif

#endif
