// SPDX-License-Identifier: MIT
// The estimated time of a call on an AMD GPU with an instance, by which instances are ranked.
//
// A workgroup takes bm0 queries of a head and walks the keys in blocks of bn0. An instance has four figures: the
// `workgroups` that registers and LDS of a compute unit have room for, and what the simulator's clock has modelled
// (codegen/ops/fmha_fwd/cdna_cost.py): the cycles of a block where a workgroup is `alone` on its unit; the share of
// each workgroup in the cycles of a block where the unit is full, for which a block keeps it `busy`; and the blocks
// that `start` counts for, which is reading q and the first keys, and writing o. With n workgroups on a unit, each
// takes for a block
//
//   round(n) = max(alone, n * busy), of 1 < n < workgroups (alone^4 + (n * busy)^4)^(1/4)
//
// cycles: few workgroups leave latencies uncovered, and many share the unit; between there is some of both. The unit
// with most work has
//
//   x      = ceil(tasks / compute_units) workgroups, where tasks = batch * nhead_q * ceil(seqlen_q / bm0), and takes
//   rounds = x / workgroups * round(workgroups) + round(x % workgroups) cycles for a block of each of them,
//   time   = blocks * rounds, where blocks = start + ceil(keys / bn0)
//
// x / workgroups is an integer division, whose remainder is the tail. Under a window with two edges a workgroup sees at
// most keys = bm0 + left + right. With one edge (a causal mask) workgroups differ. Those of a sequence start with the
// longest, and short ones fill the end. So there are two bounds, the units' work and the longest workgroup of the last
// sequence:
//
//   time = max(average * (even * rounds + (1 - even) * tasks / places * round(workgroups)),
//              longest * ((round(1) + 3 * round(min(x, workgroups))) / 4 + wait * round(workgroups)))
//
// where even = shortest / longest, places = compute_units * workgroups, and workgroups beside the longest, which has
// some of them to the end, end sooner. The last sequence begins when so many workgroups have ended as there are tasks
// before it without a place at first: among lengths that differ evenly, after wait = ln(tasks of other sequences /
// places).
//
// A fifth figure, `half`, is what is left of all that where half of a workgroup's waves have no queries. What memory
// adds to that, fmha_fwd_memory.c says.
//
// What an instance that merges heads takes depends on how it cuts keys: fmha_fwd_parts.c.
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by these formulas, for all sizes.
// generate.py --rank compares choices with what the clock says of whole calls.
#include <math.h>

#include "library.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

// What decides the time of a call: tasks on units, and the keys that a task sees at most and at least.
struct load {
    double tasks, sequences, units;
    int64_t most; // tasks of a unit
    double longest, shortest;
};

// Cycles until each of n workgroups of a unit has done one block.
static double round_of(const instance_t *row, int64_t n) {
    const double shared = (double)n * (double)row->busy_cycles, alone = (double)row->alone_cycles;
    const double both = shared * shared * shared * shared + alone * alone * alone * alone;
    if (1 < n && n < row->workgroups) return sqrt(sqrt(both));
    return n == 0 ? 0 : shared > alone ? shared : alone;
}

static double rounds_of(const instance_t *row, int64_t n) {
    return (double)(n / row->workgroups) * round_of(row, row->workgroups) + round_of(row, n % row->workgroups);
}

// Of workgroups that begin with the longest of each sequence.
static double uneven_cost(const instance_t *row, const struct load *load) {
    const double full = round_of(row, row->workgroups), places = load->units * row->workgroups;
    const double even = load->shortest / load->longest, average = (load->longest + load->shortest) / 2;
    const double work = even * rounds_of(row, load->most) + (1 - even) * load->tasks / places * full;
    const double beside = round_of(row, tessera_min(load->most, row->workgroups));
    const double before = load->tasks * (1 - 1 / load->sequences) / places;
    const double wait = before > 1 ? log(before) : 0;
    return fmax(average * work, load->longest * ((round_of(row, 1) + 3 * beside) / 4 + wait * full));
}

double tessera_fmha_fwd_cdna_cost(const instance_t *row, const struct tessera_fmha_fwd_shape *s, int64_t units) {
    const int64_t queries = s->queries, bm0 = row->tile.bm0, bn0 = row->tile.bn0;
    const bool left = s->has_left, right = s->has_right;
    const int64_t tasks = tessera_max(tessera_ceil_div(queries, bm0), 1) * s->nhead_q * s->batch;
    int64_t keys = s->keys;
    if (s->in_pages != tessera_fmha_fwd_looks_up(row)) return INFINITY; // taken where there is no other
    if (row->merged) return tessera_fmha_fwd_find_parts(row, s, units).cycles;
    if (s->num_splits > 1) return INFINITY; // it does not cut keys: taken where there is no other
    if (left && right) keys = tessera_min(keys, bm0 + s->window_left + (int64_t)s->window_right);
    const int64_t most = tessera_ceil_div(tasks, units);
    const double longest = (double)row->start + (double)tessera_ceil_div(keys, bn0);
    const int64_t least = left == right ? keys : tessera_min(keys, tessera_max(keys - queries, 0) + bm0);
    const double shortest = (double)row->start + (double)tessera_ceil_div(least, bn0);
    const struct load load = {(double)tasks, (double)s->batch, (double)units, most, longest, shortest};
    const double time = left == right ? longest * rounds_of(row, most) : uneven_cost(row, &load);
    const double blocks = (double)tasks * ((longest + shortest) / 2 - (double)row->start);
    return (2 * queries <= bm0 ? time * (double)row->half : time) + tessera_fmha_fwd_cdna_memory(row, s, blocks, units);
}
