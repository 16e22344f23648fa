// SPDX-License-Identifier: MIT
// How long a call is estimated to take on an AMD GPU with an instance: instances are ranked by it.
//
// A workgroup takes bm0 queries of a head and walks the keys in blocks of bn0. codegen/ops/fmha_fwd/cdna_cost.py makes
// three figures of an instance's record: the `workgroups` that registers and LDS of a compute unit leave room for; the
// cycles that a block takes where a workgroup is `alone` on its unit; and those for which it keeps a unit's busiest
// part `busy`, whether SIMDs, LDS or the way to L2. Of n workgroups on a unit each gets through a block in
//
//   round(n) = max(alone, n * busy)
//
// cycles: a few leave latencies open that more would fill, and many share what there is. The unit with most work has
//
//   x    = ceil(tasks / compute_units) workgroups, where tasks = batch * nhead_q * ceil(seqlen_q / bm0)
//   time = blocks * (x / workgroups * round(workgroups) + round(x % workgroups)), where blocks = 1 + ceil(keys / bn0)
//
// x / workgroups is that of integers, and what is left over is the tail. The block beside those of keys stands for
// reading q and writing o. Of a window with two edges a workgroup sees keys = bm0 + left + right at most. With one edge
// (a causal mask) workgroups differ: the longest ones start first, so that short ones fill the end, and
//
//   time = max(blocks of the longest * alone, blocks on average * tasks / (compute_units * workgroups) *
//              round(workgroups))
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by these formulas, for all sizes.
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

// Cycles until n workgroups of a unit have done a block each.
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
