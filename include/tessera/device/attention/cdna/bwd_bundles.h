// SPDX-License-Identifier: MIT
// Backward: the pieces of a main loop whose order the generator has made, each a product of 32 x 32 or what stands
// beside one. bwd_direct.h or bwd_staged.h comes before this: how tiles come to LDS, and operands from there.
//
// RING: operands that are read ahead. TILES_AHEAD: tiles between that which begins and that which is loaded.
//
// STORES_DQ: dq is stored, in a part that the task alone has; else it is added to.
//
// Takes MMA_PART, P_SHIFT, RING, TILES_AHEAD, STORES_DQ.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_BUNDLES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_BUNDLES_H

enum { STORES = 2 }; // turns would take a call of 512 keys 1 % longer

#include "tessera/device/attention/cdna/bwd_results.h"
#include "tessera/device/attention/cdna/bwd_scores.h"
#include "tessera/isa/cdna_exchange.h"

// -lse in units of log2 and -d, of a tile and the next. Each thread writes a number, so that none branches; BM are
// read.
LDS float lse_even[THREADS], lse_odd[THREADS], d_even[THREADS], d_odd[THREADS];

struct lds {
    struct tiles tiles;
    SHARED float *lse, *d;
};
INLINE struct lds lds_of(int odd) {
    const struct lds all = {tiles_of(odd), (SHARED float *)(odd ? lse_odd : lse_even),
                            (SHARED float *)(odd ? d_odd : d_even)};
    return all;
}

enum { DQ_PLACES = 8 }; // elements of dq that have a place each; those of the others are half a tile further on

struct loop {
    struct call call;
    int begin, tile; // first queries: of the first tile, of this one
    int is_scaled;   // scores are, before they are hidden, since the scale is not positive
    int clear;       // queries from here on, less than so many further on, begin tiles whose scores stay as they are
    uint32_t clear_queries;
    int plain; // so many tiles follow that which is loaded next, and are whole
    struct way way;
    int at_dq[DQ_PLACES], at_number;
    const char *rows_lse, *rows_d, *rows_dq; // of the tile that is loaded next; of the one before
    uint32_t bytes_of_numbers, step_dq, bytes_dq[2];
    struct reads reads;
    uint32_t lse_next, d_next;
    operand ring[RING]; // operands of the next products
    operand k[Q_STEPS], v[V_STEPS], columns[KEY_STEPS];
    operand p[BLOCK_STEPS], ds[BLOCK_STEPS];
    uint32_t lse, d; // of a query for each lane of a row of 16
    f32x16 s, dp, dq;
    struct sums sums;
    float scale, dq_scale; // a probability is 2^(scale * score - lse)
};

// ---- products, each by itself before what stands beside it

#define PART_OF(n) ((n) % MFMA_OF_16_BITS)
#define OPERAND_OF(n) ((n) / MFMA_OF_16_BITS)

INLINE void score(struct loop *x, operand q, int n) {
    const f32x16 before = n == 0 ? (f32x16)0.0f : x->s;
    x->s = pinned(MMA_PART(q, x->k[OPERAND_OF(n)], before, PART_OF(n)));
    one_after_the_other();
}
INLINE void gradient(struct loop *x, operand o, int n) {
    x->dp = pinned(MMA_PART(o, x->v[OPERAND_OF(n)], x->dp, PART_OF(n)));
    one_after_the_other();
}
// dQ of the tile before.
INLINE void add_to_dq(struct loop *x, operand s, int n) {
    const f32x16 before = n == 0 ? (f32x16)0.0f : x->dq;
    x->dq = pinned(MMA_PART(s, x->columns[OPERAND_OF(n)], before, PART_OF(n)));
    one_after_the_other();
}
// By steps of queries, each for all columns.
INLINE void add_to_dv(struct loop *x, operand o, int n) {
    const int block = OPERAND_OF(n) % D_BLOCKS, step = OPERAND_OF(n) / D_BLOCKS;
    x->sums.dv[block] = MMA_PART(o, x->p[step], x->sums.dv[block], PART_OF(n));
    one_after_the_other();
}
INLINE void add_to_dk(struct loop *x, operand q, int n) {
    const int block = OPERAND_OF(n) % DQ_BLOCKS, step = OPERAND_OF(n) / DQ_BLOCKS;
    x->sums.dk[block] = MMA_PART(q, x->ds[step], x->sums.dk[block], PART_OF(n));
    one_after_the_other();
}

