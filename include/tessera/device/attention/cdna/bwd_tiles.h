// SPDX-License-Identifier: MIT
// Backward: tiles of Q and dO. They go from memory through registers to LDS, as rows for the products that sum over the
// head dim, and transposed for those that sum over queries. The keys' operands stay in registers.
//
// Takes BM, BN, DQ, DV, WAVES, PASSES, BITS, OPERAND_CHUNKS, MX.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_TILES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_TILES_H

#include "tessera/device/attention/cdna/bwd_keys.h"
#include "tessera/device/attention/cdna/bwd_operands.h"
#include "tessera/device/attention/cdna/bwd_task.h"

// ---- LDS
//
// Rows of chunks. Eight lanes read the same chunk of eight rows at once: these must lie in different banks. Where a row
// has a power of two of chunks, its number permutes them; others have an odd number of chunks, one of which is padding.

enum { QUERY_CHUNKS = BM / CHUNK, SCORE_CHUNKS = BN / CHUNK };
#define POWER_OF_2(n) (((n) & ((n)-1)) == 0)
#define ROW_OF(chunks) (POWER_OF_2(chunks) ? (chunks) : (chunks) + ((chunks) + 1) % 2)
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
enum { COLUMNS = MAX_OF(DQ, DV) * QUERY_CHUNKS, SCORES = BM * ROW_OF(SCORE_CHUNKS) };
LDS u32x4 q_rows[BM * ROW_OF(Q_CHUNKS)], o_rows[BM * ROW_OF(V_CHUNKS)];
LDS u32x4 columns_of_q[DQ * QUERY_CHUNKS], columns_of_o[DV * QUERY_CHUNKS];
LDS u32x4 scores[SCORES];                                           // gradients of scores, [query][key]
LDS u32x4 of_pass[PASSES == 3 ? MAX_OF(COLUMNS, SCORES) : COLUMNS]; // or in one place what different passes need

typedef SHARED u32x4 *lds_tile; // HIP does not see from an array's type that it lies in LDS

INLINE lds_tile q_columns(void) { return PASSES == 1 ? (lds_tile)columns_of_q : (lds_tile)of_pass; }
INLINE lds_tile o_columns(void) { return PASSES == 1 ? (lds_tile)columns_of_o : (lds_tile)of_pass; }
INLINE lds_tile s_rows(void) { return PASSES == 3 ? (lds_tile)of_pass : (lds_tile)scores; }

INLINE uint32_t row_place(uint32_t row, uint32_t chunk, uint32_t chunks) {
    const uint32_t cycle = chunks < 8 ? 8 / chunks : 1; // rows that have eight chunks together
    return row * ROW_OF(chunks) + (POWER_OF_2(chunks) ? chunk ^ (row / cycle & (8 / cycle - 1)) : chunk);
}
// Of the transposed tiles, of which a thread writes eight rows.
INLINE uint32_t column_place(uint32_t d, uint32_t chunk) {
    enum { CYCLE = QUERY_CHUNKS < 8 ? 8 / QUERY_CHUNKS : 1 };
    return d * QUERY_CHUNKS + (chunk ^ ((d / CYCLE ^ d / 8) & (8 / CYCLE - 1)));
}

// Products that sum over queries do so in the order that a lane holds scores in: half h of the wave has those of
// queries 8 i + 4 h + 0..3. A chunk has GROUPS groups of 4 queries: groups belong to the halves in turns.
enum { GROUPS = CHUNK / 4 };
INLINE int group_chunk(int group) { return group / (2 * GROUPS) * 2 + group % 2; }
INLINE int group_position(int group) { return group / 2 % GROUPS; }

// ---- from memory to LDS: an item is a chunk of each of 4 queries, those of Q before those of dO
//
// SPLIT: a wave's items are of one of them.

enum { Q_ITEMS = BM / 4 * Q_CHUNKS, O_ITEMS = BM / 4 * V_CHUNKS, SPLIT = Q_ITEMS % 64 == 0 };
#define COPIES_OF(items) (((items) + THREADS - 1) / THREADS)
enum { EVEN = SPLIT && (Q_ITEMS + O_ITEMS) % THREADS == 0 }; // each lane has an item in each copy
enum { COPIES = SPLIT ? COPIES_OF(Q_ITEMS + O_ITEMS) : COPIES_OF(Q_ITEMS) + COPIES_OF(O_ITEMS) };

