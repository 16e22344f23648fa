// SPDX-License-Identifier: MIT
// Changes that scores take before softmax, beside their scale: soft cap, bias and ALiBi. UNPACK widens an element of a
// 16-bit bias. MERGED: descales of blocks are not served.
//
// Takes args, DESCALED, MERGED, BIAS_BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_ADJUST_H
#define TESSERA_DEVICE_ATTENTION_CDNA_ADJUST_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"

#if DESCALED
#include "tessera/device/attention/cdna/descales.h"
#else
// The factor of K Q^T.
INLINE float score_scale(const args *a) { return a->scale_log2; }
#endif

INLINE void soft_cap(mma_sums s[KEY_BLOCKS], float cap_log2, float cap_scale) { // cap tanh(s / cap)
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            s[b][e] = cap_log2 - 2.0f * cap_log2 * reciprocal(1.0f + exp2_fast(s[b][e] * cap_scale));
    }
}

#if MERGED
#if BIAS_BITS == 32
typedef float of_bias;
#define WIDE_BIAS(x) (x)
#else
typedef uint16_t of_bias;
#define WIDE_BIAS UNPACK
#endif

// Rows are those of several heads, which may lie anywhere: elements one at a time, the last one for those behind it.
INLINE void add_bias(mma_sums s[KEY_BLOCKS], const args *a, const struct task *task, const struct row *r, int tile) {
    const int64_t first = task->batch * a->batch_stride_bias + r->head * a->nhead_stride_bias;
    GLOBAL const of_bias *const bias =
        (GLOBAL const of_bias *)(uint64_t)a->bias + first + (task->token_q + r->query) * a->stride_bias;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            s[b][e] += LOG2E * WIDE_BIAS(bias[min_i32(first_key(tile) + KEY(b, e), task->seqlen_k - 1)]);
    }
}
#elif BIAS_BITS == 32
INLINE void add_bias(mma_sums s[KEY_BLOCKS], const args *a, const struct task *task, const struct row *r, int tile) {
    const int64_t first = query_element(task, a->batch_stride_bias, a->nhead_stride_bias, a->stride_bias);
    const int stride = (int)a->stride_bias, left = task->seqlen_q - task->first;
    const buffer bias = rows_of(a->bias, first, left, BM, stride, task->seqlen_k, 32);
    const int offset = 4 * ((r->query - task->first) * stride + first_key(tile));
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) s[b][e] += LOG2E * AS_F32(buffer_load_4(bias, offset + 4 * KEY(b, e)));
    }
}
#else
// Loads four elements at a time where every row, and the end of the last one, lies on a whole word. A load that
// crosses the end of its buffer returns zero for all of them, so other layouts take one element at a time.
INLINE void add_bias(mma_sums s[KEY_BLOCKS], const args *a, const struct task *task, const struct row *r, int tile) {
    const int64_t first = query_element(task, a->batch_stride_bias, a->nhead_stride_bias, a->stride_bias);
    const int stride = (int)a->stride_bias, left = task->seqlen_q - task->first;
    const buffer bias = rows_of(a->bias, first, left, BM, stride, task->seqlen_k, 16);
    const int offset = 2 * ((r->query - task->first) * stride + first_key(tile));
    const int words =
        (((uint64_t)a->bias / 2 + (uint64_t)first) | (uint64_t)stride | (uint64_t)task->seqlen_k) % 2 == 0;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const int place = offset + 2 * KEY(b, e);
            u32x2 four;
            if (words) {
                four = buffer_load_8(bias, place);
            } else {
                four.x = low_halves(buffer_load_2(bias, place), buffer_load_2(bias, place + 2));
                four.y = low_halves(buffer_load_2(bias, place + 4), buffer_load_2(bias, place + 6));
            }
            UNROLL
            for (int i = 0; i < 4; i++) s[b][e + i] += LOG2E * UNPACK(four[i / 2] >> 16 * (i % 2));
        }
    }
}
#endif

INLINE void add_alibi(mma_sums s[KEY_BLOCKS], const args *a, const struct task *task, const struct row *r, int tile) {
    const float slope = LOG2E * read_float(a->bias, task->batch * a->batch_stride_bias + HEAD(task, r));
    const int shift = a->features & TESSERA_GPU_ALIBI_SHIFT ? task->seqlen_k - task->seqlen_q : 0;
    const int vertical = a->features & TESSERA_GPU_ALIBI_VERTICAL;
    const float zero = (float)(vertical ? 0 : r->query + shift) - (float)first_key(tile);
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) s[b][e] += (vertical ? slope : -slope) * abs_f32(zero - (float)KEY(b, e));
    }
}

// Turns products K Q^T into scores in units of log2.
INLINE void adjust(mma_sums s[KEY_BLOCKS], const struct row *r, int tile) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a);
    struct row row = *r;
    row.query = here(r->query);
#if DESCALED && !MERGED
    if (a->features & TESSERA_GPU_BLOCK) descale_scores(s, a, &task, r->descale, tile);
#endif
    if (a->features & TESSERA_GPU_SOFT_CAP) {
        soft_cap(s, a->cap_log2, a->cap_scale * score_scale(a));
    } else {
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) s[b] *= score_scale(a);
    }
    if (a->features & TESSERA_GPU_BIAS) add_bias(s, a, &task, &row, tile);
    if (a->features & TESSERA_GPU_ALIBI) add_alibi(s, a, &task, &row, tile);
}

#endif
