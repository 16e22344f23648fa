// SPDX-License-Identifier: MIT
// Backward, planned loops: tiles of 32 queries of Q and dO go from memory straight to LDS, where products read them by
// rows and, by reads that transpose, by columns.
//
// LOAD_TO_LDS: loads 16 bytes a lane.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX, LDS_BANKS, LOAD_TO_LDS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_DIRECT_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_DIRECT_H

#include "tessera/device/attention/cdna/bwd_operands.h"
#include "tessera/device/attention/cdna/bwd_slots.h"
#include "tessera/device/attention/cdna/bwd_task.h"

// Two tiles of each: one is read while the other arrives. They are separate objects, so that the compiler knows that
// reads of one need not wait for loads to the other.
enum { CHUNKS = Q_CHUNKS, SCORE_CHUNKS = BM / CHUNK };
LDS u32x4 q_even[BM * CHUNKS], q_odd[BM * CHUNKS], o_even[BM * CHUNKS], o_odd[BM * CHUNKS]; // [query][column]
LDS u32x4 s_even[BN * SCORE_CHUNKS], s_odd[BN * SCORE_CHUNKS]; // gradients of scores, [key][query]

typedef SHARED u32x4 *lds_tile;
struct tiles {
    lds_tile q, o, s;
};
INLINE struct tiles tiles_of(int odd) {
    const struct tiles even_ones = {(lds_tile)q_even, (lds_tile)o_even, (lds_tile)s_even};
    const struct tiles odd_ones = {(lds_tile)q_odd, (lds_tile)o_odd, (lds_tile)s_odd};
    return odd ? odd_ones : even_ones;
}

// Where the lane reads and writes in LDS, in bytes, but for what is the same in all lanes.
struct reads {
    int row[Q_STEPS];                 // operands by rows
    int column[CHUNKS / 2];           // by columns: halves of blocks
    int turned[2], put[ELEMENTS / 4]; // gradients of scores
};

INLINE void find_reads(struct reads *r) {
    const int lane = lane_id(), half = lane / 32, row = lane % 32, key = 32 * wave_id() + row;
    const int of_row = 4 * half + lane % 16 / 4, chunk = lane / 16 % 2 * 2 + lane % 4 / 2;
    UNROLL
    for (int n = 0; n < Q_STEPS; n++)
        r->row[n] = here(16 * (row * CHUNKS + (int)slot_of((uint32_t)row, (uint32_t)(2 * n + half), CHUNKS)));
    UNROLL
    for (int n = 0; n < CHUNKS / 2; n++) {
        const uint32_t from = (uint32_t)(8 * (n % 2) + of_row), to = (uint32_t)(4 * (n / 2) + chunk);
        r->column[n] = here(16 * (int)(from * CHUNKS + slot_of(from, to, CHUNKS)) + 8 * (lane % 2));
    }
    UNROLL
    for (int n = 0; n < 2; n++) {
        const uint32_t from = (uint32_t)(8 * n + of_row);
        r->turned[n] =
            here(16 * (int)(from * SCORE_CHUNKS + slot_of(from, (uint32_t)chunk, SCORE_CHUNKS)) + 8 * (lane % 2));
    }
    UNROLL
    for (int n = 0; n < ELEMENTS / 4; n++)
        r->put[n] = here(16 * (key * SCORE_CHUNKS + (int)slot_of((uint32_t)key, (uint32_t)n, SCORE_CHUNKS)) + 8 * half);
}

INLINE SHARED const u32x4 *lds_at(lds_tile tile, int place, int chunks) {
    return (SHARED const u32x4 *)((SHARED const char *)tile + place) + chunks;
}
// Each of 16 lanes reads 4 columns of a row, and receives 4 rows of a column.
INLINE operand transposed(lds_tile tile, const int places[2], int chunks) {
    const u32x2 low = read_transposed(lds_at(tile, places[0], chunks));
    const u32x2 high = read_transposed(lds_at(tile, places[1], chunks));
    const operand x = {{{low.x, low.y, high.x, high.y}}};
    return x;
}
INLINE operand row_operand_at(const struct reads *r, lds_tile tile, int step) {
    const operand x = {{*lds_at(tile, r->row[step], 0)}};
    return x;
}
INLINE operand column_operand_at(const struct reads *r, lds_tile tile, int block, int step) {
    return transposed(tile, &r->column[2 * block], 16 * step * CHUNKS);
}
// Of gradients of scores, by queries.
INLINE operand score_operand(const struct reads *r, lds_tile tile, int step) {
    return transposed(tile, r->turned, 16 * step * SCORE_CHUNKS);
}
enum { PUTS = ELEMENTS / 4 };
// The gradients of four queries, for all waves.
INLINE void put_scores(const struct reads *r, const operand s[BLOCK_STEPS], lds_tile tile, int n) {
    const u32x4 words = s[n / 2].chunk[0];
    *(SHARED u32x2 *)((SHARED char *)tile + r->put[n]) = n % 2 ? words.hi : words.lo;
}