struct staged {
    u32x4 items[COPIES][4];
    uint32_t lse, d;
};

// What copy number c of the calling wave is of, and its lane's item there; below 0 none.
INLINE int is_of_o(int c) { return SPLIT ? 64 * wave_id() + THREADS * c >= Q_ITEMS : c >= COPIES_OF(Q_ITEMS); }
INLINE int item_of(int c, int of_o) {
    const int first = SPLIT ? (of_o ? Q_ITEMS : 0) : (of_o ? THREADS * COPIES_OF(Q_ITEMS) : 0);
    const int thread = EVEN ? thread_id() : here(thread_id()); // here, or masks of lanes stay in scalars
    const int item = thread + THREADS * c - first;
    return item < (of_o ? O_ITEMS : Q_ITEMS) ? item : -1;
}

// A query head: what its tiles are read from, each from the sequence's first query on, and the task's part of dq.
struct head {
    const char *q, *o;
    int64_t lsed; // element of lse and d
    float *dq;
    int stride_q, stride_o, hdim_q, hdim_v;
};

INLINE struct head find_head(const args *a, const struct task *task) {
    const struct dq_parts parts = find_dq_parts(a, &task->of, task->head);
    const int64_t q = query_element(task, a->batch_stride_q, a->nhead_stride_q, a->stride_q, 0);
    const int64_t o = query_element(task, a->batch_stride_do, a->nhead_stride_do, a->stride_do, 0);
    const int64_t row = query_element(task, a->batch_stride_lsed, a->nhead_stride_lsed, 1, 0);
    const struct head h = {(const char *)a->q + BYTES(q),
                           (const char *)a->d_o + BYTES(o),
                           row,
                           parts.first + task->part * parts.stride,
                           (int)a->stride_q,
                           (int)a->stride_do,
                           a->hdim_q,
                           a->hdim_v};
    return h;
}

INLINE int64_t rows_before(int row, int stride) { // neither is negative: two products instead of three
    return (int64_t)((uint64_t)(uint32_t)row * (uint32_t)stride);
}

// An item's first query and its chunk. Numbers with a sign would take twice as many instructions.
INLINE int query_of(int item, int chunks) { return 4 * (int)((uint32_t)item / (uint32_t)chunks); }
INLINE int chunk_of(int item, int chunks) { return (int)((uint32_t)item % (uint32_t)chunks); }

INLINE void load_item(u32x4 to[4], int item, int chunks, buffer from, int stride, int hdim) {
    const int query = query_of(item, chunks), chunk = chunk_of(item, chunks);
    const int place = item >= 0 && CHUNK * chunk < hdim ? BYTES(query * stride) + 16 * chunk : OUTSIDE;
    UNROLL
    for (int r = 0; r < 4; r++) to[r] = buffer_load_16(from, place + BYTES(r * stride));
}

// Tile of queries from `first` on, of which `left` exist; below 1 none.
INLINE void load_tile(struct staged *s, const struct head *h, int first, int left) {
    const int n = thread_id(), stride_q = uniform_here(h->stride_q), stride_o = uniform_here(h->stride_o);
    const buffer q = rows_of(h->q, rows_before(first, stride_q), left, BM, stride_q, h->hdim_q, BITS);
    const buffer o = rows_of(h->o, rows_before(first, stride_o), left, BM, stride_o, h->hdim_v, BITS);
    UNROLL
    for (int c = 0; c < COPIES; c++) {
        if (is_of_o(c))
            load_item(s->items[c], item_of(c, 1), V_CHUNKS, o, stride_o, h->hdim_v);
        else
            load_item(s->items[c], item_of(c, 0), Q_CHUNKS, q, stride_q, h->hdim_q);
    }
    const args *a = (const args *)kernel_argument(); // or both pointers would take scalars throughout the loop
    s->lse = buffer_load_4(rows_of(a->lse, h->lsed + first, left, BM, 1, 1, 32), 4 * n);
    s->d = buffer_load_4(rows_of(a->d, h->lsed + first, left, BM, 1, 1, 32), 4 * n);
}

#if BITS == 32
typedef u32x4 four;
#else
typedef u32x2 four;
#endif
INLINE void store_column(lds_tile columns, int d, int group, four x) {
    ((SHARED four *)&columns[column_place(d, group_chunk(group))])[group_position(group)] = x;
}

