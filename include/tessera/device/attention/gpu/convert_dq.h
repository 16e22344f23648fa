// SPDX-License-Identifier: MIT
// Backward: dq is the sum of its parts, in their order. 16 lanes have a row; a workgroup has THREADS / 16 of them.
//
// Takes VECTORS, THREADS, ROWS, SCALED: 0: parts are of dq over the scale; IN_ORDER: 0: columns lie as dq_order.h says.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_CONVERT_DQ_H
#define TESSERA_DEVICE_ATTENTION_GPU_CONVERT_DQ_H

#include "tessera/device/attention/gpu/backward.h"
#include "tessera/device/attention/gpu/dq_order.h"
#include "tessera/device/attention/gpu/units.h"

enum { ROW_LANES = THREADS / ROWS };

#if VECTORS
enum { TOGETHER = 4 }; // sums that a lane has at once
typedef f32x4 sums;
#else
enum { TOGETHER = 1 };
typedef float sums;
#endif

#define UNROLL_TWO _Pragma("unroll 2") // more takes registers that there are not

// So many sums, of elements `at`. Both of a unit are read part by part, since they lie in one line.
INLINE void sum_parts(const args *a, const struct dq_parts *parts, const int64_t *at, sums *sum, int count) {
    UNROLL
    for (int i = 0; i < count; i++) sum[i] = *(GLOBAL const sums *)(uint64_t)(parts->first + at[i]);
    UNROLL_TWO
    for (int part = 1; part < parts->count; part++) {
        UNROLL
        for (int i = 0; i < count; i++)
            sum[i] += *(GLOBAL const sums *)(uint64_t)(parts->first + part * parts->stride + at[i]);
    }
    UNROLL
    for (int i = 0; i < count; i++) sum[i] = SCALED ? sum[i] : sum[i] * a->scale;
}

INLINE int position(const args *a, int column) { return IN_ORDER ? column : dq_position(column, a->hdim_q); }

// The unit of a row whose first column is `column`. Element `at` of the row's parts is that of column 0.
INLINE unit convert_unit(const args *a, const struct dq_parts *parts, int64_t at, int column) {
    const int64_t places[] = {at + position(a, column), at + position(a, column + TOGETHER)};
    const sums none = {0};
    sums sum[2] = {none, none};
    unit x;
#if VECTORS
    const int is_fp32 = a->type == TESSERA_TYPE_FP32;
    if (parts->count > 0 && is_fp32) sum_parts(a, parts, places, sum, 1);
    if (parts->count > 0 && !is_fp32) sum_parts(a, parts, places, sum, 2);
    UNROLL
    for (int i = 0; i < 4; i++)
        x.word[i] =
            is_fp32 ? AS_U32(sum[0][i]) : bits_of_two(a->type, sum[i / 2][2 * i % 4], sum[i / 2][2 * i % 4 + 1]);
#else
    if (parts->count > 0) sum_parts(a, parts, places, sum, 1);
    x.word[0] = a->type == TESSERA_TYPE_FP32 ? AS_U32(sum[0]) : bits_of_two(a->type, sum[0], 0.0f);
#endif
    return x;
}

INLINE void convert_rows(const args *a) {
    const struct sequence s = find_sequence(a, workgroup_z());
    const int head = workgroup_y(), row = workgroup_x() * ROWS + thread_id() / ROW_LANES,
              lane = thread_id() % ROW_LANES;
    const int bytes = bytes_of_type(a->type), step = VECTORS ? 16 : bytes, units = a->hdim_q * bytes / step;
    if (row >= s.seqlen_q) return;
    const struct dq_parts parts = find_dq_parts(a, &s, head);
    char *dq = (char *)a->dq +
               bytes * element_of(s.batch, a->batch_stride_dq, head, a->nhead_stride_dq, s.token_q + row, a->stride_dq);
    for (int u = lane; u < units; u += ROW_LANES)
        store_unit(dq + u * step, convert_unit(a, &parts, (int64_t)row * a->hdim_q, u * (step / bytes)), bytes);
}

#endif
