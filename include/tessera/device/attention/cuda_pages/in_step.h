// SPDX-License-Identifier: MIT
// Rows of 4 bits that all begin as many bytes behind a multiple of 16, as those of a key head of pages [row, head] tend
// to: they are copied from that multiple on, and not shifted. What lies behind a row's last whole 16 bytes, its tail,
// takes the place of what is before its first byte. So rows are turned by some bytes, all alike, which the queries and
// results of the task follow.
//
// Takes args, DQ, DV, KEYS, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_IN_STEP_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_IN_STEP_H

#include "tessera/device/attention/cuda_pages/weights.h"

// Of k or of v of a task. Where rows are not in step they are shifted to begin where they should: `by` is 0.
struct turn {
    int by;           // bytes
    uint32_t mask[4]; // of the first words that the lane reads of a row, those bytes that are no tail's
};

// The bytes of a word that lie from `by` on; the word begins at `first`.
INLINE uint32_t bytes_from(int by, int first) {
    const int before = min_i32(max_i32(by - first, 0), 4);
    return (uint32_t)(0xffffffffull << (8 * before));
}

INLINE struct turn find_turn(const args *a, const void *base, int64_t of_head, int first) {
    struct turn turn = {a->pages.aligned ? (int)(((uint64_t)base + (uint64_t)of_head) % 16) : 0, {0}};
    UNROLL
    for (int w = 0; w < 4; w++) turn.mask[w] = bytes_from(turn.by, first + 4 * w);
    return turn;
}

INLINE struct turn k_turn_of(const args *a, int head) {
    return find_turn(a, a->call.k, head * a->call.nhead_stride_k, key_byte(lane_id(), 0));
}
INLINE struct turn v_turn_of(const args *a, int head) {
    return find_turn(a, a->call.v, head * a->call.nhead_stride_v, lane_id() / 4 * V_ACCESS);
}

// Which feature of a row lies where another one would without the turn. Both are even, or of a pair of such ones.
INLINE int turned_feature(int feature, int by) {
    return KV == TESSERA_KV_TURBO4 ? (feature - 2 * by) & (DV - 1) : feature;
}

// Words of a row, the first ones of the lane, whose bytes before the row are replaced by those of its tail.
INLINE void take_tail(uint32_t *x, uint32_t raw, int row, int byte, int bytes, const struct turn *turn) {
    const uint32_t from = raw + RAW_TAILS + RAW_TAIL * row + byte % 16;
    uint32_t tail[4];
    if (bytes == 16) {
        const u32x4 y = shared_load_16(from);
        tail[0] = y.x, tail[1] = y.y, tail[2] = y.z, tail[3] = y.w;
    } else if (bytes == 8) {
        const uint64_t y = shared_load_8(from);
        tail[0] = (uint32_t)y, tail[1] = (uint32_t)(y >> 32);
    } else {
        tail[0] = shared_load_4(from);
    }
    UNROLL
    for (int w = 0; w < bytes / 4; w++) x[w] = (x[w] & turn->mask[w]) | (tail[w] & ~turn->mask[w]);
}

// The norm of row lane % KEYS.
INLINE float own_norm(const args *a, uint32_t raw, const struct turn *turn) {
    if (!a->pages.aligned) return own_scale(raw);
    return unpack_fp16(shared_load_2(raw + RAW_TAILS + RAW_TAIL * (lane_id() % KEYS) + turn->by));
}

#endif
