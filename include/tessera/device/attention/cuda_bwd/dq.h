// SPDX-License-Identifier: MIT
// Adds what a step has of dq to the task's part of dq_acc, by way of shared memory: hardware adds boxes of 64 queries
// and 32 columns while the warps go on.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H

#include "tessera/device/attention/cuda_bwd/task.h"

enum { BOX_BYTES = 64 * SLICE };

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

// Puts DQ_ROOM columns, from `first` on, into the boxes of a warpgroup, whose pieces of 16 bytes are swizzled by the
// row's number. Two rows that follow each other would write to the same banks, so that odd ones begin two groups of
// columns on.
INLINE void put_boxes(const float x[DQ_SUMS], const launch *a, uint32_t room, int first, int thread) {
    const int lane = thread % 32, warp = thread / 32 % 4, odd = lane / 4 % 2;
    const uint32_t at = room + (16 * warp + lane / 4) * SLICE + lane % 2 * 8;
    const int piece = lane % 4 / 2 ^ lane / 4 ^ 4 * odd;
    const float scale = a->call.scale;
    UNROLL
    for (int n = 0; n < DQ_ROOM / 8; n++) {
        const int j = n / 4 * 4 + n % 2, i = first / 8 + j; // columns 8 i and 8 (i + 2) of a box
        const uint32_t to = at + n / 4 * BOX_BYTES + n / 2 % 2 * 8 * SLICE, r = n / 2 % 2;
        const f32x2 even = {x[ELEMENT(i, r, 0)] * scale, x[ELEMENT(i, r, 1)] * scale};
        const f32x2 rest = {x[ELEMENT(i + 2, r, 0)] * scale, x[ELEMENT(i + 2, r, 1)] * scale};
        shared_store_f32x2(to + (piece ^ j % 4 * 2) * 16, odd ? rest : even);
        shared_store_f32x2(to + (piece ^ 4 ^ j % 4 * 2) * 16, odd ? even : rest);
    }
}

// Starts to add boxes of a warpgroup to memory, or to store them, by one lane.
INLINE void start_boxes(const launch *a, uint32_t room, int warpgroup, int first, int row, int plane) {
    for (int slice = 0; slice < DQ_ROOM / 32; slice++) {
        const int column = dq_column(warpgroup, first / 32 + slice);
        if (a->call.is_dq_stored_all)
            store_box(&a->map_dq, room + slice * BOX_BYTES, column, row, plane);
        else
            add_box(&a->map_dq, room + slice * BOX_BYTES, column, row, plane);
    }
    commit_boxes();
}

// Columns from `first` on. What was committed before has been read, as all warps know.
INLINE void add_some_boxes(const float x[DQ_SUMS], const launch *a, uint32_t base, int first, int row, int plane,
                           int thread) {
    const int warpgroup = thread / WARPGROUP - 1;
    const uint32_t room = base + AT_DQ + warpgroup * DQ_ROOM_BYTES;
    put_boxes(x, a, room, first, thread);
    finish_stores();
    meet_warpgroup(2 + warpgroup);
    if (thread % WARPGROUP == 0) start_boxes(a, room, warpgroup, first, row, plane);
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

// Whether boxes are added, of a step from whose first query there are `rows` to the sequence's end.
INLINE int is_by_box(const launch *a, int rows) {
    return a->maps & TESSERA_CUDA_BWD_MAP_DQ && (rows >= BM || !a->call.seqstart_q);
}

// `row`: of the step's first query; `rows`: from it to the sequence's end.
INLINE void add_to_dq(const float x[DQ_SUMS], const launch *a, uint32_t base, int row, int plane, int rows,
                      int thread) {
    if (is_by_box(a, rows))
        add_boxes(x, a, base, row, plane, thread);
    else
        add_elements(x, a, row, plane, rows, thread);
}

#endif
