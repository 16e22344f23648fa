// SPDX-License-Identifier: MIT
// Products that are TURNED: rows of the cache are rows of their A (sm90_quantised.h, add_product), and the eight
// queries of a task are columns of B. So O and scores take half of the registers that they take beside 16 queries.
//
// Takes args, DQ, DV, KEYS, HEADS, KV, Q_BF16, WARPS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_TURNED_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_TURNED_H

#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/device/attention/cuda/task.h"
#include "tessera/device/attention/cuda_pages/in_step.h"

// ---- queries: the features of the numbers that a lane reads of a row, in pairs, two for each step

enum { Q_WORDS = DQ / 8 };

// Those of query lane / 4.
INLINE void load_row(uint32_t q[Q_WORDS], const args *a, const struct task *task, int by) {
    const int row = task->first + lane_id() / 4;
    const int64_t element = sequence_element(task, a->call.batch_stride_q, a->call.stride_q) +
                            row_query(a, row) * a->call.stride_q + row_head(a, task, row) * a->call.nhead_stride_q;
    UNROLL
    for (int i = 0; i < Q_WORDS; i++) {
        const int feature = turned_feature(key_feature(2 * i), by);
        q[i] = load_4((const char *)a->call.q + 2 * (element + feature),
                      row < count_rows(a, task) && feature < a->call.hdim_q);
    }
}

#if Q_BF16
// Returns the row's unit.
INLINE float to_fp16(uint32_t q[Q_WORDS]) {
    float most = 0.0f;
    UNROLL
    for (int i = 0; i < Q_WORDS; i++) most = greatest_bf16(most, q[i]);
    const float unit = unit_of(max_of_four(most)), over = over_unit(unit);
    UNROLL
    for (int i = 0; i < Q_WORDS; i++) q[i] = fp16_of_bf16(q[i], over);
    return unit;
}
#endif

// Where those of a warp's head are, which it shares with some of the others.
INLINE uint32_t queries_of(uint32_t base, int warp) {
    return base + AT_Q + warp % HEADS * (2 * BM * DQ) + 8 * lane_id();
}

// Each warp puts some of the steps there. Products with a query are to be multiplied by its unit.
INLINE void load_queries(uint32_t base, int warp, const args *a, const struct task *task, int by, float unit[2]) {
    uint32_t q[Q_WORDS];
    load_row(q, a, task, by);
#if Q_BF16
    const float own = to_fp16(q);
    UNROLL
    for (int r = 0; r < 2; r++) unit[r] = AS_F32(of_lane(AS_U32(own), 4 * row_of_lane(r)));
#else
    unit[0] = unit[1] = 1.0f;
#endif
    UNROLL
    for (int step = 0; step < Q_WORDS / 2; step++)
        if (step % SHARES == warp / HEADS)
            shared_store_8(queries_of(base, warp) + 256 * step, (uint64_t)q[2 * step + 1] << 32 | q[2 * step]);
}

// ---- products

// Words of rows of K, from byte `byte` of the lane's on.
#if HEADS > 1
enum { PIECES = K_ACCESS / 4 }; // of 16 bytes of a row, of which four lanes read a word each
INLINE void load_keys(uint32_t x[KEYS / 8][K_ACCESS / 4], uint32_t raw, int byte, int turn, int in_step) {
    const int lane = here(lane_id()) & 31; // known to be no more
    (void)in_step;                         // they always are
    UNROLL
    for (int j = 0; j < KEYS / 8; j += 4 / PIECES) {
        uint32_t words[4];
        read_matrices(words, raw_at(raw, j + lane / 8 / PIECES, lane % 8, 4 * byte + lane / 8 % PIECES * 16));
        UNROLL
        for (int i = 0; i < 4; i++) x[j + i / PIECES][i % PIECES] = words[i];
    }
    if (KV != TESSERA_KV_TURBO4 || byte > 0) return;
    UNROLL
    for (int j = 0; j < KEYS / 8; j += 4) {
        uint32_t tails[4];
        read_matrices(tails, tail_at(raw, 8 * j + lane));
        UNROLL
        for (int i = 0; i < 4 && j + i < KEYS / 8; i++)
            x[j + i][0] = with_tail(x[j + i][0], tails[i], 0, turn - lane % 4 * 4);
    }
}
#else
INLINE void load_keys(uint32_t x[KEYS / 8][K_ACCESS / 4], uint32_t raw, int byte, int turn, int in_step) {
    const int lane = here(lane_id()), from = key_byte(lane, byte);
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) {
        load_words(x[j], raw, j, lane / 4, from, K_ACCESS, in_step);
        if (in_step && byte == 0) take_tail(x[j], raw, 8 * j + lane / 4, from, K_ACCESS, turn - key_byte(lane_id(), 0));
    }
}
#endif

