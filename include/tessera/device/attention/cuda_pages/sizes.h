// SPDX-License-Identifier: MIT
// Sizes of an instance that reads a quantised cache, and where things lie in shared memory.
//
// BM, BN: queries of a task and keys of a tile, of which each of WARPS warps has KEYS. DQ = DV: head dims, of which a
// call may use a part. STAGES: parts, the rows of k or of v of a warp's keys, that it has room for. KV: the cache's
// type. Where a task has several HEADS parts are those of a tile, of all heads (whole.h), and SHARES warps have a head.
//
// Takes BM, BN, KEYS, WARPS, HEADS, DQ, DV, STAGES, KV.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_SIZES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_SIZES_H

#include "tessera/device/attention/cuda/share.h"
#include "tessera/kernel/fmha_fwd_cuda.h"

enum { SHARES = WARPS / HEADS, THREADS = 32 * WARPS };
enum { RAW_BITS = KV == TESSERA_KV_TURBO4 ? 4 : 8, RAW_ROW = DQ * RAW_BITS / 8 };

#if HEADS > 1
// A part of 4 bits is rows as they lie in pages. Of 8 bits it is boxes of BOX_ROWS rows, which are slices of all heads,
// one behind the other, of which each has 128 bytes of all rows; 16-byte pieces are swizzled by the row's number, so
// that lanes which read the same piece of eight rows, or of every other of them, meet in no bank. Behind them is what
// the rows of each head are scaled by.
enum {
    IN_BOXES = KV != TESSERA_KV_TURBO4,
    BOX_ROWS = TESSERA_CUDA_BOX_ROWS,
    SLICE = 128,                             // bytes
    V_MOST = IN_BOXES ? 8 : 4,               // with few registers; 4: of turned rows fewer accesses have a tail
    RAW_SLOT = RAW_ROW + (IN_BOXES ? 0 : 2), // of a head: numbers, and a norm
    RAW_STRIDE = HEADS * RAW_SLOT,
    RAW_SCALES = BN * RAW_STRIDE,
    RAW_BYTES = IN_BOXES ? (RAW_SCALES + 4 * BN * HEADS + 1023) / 1024 * 1024 : RAW_SCALES, // as swizzles need it
    RESULTS_BYTES = 4 * BM * DV, // of a warp, which in the end lie where parts were, see merge.h
    ALL_RESULTS = WARPS * RESULTS_BYTES,
    PARTS_BYTES = STAGES * RAW_BYTES > ALL_RESULTS ? STAGES *RAW_BYTES : ALL_RESULTS
};
#else
// A part is rows of numbers, as they lie in memory; behind them for each the word that it ends in where it does not
// begin at a multiple of four bytes, or the 16 bytes where it does not begin at a multiple of these; the words with its
// scale, and by how many bits both are to be shifted, a byte each.
enum {
    V_MOST = 16,
    RAW_TAILS = KEYS * RAW_ROW,
    RAW_TAIL = KV == TESSERA_KV_TURBO4 ? 16 : 4, // bytes
    RAW_SCALES = RAW_TAILS + RAW_TAIL * KEYS,
    RAW_SCALE = KV == TESSERA_KV_TURBO4 ? 8 : 4, // bytes
    RAW_SHIFTS = RAW_SCALES + RAW_SCALE * KEYS,
    RAW_BYTES = RAW_SHIFTS + 2 * KEYS,
    RESULTS_BYTES = 4 * BM * DV, // of a warp, which in the end lie where its parts were, see merge.h
    WARP_BYTES = STAGES * RAW_BYTES > RESULTS_BYTES ? STAGES *RAW_BYTES : RESULTS_BYTES,
    PARTS_BYTES = WARPS * WARP_BYTES
};
#endif

