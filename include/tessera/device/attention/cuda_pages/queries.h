// SPDX-License-Identifier: MIT
// The queries of a task as A of the products with K (sm90_quantised.h, add_product), in shared memory.
//
// Takes args, DQ, Q_BITS, Q_BF16, WARPS, MERGED.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_QUERIES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_QUERIES_H

#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/device/attention/cuda/task.h"
#include "tessera/device/attention/cuda_pages/numbers.h"

enum { STEPS = DQ / 16 };

// The thread's words of step `step` of Q.
INLINE uint32_t query_place(uint32_t base, int step) { return base + AT_Q + 512 * step + 16 * lane_id(); }

// Row r of the thread is in words r and 2 + r of each step.
INLINE void put_row(uint32_t q[STEPS][4], int r, int step, u32x4 x) {
    q[step][r] = x.x, q[step][2 + r] = x.y;
    q[step + 1][r] = x.z, q[step + 1][2 + r] = x.w;
}

// The eight numbers of two steps, of which Q_BITS == 8 has those that fp16 has too.
INLINE u32x4 load_eight(const char *from, int there) {
#if Q_BITS == 8
    const u32x2 low = fp16_of_e4m3(load_4(from, there)), high = fp16_of_e4m3(load_4(from + 4, there));
    return (u32x4){low.x, low.y, high.x, high.y};
#else
    return load_16(from, there);
#endif
}

INLINE void load_rows(uint32_t q[STEPS][4], const args *a, const struct task *task) {
    const int64_t sequence = sequence_element(task, a->call.batch_stride_q, a->call.stride_q);
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int there = own_row(task, r) < count_rows(a, task);
        const int64_t row =
            sequence + own_query(a, task, r) * a->call.stride_q + own_head(a, task, r) * a->call.nhead_stride_q;
        UNROLL
        for (int step = 0; step < STEPS; step += 2) {
            const int feature = key_feature(4 * step);
            const char *const from = (const char *)a->call.q + (row + feature) * (Q_BITS / 8);
            put_row(q, r, step, load_eight(from, there && feature < a->call.hdim_q));
        }
    }
}

#if Q_BF16
// Each row has its own unit.
INLINE void to_fp16(uint32_t q[STEPS][4], float unit[2]) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        float most = 0.0f;
        UNROLL
        for (int i = 0; i < 2 * STEPS; i++) most = greatest_bf16(most, q[i / 2][i % 2 * 2 + r]);
        unit[r] = unit_of(max_of_four(most));
        const float over = over_unit(unit[r]);
        UNROLL
        for (int i = 0; i < 2 * STEPS; i++) {
            uint32_t *const x = &q[i / 2][i % 2 * 2 + r];
            *x = fp16_of_bf16(*x, over);
        }
    }
}
#endif

// What row r of the thread is to be multiplied by, of rows with scales of their own.
INLINE float row_scale(const args *a, const struct task *task, int r) {
    if (own_row(task, r) >= count_rows(a, task)) return 1.0f;
    const int64_t token = (task->token_q + own_query(a, task, r)) * a->call.stride_q_descale;
    return ((const float *)a->call.q_descale)[token + own_head(a, task, r) * a->call.nhead_stride_q_descale];
}

// Each warp puts some of the steps there. Products with a row are to be multiplied by its unit.
INLINE void load_queries(uint32_t base, int warp, const args *a, const struct task *task, float unit[2]) {
    uint32_t q[STEPS][4];
    load_rows(q, a, task);
#if Q_BF16
    to_fp16(q, unit);
#else
    UNROLL
    for (int r = 0; r < 2; r++) unit[r] = has_scaled_rows(a) ? row_scale(a, task, r) : 1.0f;
#endif
    UNROLL
    for (int step = 0; step < STEPS; step++)
        if (step % WARPS == warp)
            shared_store_16(query_place(base, step), (u32x4){q[step][0], q[step][1], q[step][2], q[step][3]});
}

#endif
