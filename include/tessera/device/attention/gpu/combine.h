// SPDX-License-Identifier: MIT
// Combines the results of parts of the keys, a row by a wave: what tessera/kernel/fmha_fwd_combine_gpu.h says.
//
// Takes HAS_FP8.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_COMBINE_H
#define TESSERA_DEVICE_ATTENTION_GPU_COMBINE_H

#include "tessera/kernel/fmha_fwd_combine_gpu.h"

typedef struct tessera_fmha_fwd_combine_args problem;

struct row {
    const float *o_acc, *lse_acc; // of the first part
    int64_t o, lse;               // elements
    int head;
};

INLINE int queries_of(const problem *p, int batch) {
    int physical = p->seqlen_q;
    if (p->seqstart_q) physical = p->seqstart_q[batch + 1] - p->seqstart_q[batch];
    if (p->seqlen_q_of) return min_i32(physical, p->seqlen_q_of[batch]);
    if (p->cu_seqlen_q) return min_i32(physical, p->cu_seqlen_q[batch + 1] - p->cu_seqlen_q[batch]);
    return physical;
}

// Finds a row by its number; returns whether there is one that is to be written.
INLINE int find_row(struct row *row, const problem *p, int number) {
    const int head = number / p->queries, query = number - head * p->queries, batch = head / p->nhead_q;
    if (batch >= p->batch) return 0;
    const int queries = queries_of(p, batch);
    if (query >= queries || queries <= p->min_seqlen_q || queries > p->queries) return 0;
    const int64_t token = (p->seqstart_q ? p->seqstart_q[batch] : 0) + query;
    row->head = head - batch * p->nhead_q;
    row->o_acc = p->o_acc + (int64_t)number * p->splits * p->hdim_v;
    row->lse_acc = p->lse_acc + (int64_t)number * p->splits;
    row->o = batch * p->batch_stride_o + row->head * p->nhead_stride_o + token * p->stride_o;
    row->lse = batch * p->batch_stride_lse + row->head * p->nhead_stride_lse + token;
    return 1;
}

// ---- weights

struct weights {
    float max, over; // part s has the weight exp2(lse_acc[s] - max) * over
    float log2_sum;  // of all parts and the sink
    int parts;       // behind them none has a key
};

// A number whose order among unsigned ones is that of x; that of NaN is the greatest.
INLINE uint32_t ordered(float x) {
    const uint32_t bits = x == x ? AS_U32(x) : 0x7fffffff;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}
INLINE float of_order(uint32_t bits) { return AS_F32(bits >> 31 ? bits & 0x7fffffff : ~bits); }

INLINE struct weights weights_of(const struct row *row, const problem *p) {
    uint32_t most = ordered(-INFINITY_F32), last = 0;
    float sum = 0.0f;
    for (int s = lane_id(); s < p->splits; s += WAVE_LANES) {
        const float part = row->lse_acc[s];
        most = max_u32(most, ordered(part));
        if (part != -INFINITY_F32) last = (uint32_t)s + 1;
    }
    struct weights x = {of_order(greatest_of_lanes(most)), 0.0f, -INFINITY_F32, uniform((int)greatest_of_lanes(last))};
    const float sink = p->sink ? LOG2E * p->sink[row->head] : -INFINITY_F32;
    x.max = x.max == x.max ? max_f32(x.max, sink) : x.max;
    if (x.max == -INFINITY_F32) x.max = 0.0f; // there is no key
    for (int s = lane_id(); s < x.parts; s += WAVE_LANES) sum += exp2_fast(row->lse_acc[s] - x.max);
    sum = sum_of_lanes(sum) + exp2_fast(sink - x.max);
    if (sum == 0.0f) return x;
    x.over = reciprocal(sum);
    x.log2_sum = x.max + log2_fast(sum);
    return x;
}

// ---- values

INLINE f32x4 sum_of_parts(const struct row *row, const problem *p, const struct weights *weights, int column) {
    enum { TOGETHER = 8 }; // parts whose loads are on their way at once
    f32x4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int first = 0; first < weights->parts; first += TOGETHER) {
        f32x4 o[TOGETHER];
        float part[TOGETHER];
        UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            const int s = min_i32(first + k, weights->parts - 1);
            part[k] = first + k < weights->parts ? row->lse_acc[s] : -INFINITY_F32;
            o[k] = *(GLOBAL const f32x4 *)(uint64_t)(row->o_acc + (int64_t)s * p->hdim_v + column);
        }
        UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            const float weight = exp2_fast(part[k] - weights->max) * weights->over;
            UNROLL
            for (int i = 0; i < 4; i++) sum[i] += part[k] == -INFINITY_F32 ? 0.0f : weight * o[k][i];
        }
    }
    return sum;
}

INLINE void store_columns(const struct row *row, const problem *p, int column, f32x4 x) {
    char *const o = (char *)p->o;
    const int64_t at = row->o + column;
    if (p->type == TESSERA_COMBINED_FP32) *(GLOBAL f32x4 *)(uint64_t)(o + 4 * at) = x;
#if HAS_FP8
    else if (p->type == TESSERA_COMBINED_FP8)
        *(GLOBAL uint32_t *)(uint64_t)(o + at) = pack_fp8(x.x, x.y, x.z, x.w);
#endif
    else if (p->type == TESSERA_COMBINED_FP16)
        *(GLOBAL u32x2 *)(uint64_t)(o + 2 * at) = (u32x2){pack_fp16(x.x, x.y), pack_fp16(x.z, x.w)};
    else
        *(GLOBAL u32x2 *)(uint64_t)(o + 2 * at) = (u32x2){pack_bf16(x.x, x.y), pack_bf16(x.z, x.w)};
}

#endif
