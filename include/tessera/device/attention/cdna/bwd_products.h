// SPDX-License-Identifier: MIT
// Backward: the five products of a block, and where their results go.
//
// Takes BM, BN, DQ, DV, WAVES, PASSES, BITS, OPERAND_CHUNKS, MX, O_BITS, P_SHIFT, store_four.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_PRODUCTS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_PRODUCTS_H

enum { STORES = DQ + DV > 320 ? 2 : 1 }; // where sums have most registers, turns would bring moves into the main loop

#include "tessera/device/attention/cdna/bwd_operands.h"
#include "tessera/device/attention/cdna/bwd_results.h"
#include "tessera/device/attention/cdna/bwd_scores.h"
#include "tessera/device/attention/cdna/bwd_tiles.h"
#include "tessera/isa/cdna_exchange.h"

// Blocks of dQ, 32 queries by 32 columns, are dealt to the waves: each has the same columns in all tiles, D_OWN blocks
// of them; where there are more waves, these share the queries.
enum { D_OWN = DQ_BLOCKS > WAVES ? (DQ_BLOCKS + WAVES - 1) / WAVES : 1 };
enum { SHARERS = DQ_BLOCKS > WAVES ? 1 : WAVES / DQ_BLOCKS };

struct operands { // of the keys, through the whole pass
    operand k[Q_STEPS], v[V_STEPS], columns[D_OWN][KEY_STEPS];
};

INLINE int column_block(int own) { return (wave_id() + WAVES * own) % (DQ_BLOCKS > WAVES ? D_OWN * WAVES : DQ_BLOCKS); }

INLINE void load_operands(struct operands *x, const args *a, const struct task *task, int pass) {
    const int head = task->head / a->group, left = task->of.seqlen_k - task->first;
    const int64_t k = key_element(task, head, a->batch_stride_k, a->nhead_stride_k, a->stride_k);
    const int64_t v = key_element(task, head, a->batch_stride_v, a->nhead_stride_v, a->stride_v);
    load_keys(x->k, Q_STEPS, a->k, k, left, (int)a->stride_k, a->hdim_q);
    if (pass & FOR_DS) load_keys(x->v, V_STEPS, a->v, v, left, (int)a->stride_v, a->hdim_v);
    if (!(pass & FOR_DQ)) return;
    const buffer from = rows_of(a->k, k, left, BN, a->stride_k, a->hdim_q, BITS);
    UNROLL
    for (int own = 0; own < D_OWN; own++)
        load_key_column(x->columns[own], from, (int)a->stride_k, 32 * column_block(own) + lane_id() % 32, a->hdim_q);
}

// Operands are read AHEAD products before these need them, or each would wait for its own.
enum { AHEAD = 2, MFMA_OF_PRODUCT = BITS == 32 ? 4 : MFMA_OF_16_BITS };
INLINE void read_ahead(int products) {
    ORDER(ORDER_LDS_READ, AHEAD);
    UNROLL
    for (int n = 0; n < products; n++) {
        ORDER(ORDER_MFMA, MFMA_OF_PRODUCT);
        ORDER(ORDER_LDS_READ, 1);
    }
}

INLINE f32x16 product(lds_tile rows, int queries, const operand *keys, int steps, int chunks) {
    const uint32_t first = first_row_operand(queries, chunks);
    operand next[AHEAD];
    f32x16 s = (f32x16)0.0f;
    UNROLL
    for (int n = 0; n < AHEAD; n++) next[n] = row_operand(rows, first, n, chunks);
    UNROLL
    for (int n = 0; n < steps; n++) {
        s = MMA(next[n % AHEAD], keys[n], s);
        if (n + AHEAD < steps) next[n % AHEAD] = row_operand(rows, first, n + AHEAD, chunks);
    }
    read_ahead(steps);
    return s;
}

