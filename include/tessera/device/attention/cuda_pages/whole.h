// SPDX-License-Identifier: MIT
// Copies of rows of all HEADS key heads of a task. Of 4 bits a page is one copy: rows lie beside one another in it,
// without room between them, and tokens one behind the other. Of 8 bits eight rows are one, a box of a tensor map,
// wherever that has them. Parts, k and v of a tile in turns, have a ring of places in shared memory. Warps fill these
// in turns, and all empty them.
//
// Takes args, BN, WARPS, HEADS, STAGES, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_WHOLE_H

#include "tessera/device/attention/cuda/place.h"
#include "tessera/device/attention/cuda/spots.h"
#include "tessera/device/attention/cuda_pages/sizes.h"
#include "tessera/isa/sm90_quantised.h"

static_assert(!IN_BOXES || (AT_RAW % 1024 == 0 && RAW_BYTES % 1024 == 0), "swizzles are those of addresses");

INLINE struct place part_place(uint32_t base, uint32_t n) {
    const uint32_t stage = n % STAGES, barriers = base + AT_BARRIERS + 16 * stage;
    return (struct place){barriers, barriers + 8, base + AT_RAW + stage * RAW_BYTES, n / STAGES & 1};
}

INLINE void start_parts(uint32_t base) {
    if (thread_id() == 0) {
        for (uint32_t n = 0; n < STAGES; n++) start_place(part_place(base, n), IN_BOXES ? 33 : 1, WARPS);
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
INLINE int rows_of_lane(const args *a) { return IN_BOXES ? BOX_ROWS : min_i32(a->pages.page_size, BN); }

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

// What rows of boxes are scaled by, head beside head. `page`, `first_row`: where the lane's box lies.
INLINE void copy_scales(const args *a, int page, int first_row, struct place part, int values) {
    const struct tessera_attention_page_scales *const of = values ? &a->pages.v_scale : &a->pages.k_scale;
    if (of->base) {
        const int lane = here(lane_id()) & 31; // known to be no more
        const uint64_t box = (uint64_t)of->base + (uint64_t)(page * of->of.page + first_row * of->of.row);
        UNROLL
        for (int n = 0; n < BN * HEADS; n += 32) {
            const int row = (n + lane) / HEADS;
            const int64_t own = row % BOX_ROWS * of->of.row + lane % HEADS * of->of.head;
            copy_all_4(part.at + RAW_SCALES + 4 * (n + lane),
                       (const void *)(of_lane_64(box, row / BOX_ROWS) + (uint64_t)own));
        }
    }
    arrive_after_copies(part.full);
}

// Rows past a sequence's end are anything there. They become zeros in the warp's share of a part of v, since a
// probability of 0 times NaN would be NaN.
INLINE void clear_rows(uint32_t raw, int rows) {
    enum { PIECES_OF_ROW = RAW_ROW / 16 };
    _Pragma("unroll 1") for (int n = lane_id(); n < KEYS * PIECES_OF_ROW; n += 32) {
        const int row = n / PIECES_OF_ROW;
        if (row >= rows) shared_store_16(raw_at(raw, row / 8, row % 8, n % PIECES_OF_ROW * 16), (u32x4){0, 0, 0, 0});
    }
    finish_stores(); // before the next copy to there
    meet_lanes();
}

// Starts copying part n, and looks up what is the warp's next one. Boxes that are wholly past the end are any of the
// last key's page.
INLINE void copy_part(struct turn_to_copy *x, const args *a, const struct task *task, uint32_t base, uint32_t n) {
    if (x->tile < 0) return;
    const struct place part = part_place(base, n);
    const int values = n % 2, key = tile_key(task, x->tile), before = lane_id() * rows_of_lane(a);
    const int rows = IN_BOXES ? BN : min_i32(task->seqlen_k - key, BN);
    const int row = (key + before) & (a->pages.page_size - 1);
    const int64_t page = x->page * (values ? a->pages.stride_v : a->pages.stride_k);
    const char *const from = (const char *)(values ? a->call.v : a->call.k) + page + row * RAW_STRIDE;
    wait_until_empty(part);
    if (lane_id() == 0) arrive_and_announce(part.full, rows * RAW_STRIDE);
    meet_lanes();
    if (IN_BOXES) {
        if (before < rows)
            copy_box(part.at + before * RAW_STRIDE, values ? &a->map_v : &a->map_k, part.full, 0, row, 0, x->page);
        copy_scales(a, x->page, row, part, values);
    } else if (before < rows) {
        copy_run(part.at + before * RAW_STRIDE, from, min_i32(rows - before, rows_of_lane(a)) * RAW_STRIDE, part.full);
    }
    x->tile -= WARPS / 2;
    look_up(x, a, task);
}

#endif
