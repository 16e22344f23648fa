// SPDX-License-Identifier: MIT
// Adds what a step has of dq to the task's part of dq_acc, by way of shared memory: hardware adds boxes of 64 queries
// and 32 columns while the warps go on.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H

#include "tessera/device/attention/cuda_bwd/task.h"

// Where query 0 of a head lies in dq_acc, whose rows are those of planes: in batch mode each head's part is a plane, in
// group mode all rows are one.
struct dq_place {
    int row, plane;
};

INLINE struct dq_place find_dq(const launch *a, uint32_t task_at) {
    struct task task;
    get_task(task_at, &task);
    const int parts = read_int(a->call.nsplits, a->call.is_by_sequence ? task.batch : 0);
    const int part = task.head * parts + task.part;
    if (!a->call.dq_acc_offsets) return (struct dq_place){0, task.batch * a->call.nhead_q * parts + part};
    const int64_t begin = ((GLOBAL const int64_t *)(uint64_t)a->call.dq_acc_offsets)[task.batch];
    const int rows = read_int(a->call.seqstart_q, task.batch + 1) - task.token_q;
    return (struct dq_place){(int)((uint64_t)begin / (uint32_t)a->call.hdim_q) + part * rows, 0};
}

// The same of the task's next head.
INLINE void move_to_next_head(struct dq_place *dq, const launch *a, uint32_t task_at) {
    const int batch = TASK_FIELD(task_at, batch);
    const int parts = read_int(a->call.nsplits, a->call.is_by_sequence ? batch : 0);
    if (a->call.dq_acc_offsets)
        dq->row += parts * (read_int(a->call.seqstart_q, batch + 1) - TASK_FIELD(task_at, token_q));
    else
        dq->plane += parts;
}

// Columns from `first` on. What was committed before has been read, as all warps know.
INLINE void add_some_boxes(const float x[DQ_SUMS], const launch *a, uint32_t base, int first, int row, int plane,
                           int thread) {
    enum { BOX_BYTES = 64 * SLICE };
    const int lane = thread % 32, warp = thread / 32 % 4, warpgroup = thread / WARPGROUP - 1;
    const uint32_t room = base + AT_DQ + warpgroup * 64 * 4 * DQ_ROOM;
    const uint32_t at = room + (16 * warp + lane / 4) * SLICE + lane % 2 * 8;
    const int piece = lane % 4 / 2 ^ lane / 4;
    UNROLL
    for (int j = 0; j < DQ_ROOM / 8; j++) {
        const int from = first / 8 + j;
        UNROLL
        for (int r = 0; r < 2; r++)
            shared_store_f32x2(at + j / 4 * BOX_BYTES + 8 * r * SLICE + (piece ^ j % 4 * 2) * 16,
                               (f32x2){x[ELEMENT(from, r, 0)] * a->call.scale, x[ELEMENT(from, r, 1)] * a->call.scale});
    }
    finish_stores();
    meet_warpgroup(2 + warpgroup);
    if (lane > 0 || warp > 0) return;
    for (int slice = 0; slice < DQ_ROOM / 32; slice++) {
        const int column = dq_column(warpgroup, first / 32 + slice);
        if (a->call.is_dq_stored_all)
            store_box(&a->map_dq, room + slice * BOX_BYTES, column, row, plane);
        else
            add_box(&a->map_dq, room + slice * BOX_BYTES, column, row, plane);
    }
    commit_boxes();
}

INLINE void add_boxes(const float x[DQ_SUMS], const launch *a, uint32_t base, int row, int plane, int thread) {
    UNROLL
    for (int first = 0; first < DQ_COLUMNS; first += DQ_ROOM) {
        if (first > 0) {
            await_boxes_read();
            meet_warpgroup(2 + (thread / WARPGROUP - 1));
        }
        add_some_boxes(x, a, base, first, row, plane, thread);
    }
}

// The same from registers, for `rows` rows: where there is no map, and where another head's rows follow.
INLINE void add_elements(const float x[DQ_SUMS], const launch *a, int row, int plane, int rows, int thread) {
    const int warpgroup = thread / WARPGROUP - 1, hdim = a->call.hdim_q;
    const int first = dq_column(warpgroup, 0) + thread % 4 * 2;
    const int own = thread % WARPGROUP / 32 * 16 + thread % 32 / 4;
    float *const to =
        a->call.dq_acc + ((int64_t)(uint32_t)plane * a->call.seqlen_q + (uint32_t)row + own) * hdim + first;
    UNROLL
    for (int i = 0; i < DQ_SUMS; i++) {
        const int r = i / 2 % 2, slice = i / 16;
        const int column = dq_column(warpgroup, slice) - dq_column(warpgroup, 0) + COLUMN(i / 4 % 4, i % 2);
        if (own + 8 * r >= rows || first + column >= hdim) continue;
        float *const here = to + 8 * r * hdim + column;
        if (a->call.is_dq_stored_all)
            *(GLOBAL float *)(uint64_t)here = x[i] * a->call.scale;
        else
            add_f32(here, x[i] * a->call.scale);
    }
}

// `row`: of the step's first query; `rows`: from it to the sequence's end.
INLINE void add_to_dq(const float x[DQ_SUMS], const launch *a, uint32_t base, int row, int plane, int rows,
                      int thread) {
    if (a->maps & TESSERA_CUDA_BWD_MAP_DQ && (rows >= BM || !a->call.seqstart_q))
        add_boxes(x, a, base, row, plane, thread);
    else
        add_elements(x, a, row, plane, rows, thread);
}

#endif
