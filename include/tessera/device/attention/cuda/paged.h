// SPDX-License-Identifier: MIT
// Tiles of keys and values whose rows lie in the pages of a cache, brought by all warps of a warpgroup, each a part. A
// lane looks up where a box of rows lies, none of which is in two pages, and a copy by tensor map brings it. A
// sequence's last tile, and tiles that have no such boxes, are copied by all lanes, each of which looks up a row.
//
// Takes args, BITS, MERGED, PAGED, FILLING_WARPS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGED_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGED_H

#include "tessera/device/attention/cuda/copies.h"
#include "tessera/device/attention/cuda/sizes.h"
#include "tessera/device/attention/cuda/spots.h"

// Where the lane's part of a tile lies, which begins with one of its keys, if that is below BN.
struct lane_part {
    int boxes; // whether boxes are copied, else rows
    struct spot spot;
};

INLINE int first_of_box(const args *a, int warp) { return (lane_id() * FILLING_WARPS + warp) * a->pages.box_rows; }

INLINE struct lane_part look_up(const args *a, uint32_t task_at, int warp, int key) {
    const struct tessera_fmha_fwd_cuda_pages *const p = &a->pages;
    struct task task;
    get_task(task_at, &task); // again, so that no registers hold it meanwhile
    const int left = task.seqlen_k - key;
    const int boxes = a->maps & TESSERA_CUDA_MAP_K && left >= BN && first_key_of(a, task.batch) % p->box_rows == 0;
    const int first = boxes ? first_of_box(a, warp) : lane_id() + warp * WARP_ROWS;
    return (struct lane_part){boxes, spot_of(a, task.batch, key + min_i32(first, min_i32(left, BN) - 1))};
}

INLINE void fill_by_boxes(struct place place, const args *a, const struct spot *spot, int warp, int head, int values) {
    const void *const map = values ? &a->map_v : &a->map_k;
    const int slices = values ? V_SLICES : Q_SLICES, rows = a->pages.box_rows;
    const int first = first_of_box(a, warp),
              boxes = (BN / rows + FILLING_WARPS - 1 - warp) / FILLING_WARPS; // of the warp
    if (lane_id() == 0) arrive_and_announce(place.full, boxes * slices * rows * SLICE);
    meet_lanes();
    for (int slice = 0; slice < slices && first < BN; slice++)
        copy_box(place.at + (slice * BN + first) * SLICE, map, place.full, slice * COLUMNS, spot->row, head,
                 spot->page);
}

INLINE int64_t of_lane_64(int64_t x, int lane) {
    const uint32_t low = of_lane((uint32_t)x, lane), high = of_lane((uint32_t)((uint64_t)x >> 32), lane);
    return (int64_t)((uint64_t)high << 32 | low);
}

// Keys past the end are zeros.
INLINE void fill_by_rows(struct place place, const args *a, const struct spot *spot, int warp, int head, int left,
                         int values) {
    const int slices = values ? V_SLICES : Q_SLICES, pieces = slices * COLUMNS / PIECE; // of a row
    const int columns = values ? a->call.hdim_v : a->call.hdim_q;
    const int64_t stride = values ? a->call.stride_v : a->call.stride_k;
    const int64_t page_stride = values ? a->pages.stride_v : a->pages.stride_k;
    const int64_t of_head = head * (values ? a->call.nhead_stride_v : a->call.nhead_stride_k);
    const char *const base = (const char *)(values ? a->call.v : a->call.k);
    const int64_t own = (spot->page * page_stride + of_head + spot->row * stride) * BITS / 8;
    _Pragma("unroll 1") for (int i = lane_id(); i < WARP_ROWS * pieces; i += 32) {
        const int from = i / pieces, row = warp * WARP_ROWS + from, piece = i - from * pieces;
        const int inside = row < left && piece * PIECE < columns;
        const char *const source = base + of_lane_64(own, from) + (inside ? piece * 16 : 0);
        copy_piece(place.at, BN, row, piece, source, inside ? 16 : 0);
    }
    finish_copies();
    meet_lanes();
    if (lane_id() == 0) arrive(place.full);
}

// The warp's part of the tile of k or of v that begins with a key.
INLINE void fill_by_pages(struct place place, const args *a, const struct lane_part *part, int warp, uint32_t task_at,
                          int key, int values) {
    struct task task;
    get_task(task_at, &task);
    if (part->boxes)
        fill_by_boxes(place, a, &part->spot, warp, task.head_k, values);
    else
        fill_by_rows(place, a, &part->spot, warp, task.head_k, task.seqlen_k - key, values);
}

#endif
