// SPDX-License-Identifier: MIT
// Copies of pages in which the rows of all HEADS key heads of a task lie beside one another, without room between them,
// and tokens one behind the other: a page is one copy, whatever heads there are. Parts, k and v of a tile in turns,
// have a ring of places in shared memory. Warps fill these in turns, and all empty them.
//
// Takes args, BN, WARPS, HEADS, STAGES, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H

#include "tessera/device/attention/cuda/place.h"
#include "tessera/device/attention/cuda/spots.h"
#include "tessera/device/attention/cuda_pages/sizes.h"
#include "tessera/isa/sm90_quantised.h"

INLINE struct place part_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_BARRIERS + 16 * stage;
    return (struct place){barriers, barriers + 8, base + AT_RAW + stage * RAW_BYTES, n / STAGES & 1};
}

INLINE void start_parts(uint32_t base) {
    if (thread_id() == 0) {
        for (uint32_t n = 0; n < STAGES; n++) start_place(part_place(base, n), 1, WARPS);
    }
    publish_barriers();
}

// What a warp copies next, one part of WARPS: those of one task are of k, or of v.
struct turn_to_copy {
    int tile; // below 0: nothing
    int page; // where the lane's first row of it lies
};
enum { AHEAD = STAGES - 1 }; // parts that are on their way, or there, while one is taken

INLINE int is_turn(int warp, uint32_t n) { return n % WARPS == (uint32_t)warp; }

// A lane copies rows of a tile that follow one another in a page.
INLINE int rows_of_lane(const args *a) { return min_i32(a->pages.page_size, BN); }

INLINE void look_up(struct turn_to_copy *x, const args *a, const struct task *task) {
    const int first = tile_key(task, x->tile) + lane_id() * rows_of_lane(a);
    if (x->tile >= 0) x->page = spot_of(a, task->batch, min_i32(first, task->seqlen_k - 1)).page;
}

// Of a task whose first part is number n of the workgroup.
INLINE struct turn_to_copy first_turn_to_copy(const args *a, const struct task *task, int warp, uint32_t n) {
    struct turn_to_copy x;
    x.tile = task->tiles - 1 - (int)(((uint32_t)warp - n) % WARPS / 2);
    x.page = 0;
    look_up(&x, a, task);
    return x;
}

// Starts copying part n, and looks up what is the warp's next one.
INLINE void copy_part(struct turn_to_copy *x, const args *a, const struct task *task, uint32_t base, uint32_t n) {
    if (x->tile < 0) return;
    const struct place part = part_place(base, n);
    const int values = n % 2, key = tile_key(task, x->tile), before = lane_id() * rows_of_lane(a);
    const int rows = min_i32(task->seqlen_k - key, BN), row = (key + before) & (a->pages.page_size - 1);
    const int64_t page = x->page * (values ? a->pages.stride_v : a->pages.stride_k);
    const char *const from = (const char *)(values ? a->call.v : a->call.k) + page + row * RAW_STRIDE;
    wait_until_empty(part);
    if (lane_id() == 0) arrive_and_announce(part.full, rows * RAW_STRIDE);
    meet_lanes();
    if (before < rows)
        copy_run(part.at + before * RAW_STRIDE, from, min_i32(rows - before, rows_of_lane(a)) * RAW_STRIDE, part.full);
    x->tile -= WARPS / 2;
    look_up(x, a, task);
}

#endif
