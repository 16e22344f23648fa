// SPDX-License-Identifier: MIT
// The rows of the dispatch table of fmha_fwd, whose form is in tessera/operation.h.
#ifndef TESSERA_KERNEL_FMHA_FWD_H
#define TESSERA_KERNEL_FMHA_FWD_H

#include "tessera/kernel/fmha_fwd_cpu.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

// CK's tile, and the warps' shapes.
typedef struct tessera_fmha_fwd_tile {
    uint16_t bm0, bn0, bk0, bn1, bk1, bk0max; // bn1, bk0max: 0 for the head dims (v, q) in the call's CK name
    uint16_t rm0, rn0, rk0, rm1, rn1, rk1;    // warps (CPU: threads that share a tile) along m, n, k of both products
    uint16_t wm0, wn0, wk0, wm1, wn1, wk1;    // MMA shape (CPU: register tile)
} tessera_fmha_fwd_tile;

// Where keys lie.
enum tessera_keys_in {
    TESSERA_KEYS_IN_ROWS = 1,  // of a tensor, one sequence after the other
    TESSERA_KEYS_IN_PAGES = 2, // of a cache, linear ones
    TESSERA_KEYS_IN_PIECES = 4 // of pages that are not linear
};

struct tessera_fmha_fwd_instance {
    tessera_instance base;
    tessera_fmha_fwd_tile tile;
    tessera_fmha_fwd_cpu_run *run; // CPU instances
    tessera_fmha_fwd_cpu_combine *combine;
    tessera_fmha_fwd_cpu_scratch *scratch_bytes;
    uint32_t workgroups;             // AMD GPU instances: the most that a compute unit has room for
    float alone_cycles, busy_cycles; // GPU instances: of a block, see runtime/ops/fmha_fwd_cost_*.c
    float start;                     // AMD GPU instances: blocks that beginning and end of a workgroup count for
    float half;                      // AMD GPU instances: share of a block's time where half of the waves are empty
    uint32_t merged;                 // GPU instances: 1: rows of a tile are those of all heads of a key head
    uint32_t keys_in;                // GPU instances: where keys lie that it finds, a set of tessera_keys_in
    tessera_kv_cache_dtype kv;       // GPU instances: the type of these; TESSERA_KV_AUTO: that of q
    float strip;                     // NVIDIA GPU instances: share of a block's time where one warpgroup has queries
    float paired;                    // NVIDIA GPU instances: share of a block's time where pairs share tiles; 0: none
    uint32_t v_first;                // NVIDIA GPU instances: readers from which on v is transposed first; 0: never
    uint32_t shared_bytes;           // NVIDIA GPU instances: of a workgroup, which the launch asks for
    uint32_t heads;                  // NVIDIA GPU instances that merge heads: key heads of a task; more than 1: all
                                     // CPU instances: a task has rows of several, heads * bm0 together at most
    uint32_t whole_tiles;            // AMD GPU instances: 1: what runtime/ops/fmha_fwd_whole.c says
    uint32_t turns;                  // AMD GPU instances: blocks of queries that a workgroup takes at most
    // CPU instances, by the type of a cache: how fast products are, of those of q's type, 0: rows are copied as
    // numbers; and cycles of loading a number once for all rows that it is multiplied with.
    float rates[TESSERA_KV_CACHE_DTYPE_COUNT], loads[TESSERA_KV_CACHE_DTYPE_COUNT];
    uint32_t row_step; // CPU instances: what rows are rounded up to
    uint32_t heights;  // CPU instances: a bit for each number of rows that are multiplied together; 0: all of a tile
};

TESSERA_TABLE_CALLS(fmha_fwd)

#ifdef __cplusplus
}
#endif
#endif
