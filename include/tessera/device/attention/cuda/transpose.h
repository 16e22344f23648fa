// SPDX-License-Identifier: MIT
// Transposes tiles of V, of 8-bit numbers, from rows of keys to rows of columns of O, for products that read V along
// the keys. Keys change places so that P needs none of that: what a thread has of a row of scores, it has of the
// operand P.
//
// In 32 keys a thread has the scores of keys 8 j + 2 q + e, where q is its lane % 4, and the operand's elements 4 q + i
// and 16 + 4 q + i (PTX ISA, "Register Fragments and Shared Memory Matrix Layouts", A of wgmma.m64nNk32; CUTLASS,
// cute/atom/mma_traits_sm90_gmma.hpp, ALayout_64x32). Element 16 (j / 2) + 4 q + 2 (j % 2) + e is that key.
//
// Takes BITS, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TRANSPOSE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TRANSPOSE_H

#if PAIRS
#include "tessera/device/attention/cuda/pairs.h"
#endif
#include "tessera/device/attention/cuda/tasks.h"

// Blocks of 32 keys and 16 columns that lie side by side and are read before the first of them is stored.
enum { BLOCKS = DV % 128 ? 2 : 4, GROUP_COLUMNS = 16 * BLOCKS };

// Reads of 8 x 8 pairs of bytes give a lane the pair of columns lane / 4 of keys 8 m + 2 q and the next one, for
// m = 0..3; rows of the pair's first and second columns are stored, 16 bytes of four lanes each.
INLINE void transpose_blocks(uint32_t from, uint32_t to) {
    uint32_t x[BLOCKS][4];
    UNROLL
    for (int i = 0; i < BLOCKS; i++) read_transposed(x[i], from ^ i * 16);
    UNROLL
    for (int i = 0; i < BLOCKS; i++) {
        const uint32_t y[4] = {even_bytes(x[i][0], x[i][1]), odd_bytes(x[i][0], x[i][1]), even_bytes(x[i][2], x[i][3]),
                               odd_bytes(x[i][2], x[i][3])};
        store_matrices(to + 16 * i * TRANSPOSED_ROW, y);
    }
}

// The groups of blocks of a tile are dealt out to the warps.
INLINE void transpose_tile(uint32_t from, uint32_t to, int warp) {
    enum { ACROSS = DV / GROUP_COLUMNS, GROUPS = BN / 32 * ACROSS };
    enum { EACH = (GROUPS + TRANSPOSING_WARPS - 1) / TRANSPOSING_WARPS };
    const int matrix = lane_id() / 8, row = lane_id() % 8;
    from += piece_at(8 * matrix + row, 0);
    const int column = 2 * row + matrix % 2;
    to += column * TRANSPOSED_ROW + (matrix / 2 ^ column / 4 % 2) * 16; // as narrow_operand() says
    // Not unrolled, for few registers.
    _Pragma("unroll 1") for (int group = warp * EACH; group < min_i32(warp * EACH + EACH, GROUPS); group++) {
        const int keys = group / ACROSS * 32, columns = group % ACROSS * GROUP_COLUMNS;
        transpose_blocks((from + (columns / SLICE * BN + keys) * SLICE) ^ columns / 16 % 8 * 16,
                         to + keys * DV + columns * TRANSPOSED_ROW);
    }
    finish_stores();
    meet_lanes();
}

// paired: the other workgroup is told that it may fill the tile's place, too.
INLINE void transpose_next(uint32_t base, uint32_t n, int warp, int paired) {
    const struct place from = values_place(base, n), to = transposed_place(base, n);
    wait_until_full(from);
    wait_until_empty(to);
    transpose_tile(from.at, to.at, warp);
    release(from);
#if PAIRS
    if (paired) tell_other(values_there(base, n));
#else
    (void)paired;
#endif
    if (lane_id() == 0) arrive(to.full);
}

INLINE void transpose_all(uint32_t base) {
    const int warp = of_first_lane(thread_id() / 32) - 1;
    struct task task;
    uint32_t values = 0;
    for (uint32_t n = 0; await_task(&task, base, n); n++) {
        meet_lanes();
        release(task_place(base, n));
        for (int i = 0; i < task.tiles; i++) transpose_next(base, values++, warp, is_paired(&task));
    }
}

#endif
