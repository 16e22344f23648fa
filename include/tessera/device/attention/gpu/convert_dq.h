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

#define UNROLL_FOUR _Pragma("unroll 4") // more takes registers that there are not
INLINE sums sum_parts(const args *a, const struct dq_parts *parts, int64_t at) {
    sums sum = *(GLOBAL const sums *)(uint64_t)(parts->first + at);
    UNROLL_FOUR
    for (int part = 1; part < parts->count; part++)
        sum += *(GLOBAL const sums *)(uint64_t)(parts->first + part * parts->stride + at);
    return SCALED ? sum : sum * a->scale;
}

INLINE int position(const args *a, int column) { return IN_ORDER ? column : dq_position(column, a->hdim_q); }

// The unit of a row whose first column is `column`. Element `at` of the row's parts is that of column 0.
INLINE unit convert_unit(const args *a, const struct dq_parts *parts, int64_t at, int column) {
    const sums none = {0};
    const sums low = parts->count > 0 ? sum_parts(a, parts, at + position(a, column)) : none;
    unit x;
#if VECTORS
    if (a->type == TESSERA_TYPE_FP32) {
        UNROLL
        for (int i = 0; i < 4; i++) x.word[i] = AS_U32(low[i]);
        return x;
    }
    const sums high = parts->count > 0 ? sum_parts(a, parts, at + position(a, column + TOGETHER)) : none;
    UNROLL
    for (int i = 0; i < 2; i++) {
        x.word[i] = bits_of_two(a->type, low[2 * i], low[2 * i + 1]);
        x.word[2 + i] = bits_of_two(a->type, high[2 * i], high[2 * i + 1]);
    }
#else
    x.word[0] = a->type == TESSERA_TYPE_FP32 ? AS_U32(low) : bits_of_two(a->type, low, 0.0f);
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
