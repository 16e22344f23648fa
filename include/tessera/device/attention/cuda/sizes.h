// SPDX-License-Identifier: MIT
// Sizes of an instance, and where things lie in shared memory.
//
// BM, BN: queries of a task and keys of a tile. DQ, DV: head dims, of which a call may use a part. WARPGROUPS: those
// that compute, each with 64 of the queries; one more brings tiles. STAGES: tiles of k, and of v, that there is room
// for. Q_STAGES: that of queries. BITS: of an element of q, k and v.
//
// Takes BM, BN, DQ, DV, WARPGROUPS, STAGES, Q_STAGES, BITS, PAGED, V_COLUMNS, GENERAL, PAIRS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SIZES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SIZES_H

#include "tessera/device/attention/cuda/share.h"
#include "tessera/device/attention/cuda/slices.h"

enum { THREADS = WARPGROUP * (WARPGROUPS + 1), CONSUMER_WARPS = 4 * WARPGROUPS };
// Products of 8-bit numbers read all factors along their rows, so V whose rows are keys is transposed on its way, by
// warps of the warpgroup that brings tiles.
enum { TRANSPOSES = BITS == 8 && !V_COLUMNS, TRANSPOSING_WARPS = TRANSPOSES ? 3 : 0 };
// Where rows are looked up, all warps of that warpgroup bring a part of each tile.
enum { FILLING_WARPS = PAGED ? 4 : 1, HELPING_WARPS = TRANSPOSING_WARPS + FILLING_WARPS - 1 };
// Lanes that say that a tile of V is there. Warps that transpose it read it themselves, as products and tensor copies
// do not: what orders that behind a lane's copies is this lane's own arrival.
enum { V_ARRIVALS = TRANSPOSES ? 32 : FILLING_WARPS };
enum { V_ROWS = V_COLUMNS ? DV : BN, V_ROW = V_COLUMNS ? BN : DV }; // of a tile of V, and elements of one
enum { Q_SLICES = (DQ + COLUMNS - 1) / COLUMNS, V_SLICES = (V_ROW + COLUMNS - 1) / COLUMNS };
enum { Q_BYTES = Q_SLICES * BM * SLICE, K_BYTES = Q_SLICES * BN * SLICE, V_BYTES = V_SLICES * V_ROWS * SLICE };
// Of a tile of V whose rows are columns of O, each with 32 keys in one place: what an instruction sums over.
enum { TRANSPOSED_ROW = 32, TRANSPOSED_BYTES = TRANSPOSES ? BN * DV : 0 };
enum { WARP_ROWS = BN / FILLING_WARPS }; // of a warp's part of a tile
enum { WARPGROUP_Q = 64 * SLICE };       // from a warpgroup's queries to those of the next one

// Where things lie, beside shared_base().
enum {
    AT_Q = 0,
    AT_K = AT_Q + Q_STAGES * Q_BYTES,
    AT_V = AT_K + STAGES * K_BYTES,
    AT_TRANSPOSED = AT_V + STAGES * V_BYTES,
    AT_TASKS = AT_TRANSPOSED + STAGES * TRANSPOSED_BYTES,
    TASK_BYTES = 64,
    TASKS = 4, // the current one, the next, and those whose results are being stored
    UNIT_BYTES = 8,
    AT_UNITS = AT_TASKS + TASKS * TASK_BYTES, // of O, where they change: blocks.h; those of warps that bring tiles too
    UNITS = BITS == 8 && GENERAL ? THREADS / 32 : 0,
    AT_BARRIERS = AT_UNITS + UNITS * UNIT_BYTES,
    AT_KV_BARRIERS = AT_BARRIERS + 16 * (Q_STAGES + TASKS),
    BARRIERS = 2 * Q_STAGES + 2 * TASKS + (TRANSPOSES ? 6 : 4) * STAGES,
    AT_PAIR_BARRIERS = AT_BARRIERS + 8 * BARRIERS, // pairs.h
    SHARED_BYTES = AT_PAIR_BARRIERS + (PAIRS ? 16 * STAGES : 0)
};

#endif