INLINE void store_rows(lds_tile rows, const u32x4 x[4], int item, int chunks) {
    if (item < 0) return;
    UNROLL
    for (int r = 0; r < 4; r++) rows[row_place(query_of(item, chunks) + r, chunk_of(item, chunks), chunks)] = x[r];
}

INLINE void store_columns(lds_tile to, const u32x4 x[4], int item, int chunks) {
    const int group = query_of(item, chunks) / 4, d = CHUNK * chunk_of(item, chunks);
    if (item < 0) return;
    UNROLL
    for (int w = 0; w < 4; w++) { // words of a chunk
#if BITS == 32
        store_column(to, d + w, group, (u32x4){x[0][w], x[1][w], x[2][w], x[3][w]});
#else
        const u32x2 even = {low_halves(x[0][w], x[1][w]), low_halves(x[2][w], x[3][w])};
        const u32x2 odd = {high_halves(x[0][w], x[1][w]), high_halves(x[2][w], x[3][w])};
        store_column(to, d + 2 * w, group, even);
        store_column(to, d + 2 * w + 1, group, odd);
#endif
    }
}

// Of the tile's queries `left` exist.
INLINE void store_tile(const struct staged *s, int left, int pass) {
    UNROLL
    for (int c = 0; c < COPIES; c++) {
        const u32x4 *const x = s->items[c];
        if (is_of_o(c)) {
            if (pass & FOR_DS) store_rows((lds_tile)o_rows, x, item_of(c, 1), V_CHUNKS);
            if (pass & FOR_DV) store_columns(o_columns(), x, item_of(c, 1), V_CHUNKS);
        } else {
            store_rows((lds_tile)q_rows, x, item_of(c, 0), Q_CHUNKS);
            if (pass & FOR_DK) store_columns(q_columns(), x, item_of(c, 0), Q_CHUNKS);
        }
    }
    store_numbers(s->lse, s->d, left);
}

// ---- operands

// A lane's places are those of the first operand but for constants, since permutations are exclusive ors: `first` is
// made where a product begins, or it would take registers from all others. It has the number of the block of queries,
// which is no constant.

INLINE uint32_t lane_here(void) { return (uint32_t)here(lane_id()); }

INLINE uint32_t first_row_operand(int queries, int chunks) {
    const uint32_t lane = lane_here();
    return row_place(lane % 32, lane / 32, (uint32_t)chunks) + (uint32_t)(32 * queries * ROW_OF(chunks));
}
INLINE operand row_operand(lds_tile rows, uint32_t first, int step, int chunks) {
    const uint32_t place = POWER_OF_2(chunks) ? first ^ (uint32_t)(2 * step) : first + (uint32_t)(2 * step);
    const operand x = {{rows[place]}};
    return x;
}

INLINE uint32_t first_column_operand(int queries) {
    const uint32_t lane = lane_here();
    return column_place(lane % 32, lane / 32) ^ (uint32_t)(2 * BLOCK_STEPS * queries);
}
// Step `step` over the queries.
INLINE operand column_operand(lds_tile columns, uint32_t first, int block, int step) {
    const uint32_t d = (uint32_t)(32 * block), permuted = column_place(d, (uint32_t)(2 * step)) - d * QUERY_CHUNKS;
    const operand x = {{columns[(first ^ permuted) + d * QUERY_CHUNKS]}};
    return x;
}

// Column `d` of all keys of K, for products that sum over keys.
INLINE void load_key_column(operand to[KEY_STEPS], buffer from, int stride, int d, int hdim) {
    UNROLL
    for (int n = 0; n < KEY_STEPS; n++) {
        const int key = (2 * n + lane_id() / 32) * CHUNK;
        const int place = d < hdim ? BYTES(key * stride + d) : OUTSIDE;
        UNROLL
        for (int w = 0; w < 4; w++) {
#if BITS == 32
            to[n].chunk[0][w] = buffer_load_4(from, place + BYTES(w * stride));
#else
            to[n].chunk[0][w] = low_halves(buffer_load_2(from, place + BYTES(2 * w * stride)),
                                           buffer_load_2(from, place + BYTES((2 * w + 1) * stride)));
#endif
        }
    }
}

#endif
