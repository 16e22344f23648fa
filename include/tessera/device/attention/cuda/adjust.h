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

INLINE void add_bias(float s[SCORES], const args *a, const struct task *task, int tile) {
    const int first = tile + thread_key();
    const int64_t element = sequence_element(task, a->call.batch_stride_bias, a->call.stride_bias);
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int query = own_query(a, task, r);
        const int64_t row = query * a->call.stride_bias + own_head(a, task, r) * a->call.nhead_stride_bias;
        const int64_t place = element + row + first;
        const int left = query < task->seqlen_q ? task->seqlen_k - first : 0; // keys
        const char *const from = (const char *)a->call.bias + place * (BIAS_BITS / 8);
        UNROLL
        for (int j = 0; j < KEYS / 8; j++) {
            UNROLL
            for (int e = 0; e < 2; e++) {
                const char *const element_at = from + KEY(j, e) * (BIAS_BITS / 8);
                s[ELEMENT(j, r, e)] += LOG2E * bias_of(element_at, KEY(j, e) < left);
            }
        }
    }
}

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
            for (int e = 0; e < 2; e++)
                s[ELEMENT(j, r, e)] += (vertical ? slope : -slope) * abs_f32(zero - (float)KEY(j, e));
        }
    }
}

// Turns products Q K^T into scores in units of log2.
INLINE void adjust(float s[SCORES], const args *a, const struct task *task, int tile) {
    if (a->call.features & TESSERA_GPU_SOFT_CAP)
        soft_cap(s, a->call.cap_log2, a->call.cap_scale * score_scale(a));
    else
        scale_scores(s, score_scale(a));
    if (a->call.features & TESSERA_GPU_BIAS) add_bias(s, a, task, tile);
    if (a->call.features & TESSERA_GPU_ALIBI) add_alibi(s, a, task, tile);
}
#else
INLINE void adjust(float s[SCORES], const args *a, const struct task *task, int tile) {
    (void)task, (void)tile;
    scale_scores(s, score_scale(a));
}
#endif

#endif
