// SPDX-License-Identifier: MIT
// Adds what a step has of dq, which convert_dq multiplies by the scale, to dq_acc, by way of shared memory: hardware
// adds boxes of DQ_ROWS queries and 32 columns while the warps go on. In any order, or by turns: of a tile's blocks of
// keys each waits for the one before.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_DQ_H

#include "tessera/device/attention/cuda_bwd/task.h"

#include "tessera/device/attention/gpu/dq_order.h"

enum { BOX_BYTES = DQ_ROWS * SLICE };

// Where query 0 of a head lies in dq_acc, whose rows are those of planes: in batch mode each head is a plane, in group
// mode all rows are one.
struct dq_place {
    int row, plane;
};

INLINE struct dq_place find_dq(const launch *a, uint32_t task_at) {
    struct task task;
    get_task(task_at, &task);
    if (!a->call.dq_acc_offsets) return (struct dq_place){0, task.batch * a->call.nhead_q + task.head};
    const int64_t begin = ((GLOBAL const int64_t *)(uint64_t)a->call.dq_acc_offsets)[task.batch];
    const int rows = read_int(a->call.seqstart_q, task.batch + 1) - task.token_q;
    return (struct dq_place){(int)((uint64_t)begin / (uint32_t)a->call.hdim_q) + task.head * rows, 0};
}

// The same of the task's next head.
INLINE void move_to_next_head(struct dq_place *dq, const launch *a, uint32_t task_at) {
    if (a->call.dq_acc_offsets)
        dq->row += read_int(a->call.seqstart_q, TASK_FIELD(task_at, batch) + 1) - TASK_FIELD(task_at, token_q);
    else
        dq->plane++;
}

// A step's tile of dq: `rows` queries to the sequence's end, and where its first row is.
struct dq_tile {
    int rows, row, plane;
};

// That of a task's queries from `query` on.
INLINE struct dq_tile dq_tile_at(uint32_t task_at, struct dq_place dq, int query) {
    return (struct dq_tile){TASK_FIELD(task_at, seqlen_q) - query, dq.row + query, dq.plane};
}

// The number of a row among those of all planes.
INLINE int64_t dq_row(const launch *a, int row, int plane) {
    return (int64_t)(uint32_t)plane * a->call.seqlen_q + (uint32_t)row;
}

// ---- turns

enum { NOT_SEEN = -1 }; // no number of a turn

// The number in memory that says whose turn it is at the tile of dq whose first row is `row`.
INLINE uint32_t *turns_of(const launch *a, int row, int plane) { return a->turns + dq_row(a, row, plane); }

// The turn of the task's block of keys at the tile of `rows` queries to the sequence's end: the number of the block
// before it that has this tile, too, plus 1, and 0 if there is none: the queries of later blocks end later, except
// those of sinks. By any lanes.
INLINE uint32_t turn_of(uint32_t task_at, int rows) {
    const int seqlen_q = TASK_FIELD_OF_LANE(task_at, seqlen_q), query = seqlen_q - rows;
    const int block = TASK_FIELD_OF_LANE(task_at, first) / BN;
    const int sinks = (TASK_FIELD_OF_LANE(task_at, sink) + BN - 1) / BN;
    if (query < TASK_FIELD_OF_LANE(task_at, end_before)) return (uint32_t)block;
    return query < min_i32(seqlen_q, TASK_FIELD_OF_LANE(task_at, seqlen_k)) ? (uint32_t)min_i32(block, sinks) : 0;
}

INLINE uint32_t next_turn(uint32_t task_at) { return (uint32_t)(TASK_FIELD_OF_LANE(task_at, first) / BN) + 1; }

// `seen`: what the turn's number was when it was read before, or NOT_SEEN.
INLINE void begin_turn(const launch *a, uint32_t task_at, struct dq_tile tile, uint32_t seen) {
    await_turn(turns_of(a, tile.row, tile.plane), turn_of(task_at, tile.rows), seen);
}

// ---- boxes, and elements

