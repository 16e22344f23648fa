// SPDX-License-Identifier: MIT
// Copies of pages in which the rows of all HEADS key heads of a task lie beside one another, without room between them.
// Where places for rows are as long, and tokens follow one another, a page is one copy; else each row is one, whatever
// heads there are. Parts, k and v of a tile in turns, have a ring of places in shared memory. Warps fill these in
// turns, and all empty them.
//
// Takes args, BN, WARPS, HEADS, STAGES, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H

#include "tessera/device/attention/cuda/place.h"
#include "tessera/device/attention/cuda/spots.h"
#include "tessera/device/attention/cuda_pages/sizes.h"
#include "tessera/isa/sm90_quantised.h"

enum { BY_ROWS = RAW_STRIDE > RAW_RUN, HAS_SCALES = RAW_BYTES > RAW_SCALES };

INLINE struct place part_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_BARRIERS + 16 * stage;
    return (struct place){barriers, barriers + 8, base + AT_RAW + stage * RAW_BYTES, n / STAGES & 1};
}

INLINE void start_parts(uint32_t base) {
    if (thread_id() == 0) {
        for (uint32_t n = 0; n < STAGES; n++) start_place(part_place(base, n), HAS_SCALES ? 33 : 1, WARPS);
    }
    publish_barriers();
}

// What a warp copies next, one part of WARPS: those of one task are of k, or of v.
struct turn_to_copy {
    int tile;         // below 0: nothing
    struct spot spot; // where the lane's first row of it lies
};
enum { AHEAD = STAGES - 1 }; // parts that are on their way, or there, while one is taken

INLINE int is_turn(int warp, uint32_t n) { return n % WARPS == (uint32_t)warp; }

// A lane copies rows of a tile that follow one another in a page.
INLINE int rows_of_lane(const args *a) { return BY_ROWS ? 1 : min_i32(a->pages.page_size, BN); }

INLINE void look_up(struct turn_to_copy *x, const args *a, const struct task *task) {
    const int first = tile_key(task, x->tile) + lane_id() * rows_of_lane(a);
    if (x->tile >= 0) x->spot = spot_of(a, task->batch, min_i32(first, task->seqlen_k - 1));
}

// Of a task whose first part is number n of the workgroup.
INLINE struct turn_to_copy first_turn_to_copy(const args *a, const struct task *task, int warp, uint32_t n) {
    struct turn_to_copy x;
    x.tile = task->tiles - 1 - (int)(((uint32_t)warp - n) % WARPS / 2);
    x.spot = (struct spot){0, 0};
    look_up(&x, a, task);
    return x;
}

// What the lanes' rows are scaled by, head beside head.
INLINE void copy_scales(const args *a, const struct spot *spot, struct place part, int values) {
    const struct tessera_attention_page_scales *const of = values ? &a->pages.v_scale : &a->pages.k_scale;
    if (of->base) {
        const int lane = here(lane_id()) & 31; // known to be no more
        const uint64_t row = (uint64_t)of->base + (uint64_t)(spot->page * of->of.page + spot->row * of->of.row);
        const uint64_t head = (uint64_t)(lane % HEADS * of->of.head);
        UNROLL
        for (int n = 0; n < BN * HEADS; n += 32)
            copy_all_4(part.at + RAW_SCALES + 4 * (n + lane),
                       (const void *)(of_lane_64(row, (n + lane) / HEADS) + head));
    }
    arrive_after_copies(part.full);
}

// Starts copying part n, and looks up what is the warp's next one. Rows past the end, copied one by one, are the last
// one once more: numbers, which a probability of 0 makes 0.
INLINE void copy_part(struct turn_to_copy *x, const args *a, const struct task *task, uint32_t base, uint32_t n) {
    if (x->tile < 0) return;
    const struct place part = part_place(base, n);
    const int values = n % 2, before = lane_id() * rows_of_lane(a);
    const int rows = BY_ROWS ? BN : min_i32(task->seqlen_k - tile_key(task, x->tile), BN);
    const int64_t page = x->spot.page * (values ? a->pages.stride_v : a->pages.stride_k);
    const int64_t row = x->spot.row * (values ? a->call.stride_v : a->call.stride_k);
    const char *const from = (const char *)(values ? a->call.v : a->call.k) + page + row;
    wait_until_empty(part);
    if (lane_id() == 0) arrive_and_announce(part.full, rows * RAW_RUN);
    meet_lanes();
    if (before < rows)
        copy_run(part.at + before * RAW_STRIDE, from, min_i32(rows - before, rows_of_lane(a)) * RAW_RUN, part.full);
    if (HAS_SCALES) copy_scales(a, &x->spot, part, values);
    x->tile -= WARPS / 2;
    look_up(x, a, task);
}

#endif
