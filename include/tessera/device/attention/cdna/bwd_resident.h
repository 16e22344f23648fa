// SPDX-License-Identifier: MIT
// Backward with resident queries: tiles of 32 rows, each of one wave alone, and what waves put together at the end.
//
// A tile goes from memory straight to LDS, where products read operands of both kinds: by rows, for products that sum
// over the head dim, and by columns, which reads transpose, for those that sum over rows. Results take the way back.
//
// LDS_BANKS: banks of LDS. LOAD_TO_LDS: loads 16 bytes a lane.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX, LDS_BANKS, LOAD_TO_LDS, TWO_OF_O.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_RESIDENT_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_RESIDENT_H

#include "tessera/device/attention/cdna/bwd_operands.h"
#include "tessera/device/attention/cdna/bwd_scores.h"
#include "tessera/device/attention/cdna/bwd_slots.h"

enum { ROWS = 32, SCORE_CHUNKS = ROWS / CHUNK };
// Separate objects, so that the compiler knows that reads of one need not wait for loads to another.
LDS u32x4 k_even[WAVES * ROWS * Q_CHUNKS], k_odd[WAVES * ROWS * Q_CHUNKS];
LDS u32x4 v_even[WAVES * ROWS * V_CHUNKS], v_odd[WAVES * ROWS * V_CHUNKS];
LDS u32x4 scores[WAVES * ROWS * SCORE_CHUNKS]; // gradients of scores, [key][query]

typedef SHARED u32x4 *lds_tile;
INLINE lds_tile of_wave(SHARED u32x4 *tiles, int chunks) { return tiles + wave_id() * ROWS * chunks; }

// A head's rows in a tensor.
struct rows {
    const char *first;
    int stride, hdim;
};
INLINE struct rows rows_from(const void *base, int64_t element, int64_t stride, int hdim) {
    const struct rows rows = {(const char *)base + BYTES(element), (int)stride, hdim};
    return rows;
}
// `most` of them from number `row` on, of which `left` exist.
INLINE buffer buffer_of(const struct rows *r, int row, int left, int most) {
    const int64_t before = (int64_t)((uint64_t)(uint32_t)row * (uint32_t)r->stride);
    return rows_of(r->first, before, left, most, r->stride, r->hdim, BITS);
}

// Where in memory, from the first row of 32, a lane's chunks of a tile in LDS are: in registers from here on, or masks
// of lanes would take scalars.
enum { MAX_CHUNKS = DQ > DV ? Q_CHUNKS : V_CHUNKS, MOVES = ROWS * MAX_CHUNKS / 64 };
struct places {
    int at[MOVES];
};
INLINE struct places find_places(const struct rows *r, int first, uint32_t chunks) {
    struct places p;
    UNROLL
    for (int n = 0; n < ROWS * (int)chunks / 64; n++) {
        const uint32_t place = (uint32_t)here(64 * n + lane_id()), row = place / chunks;
        const int chunk = (int)slot_of(row, place % chunks, chunks);
        p.at[n] = here(CHUNK * chunk < r->hdim ? BYTES((first + (int)row) * r->stride) + 16 * chunk : OUTSIDE);
    }
    return p;
}

// Move a tile; rows past a buffer's end are zeros, and are not written.
INLINE void load_tile(lds_tile to, buffer from, const struct places *p, int chunks) {
    UNROLL
    for (int n = 0; n < ROWS * chunks / 64; n++) LOAD_TO_LDS(from, p->at[n], to + 64 * n);
}
INLINE void store_tile(buffer to, const struct places *p, lds_tile from, int chunks) {
    UNROLL
    for (int n = 0; n < ROWS * chunks / 64; n++) buffer_store_16(to, p->at[n], from[64 * n + lane_id()]);
}

// Writes a block of 32 columns, transposed: a lane has a row.
INLINE void put_columns(lds_tile tile, const f32x16 *x, int block, uint32_t chunks) {
    const int row = lane_id() % 32;
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 4) {
        const u32x2 four = {TWO_OF_O((*x)[e], (*x)[e + 1]), TWO_OF_O((*x)[e + 2], (*x)[e + 3])};
        lds_tile chunk = tile + row * chunks + slot_of(row, 4 * block + e / 4, chunks);
        ((SHARED u32x2 *)chunk)[lane_id() / 32] = four;
    }
}

// A lane has a row.
INLINE operand row_operand(lds_tile tile, int step, uint32_t chunks) {
    const int row = lane_id() % 32;
    const operand x = {{tile[row * chunks + slot_of(row, 2 * step + lane_id() / 32, chunks)]}};
    return x;
}

// A lane has a column, and of the rows those that a lane has as elements of a product, see QUERY. Each of 16 lanes
// reads 4 columns of a row, and receives 4 rows of a column.
INLINE operand column_operand(lds_tile tile, int block, int step, uint32_t chunks) {
    const int chunk = 4 * block + lane_id() / 16 % 2 * 2 + lane_id() % 4 / 2;
    u32x2 half[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        const int row = 16 * step + 8 * i + 4 * (lane_id() / 32) + lane_id() % 16 / 4;
        half[i] =
            read_transposed((SHARED const u32x2 *)(tile + row * chunks + slot_of(row, chunk, chunks)) + lane_id() % 2);
    }
    const operand x = {{{half[0].x, half[0].y, half[1].x, half[1].y}}};
    return x;
}

// Turns the gradients of a block around: lanes have keys before, and queries afterwards.
INLINE void turn_scores(const operand s[BLOCK_STEPS], operand to[BLOCK_STEPS]) {
    const lds_tile tile = of_wave(scores, SCORE_CHUNKS);
    const int key = lane_id() % 32;
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 4) {
        const u32x4 x = s[e / CHUNK].chunk[0];
        const u32x2 four = e % CHUNK ? x.hi : x.lo;
        ((SHARED u32x2 *)(tile + key * SCORE_CHUNKS + slot_of(key, e / 4, SCORE_CHUNKS)))[lane_id() / 32] = four;
    }
    meet_lanes();
    UNROLL
    for (int n = 0; n < BLOCK_STEPS; n++) to[n] = column_operand(tile, 0, n, SCORE_CHUNKS);
    meet_lanes();
}

// ---- dq

// Adds what the waves have, in their order, and stores it; a lane has a column of each block.
INLINE void store_dq(const f32x16 dq[DQ_BLOCKS], const args *a, const struct task *task) {
    const int64_t first = query_element(task, a->batch_stride_dq, a->nhead_stride_dq, a->stride_dq, 0);
    const buffer to = rows_of(a->dq, first, task->sight.seqlen_q, BM, a->stride_dq, a->hdim_q, BITS);
    const int lane = lane_id(), column = lane % 32;
    barrier_after_loads(); // which go to what shares lie in
    UNROLL
    for (int b = 0; b < DQ_BLOCKS; b++) {
        SHARED float *const shares = (SHARED float *)(b % 2 ? k_odd : k_even); // [wave][query][column]
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            shares[(32 * wave_id() + QUERY(e) + 4 * (lane / 32)) * 32 + column] = dq[b][e];
        barrier();
        for (int query = thread_id() / 32; query < BM; query += THREADS / 32) {
            float sum = 0.0f;
            UNROLL
            for (int w = 0; w < WAVES; w++) sum += shares[(32 * w + query) * 32 + column];
            const int place =
                32 * b + column < a->hdim_q ? BYTES(query * (int)a->stride_dq + 32 * b + column) : OUTSIDE;
            buffer_store_2(to, place, TWO_OF_O(sum * a->scale, 0.0f));
        }
    }
}

#endif