// Waves meet behind a product, which the matrix cores compute meanwhile, when each has what it has read of LDS, and of
// its loads so many are under way at most.
#define MEET_AFTER_ACCESSES() WAIT_FOR_LDS(0), meet(), one_after_the_other()
#define MEET_AFTER_LOADS(under_way) WAIT_FOR_LOADS(under_way), MEET_AFTER_ACCESSES()

// ---- operands

INLINE void read_row(struct loop *x, int slot, lds_tile tile, int n) {
    x->ring[slot] = row_operand_at(&x->reads, tile, n);
}
INLINE void read_column(struct loop *x, int slot, lds_tile tile, int n) {
    x->ring[slot] = column_operand_at(&x->reads, tile, n % D_BLOCKS, n / D_BLOCKS);
}
INLINE void read_scores(struct loop *x, int slot, lds_tile tile, int n) {
    x->ring[slot] = score_operand(&x->reads, tile, n);
}
// A lane of each row of 16 has the number of one of the queries that all of the row's lanes have.
INLINE void read_lse(struct loop *x, SHARED const float *list) {
    x->lse = *(SHARED const uint32_t *)((SHARED const char *)list + x->at_number);
}
INLINE void read_d(struct loop *x, SHARED const float *list) {
    x->d = *(SHARED const uint32_t *)((SHARED const char *)list + x->at_number);
}
// Sums begin with -d.
INLINE void begin_gradient(struct loop *x, int e) { x->dp[e] = here_f32(AS_F32(of_row(x->d, e))); }

// ---- scores

// Score number e becomes the logarithm of a probability, and that a probability.
INLINE void exponent(struct loop *x, int e) { x->s[e] = here_f32(x->s[e] * x->scale + AS_F32(of_row(x->lse, e))); }
INLINE void power(struct loop *x, int e) { x->s[e] = here_f32(exp2_fast(x->s[e])); }

// Probabilities e and e + 1 become a word of an operand, and a gradient of each is taken before.
INLINE void pack_two_of_p(struct loop *x, int e) {
    const f32x2 two = P_SHIFT ? (f32x2){x->s[e], x->s[e + 1]} * (float)(1 << P_SHIFT) : (f32x2){x->s[e], x->s[e + 1]};
    x->p[e / 8].chunk[0][e % 8 / 2] = (uint32_t)here((int)TWO_OF_P(two.x, two.y));
}
INLINE void differentiate(struct loop *x, int e) { x->dp[e] = here_f32(x->s[e] * x->dp[e]); }
INLINE void pack_two_of_ds(struct loop *x, int e) {
    x->ds[e / 8].chunk[0][e % 8 / 2] = (uint32_t)here((int)TWO_OF_S(x->dp[e], x->dp[e + 1]));
}
INLINE void put_ds(const struct loop *x, lds_tile tile, int n) { put_scores(&x->reads, x->ds, tile, n); }

// Finds the tiles whose queries see all of the wave's keys, see is_cut; where scores are scaled there are none.
INLINE void find_clear_tiles(struct loop *x) {
    const struct sight *s = &x->call.sight;
    const int first = x->call.first + 32 - s->mask_x, last = x->call.first + s->mask_y; // last queries are less
    const int end = s->seqlen_q - 1 < last ? INT32_MAX : last - 31;
    x->clear = first;
    x->clear_queries =
        x->call.first + 32 > s->seqlen_k || x->is_scaled || end <= first ? 0 : (uint32_t)end - (uint32_t)first;
}
INLINE int is_clear(const struct loop *x) { return (uint32_t)x->tile - (uint32_t)x->clear < x->clear_queries; }
// Scores of pairs that do not see each other become -inf; those that exponentials get scaled are scaled.
INLINE void change_scores(struct loop *x) {
    const int lane = here(lane_id());
    const struct block b = {x->call.first + lane % 32, x->tile + 4 * (lane / 32), x->tile, x->tile};
    if (x->is_scaled) x->s *= ((const args *)kernel_argument())->scale_log2;
    if (is_cut(&x->call.sight, x->call.first, x->tile)) hide(&x->s, &x->call.sight, &b, -INFINITY_F32);
}

// ---- loads