// A lane reads of rows of V so many bytes, in accesses of at most V_MOST, of which eight lanes' lie side by side.
enum {
    V_BYTES = RAW_ROW / 8,
    V_ACCESS = V_BYTES < V_MOST ? V_BYTES : V_MOST,
    V_RUN = V_ACCESS * 8 / RAW_BITS // features
};

// Where things lie, beside shared_base().
enum {
    AT_Q = 0,
    AT_RAW = AT_Q + HEADS * 2 * BM * DQ,
    AT_TABLE = AT_RAW + PARTS_BYTES,
    TABLE_BYTES = KV == TESSERA_KV_TURBO4 ? 256 * 256 : 0,
    AT_OWN = AT_TABLE + TABLE_BYTES, // of each warp, addresses of its rows and in the end its sums
    OWN_BYTES = 16 * BM > 8 * KEYS ? 16 * BM : 8 * KEYS,
    AT_TASKS = AT_OWN + WARPS * OWN_BYTES,
    TASK_BYTES = 64,
    AT_BARRIERS = AT_TASKS + 2 * TASK_BYTES,
    SHARED_BYTES = AT_BARRIERS + (HEADS > 1 ? 16 * STAGES : 0)
};

INLINE int warp_id(void) { return of_first_lane(thread_id() / 32); }
INLINE uint32_t own_place(uint32_t base, int warp) { return base + AT_OWN + warp * OWN_BYTES; }

#if HEADS > 1
INLINE uint32_t results_place(uint32_t base, int warp) { return base + AT_RAW + warp * RESULTS_BYTES; }

// A byte of a row, of so many eights of rows and one more, and what lies behind its whole 16 bytes.
INLINE uint32_t raw_at(uint32_t raw, int eights, int row, int byte) {
    if (!IN_BOXES) return raw + (8 * eights + row) * RAW_STRIDE + byte;
    const int slice = byte / SLICE;
    return (raw + 8 * RAW_STRIDE * eights + BOX_ROWS * SLICE * slice + SLICE * row + byte % SLICE) ^ row << 4;
}
// Where a head's slot begins that is so many bytes behind the first one.
INLINE int slot_at(int slot) { return IN_BOXES ? slot / SLICE * SLICE * BOX_ROWS + slot % SLICE : slot; }
INLINE uint32_t tail_at(uint32_t raw, int row) { return raw + row * RAW_STRIDE + RAW_ROW; }
#else
INLINE uint32_t raw_place(uint32_t base, int warp, int stage) {
    return base + AT_RAW + warp * WARP_BYTES + stage * RAW_BYTES;
}
INLINE uint32_t results_place(uint32_t base, int warp) { return raw_place(base, warp, 0); }

// Pieces of 16 bytes are swizzled within 128, so that lanes which read the same piece of eight rows, or of every other
// of them, meet in no bank: where what would lie at `offset` lies, of this row.
INLINE uint32_t swizzled(uint32_t offset, uint32_t row) { return offset ^ (row & (RAW_ROW < 128 ? 6 : 7)) << 4; }

// A byte of a row, of so many eights of rows and one more, and its tail.
INLINE uint32_t raw_at(uint32_t raw, int eights, int row, int byte) {
    return raw + 8 * RAW_ROW * eights + swizzled(row * RAW_ROW + byte, row);
}
INLINE uint32_t tail_at(uint32_t raw, int row) { return raw + RAW_TAILS + RAW_TAIL * row; }

// Where 16 keys of a column of v lie that are copied from pages in pieces: columns beside one another, but those that
// lanes read at once (numbers.h), eight at distances of V_RUN or one of two runs of keys, meet in no bank.
INLINE uint32_t column_at(uint32_t raw, int column, int key) {
    return raw + key / 16 * 16 * DV + 16 * (column ^ (column / V_RUN % 8) ^ key / 16 * 4);
}
#endif

// Whether pages are in pieces, in which nothing of 4 bits is.
#define IS_IN_PIECES(a) (KV != TESSERA_KV_TURBO4 && SELDOM((a)->pages.piece_v))

#endif
