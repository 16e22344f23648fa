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

// By how many bytes rows of k or of v of a task are turned: 0 where they are not in step, and are shifted to begin
// where they should.
INLINE int turn_of(const args *a, const void *base, int64_t of_head) {
    return a->pages.aligned ? (int)(((uint64_t)base + (uint64_t)of_head) % 16) : 0;
}
INLINE int k_turn_of(const args *a, int head) { return turn_of(a, a->call.k, head * a->call.nhead_stride_k); }
INLINE int v_turn_of(const args *a, int head) { return turn_of(a, a->call.v, head * a->call.nhead_stride_v); }

// Which feature of a row lies where another one would without the turn. Both are even, or of a pair of such ones.
INLINE int turned_feature(int feature, int by) {
    return KV == TESSERA_KV_TURBO4 ? (feature - 2 * by) & (DV - 1) : feature;
}

// Word w of a row's first ones, of whose bytes so many, if any, are replaced by those of the tail.
INLINE uint32_t with_tail(uint32_t x, uint32_t tail, int w, int bytes) {
    const uint32_t own = bits_from(max_i32(8 * bytes - 32 * w, 0));
    return (x & own) | (tail & ~own);
}

// The lane's first words of a row, which begin at byte `byte`, of which `replaced` are the tail's.
INLINE void take_tail(uint32_t *x, uint32_t raw, int row, int byte, int bytes, int replaced) {
    const uint32_t from = tail_at(raw, row) + byte % 16;
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
    for (int w = 0; w < bytes / 4; w++) x[w] = with_tail(x[w], tail[w], w, replaced);
}

// The norm of row lane % KEYS.
INLINE float own_norm(const args *a, uint32_t raw, int turn) {
#if HEADS == 1
    if (!a->pages.aligned) return own_scale(raw);
    const int row = lane_id() % KEYS;
#else
    (void)a; // they always are in step; registers are few
    const int row = here(lane_id()) % KEYS;
#endif
    return unpack_fp16(shared_load_2(tail_at(raw, row) + turn));
}

#endif
