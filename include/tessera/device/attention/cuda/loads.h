// SPDX-License-Identifier: MIT
// What the producing warp does: brings tiles of q, k and v into shared memory, with zeros for rows past the end of a
// sequence and for columns past the head dim. A copy by tensor map is started by one lane, and hardware does the rest.
// All lanes copy what has no map, and a sequence's last tile where the map does not end with the sequence: behind its
// end may lie the next sequence, NaN, or no memory at all. Instances that find keys in caches: paged.h, pieces.h.
//
// Takes args, BITS, MERGED, PAGED, V_COLUMNS, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_LOADS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_LOADS_H

#include "tessera/device/attention/cuda/copies.h"
#include "tessera/device/attention/cuda/pipe.h"
#include "tessera/device/attention/cuda/task.h"
#if PAGED == 2 // in pieces
#include "tessera/device/attention/cuda/pieces.h"
#elif PAGED
#include "tessera/device/attention/cuda/paged.h"
#endif

// Rows of a tensor, as bytes.
struct rows {
    const char *first;
    int64_t stride;
    int count, columns; // that exist
    int in_fours;       // whether they are keys whose order share.h says
};

INLINE int row_of_key(int key) { return key % 4 / 2 * (BN / 2) + key / 4 * 2 + key % 2; } // in fours

// Copies `most` rows in slices. With pairs lanes read their numbers anew, so that what is made of them takes no
// registers while maps serve.
INLINE void copy_rows(uint32_t to, const struct rows *from, int most, int slices) {
    const int pieces = slices * COLUMNS / PIECE; // of a row
    for (int i = PAIRS ? thread_id_again() % 32 : lane_id(); i < most * pieces; i += 32) {
        const int row = i / pieces, piece = i - row * pieces;
        const int left = row < from->count ? max_i32(from->columns - piece * PIECE, 0) : 0;
        const char *const source = from->first + (left > 0 ? row * from->stride + piece * 16 : 0);
        copy_piece(to, most, from->in_fours ? row_of_key(row) : row, piece, source, min_i32(left, PIECE) * BITS / 8);
    }
}
INLINE void fill_by_lanes(struct place place, const struct rows *from, int most, int slices) {
    copy_rows(place.at, from, most, slices);
    finish_copies();
    meet_lanes();
    if (lane_id() == 0) arrive(place.full);
}

#if MERGED
INLINE void meet_warpgroup(void) {
    UNROLL
    for (int n = 1; n <= WARPGROUPS; n++)
        if (WARPGROUPS == 1 || of_first_lane(thread_id() / WARPGROUP) == n)
            MEET_WARPGROUP(3 + n); // those before are of turns.h
}

// A warpgroup that computes copies its own rows, which lie in several heads, while the next tiles are on their way.
INLINE void load_own_q(uint32_t base, const args *a, const struct task *task) {
    const int pieces = Q_SLICES * COLUMNS / PIECE; // of a row
    const int first = first_row(task), before = first - task->first, lane = thread_id() % WARPGROUP;
    const int64_t sequence = sequence_element(task, a->call.batch_stride_q, a->call.stride_q);
    meet_warpgroup(); // no warp's products read the rows before any longer
    for (int i = lane; i < 64 * pieces; i += WARPGROUP) {
        const int row = i / pieces, piece = i - row * pieces;
        const int inside = first + row < count_rows(a, task) && piece * PIECE < a->call.hdim_q;
        const int64_t element = row_query(a, first + row) * a->call.stride_q +
                                row_head(a, task, first + row) * a->call.nhead_stride_q + sequence;
        const char *const source = (const char *)a->call.q + (inside ? element * BITS / 8 + piece * 16 : 0);
        copy_piece(base + AT_Q, BM, before + row, piece, source, inside ? 16 : 0);
    }
    finish_copies();
    meet_warpgroup();
}
#endif

INLINE void load_q(struct place place, const args *a, const struct task *task, uint32_t task_at) {
    struct task again;
    const int left = task->seqlen_q - task->first;
    if (a->maps & TESSERA_CUDA_MAP_Q && (left >= BM || ends_with(a->call.seqstart_q, a->call.cu_seqlen_q))) {
        const int batch = a->call.seqstart_q ? 0 : task->batch;
        fill_by_map(place, &a->map_q, BM, Q_SLICES, task->token_q + task->first, task->head, batch);
        return;
    }
    get_task(task_at, &again);
    const int64_t first = sequence_element(&again, a->call.batch_stride_q, a->call.stride_q) +
                          again.head * a->call.nhead_stride_q + again.first * a->call.stride_q;
    const struct rows rows = {(const char *)a->call.q + first * BITS / 8, a->call.stride_q * BITS / 8, left,
                              a->call.hdim_q, 0};
    fill_by_lanes(place, &rows, BM, Q_SLICES);
}