// S^T = K Q^T.
INLINE void make_scores(float s[SCORES], uint32_t queries, uint32_t base, uint32_t raw, int turn, int in_step) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] = 0.0f;
    UNROLL
    for (int byte = 0; byte < K_BYTES; byte += K_ACCESS) {
        uint32_t x[KEYS / 8][K_ACCESS / 4];
        load_keys(x, raw, byte, turn, in_step);
        UNROLL
        for (int w = 0; w < K_ACCESS / 4; w++) {
            uint32_t y[KEYS / 8][WORD_PAIRS];
            UNROLL
            for (int j = 0; j < KEYS / 8; j++) widen(y[j], x[j][w], base);
            UNROLL
            for (int n = 0; n < WORD_PAIRS; n += 2) {
                const uint64_t q = shared_load_8(queries + 256 * (((byte / 4 + w) * WORD_PAIRS + n) / 2));
                UNROLL
                for (int j = 0; j < KEYS / 8; j += 2) {
                    const uint32_t k[4] = {y[j][n], y[j + 1][n], y[j][n + 1], y[j + 1][n + 1]};
                    add_product(&s[ELEMENT(j, 0, 0)], k, (uint32_t)q, (uint32_t)(q >> 32));
                }
            }
        }
    }
}

// O^T += V^T P^T.
INLINE void add_values(float o[RESULTS], const uint32_t p[P_WORDS], uint32_t base, uint32_t raw, int turn,
                       int in_step) {
    const int lane = here(lane_id()), replaced = turn - (HEADS > 1 ? lane : lane_id()) / 4 * V_ACCESS;
    uint32_t q[P_WORDS];
    UNROLL
    for (int i = 0; i < P_WORDS; i++) q[i] = transposed(p[i]);
    UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        UNROLL
        for (int byte = 0; byte < V_BYTES; byte += V_ACCESS) {
            const int from = 8 * byte + lane / 4 * V_ACCESS;
            uint32_t x[4][V_ACCESS / 4];
            UNROLL
            for (int i = 0; i < 4; i++) {
                const int eights = 2 * k + i / 2, row = 2 * (lane % 4) + i % 2;
                load_words(x[i], raw, eights, row, from, V_ACCESS, in_step);
                if (KV == TESSERA_KV_TURBO4 && in_step && byte == 0)
                    take_tail(x[i], raw, 8 * eights + row, from, V_ACCESS, replaced);
            }
            UNROLL
            for (int w = 0; w < V_ACCESS / 4; w++) {
                uint32_t first[2 * WORD_PAIRS], second[2 * WORD_PAIRS];
                widen_both(first, x[0][w], x[1][w], base);
                widen_both(second, x[2][w], x[3][w], base);
                UNROLL
                for (int n = 0; n < 2 * WORD_PAIRS; n += 2) {
                    const uint32_t v[4] = {first[n], first[n + 1], second[n], second[n + 1]};
                    add_product(&o[ELEMENT((byte / 4 + w) * 2 * WORD_PAIRS + n, 0, 0)], v, q[2 * k], q[2 * k + 1]);
                }
            }
        }
    }
}

#endif