// A column of all keys of K, in the order in which transposing reads give gradients of scores.
INLINE void load_key_column(operand to[KEY_STEPS], buffer from, int stride, int column, int hdim) {
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) {
        UNROLL
        for (int w = 0; w < 4; w++) {
            const int key = 16 * n + 8 * (w / 2) + 4 * (lane_id() / 32) + 2 * (w % 2);
            const int place = column < hdim ? BYTES(key * stride + column) : OUTSIDE;
            to[n].chunk[0][w] = low_halves(buffer_load_2(from, place), buffer_load_2(from, place + BYTES(stride)));
        }
    }
}

// ---- loads

enum { LOADS = BM * CHUNKS / THREADS }; // of a wave, for a tile
struct way {
    int at_q[LOADS], at_o[LOADS], in_tile; // where a lane loads, and where a wave's loads go
    const char *rows_q, *rows_o;           // of the tile that is loaded next
    uint32_t step_q, step_o, bytes_q, bytes_o;
};

INLINE void find_way(struct way *w, const args *a) {
    const int stride_q = (int)a->stride_q, stride_o = (int)a->stride_do;
    UNROLL
    for (int n = 0; n < LOADS; n++) {
        const uint32_t place = (uint32_t)(THREADS * n + thread_id()), row = place / CHUNKS;
        const int chunk = (int)slot_of(row, place % CHUNKS, CHUNKS);
        w->at_q[n] = here(CHUNK * chunk < a->hdim_q ? BYTES((int)row * stride_q) + 16 * chunk : OUTSIDE);
        w->at_o[n] = here(CHUNK * chunk < a->hdim_v ? BYTES((int)row * stride_o) + 16 * chunk : OUTSIDE);
    }
    w->in_tile = 16 * 64 * wave_id();
    w->step_q = BYTES(BM * (uint32_t)stride_q);
    w->step_o = BYTES(BM * (uint32_t)stride_o);
}

// Find the rows from query `first` on, of which `left` exist: each tensor by the argument anew, or both together would
// take more scalars than there are.
INLINE void aim_at_q(struct way *w, const struct task *task, int first, int left) {
    const args *a = (const args *)kernel_argument();
    const int64_t row = query_element(task, a->batch_stride_q, a->nhead_stride_q, a->stride_q, first);
    w->rows_q = pointer_here((const char *)a->q + BYTES(row));
    w->bytes_q = bytes_of_rows(left, BM, a->stride_q, a->hdim_q, BITS);
}
INLINE void aim_at_o(struct way *w, const struct task *task, int first, int left) {
    const args *a = (const args *)kernel_argument();
    const int64_t row = query_element(task, a->batch_stride_do, a->nhead_stride_do, a->stride_do, first);
    w->rows_o = pointer_here((const char *)a->d_o + BYTES(row));
    w->bytes_o = bytes_of_rows(left, BM, a->stride_do, a->hdim_v, BITS);
}
INLINE void aim_way(struct way *w, const struct task *task, int first, int left) {
    aim_at_q(w, task, first, left);
    aim_at_o(w, task, first, left);
}
INLINE void move_q(struct way *w) { w->rows_q = pointer_here(w->rows_q + w->step_q); }
INLINE void move_o(struct way *w) { w->rows_o = pointer_here(w->rows_o + w->step_o); }

INLINE void load_to(buffer from, int at, lds_tile to, const struct way *w, int n) {
    LOAD_TO_LDS(from, at, (SHARED char *)to + w->in_tile + 16 * THREADS * n);
}
// Buffers are made where they are used, or they would take scalars from the loop.
INLINE void load_q(const struct way *w, lds_tile to, int n) {
    load_to(make_buffer(w->rows_q, w->bytes_q), w->at_q[n], to, w, n);
}
INLINE void load_o(const struct way *w, lds_tile to, int n) {
    load_to(make_buffer(w->rows_o, w->bytes_o), w->at_o[n], to, w, n);
}

#endif