#if !PAGED
INLINE int ends_with_keys(const args *a) {
    return !a->call.seqlen_k_of && ends_with(a->call.seqstart_k, a->call.cu_seqlen_k);
}

// Copies all keys of a tile by its map: a box has the rows in their order, or the half of those in fours.
#if IN_FOURS
INLINE int is_in_map(const args *a, int left) { // which has no part of four
    return left >= BN || (ends_with_keys(a) && a->call.seqlen_k % 4 == 0);
}
INLINE void fill_keys_by_map(struct place place, const args *a, const struct task *task, int key) {
    if (lane_id() != 0) return;
    arrive_and_announce(place.full, K_BYTES);
    for (int slice = 0; slice < Q_SLICES; slice++) {
        const uint32_t to = place.at + slice * BN * SLICE;
        for (int half = 0; half < 2; half++)
            copy_box_of_5(to + half * (BN / 2) * SLICE, &a->map_k, place.full, slice * COLUMNS, 2 * half, key / 4,
                          task->head_k, task->batch);
    }
}
#else
INLINE int is_in_map(const args *a, int left) { return left >= BN || ends_with_keys(a); }
INLINE void fill_keys_by_map(struct place place, const args *a, const struct task *task, int key) {
    const int batch = a->call.seqstart_k ? 0 : task->batch;
    fill_by_map(place, &a->map_k, BN, Q_SLICES, task->token_k + key, task->head_k, batch);
}
#endif

INLINE void load_k(struct place place, const args *a, const struct task *task, uint32_t task_at, int key) {
    struct task again;
    const int left = task->seqlen_k - key;
    if (a->maps & TESSERA_CUDA_MAP_K && is_in_map(a, left)) {
        fill_keys_by_map(place, a, task, key);
        return;
    }
    get_task(task_at, &again);
    const int64_t first =
        key_element(&again, a->call.batch_stride_k, a->call.nhead_stride_k, a->call.stride_k) + key * a->call.stride_k;
    const struct rows rows = {(const char *)a->call.k + first * BITS / 8, a->call.stride_k * BITS / 8, left,
                              a->call.hdim_q, IN_FOURS};
    fill_by_lanes(place, &rows, BN, Q_SLICES);
}

// A tile of V has rows of keys, or of its columns, each of which has all keys of a sequence.
#if V_COLUMNS
INLINE void load_v(struct place place, const args *a, const struct task *task, uint32_t task_at, int key) {
    struct task again;
    const int left = task->seqlen_k - key;
    if (a->maps & TESSERA_CUDA_MAP_V && (left >= BN || ends_with_keys(a))) {
        if (lane_id() != 0) return;
        arrive_and_announce(place.full, V_BYTES);
        for (int slice = 0; slice < V_SLICES; slice++)
            copy_box(place.at + slice * V_ROWS * SLICE, &a->map_v, place.full, key + slice * COLUMNS, 0, task->head_k,
                     task->batch);
        return;
    }
    get_task(task_at, &again);
    const int64_t first = again.batch * a->call.batch_stride_v + again.head_k * a->call.nhead_stride_v + key;
    const struct rows rows = {(const char *)a->call.v + first * BITS / 8, a->call.stride_v * BITS / 8, a->call.hdim_v,
                              left, 0};
    fill_by_lanes(place, &rows, V_ROWS, V_SLICES);
}
#else
INLINE void load_v(struct place place, const args *a, const struct task *task, uint32_t task_at, int key) {
    struct task again;
    const int left = task->seqlen_k - key;
    if (a->maps & TESSERA_CUDA_MAP_V && (left >= BN || ends_with_keys(a))) {
        const int batch = a->call.seqstart_k ? 0 : task->batch;
        fill_by_map(place, &a->map_v, BN, V_SLICES, task->token_k + key, task->head_k, batch);
    } else {
        get_task(task_at, &again);
        const int64_t first = key_element(&again, a->call.batch_stride_v, a->call.nhead_stride_v, a->call.stride_v) +
                              key * a->call.stride_v;
        const struct rows rows = {(const char *)a->call.v + first * BITS / 8, a->call.stride_v * BITS / 8, left,
                                  a->call.hdim_v, 0};
        fill_by_lanes(place, &rows, BN, V_SLICES);
    }
    if (V_ARRIVALS > 1 && lane_id() != 0) arrive(place.full); // the first lane has
}
#endif
#endif

#endif
