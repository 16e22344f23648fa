// SPDX-License-Identifier: MIT
// A wave's rows where a tile has the queries of all heads of a key head: loads q, and stores o and the logarithm of the
// sum, or those of a part of the keys. Rows past the last one are copies of it that are not stored. Elements of o have
// O_BITS; TWO_OF_O packs two of 16.
//
// Takes args, P_SHIFT, MERGED, DIRECT, PIECES, O_BITS, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MERGED_QUERIES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MERGED_QUERIES_H

#include "tessera/device/attention/cdna/task.h"
#include "tessera/device/attention/cdna/totals.h"
#include "tessera/kernel/fmha_fwd_cdna.h"

// A lane's row of the wave's. Of 16 where products have 32 columns, lanes l and l + 8 of 16 have the same one
// (parts_of_8_bits.h).
INLINE int row_of_lane(void) {
    return WAVE_ROWS == MMA_ROWS ? lane_id() % MMA_ROWS : lane_id() % 32 / 16 * 8 + lane_id() % 8;
}
INLINE int has_copy_of_row(void) { return WAVE_ROWS != MMA_ROWS && lane_id() & 8; }
INLINE int row_number(const struct task *task) { return task->first + WAVE_ROWS * wave_id() + row_of_lane(); }

INLINE struct row find_row(const args *a, const struct task *task) {
    const int number = min_i32(row_number(task), count_rows(a, task) - 1), query = row_query(a, number);
    struct row row;
    row.query = query, row.max = -INFINITY_F32, row.sum = 0.0f;
    row.head = task->head + number - query * a->group;
#if DESCALED
    row.descale = 1.0f; // those of blocks are not served
#endif
    return row;
}

// Element (r, 0) of a tensor of queries.
INLINE int64_t row_element(const struct task *task, const struct row *r, int64_t batch_stride, int64_t nhead_stride,
                           int64_t stride) {
    return task->batch * batch_stride + r->head * nhead_stride + (task->token_q + r->query) * stride;
}

// Which chunk of a row an operand's chunk is, where a lane has runs of two of K (direct_rows.h) and where not.
#if DIRECT
INLINE int chunk_of_operand(int c) { return c / 2 * (2 * SHARES) + 2 * (lane_id() / MMA_ROWS) + c % 2; }
#else
INLINE int chunk_of_operand(int c) { return SHARES * c + lane_id() / MMA_ROWS; }
#endif

// Which columns of O lanes have, where these are of rows of V (direct_linear.h) and where not.
#if DIRECT && !PIECES
INLINE int first_column(int four) {
    return D_BLOCKS * (four / D_BLOCKS * 8 + 4 * (lane_id() / MMA_ROWS)) + four % D_BLOCKS * 4;
}
INLINE float element_of_column(const mma_sums o[D_BLOCKS], int four, int n) {
    const int of_run = four % D_BLOCKS * 4 + n;
    return o[of_run % D_BLOCKS][four / D_BLOCKS * 4 + of_run / D_BLOCKS];
}
#else
enum { FOURS = ELEMENTS / 4 };
INLINE int first_column(int four) { return four / FOURS * MMA_ROWS + four % FOURS * 8 + 4 * (lane_id() / MMA_ROWS); }
INLINE float element_of_column(const mma_sums o[D_BLOCKS], int four, int n) {
    return o[four / FOURS][four % FOURS * 4 + n];
}
#endif
INLINE f32x4 four_columns(const mma_sums o[D_BLOCKS], int four) {
    return (f32x4){element_of_column(o, four, 0), element_of_column(o, four, 1), element_of_column(o, four, 2),
                   element_of_column(o, four, 3)};
}

INLINE void load_q(operand q[Q_STEPS], const args *a, const struct task *task, const struct row *r) {
    const int64_t first = row_element(task, r, a->batch_stride_q, a->nhead_stride_q, a->stride_q);
    const char *const row = (const char *)a->q + BYTES(first);
    UNROLL
    for (int c = 0; c < Q_CHUNKS / SHARES; c++)
        q[c / OPERAND_CHUNKS].chunk[c % OPERAND_CHUNKS] = chunk_of_row(row, chunk_of_operand(c), a->hdim_q);
}

// Stores all of the lane's columns of O by `store`, of four elements `x` from `column` on.
#define STORE_COLUMNS(o, over, hdim_v, store)                                                                          \
    UNROLL                                                                                                             \
    for (int four = 0; four < D_BLOCKS * ELEMENTS / 4; four++) {                                                       \
        const int column = first_column(four);                                                                         \
        const f32x4 x = four_columns(o, four) * (over);                                                                \
        if (column < (hdim_v)) store;                                                                                  \
    }

// Four elements of O.
#if O_BITS == 32
typedef f32x4 stored;
INLINE stored as_stored(f32x4 x) { return x; }
#elif O_BITS == 16
typedef u32x2 stored;
INLINE stored as_stored(f32x4 x) { return (u32x2){TWO_OF_O(x.x, x.y), TWO_OF_O(x.z, x.w)}; }
#else
typedef uint32_t stored;
INLINE stored as_stored(f32x4 x) { return pack_fp8(x.x, x.y, x.z, x.w); }
#endif

// Stores O over the sum and the logarithm of the sum. The maximum score is scale * r->max, and O is unit * o.
INLINE void store_o(const struct row *r, const mma_sums o[D_BLOCKS], float scale, float unit) {
    const struct tessera_fmha_fwd_cdna_args *p = (const struct tessera_fmha_fwd_cdna_args *)kernel_argument();
    const args *a = &p->call;
    const struct task task = find_task(a);
    const struct total total = total_of(r, a, r->head, scale, unit);
    if (row_number(&task) >= count_rows(a, &task) || has_copy_of_row()) return;
    if (p->parts > 1) {
        const int64_t head = (int64_t)task.batch * a->nhead_q + r->head;
        const int64_t number = (head * p->queries + r->query) * p->parts + part_of_keys(a);
        float *const to = p->o_acc + number * a->hdim_v;
        STORE_COLUMNS(o, total.over, a->hdim_v, *(GLOBAL f32x4 *)(uint64_t)(to + column) = x);
        if (lane_id() < MMA_ROWS) p->lse_acc[number] = log2_of(&total);
        return;
    }
    const int64_t first = row_element(&task, r, a->batch_stride_o, a->nhead_stride_o, a->stride_o);
    char *const to = (char *)a->o + O_BITS / 8 * first;
    STORE_COLUMNS(o, total.over, a->hdim_v, *(GLOBAL stored *)(uint64_t)(to + O_BITS / 8 * column) = as_stored(x));
    if (a->lse && lane_id() < MMA_ROWS)
        a->lse[row_element(&task, r, a->batch_stride_lse, a->nhead_stride_lse, 1)] = log2_of(&total) * LN2;
}

#endif