// sums += columns x, over the block's queries.
INLINE void add_product(f32x16 *sums, int blocks, lds_tile columns, int queries, const operand x[BLOCK_STEPS]) {
    const uint32_t first = first_column_operand(queries);
    const int products = blocks * BLOCK_STEPS;
    operand next[AHEAD];
    UNROLL
    for (int n = 0; n < AHEAD; n++) next[n] = column_operand(columns, first, n / BLOCK_STEPS, n % BLOCK_STEPS);
    UNROLL
    for (int n = 0; n < products; n++) {
        const int b = n / BLOCK_STEPS, then = n + AHEAD;
        sums[b] = MMA(next[n % AHEAD], x[n % BLOCK_STEPS], sums[b]);
        if (then < products) next[n % AHEAD] = column_operand(columns, first, then / BLOCK_STEPS, then % BLOCK_STEPS);
    }
    read_ahead(products);
}

// The gradients of a block go to LDS by rows of queries. With 16 bits a lane and its neighbour have two queries of two
// keys: each writes both keys of one query.
INLINE void store_s(const operand s[BLOCK_STEPS], int queries) {
    const uint32_t lane = lane_here(), key = 32 * (uint32_t)wave_id() + lane % 32, row = 4 * (lane / 32);
    SHARED uint32_t *to = (SHARED uint32_t *)(s_rows() + 32 * queries * ROW_OF(SCORE_CHUNKS));
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 32 / BITS) {
#if BITS == 32
        to[4 * row_place(row + QUERY(e), key / CHUNK, SCORE_CHUNKS) + key % CHUNK] = s[e / CHUNK].chunk[0][e % CHUNK];
#else
        const uint32_t own = s[e / CHUNK].chunk[0][e % CHUNK / 2], other = LLVM_DPP(own, 0xb1); // the neighbour's
        const uint32_t word = pick_bytes(own, other, lane % 2 ? 0x03020706 : 0x05040100);
        to[4 * row_place(row + QUERY(e) + lane % 2, key / CHUNK, SCORE_CHUNKS) + key % CHUNK / 2] = word;
#endif
    }
}

// Atomic, unless the task alone writes the part; a lane adds to the same elements in all tasks, in their order.
INLINE void put_dq(const f32x16 *dq, buffer to, int query, int column, int hdim, int is_stored) {
    const int place = column < hdim ? 4 * (query * hdim + column) : OUTSIDE;
    if (is_stored) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) buffer_store_4(to, place + 4 * QUERY(e) * hdim, AS_U32((*dq)[e]));
        return;
    }
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) buffer_add_f32((*dq)[e], to, place + 4 * QUERY(e) * hdim);
}

// What queries `first` on, of which `left` exist, get from all keys of the workgroup. Where some waves have nothing to
// do it is the first ones, which bring the next tile meanwhile.
INLINE void add_dq(const struct operands *x, const struct head *h, int first, int left, int is_stored) {
    const int sharer = (WAVES - 1 - wave_id()) / DQ_BLOCKS;
    if (DQ_BLOCKS <= WAVES && sharer >= SHARERS) return;
    const float scale = ((const args *)kernel_argument())->scale;
    const buffer to = rows_of(h->dq, rows_before(first, h->hdim_q), left, BM, h->hdim_q, h->hdim_q, 32);
    UNROLL
    for (int own = 0; own < D_OWN; own++) {
        if (DQ_BLOCKS % WAVES != 0 && uniform_here(column_block(own)) >= DQ_BLOCKS) break;
        for (int queries = DQ_BLOCKS > WAVES ? 0 : sharer; queries < Q_BLOCKS; queries += SHARERS) {
            f32x16 dq = product(s_rows(), queries, x->columns[own], KEY_STEPS, SCORE_CHUNKS);
            dq *= scale;
            const uint32_t lane = lane_here();
            put_dq(&dq, to, 32 * queries + 4 * (int)(lane / 32), 32 * column_block(own) + (int)(lane % 32),
                   uniform_here(h->hdim_q), is_stored); // here, or scalars for all rows stay through the loop
        }
    }
}

#endif
