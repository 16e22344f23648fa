// SPDX-License-Identifier: MIT
// Backward, planned loops: tiles of 32 queries of Q and dO go through registers to LDS, where they lie as rows and
// transposed. Half of the waves bring Q, the others dO.
//
// Takes BM, BN, DQ, DV, WAVES, PASSES, BITS, OPERAND_CHUNKS, MX.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_STAGED_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_STAGED_H

#include "tessera/device/attention/cdna/bwd_tiles.h"
#include "tessera/isa/cdna_exchange.h"

struct tiles {
    lds_tile q, o, q_columns, o_columns, s;
};
INLINE struct tiles tiles_of(int odd) {
    const struct tiles all = {(lds_tile)q_rows, (lds_tile)o_rows, q_columns(), o_columns(), s_rows()};
    (void)odd;
    return all;
}

// Where chunks of rows lie, of gradients of scores too, and chunks of columns: where lanes read or write together they
// find all banks, 8 lanes of 16 bytes, which are lanes 0 to 3 and 20 to 23 and so on, 16 of 8 or 32 of 4.
INLINE uint32_t row_slot(uint32_t row, uint32_t chunk) {
    return row * Q_CHUNKS + (chunk ^ (row % 2 * 4 + row / 2 % 4));
}
INLINE uint32_t column_slot(uint32_t d, uint32_t chunk) {
    return (d ^ d / 32 % 2) * QUERY_CHUNKS + (chunk ^ ((d / 2 ^ (d / 8 % 2 * 2 + d / 16 % 2)) % 4));
}

// Where the lane reads and writes in LDS, in bytes, but for what is the same in all lanes.
struct reads {
    int row[Q_STEPS];           // operands by rows, of gradients of scores too
    int column[2][BLOCK_STEPS]; // by columns, of even and odd blocks
    int put[2];                 // gradients of scores, of even and odd pairs
    uint32_t own;               // which bytes of the lane's words and its neighbour's it puts
};

INLINE void find_reads(struct reads *r) {
    const uint32_t lane = (uint32_t)lane_id(), half = lane / 32, key = 32 * (uint32_t)wave_id() + lane % 32;
    UNROLL
    for (int n = 0; n < Q_STEPS; n++) r->row[n] = here(16 * (int)(row_slot(lane % 32, half) ^ (uint32_t)(2 * n)));
    UNROLL
    for (int n = 0; n < 2 * BLOCK_STEPS; n++) {
        const uint32_t odd = (uint32_t)(n / BLOCK_STEPS), chunk = (uint32_t)(n % BLOCK_STEPS * 2) + half;
        const uint32_t slot = column_slot(32 * odd + lane % 32, chunk) - 32 * odd * QUERY_CHUNKS;
        r->column[odd][n % BLOCK_STEPS] = here(16 * (int)slot);
    }
    UNROLL
    for (int n = 0; n < 2; n++)
        r->put[n] =
            here(16 * (int)row_slot(4 * half + (uint32_t)(2 * n) + lane % 2, key / CHUNK) + (int)(key % CHUNK / 2) * 4);
    r->own = (uint32_t)here(lane % 2 ? 0x03020706 : 0x05040100);
}

INLINE SHARED const u32x4 *lds_at(lds_tile tile, int place, int chunks) {
    return (SHARED const u32x4 *)((SHARED const char *)tile + place) + chunks;
}
INLINE operand row_operand_at(const struct reads *r, lds_tile tile, int step) {
    const operand x = {{*lds_at(tile, r->row[step], 0)}};
    return x;
}
INLINE operand column_operand_at(const struct reads *r, lds_tile tile, int block, int step) {
    const operand x = {{*lds_at(tile, r->column[block % 2][step], 32 * block * QUERY_CHUNKS)}};
    return x;
}
INLINE operand score_operand(const struct reads *r, lds_tile tile, int step) { return row_operand_at(r, tile, step); }
enum { PUTS = ELEMENTS / 2 };
// The gradients of two queries, for all waves. A lane and its neighbour have two queries of two keys: each writes both
// keys of one query.
INLINE void put_scores(const struct reads *r, const operand s[BLOCK_STEPS], lds_tile tile, int n) {
    const uint32_t own = s[n / 4].chunk[0][n % 4], other = LLVM_DPP(own, 0xb1); // the neighbour's
    SHARED char *const to = (SHARED char *)tile + r->put[n % 2] + 16 * 8 * (n / 2) * SCORE_CHUNKS;
    *(SHARED uint32_t *)to = pick_bytes(own, other, r->own);
}

