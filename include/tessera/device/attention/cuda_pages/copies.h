// SPDX-License-Identifier: MIT
// A warp's copies of rows of a quantised cache, as they lie in memory, and of what each is scaled by.
//
// Takes args, KEYS, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_COPIES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_COPIES_H

#include "tessera/device/attention/cuda/spots.h"
#include "tessera/device/attention/cuda_pages/sizes.h"
#include "tessera/isa/sm90_quantised.h"

// The four bytes that the scale of the lane's row begins in, and the next ones where it ends there. Returns the bits
// before it. Rows past the end have zeros, since infinity times their probability, which is 0, would be NaN.
INLINE uint32_t start_scale(uint32_t raw, const struct tessera_attention_page_scales *x, const struct spot *spot,
                            int head, int there) {
    if (!x->base) return 0;
    const char *const at = (const char *)x->base + head * x->of.head + spot->page * x->of.page + spot->row * x->of.row;
    const uint32_t shift = (uint32_t)(uint64_t)at % 4, to = raw + RAW_SCALES + RAW_SCALE * lane_id();
    copy_4(to, at - shift, !there ? 0 : KV == TESSERA_KV_TURBO4 ? min_i32((int)shift + 2, 4) : 4);
    if (KV == TESSERA_KV_TURBO4 && shift == 3) copy_4(to + 4, at + 1, there ? 1 : 0);
    return 8 * shift;
}

// Copies of `piece` bytes of rows that are all there and have all of their bytes. `own`: where rows begin, rounded down
// to multiples of 4. Some are read at once, since a copy waits for its address.
INLINE void copy_whole(uint32_t raw, uint32_t own, uint32_t piece) {
    const uint32_t pieces = RAW_ROW / piece, steps = KEYS * pieces / 32, at_once = steps < 4 ? steps : 4;
    const uint32_t lane = (uint32_t)here(lane_id()) % 32; // known to be no more
    const uint32_t row = lane / pieces, byte = lane % pieces * piece, to = swizzled(lane * piece, row);
    UNROLL
    for (uint32_t first = 0; first < steps; first += at_once) {
        uint64_t from[4];
        UNROLL
        for (uint32_t i = 0; i < at_once; i++) {
            const uint32_t before = 32 * (first + i);
            from[i] = shared_load_8(own + 8 * row + 8 * (before / pieces)) + byte + before % pieces * piece;
        }
        UNROLL
        for (uint32_t i = 0; i < at_once; i++) {
            const uint32_t before = 32 * (first + i), at = raw + swizzled(to, before / pieces) + before * piece;
            if (piece == 16)
                copy_all_16(at, (const void *)from[i]);
            else
                copy_all_4(at, (const void *)from[i]);
        }
    }
}

// Copies of 4 bytes, where some rows or bytes are not there and become zeros. Where a row begins before a multiple of
// four bytes these begin with what is before it.
INLINE void copy_some(uint32_t raw, uint32_t own, int width, int rows) {
    enum { WORDS = RAW_ROW / 4 };
    _Pragma("unroll 1") for (int n = lane_id(); n < KEYS * WORDS; n += 32) {
        const int row = n / WORDS, byte = n % WORDS * 4;
        const int before = (int)(shared_load_2(raw + RAW_SHIFTS + 2 * row) % 32 / 8);
        const int left = row < rows ? max_i32(min_i32(before + width - byte, 4), 0) : 0;
        const char *const from = (const char *)shared_load_8(own + 8 * row);
        copy_4(raw + swizzled(4 * n, row), from + (left > 0 ? byte : 0), left);
    }
}

// In pages in pieces, which have 16 bytes of each row of k beside one another. `at`: where those of the lane's row lie.
INLINE void copy_keys(uint32_t raw, uint64_t at, int page_size, int width, int rows) {
    const int lane = here(lane_id()), row = lane % KEYS;
    UNROLL
    for (int n = 0; n < RAW_ROW / 16 * KEYS; n += 32) {
        const int piece = lane / KEYS + n / KEYS, there = row < rows && 16 * piece < width;
        copy_16(raw + swizzled(row * RAW_ROW + 16 * piece, row),
                (const void *)(at + (there ? (uint64_t)(16 * piece * page_size) : 0)), there ? 16 : 0);
    }
}

// And keys of a column of v: so many of them at once. `at`: where column 0 of the lane's row lies.
INLINE void copy_columns(uint32_t raw, uint64_t at, int piece, int width, int rows, int run) {
    const int runs = KEYS / run, lane = here(lane_id()), key = lane % runs * run, left = max_i32(rows - key, 0);
    const uint64_t from = of_lane_64(at, key);
    UNROLL
    for (int n = 0; n < DV * runs; n += 32) {
        const int column = (lane + n) / runs, bytes = column < width ? min_i32(left, run) : 0;
        const uint32_t to = column_at(raw, column, key) + key % 16;
        const void *const source = (const void *)(from + (bytes ? (uint64_t)(column * piece) : 0));
        if (run == 16)
            copy_16(to, source, bytes);
        else
            copy_8(to, source, bytes);
    }
}

