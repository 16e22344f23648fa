// SPDX-License-Identifier: MIT
// Tiles of keys and values in pages in pieces, which have 16 bytes of each row of k beside one another, and keys of a
// column of v: columns become the rows of V in shared memory. All warps of a warpgroup copy, each a part of the keys,
// by all lanes; while copies of some parts are on their way those of the next one are started.
//
// Takes args, BITS, MERGED, PAGED, FILLING_WARPS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PIECES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PIECES_H

#include "tessera/device/attention/cuda/copies.h"
#include "tessera/device/attention/cuda/sizes.h"
#include "tessera/device/attention/cuda/spots.h"

// Where one of the keys of the warp's part of a tile lies, a key for each lane.
struct lane_part {
    struct spot spot;
};

enum { RUNS = WARP_ROWS / PIECE }; // of keys beside one another, of a warp's part

static_assert(32 % WARP_ROWS == 0 && 32 % RUNS == 0, "lanes share keys and runs out evenly");

INLINE struct lane_part look_up(const args *a, uint32_t task_at, int warp, int key) {
    struct task task;
    get_task(task_at, &task); // again, so that no registers hold it meanwhile
    const int own = key + warp * WARP_ROWS + lane_id() % WARP_ROWS;
    return (struct lane_part){spot_of(a, task.batch, min_i32(own, task.seqlen_k - 1))};
}

// ---- copies that are on their way, of some places: their full barriers, the last one first; 0: none

enum { UNDER_WAY = 3 };

INLINE void announce(uint32_t full) {
    finish_stores();
    meet_lanes();
    if (lane_id() == 0) arrive(full);
}
INLINE void announce_all(uint32_t begun[UNDER_WAY]) {
    if (!begun[0]) return;
    AWAIT_COPIES(0);
    UNROLL
    for (int i = UNDER_WAY - 1; i >= 0; i--) {
        if (begun[i]) announce(begun[i]);
        begun[i] = 0;
    }
}
INLINE void begin_copies(uint32_t begun[UNDER_WAY], uint32_t full) {
    commit_copies();
    if (begun[UNDER_WAY - 1]) {
        AWAIT_COPIES(UNDER_WAY);
        announce(begun[UNDER_WAY - 1]);
    }
    UNROLL
    for (int i = UNDER_WAY - 1; i > 0; i--) begun[i] = begun[i - 1];
    begun[0] = full;
}

// Who empties a place may wait for what is on its way.
INLINE void await_room(struct place place, uint32_t begun[UNDER_WAY]) {
    if (!of_first_lane(has_passed(place.empty, place.parity ^ 1))) announce_all(begun);
    wait_until_empty(place);
}

// ---- copies

// `left`: keys from the warp's first one on. Those past the end are zeros.
INLINE void copy_keys(uint32_t to, const args *a, const struct spot *spot, int warp, int head, int left) {
    const int row = lane_id() % WARP_ROWS;
    const int64_t at = spot->page * a->pages.stride_k + head * a->call.nhead_stride_k + (int64_t)spot->row * PIECE;
    const char *const from = (const char *)a->call.k + at * BITS / 8;
    _Pragma("unroll 4") for (int n = 0; n < Q_SLICES * COLUMNS / PIECE * WARP_ROWS; n += 32) {
        const int piece = (lane_id() + n) / WARP_ROWS, inside = row < left && piece * PIECE < a->call.hdim_q;
        copy_piece(to, BN, warp * WARP_ROWS + row, piece, from + (inside ? piece * a->pages.page_size * 16 : 0),
                   inside ? 16 : 0);
    }
}

// A run of keys of each column of v: rows of V, in slices, of which the run is a piece.
INLINE void copy_columns(uint32_t to, const args *a, const struct spot *spot, int warp, int head, int left) {
    const int run = lane_id() % RUNS, key = run * PIECE, beside = a->pages.piece_v;
    const int page = (int)of_lane((uint32_t)spot->page, key), row = (int)of_lane((uint32_t)spot->row, key);
    const int in_piece = row & (beside - 1);
    const int64_t at = page * a->pages.stride_v + head * a->call.nhead_stride_v +
                       (int64_t)(row - in_piece) * a->call.hdim_v + in_piece;
    const char *const from = (const char *)a->call.v + at * BITS / 8;
    const int bytes = min_i32(max_i32(left - key, 0) * BITS / 8, 16), piece = warp * RUNS + run;
    _Pragma("unroll 4") for (int n = 0; n < V_SLICES * COLUMNS * RUNS; n += 32) {
        const int column = (lane_id() + n) / RUNS, there = column < a->call.hdim_v ? bytes : 0;
        copy_piece(to, DV, column, piece, from + (there ? column * beside * BITS / 8 : 0), there);
    }
}

// Starts copying the warp's part of the tile of k or of v that begins with a key, and announces one that has come.
INLINE void fill_by_pages(struct place place, const args *a, const struct lane_part *part, int warp, uint32_t task_at,
                          int key, int values, uint32_t begun[UNDER_WAY]) {
    struct task task;
    get_task(task_at, &task);
    const int left = task.seqlen_k - key - warp * WARP_ROWS;
    if (values)
        copy_columns(place.at, a, &part->spot, warp, task.head_k, left);
    else
        copy_keys(place.at, a, &part->spot, warp, task.head_k, left);
    begin_copies(begun, place.full);
}

#endif
