// SPDX-License-Identifier: MIT
// Backward: the phases before dq_dk_dv. 16 lanes have a row of do and o; a workgroup has THREADS / 16 of them.
//
// Takes VECTORS, THREADS, ROWS, sum_of_row_lanes.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_DOT_DO_O_H
#define TESSERA_DEVICE_ATTENTION_GPU_DOT_DO_O_H

#include "tessera/device/attention/gpu/backward.h"
#include "tessera/device/attention/gpu/units.h"

enum { ROW_LANES = THREADS / ROWS };

// ---- d

INLINE float dot_of_units(int type, const unit *x, const unit *y) {
    float sum = 0.0f;
    UNROLL
    for (int w = 0; w < (VECTORS ? 4 : 1); w++) {
        sum += number_of(type, x->word[w]) * number_of(type, y->word[w]);
        if (VECTORS && type != TESSERA_TYPE_FP32)
            sum += number_of(type, x->word[w] >> 16) * number_of(type, y->word[w] >> 16);
    }
    return sum;
}

// Rows past the end have no columns, so that all lanes reach the sum.
INLINE void dot_rows(const args *a) {
    const struct sequence s = find_sequence(a, workgroup_z());
    const int head = workgroup_y(), row = workgroup_x() * ROWS + thread_id() / ROW_LANES,
              lane = thread_id() % ROW_LANES;
    const int bytes = bytes_of_type(a->type), step = VECTORS ? 16 : bytes;
    const int64_t token = s.token_q + row;
    const char *o = (const char *)a->o +
                    bytes * element_of(s.batch, a->batch_stride_o, head, a->nhead_stride_o, token, a->stride_o);
    const char *grad = (const char *)a->d_o +
                       bytes * element_of(s.batch, a->batch_stride_do, head, a->nhead_stride_do, token, a->stride_do);
    const int units = row < s.seqlen_q ? a->hdim_v * bytes / step : 0;
    float sum = 0.0f;
    for (int u = lane; u < units; u += ROW_LANES) {
        const unit x = load_unit(o + u * step, bytes), y = load_unit(grad + u * step, bytes);
        sum += dot_of_units(a->type, &x, &y);
    }
    sum = sum_of_row_lanes(sum);
    if (lane == 0 && row < s.seqlen_q)
        ((GLOBAL float *)(uint64_t)
             a->d)[element_of(s.batch, a->batch_stride_lsed, head, a->nhead_stride_lsed, token, 1)] = sum;
}

// ---- d_sink

LDS float of_threads[THREADS];

// A head's: every thread adds some rows of all sequences in their order, and then the sums of threads are added.
INLINE void sum_sink(const args *a) {
    const int head = workgroup_x(), thread = thread_id();
    float sum = 0.0f;
    for (int b = 0; b < a->batch; b++) {
        const struct sequence s = find_sequence(a, b);
        const float sink = ((GLOBAL const float *)(uint64_t)a->sink)[b * a->batch_stride_sink + head];
        const int64_t at = element_of(b, a->batch_stride_lsed, head, a->nhead_stride_lsed, s.token_q, 1);
        GLOBAL const float *lse = (GLOBAL const float *)(uint64_t)a->lse + at;
        GLOBAL const float *d = (GLOBAL const float *)(uint64_t)a->d + at;
        if (sink == -INFINITY_F32) continue; // none, and lse may be the same
        for (int i = thread; i < s.seqlen_q; i += THREADS) sum -= exp2_fast((sink - lse[i]) * LOG2E) * d[i];
    }
    of_threads[thread] = sum;
    barrier();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half) of_threads[thread] += of_threads[thread + half];
        barrier();
    }
    if (thread == 0) ((GLOBAL float *)(uint64_t)a->d_sink)[head] = of_threads[0];
}

// ---- the workspace's head

LDS int64_t ends_of_threads[THREADS];

// Elements of dq_acc of a sequence.
INLINE int parts_of(const args *a, int b) {
    if (!a->is_dq_stored) return a->nsplits_of_all;
    const int keys = read_int(a->seqstart_k, b + 1) - read_int(a->seqstart_k, b);
    return min_i32((keys + a->bn0 - 1) / a->bn0, a->blocks_k);
}
INLINE int64_t elements_of(const args *a, int b) {
    const int64_t queries = read_int(a->seqstart_q, b + 1) - read_int(a->seqstart_q, b);
    return queries * a->nhead_q * parts_of(a, b) * a->hdim_q;
}

// Every thread has a stretch of the sequences.
INLINE void write_head(const args *a) {
    const int thread = thread_id(), share = (a->batch + THREADS - 1) / THREADS;
    const int begin = min_i32(thread * share, a->batch), end = min_i32(begin + share, a->batch);
    GLOBAL int32_t *nsplits = (GLOBAL int32_t *)(uint64_t)a->nsplits;
    GLOBAL int64_t *offsets = (GLOBAL int64_t *)(uint64_t)a->dq_acc_offsets;
    int64_t offset = 0;
    if (thread == 0 && !a->is_by_sequence) nsplits[0] = a->nsplits_of_all;
    if (!a->dq_acc_offsets) return;
    for (int b = begin; b < end; b++) offset += elements_of(a, b);
    ends_of_threads[thread] = offset;
    barrier();
    for (int before = 0; before < thread; before++) offset += ends_of_threads[before];
    offset -= ends_of_threads[thread];
    if (thread == 0) offsets[0] = 0;
    for (int b = begin; b < end; b++) {
        offset += elements_of(a, b);
        offsets[b + 1] = offset;
        if (a->is_by_sequence) nsplits[b] = parts_of(a, b);
    }
}

#endif