#if DQ_TURNED
// Puts the columns into the boxes of a warpgroup, whose pieces of 16 bytes are swizzled by the row's number. With
// pieces in the order that dq_order.h says, a warp's stores, of eight columns of four queries, go to different banks.
INLINE void put_boxes(const float x[DQ_SUMS], const launch *a, uint32_t room, int first, int thread) {
    (void)first;
    const int lane = thread % 32, warp = thread / 32 % 4, halves = has_halves(a->call.hdim_q);
    const int piece = (halves ? 4 : 1) * (lane / 16) + (halves ? 2 : 4) * (warp % 2);
    const uint32_t at = room + warp / 2 * BOX_BYTES + lane % 4 * SLICE + lane / 4 % 4 * 4;
    UNROLL
    for (int i = 0; i < 4; i++) {
        const int r = i / 2, e = i % 2;
        const uint32_t to = at + 4 * e * SLICE + ((piece + r * (halves ? 1 : 2)) ^ (lane % 4 + 4 * e)) * 16;
        UNROLL
        for (int j = 0; j < BM / 8; j++) shared_store_f32(to + 8 * j * SLICE, x[ELEMENT(j, r, e)]);
    }
}
#else
// Puts DQ_ROOM columns, from `first` on, into the boxes of a warpgroup, whose pieces of 16 bytes are swizzled by the
// row's number. With pieces in the order that dq_order.h says, the stores of a half of a warp, four rows, go to
// different banks.
INLINE void put_boxes(const float x[DQ_SUMS], const launch *a, uint32_t room, int first, int thread) {
    const int lane = thread % 32, warp = thread / 32 % 4, halves = has_halves(a->call.hdim_q);
    const int piece = lane % 4 / 2 * (halves ? 4 : 1) ^ lane / 4;
    const uint32_t at = room + (16 * warp + lane / 4) * SLICE + piece * 16 + lane % 2 * 8;
    UNROLL
    for (int j = 0; j < 4; j++) {
        const uint32_t to = at ^ (uint32_t)(j * (halves ? 16 : 32));
        UNROLL
        for (int n = 0; n < DQ_ROOM / 16; n++) {
            const int box = n / 2, r = n % 2, i = first / 8 + 4 * box + j;
            shared_store_f32x2(to + box * BOX_BYTES + r * 8 * SLICE, (f32x2){x[ELEMENT(i, r, 0)], x[ELEMENT(i, r, 1)]});
        }
    }
}
#endif

// Starts to add boxes of a warpgroup to memory, by one lane.
INLINE void start_boxes(const launch *a, uint32_t room, int warpgroup, int first, int row, int plane) {
    for (int slice = 0; slice < DQ_ROOM / 32; slice++)
        add_box(&a->map_dq, room + slice * BOX_BYTES, dq_column(warpgroup, first / 32 + slice),
                row + dq_query(warpgroup), plane);
    commit_boxes();
}

// The same from registers: where there is no map, and where another head's rows follow.
#if DQ_TURNED
INLINE void add_elements(const float x[DQ_SUMS], const launch *a, struct dq_tile tile, int thread) {
    const int warpgroup = thread / WARPGROUP - 1, hdim = a->call.hdim_q, own = thread % 4;
    const int column = dq_column(warpgroup, 0) + thread % WARPGROUP / 32 * 16 + thread % 32 / 4;
    float *const to = a->call.dq_acc + (dq_row(a, tile.row, tile.plane) + own) * hdim;
    UNROLL
    for (int i = 0; i < DQ_SUMS; i++) {
        const int row = 8 * (i / 4) + i % 2 * 4, r = i / 2 % 2;
        if (own + row >= tile.rows || column + 8 * r >= hdim) continue;
        add_f32(to + row * hdim + dq_position(column + 8 * r, hdim), x[i]);
    }
}
#else
INLINE void add_elements(const float x[DQ_SUMS], const launch *a, struct dq_tile tile, int thread) {
    const int warpgroup = thread / WARPGROUP - 1, hdim = a->call.hdim_q;
    const int halves = has_halves(hdim), lane = thread % 4, step = halves ? 4 : 8; // between groups of columns
    const int first = dq_column(warpgroup, 0) + (halves ? lane / 2 * 16 + lane % 2 * 2 : lane * 2);
    const int own = dq_query(warpgroup) + thread % WARPGROUP / 32 * 16 + thread % 32 / 4;
    float *const to = a->call.dq_acc + (dq_row(a, tile.row, tile.plane) + own) * hdim + first;
    UNROLL
    for (int i = 0; i < DQ_SUMS; i++) {
        const int r = i / 2 % 2, slice = i / 16;
        const int column = dq_column(warpgroup, slice) - dq_column(warpgroup, 0) + i / 4 % 4 * step + i % 2;
        if (own + 8 * r >= tile.rows || first + column >= hdim) continue;
        add_f32(to + 8 * r * hdim + column, x[i]);
    }
}
#endif

// Whether boxes are added, of a step from whose first query there are `rows` to the sequence's end.
INLINE int is_by_box(const launch *a, int rows) {
    return a->maps & TESSERA_CUDA_BWD_MAP_DQ && (rows >= BM || !a->call.seqstart_q);
}

#endif
