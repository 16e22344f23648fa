// SPDX-License-Identifier: MIT
// A wave's queries: loads q, stores o and the logarithm of the sum. WHOLE_CHUNKS: rows begin at multiples of 16 bytes,
// else of 4. store_four() is the epilogue's, for elements of O_BITS, and so is store_eight(), which STORES_EIGHT has
// taken.
//
// Takes args, MX, WHOLE_CHUNKS, O_BITS, STORES_EIGHT, store_four.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_QUERIES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_QUERIES_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"
#include "tessera/device/attention/cdna/totals.h"

#if MX
INLINE void load_q_scales(operand q[Q_STEPS], const args *a, const struct task *task, int query) {
    const int64_t first =
        query_element(task, a->batch_stride_q_descale, a->nhead_stride_q_descale, a->stride_q_descale);
    const int groups = (a->hdim_q + 31) / 32, stride = (int)a->stride_q_descale;
    const buffer from = rows_of(a->q_descale, first, task->seqlen_q - task->first, BM, stride, groups, 8);
    UNROLL
    for (int n = 0; n < Q_STEPS; n++) {
        const int group = 2 * n + lane_id() / 32;
        q[n].scale = buffer_load_1(from, group < groups ? (query - task->first) * stride + group : OUTSIDE);
    }
}
#endif

INLINE void load_q(operand q[Q_STEPS], const args *a, const struct task *task, int query) {
    const int64_t first = query_element(task, a->batch_stride_q, a->nhead_stride_q, a->stride_q);
    const buffer from = rows_of(a->q, first, task->seqlen_q - task->first, BM, a->stride_q, a->hdim_q, BITS);
    const int begin = lane_id() / 32, offset = BYTES((query - task->first) * (int)a->stride_q) + 16 * begin;
    UNROLL
    for (int c = 0; c < Q_CHUNKS / 2; c++) {
        const int chunk = 2 * c; // beside `begin`
#if !WHOLE_CHUNKS
        q[c / OPERAND_CHUNKS].chunk[c % OPERAND_CHUNKS] =
            load_chunk(from, offset + 16 * chunk, CHUNK * (chunk + begin), a->hdim_q);
#else
        q[c / OPERAND_CHUNKS].chunk[c % OPERAND_CHUNKS] =
            buffer_load_16(from, CHUNK * (chunk + begin) < a->hdim_q ? offset + 16 * chunk : OUTSIDE);
#endif
    }
#if MX
    load_q_scales(q, a, task, query);
#endif
}

// Stores O over the sum, to which a sink adds, and the logarithm of the sum. The maximum score is scale * r->max, and O
// is unit * o.
INLINE void store_o_of(const args *a, const struct task *task, const struct row *r, const f32x16 o[D_BLOCKS],
                       float scale, float unit) {
    const int row = r->query - task->first;
    const struct total total = total_of(r, a, task->head, scale, unit);

    const int left = task->seqlen_q - task->first, half = lane_id() / 32;
    const int64_t o_first = query_element(task, a->batch_stride_o, a->nhead_stride_o, a->stride_o);
    const buffer to = rows_of(a->o, o_first, left, BM, a->stride_o, a->hdim_v, O_BITS);
#if STORES_EIGHT
    const int offset = row * (int)a->stride_o + 8 * half;
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) {
        const f32x16 x = o[b] * total.over;
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 8) {
            const int column = 32 * b + 2 * e;
            const f32x4 first = {x[e], x[e + 1], x[e + 2], x[e + 3]};
            const f32x4 second = {x[e + 4], x[e + 5], x[e + 6], x[e + 7]};
            store_eight(to, column + 8 * half < a->hdim_v ? 2 * (offset + column) : OUTSIDE, first, second);
        }
    }
#else
    const int offset = row * (int)a->stride_o + 4 * half;
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const f32x16 x = o[b] * total.over;
            const f32x4 four = {x[e], x[e + 1], x[e + 2], x[e + 3]};
            if (32 * b + 2 * e < a->hdim_v) store_four(to, offset + 32 * b + 2 * e, four);
        }
    }
#endif
    const int64_t lse_first = query_element(task, a->batch_stride_lse, a->nhead_stride_lse, 1);
    const buffer lse = rows_of(a->lse, lse_first, a->lse ? left : 0, BM, 1, 1, 32);
    if (half == 0) buffer_store_4(lse, 4 * row, AS_U32(log2_of(&total) * LN2));
}

// The same, of block y of the workgroup's head and sequence. The task is found again: it takes no registers before.
INLINE void store_block(int y, const struct row *r, const f32x16 o[D_BLOCKS], float scale, float unit) {
    const args *a = (const args *)kernel_argument();
    const struct task task = task_at(a, workgroup_x(), y, workgroup_z());
    store_o_of(a, &task, r, o, scale, unit);
}
INLINE void store_o(const struct row *r, const f32x16 o[D_BLOCKS], float scale, float unit) {
    store_block(workgroup_y(), r, o, scale, unit);
}

#endif