INLINE void copy_pieces(uint32_t raw, const args *a, const struct spot *spot, int head, int rows, int values) {
    const int piece = a->pages.piece_v, in_piece = spot->row & (piece - 1);
    if (values) {
        const int64_t at = spot->page * a->pages.stride_v + head * a->call.nhead_stride_v +
                           (int64_t)(spot->row - in_piece) * a->call.hdim_v + in_piece;
        if (piece < 16)
            copy_columns(raw, (uint64_t)a->call.v + (uint64_t)at, piece, a->call.hdim_v, rows, 8);
        else
            copy_columns(raw, (uint64_t)a->call.v + (uint64_t)at, piece, a->call.hdim_v, rows, 16);
    } else {
        const int64_t at = spot->page * a->pages.stride_k + head * a->call.nhead_stride_k + (int64_t)spot->row * 16;
        copy_keys(raw, (uint64_t)a->call.k + (uint64_t)at, a->pages.page_size, a->call.hdim_q, rows);
    }
}

// Copies of rows that are in step (in_step.h), of which `rows` are there and the others become zeros. `at`: where the
// lane's begins.
INLINE void copy_in_step(uint32_t raw, uint32_t own, uint64_t at, int rows) {
    const int lane = here(lane_id()), by = (int)(at % 16);
    if (lane < KEYS) {
        shared_store_8(own + 8 * lane, at - by);
        copy_16(tail_at(raw, lane), (const void *)(at - by + RAW_ROW), lane < rows ? by + 2 : 0);
    }
    meet_lanes();
    if (rows >= KEYS) {
        copy_whole(raw, own, 16);
        return;
    }
    _Pragma("unroll 1") for (int n = lane; n < KEYS * RAW_ROW / 16; n += 32) {
        const int row = n / (RAW_ROW / 16), piece = n % (RAW_ROW / 16);
        const char *const from = (const char *)shared_load_8(own + 8 * row) + 16 * piece;
        copy_16(raw + swizzled(16 * n, row), from, row < rows ? 16 : 0);
    }
}

// Starts copying a part: k or v of the warp's keys, of which `rows` are there and the others become zeros. `spot` is
// where the lane's key lies.
INLINE void start_part(uint32_t base, int warp, int stage, const args *a, const struct spot *spot, int head, int rows,
                       int values) {
    const int64_t stride = values ? a->call.stride_v : a->call.stride_k;
    const int64_t page_stride = values ? a->pages.stride_v : a->pages.stride_k;
    const int64_t of_head = head * (values ? a->call.nhead_stride_v : a->call.nhead_stride_k);
    const int width = (values ? a->call.hdim_v : a->call.hdim_q) * RAW_BITS / 8, lane = here(lane_id());
    const uint32_t raw = raw_place(base, warp, stage), own = own_place(base, warp);
    meet_lanes(); // all have read what was here before
    if (KV == TESSERA_KV_TURBO4 && a->pages.aligned) {
        const uint64_t at = (uint64_t)(values ? a->call.v : a->call.k) +
                            (uint64_t)(of_head + spot->page * page_stride + spot->row * stride);
        copy_in_step(raw, own, at, rows);
        return;
    }
    if (IS_IN_PIECES(a)) {
        if (lane < KEYS) start_scale(raw, values ? &a->pages.v_scale : &a->pages.k_scale, spot, head, lane < rows);
        copy_pieces(raw, a, spot, head, rows, values);
        return;
    }
    if (lane < KEYS) {
        const uint64_t at = (uint64_t)(values ? a->call.v : a->call.k) +
                            (uint64_t)(of_head + spot->page * page_stride + spot->row * stride);
        const int before = (int)(at % 4), behind = lane < rows ? max_i32(before + width - RAW_ROW, 0) : 0;
        const uint32_t of_scale =
            start_scale(raw, values ? &a->pages.v_scale : &a->pages.k_scale, spot, head, lane < rows);
        shared_store_8(own + 8 * lane, at - before);
        shared_store_2(raw + RAW_SHIFTS + 2 * lane, (uint32_t)(8 * before) | of_scale << 8);
        if (!a->pages.aligned)
            copy_4(tail_at(raw, lane), (const char *)(at - before) + (behind > 0 ? RAW_ROW : 0), behind);
    }
    meet_lanes();
    if (rows < KEYS || width < RAW_ROW)
        copy_some(raw, own, width, rows);
    else if (a->pages.aligned)
        copy_whole(raw, own, 16);
    else
        copy_whole(raw, own, 4);
}

#endif