// ---- loads

struct way {
    int at[4];              // where a lane loads, a chunk of each of 4 queries
    int row[4], column[4];  // and writes, see store_rows and store_columns
    lds_tile rows, columns; // of the wave's tensor
    const char *from;       // the rows that are loaded next
    uint32_t step, bytes;
    u32x4 items[4];
};

INLINE void find_way(struct way *w, const args *a) {
    const int stride = (int)(is_of_o(0) ? a->stride_do : a->stride_q), hdim = is_of_o(0) ? a->hdim_v : a->hdim_q;
    // Of 16 lanes 8 have as many chunks of the same queries, and the others of those whose columns lie beside.
    const int set = thread_id() % (THREADS / 2) / 16, group = set / 4 * 4 + set / 2 % 2 + lane_id() / 8 % 2 * 2;
    const int query = 4 * group, chunk = set % 2 * 8 + lane_id() % 8;
    const struct tiles tiles = tiles_of(0);
    UNROLL
    for (int r = 0; r < 4; r++) {
        w->at[r] = here(CHUNK * chunk < hdim ? BYTES((query + r) * stride) + 16 * chunk : OUTSIDE);
        w->row[r] = here(16 * (int)row_slot((uint32_t)(query + r), (uint32_t)chunk));
        w->column[r] = here(16 * (int)column_slot((uint32_t)(CHUNK * chunk + 2 * r), (uint32_t)group_chunk(group)) +
                            8 * group_position(group));
    }
    w->rows = is_of_o(0) ? tiles.o : tiles.q;
    w->columns = is_of_o(0) ? tiles.o_columns : tiles.q_columns;
    w->step = BYTES(BM * (uint32_t)stride);
}

// Finds the rows from query `first` on, of which `left` exist.
INLINE void aim_way(struct way *w, const struct task *task, int first, int left) {
    const args *a = (const args *)kernel_argument();
    const int of_o = is_of_o(0);
    const int64_t stride = of_o ? a->stride_do : a->stride_q;
    const int64_t row = query_element(task, of_o ? a->batch_stride_do : a->batch_stride_q,
                                      of_o ? a->nhead_stride_do : a->nhead_stride_q, stride, first);
    w->from = pointer_here((const char *)(of_o ? a->d_o : a->q) + BYTES(row));
    w->bytes = bytes_of_rows(left, BM, stride, of_o ? a->hdim_v : a->hdim_q, BITS);
}
INLINE void move_rows(struct way *w) { w->from = pointer_here(w->from + w->step); }

INLINE void load_row(struct way *w, int r) { w->items[r] = buffer_load_16(make_buffer(w->from, w->bytes), w->at[r]); }
INLINE void put_row(const struct way *w, int r) { *(SHARED u32x4 *)((SHARED char *)w->rows + w->row[r]) = w->items[r]; }
// Two columns of four queries.
INLINE void put_columns(const struct way *w, int word) {
    const u32x4 *const x = w->items;
    SHARED char *const to = (SHARED char *)w->columns;
    const int even = w->column[word], odd = even ^ 16 * QUERY_CHUNKS;
    *(SHARED u32x2 *)(to + even) = (u32x2){low_halves(x[0][word], x[1][word]), low_halves(x[2][word], x[3][word])};
    *(SHARED u32x2 *)(to + odd) = (u32x2){high_halves(x[0][word], x[1][word]), high_halves(x[2][word], x[3][word])};
}

#endif
