// SPDX-License-Identifier: MIT
// The results of all warps, each of its own keys, become those of the task: they meet in shared memory. A warp and
// every HEADS-th from there on have the same head. The epilogue's pair_of() makes o of two neighbouring elements, and
// its store_pairs() stores four such pairs.
//
// Takes args, BM, DV, WARPS, HEADS, pair_of, store_pairs.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_MERGE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_MERGE_H

#include "tessera/device/attention/cuda/descales.h"
#include "tessera/device/attention/cuda/softmax.h"
#include "tessera/device/attention/cuda/totals.h"
#include "tessera/device/attention/cuda_pages/in_step.h"

// Four elements of a row of a warp's results; lanes that store them meet in few banks.
INLINE uint32_t result_at(uint32_t base, int warp, int row, int column) {
    const int piece = column / 4 ^ (column / 32 & 3) ^ (row & 1) << 2;
    return results_place(base, warp) + 4 * DV * row + 16 * piece;
}
enum { APART = ELEMENT(1, 0, 0) - ELEMENT(0, 0, 0) }; // neighbouring columns of a thread's row of O
INLINE uint32_t sums_at(uint32_t base, int warp, int row) { return own_place(base, warp) + 16 * row; }

// Puts the warp's results there, of rows that are there. `unit`: of o, see weights.h.
// `by`: bytes that rows of v are turned by, see in_step.h.
INLINE void put_results(uint32_t base, int warp, const struct rows_state *x, const float o[RESULTS], int rows,
                        float scale, float unit, int by) {
    UNROLL
    for (int r = 0; r < 2; r++) {
        const int row = here(row_of_lane(r)); // so that no registers hold places meanwhile
        const float sum = sum_of_row(x->sum[r]);
        if (row >= rows) continue;
        if (thread_column() == 0)
            shared_store_16(sums_at(base, warp, row),
                            (u32x4){AS_U32(scaled_max(x->max[r], scale)), AS_U32(sum), AS_U32(unit), 0});
        UNROLL
        for (int e = 0; e < BESIDE; e++) {
            UNROLL
            for (int j = 0; j < DV / 8; j += 4) {
                const float *const from = &o[ELEMENT(j, r, e)];
                const int column = turned_feature(value_feature(j, thread_column() + e), by);
                shared_store_16(
                    result_at(base, warp, row, column),
                    (u32x4){AS_U32(from[0]), AS_U32(from[APART]), AS_U32(from[2 * APART]), AS_U32(from[3 * APART])});
            }
        }
    }
}

// A row's total of all warps that share its head, and what the results of each are to be multiplied by. `unit`: of
// numbers of V.
INLINE struct total merge_sums(uint32_t base, int first, int row, const args *a, int head, float unit,
                               float over[SHARES]) {
    float maxima[SHARES], sums[SHARES], max = -INFINITY_F32, sum = 0.0f;
    UNROLL
    for (int w = 0; w < SHARES; w++) {
        const u32x4 x = shared_load_16(sums_at(base, first + HEADS * w, row));
        maxima[w] = AS_F32(x.x), sums[w] = AS_F32(x.y), over[w] = AS_F32(x.z);
        max = max_f32(max, maxima[w]);
    }
    UNROLL
    for (int w = 0; w < SHARES; w++) {
        const float share = maxima[w] == -INFINITY_F32 ? 0.0f : exp2_fast(maxima[w] - max);
        sum += sums[w] * share;
        over[w] *= share;
    }
    return total_of(a, head, max, sum, value_scale(a) * unit);
}

// Eight elements of a row, from `column` on.
INLINE void merge_results(float x[8], uint32_t base, int first, int row, int column, const float over[SHARES]) {
    UNROLL
    for (int i = 0; i < 8; i++) x[i] = 0.0f;
    UNROLL
    for (int w = 0; w < SHARES; w++) {
        UNROLL
        for (int half = 0; half < 2; half++) {
            const u32x4 y = shared_load_16(result_at(base, first + HEADS * w, row, column + 4 * half));
            UNROLL
            for (int i = 0; i < 4; i++) x[4 * half + i] += AS_F32(y[i]) * over[w];
        }
    }
}

INLINE void store_element_rows(const float x[8], float over, const args *a, int64_t element) {
    uint32_t pairs[4];
    UNROLL
    for (int c = 0; c < 4; c++) pairs[c] = pair_of(x[2 * c] * over, x[2 * c + 1] * over);
    store_pairs((char *)a->call.o + element * (O_BITS / 8), pairs);
}
INLINE void store_partial_rows(const float x[8], float over, const args *a, int64_t element) {
    UNROLL
    for (int i = 0; i < 8; i += 4)
        store_16(a->o_acc + element + i, (u32x4){AS_U32(x[i] * over), AS_U32(x[i + 1] * over), AS_U32(x[i + 2] * over),
                                                 AS_U32(x[i + 3] * over)});
}

// Merges and stores them, once all warps have put theirs. All threads take part.
INLINE void store_merged(uint32_t base, const args *a, const struct task *task, float unit) {
    const int rows = min_i32(BM, count_rows(a, task) - task->first);
    const int64_t o_first = sequence_element(task, a->call.batch_stride_o, a->call.stride_o);
    const int64_t lse_first = sequence_element(task, a->call.batch_stride_lse, 1);
    for (int n = thread_id(); n < HEADS * rows * (DV / 8); n += THREADS) {
        const int number = n / (DV / 8), first = HEADS > 1 ? number / rows : 0, row = number - first * rows;
        const int column = n % (DV / 8) * 8;
        const struct task own = of_head(task, a, first);
        const int query = row_query(a, task->first + row), head = row_head(a, &own, task->first + row);
        float over[SHARES], x[8];
        const struct total total = merge_sums(base, first, row, a, head, unit, over);
        const int64_t partial = partial_row(a, &own, task->first + row);
        merge_results(x, base, first, row, column, over);
        if (a->parts > 1) {
            if (column < a->call.hdim_v) store_partial_rows(x, total.over, a, partial * a->call.hdim_v + column);
            if (column == 0) a->lse_acc[partial] = log2_of(&total);
            continue;
        }
        const int64_t o = o_first + head * a->call.nhead_stride_o + query * a->call.stride_o;
        if (column < a->call.hdim_v) store_element_rows(x, total.over, a, o + column);
        if (a->call.lse && column == 0)
            a->call.lse[lse_first + head * a->call.nhead_stride_lse + query] = log2_of(&total) * LN2;
    }
}

#endif
