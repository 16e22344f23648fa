// SPDX-License-Identifier: MIT
// Sizes of an instance of fmha_bwd, and where things lie in shared memory.
//
// BN, BM: keys of a task and queries of a step. DQ, DV: head dims, of which a call may use a part. WARPGROUPS: those
// that compute, each with 64 of the keys. Q_STAGES, DO_STAGES, DS_STAGES: tiles of q, of do and of gradients of scores
// that there is room for. DQ_COLUMNS: columns of dq that a warpgroup computes; DQ_ROOM: those of them that there is
// room for on their way to memory, which is that of gradients of scores, too, if DQ_OVER_DS. GENERAL: without it each
// warpgroup goes by its own time.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_SIZES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_SIZES_H

#define TURNED 0 // rows of products are rows of their results
#include "tessera/device/attention/cuda/fragments.h"
#include "tessera/device/attention/cuda/slices.h"

enum { THREADS = WARPGROUP * (WARPGROUPS + 1), CONSUMER_WARPS = 4 * WARPGROUPS };
enum { DQ_SLICES = (DQ + COLUMNS - 1) / COLUMNS, DV_SLICES = (DV + COLUMNS - 1) / COLUMNS };
enum { K_BYTES = DQ_SLICES * BN * SLICE, V_BYTES = DV_SLICES * BN * SLICE };
enum { Q_BYTES = DQ_SLICES * BM * SLICE, DO_BYTES = DV_SLICES * BM * SLICE };
enum { DS_BYTES = 2 * BN * BM };
enum { SUMS_BYTES = 2 * 4 * BM, SUMS_STAGES = Q_STAGES }; // lse and d of a step's queries
enum { WARPGROUP_ROWS = 64 * SLICE };                     // from a warpgroup's keys to those of the next one

// A thread's share of products, see fragments.h.
enum { SCORES = BM / 2, P_WORDS = BM / 4, DQ_SUMS = DQ_TURNED ? BM / 2 : DQ_COLUMNS / 2 };

// dQ of a step: a warpgroup has DQ_ROWS queries of it and DQ_COLUMNS columns. They share out columns, or queries where
// these are 64 of each. DQ_TURNED: rows of the product are columns of dq, which are 64 of each warpgroup, since queries
// are no multiple of 64.
enum { DQ_BY_COLUMNS = BM < 64 * WARPGROUPS, DQ_ROWS = DQ_TURNED ? BM : 64 };
#define DS_OF_WARPGROUP(warpgroup) (DQ_BY_COLUMNS ? 0 : (warpgroup)*BN * SLICE)
#define KEYS_AT(column) ((column) / COLUMNS * BN * SLICE + (column) % COLUMNS * 2)

// The first of a warpgroup's 32 columns number `slice`. Products read columns of one slice of 64, or of whole ones: of
// 192 columns each warpgroup has a slice of its own, and a half of the one between them.
INLINE int dq_column(int warpgroup, int slice) {
    if (!DQ_BY_COLUMNS) return 32 * slice;
    if (DQ_COLUMNS == 96) return slice < 2 ? 2 * COLUMNS * warpgroup + 32 * slice : COLUMNS + 32 * warpgroup;
    return DQ_COLUMNS * warpgroup + 32 * slice;
}

// The first of its queries.
INLINE int dq_query(int warpgroup) { return DQ_BY_COLUMNS ? 0 : 64 * warpgroup; }

// Where things lie, beside shared_base().
enum {
    AT_K = 0,
    AT_V = AT_K + K_BYTES,
    AT_Q = AT_V + V_BYTES,
    AT_DO = AT_Q + Q_STAGES * Q_BYTES,
    AT_DS = AT_DO + DO_STAGES * DO_BYTES,
    AT_DQ = AT_DS + (DQ_OVER_DS ? 0 : DS_STAGES * DS_BYTES),
    DQ_ROOM_BYTES = DQ_ROWS * 4 * DQ_ROOM, // of a warpgroup
    AT_SUMS = AT_DQ + WARPGROUPS * DQ_ROOM_BYTES,
    AT_TASKS = AT_SUMS + SUMS_STAGES * SUMS_BYTES,
    TASK_BYTES = 64,
    TASKS = 2, // the current one and the next
    AT_BARRIERS = AT_TASKS + TASKS * TASK_BYTES,
    BARRIERS = 2 * (2 + TASKS + Q_STAGES + DO_STAGES + SUMS_STAGES + WARPGROUPS + (GENERAL ? 0 : DS_STAGES)),
    AT_LATE = AT_BARRIERS + 8 * BARRIERS, // a barrier
    SHARED_BYTES = AT_LATE + 8
};

#endif