INLINE void load_numbers(struct loop *x) {
    x->lse_next = buffer_load_4(make_buffer(x->rows_lse, x->bytes_of_numbers), 4 * thread_id());
    x->d_next = buffer_load_4(make_buffer(x->rows_d, x->bytes_of_numbers), 4 * thread_id());
}
// Queries past the last have rows of zeros, of dO too, so that they give nothing whatever their probabilities are.
// Those that see no key have lse = -inf; masks hide all of their scores, whatever finite number is subtracted from
// them.
INLINE void put_lse(const struct loop *x, SHARED float *to) {
    to[thread_id()] = max_f32(AS_F32(x->lse_next), -0x1p100f) * -LOG2E;
}
INLINE void put_d(const struct loop *x, SHARED float *to) { to[thread_id()] = -AS_F32(x->d_next); }

// Element e of dQ.
INLINE void send(const struct loop *x, int e) {
    const int further = e / DQ_PLACES * (int)(x->step_dq / 2);
    const buffer to = make_buffer(x->rows_dq + further, e < DQ_PLACES ? x->bytes_dq[0] : x->bytes_dq[1]);
    const float dq = here_f32(x->dq[e] * x->dq_scale);
    if (STORES_DQ)
        buffer_store_4(to, x->at_dq[e % DQ_PLACES], AS_U32(dq));
    else
        buffer_add_f32(dq, to, x->at_dq[e % DQ_PLACES]);
}

// Everything that the lane's places depend on but the head.
INLINE void find_places(struct loop *x, const args *a) {
    const int column = 32 * wave_id() + lane_id() % 32, half = lane_id() / 32;
    find_way(&x->way, a);
    find_reads(&x->reads);
    UNROLL
    for (int e = 0; e < DQ_PLACES; e++)
        x->at_dq[e] = here(column < a->hdim_q ? 4 * ((4 * half + QUERY(e)) * a->hdim_q + column) : OUTSIDE);
    x->at_number = here(4 * (QUERY(lane_id() % 16) + 4 * half));
    x->step_dq = 4 * BM * (uint32_t)a->hdim_q;
}

// Finds where numbers of queries from `first` on are, and rows of dq of two tiles before the first one.
INLINE void aim_at_numbers(struct loop *x, const struct task *task, int first, int left) {
    const args *a = (const args *)kernel_argument();
    const int64_t row = query_element(task, a->batch_stride_lsed, a->nhead_stride_lsed, 1, first);
    x->rows_lse = pointer_here((const char *)(a->lse + row));
    x->rows_d = pointer_here((const char *)(a->d + row));
    x->bytes_of_numbers = bytes_of_rows(left, BM, 1, 1, 32);
}
INLINE void aim_at_dq(struct loop *x) {
    const args *a = (const args *)kernel_argument();
    const struct task task = kept_task();
    const struct dq_parts parts = find_dq_parts(a, &task.of, task.head);
    const int64_t row = (int64_t)x->begin - 2 * BM;
    x->rows_dq = pointer_here((const char *)(parts.first + task.part * parts.stride + row * a->hdim_q));
    x->bytes_dq[0] = x->bytes_dq[1] = 0;
}
INLINE void aim(struct loop *x) {
    const struct task task = kept_task();
    const int first = x->tile + (TILES_AHEAD - 1) * BM, left = x->call.sight.seqlen_q - first;
    aim_way(&x->way, &task, first, left);
    aim_at_numbers(x, &task, first, left);
    x->plain = left / BM - 1;
}

// On to the next tile, before the one behind it is loaded. Mostly all are whole: then pointers only move; else they are
// found anew.
INLINE void move_numbers(struct loop *x) {
    x->rows_lse = pointer_here(x->rows_lse + 4 * BM);
    x->rows_d = pointer_here(x->rows_d + 4 * BM);
}
// On to dQ of the tile before, which the first tile has none of.
INLINE void move_dq(struct loop *x) { x->rows_dq = pointer_here(x->rows_dq + x->step_dq); }
INLINE void limit_dq(struct loop *x) {
    const int left = x->tile == x->begin ? 0 : max_i32(x->call.sight.seqlen_q - x->tile + BM, 0);
    const uint32_t row = x->step_dq / BM, most = x->step_dq / 2;
    const uint32_t bytes = row * (uint32_t)uniform_here(min_i32(left, BM)); // here, or vector instructions make it
    x->bytes_dq[0] = bytes < most ? bytes : most;
    x->bytes_dq[1] = bytes - x->bytes_dq[0];
}
INLINE void advance(struct loop *x) {
    x->tile += BM;
    x->plain -= 1;
    if (SELDOM(x->plain < 0)) aim(x);
}

#endif
