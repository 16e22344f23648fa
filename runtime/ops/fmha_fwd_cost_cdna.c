// SPDX-License-Identifier: MIT
// The estimated time of a call on an AMD GPU with an instance, by which instances are ranked.
//
// A workgroup takes bm0 queries of a head and walks the keys in blocks of bn0. codegen/ops/fmha_fwd/cdna_cost.py
// derives three figures from an instance's record: the `workgroups` that registers and LDS of a compute unit have room
// for; the cycles that a block takes when a workgroup is `alone` on its unit; and the cycles for which a block keeps
// the unit's most used resource `busy`: SIMDs, LDS or the path to L2. With n workgroups on a unit, each takes for a
// block
//
//   round(n) = max(alone, n * busy)
//
// cycles: few workgroups leave latencies uncovered, and many share the resource. The unit with most work has
//
//   x    = ceil(tasks / compute_units) workgroups, where tasks = batch * nhead_q * ceil(seqlen_q / bm0)
//   time = blocks * (x / workgroups * round(workgroups) + round(x % workgroups)), where blocks = 1 + ceil(keys / bn0)
//
// x / workgroups is an integer division, whose remainder is the tail. The 1 in `blocks` stands for reading q and
// writing o. Under a window with two edges a workgroup sees at most keys = bm0 + left + right. With one edge (a causal
// mask) workgroups differ: the longest start first, so that short ones fill the end, and
//
//   time = max(blocks of the longest * alone, blocks on average * tasks / (compute_units * workgroups) *
//              round(workgroups))
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by these formulas, for all sizes.
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

// Cycles until each of n workgroups of a unit has done one block.
static double round_of(const instance_t *row, int64_t n) {
    const double shared = (double)n * (double)row->busy_cycles, alone = (double)row->alone_cycles;
    return n == 0 ? 0 : shared > alone ? shared : alone;
}

double tessera_fmha_fwd_cdna_cost(const instance_t *row, const struct tessera_fmha_fwd_call *call, int64_t units) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t queries = call->queries;
    int64_t keys = call->keys;
    const bool masked = call->traits.mask_type != TESSERA_MASK_NONE;
    const bool left = masked && a->window_size_left >= 0, right = masked && a->window_size_right >= 0;
    const int64_t bm0 = row->tile.bm0, bn0 = row->tile.bn0, workgroups = row->workgroups;
    const int64_t tasks = tessera_max(tessera_ceil_div(queries, bm0), 1) * a->nhead_q * a->batch;
    if (left != right) {
        const double longest = 1.0 + (double)tessera_ceil_div(keys, bn0);
        const double average = 1.5 + ((double)keys - (double)tessera_min(queries, keys) / 2) / (double)bn0;
        const double first = longest * (double)row->alone_cycles;
        const double all = average * (double)tasks / (double)(units * workgroups) * round_of(row, workgroups);
        return first > all ? first : all;
    }
    if (left && right) keys = tessera_min(keys, bm0 + a->window_size_left + (int64_t)a->window_size_right);
    const int64_t most = tessera_ceil_div(tasks, units);
    const double rounds = (double)(most / workgroups) * round_of(row, workgroups) + round_of(row, most % workgroups);
    return (double)(1 + tessera_ceil_div(keys, bn0)) * rounds;
}
