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
// most keys = bm0 + left + right. With one edge (a causal mask) workgroups differ. The longest go first, and short ones
// fill the end. So there are two bounds, the units' work and the longest workgroup:
//
//   time = max(average * (even * rounds + (1 - even) * tasks / places * round(workgroups)),
//              longest * (round(1) + 3 * round(min(x, workgroups))) / 4)
//
// where even = shortest / longest, places = compute_units * workgroups, and workgroups beside the longest, which has
// some of them to the end, end sooner.
//
// A workgroup of some instances takes two blocks of queries in turns, one from each end of the sequence: then all take
// as long, as without a mask, and there are half as many tasks. Where these follow one another, second blocks begin
// while others are in their loops; where all have a place at once, second blocks begin at once, too, and what that
// takes is more than a gain of 6 % or less (docs/cdna.md).
//
// Not all heads need take part at once. `together` key heads, of one sequence or of several, take turns, and others
// follow when all blocks of these are dealt out (device/attention/cdna/task.h). The fewer they are the more workgroups
// at work read the same keys, for what memory adds (fmha_fwd_memory.c); but each time the longest workgroups come
// first, the last time too. Where workgroups differ, units end so many blocks after the average,
//
//   tail = (longest - shortest) * max(0.15, 0.85 - 0.7 * filled), where filled = workgroups of these heads / places
//
// (fitted to lists of lengths from longest to shortest, dealt out in order to the place that is free first), without
// them with all heads together, or if no unit has two workgroups: places of a unit that others fill get the longest
// again, not a short one beside a long one. If these fill all places once, one time makes up for the time before: tail
// is 0 after an even number of times, after an odd one half of the difference. Turns and `together` are what makes
// the sum least.
//
// A fifth figure, `half`, is what is left of all that where half of a workgroup's waves have no queries. What keys and
// values take of memory's time, fmha_fwd_memory.c says. The order is that of the least sum of both, but some waves
// compute while others wait, so that a call takes (time^4 + memory^4)^(1/4) cycles; where a unit has room for one
// workgroup, of which half of the waves only load, both. So does all on a GPU of one die, gfx90a, where less is found
// in caches than this says.
//
// What an instance that merges heads takes depends on how it cuts keys: fmha_fwd_parts.c. What another one takes of a
// call whose last workgroups would leave units idle: fmha_fwd_rest.c.
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by these formulas, for all sizes.
// generate.py --rank compares choices with what the clock says of whole calls.
#include <math.h>

#include "library.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

// What decides the time of a call: tasks on units, and the blocks of keys that a task takes at most and at least, with
// its start.
struct load {
    double tasks, units;
    int64_t most; // tasks of a unit
    double longest, shortest;
};

// Cycles until each of n workgroups of a unit has done one block.
static double round_of(const instance_t *row, int64_t n) {
    const double shared = (double)n * (double)row->busy_cycles, alone = (double)row->alone_cycles;
    if (1 < n && n < row->workgroups) return tessera_fmha_fwd_longer_of(alone, shared);
    return n == 0 ? 0 : shared > alone ? shared : alone;
}

static double rounds_of(const instance_t *row, int64_t n) {
    return (double)(n / row->workgroups) * round_of(row, row->workgroups) + round_of(row, n % row->workgroups);
}

static double places_of(const instance_t *row, const struct load *load) { return load->units * row->workgroups; }

// Of workgroups that begin with the longest.
static double uneven_cost(const instance_t *row, const struct load *load) {
    const double full = round_of(row, row->workgroups);
    const double even = load->shortest / load->longest, average = (load->longest + load->shortest) / 2;
    const double work = even * rounds_of(row, load->most) + (1 - even) * load->tasks / places_of(row, load) * full;
    const double most = round_of(row, tessera_min(load->most, row->workgroups));
    return fmax(average * work, load->longest * (round_of(row, 1) + 3 * most) / 4);
}

// What heads that do not all take part at once add.
static double tail_cost(const instance_t *row, const struct load *load, int64_t times) {
    const double spread = (load->longest - load->shortest) * round_of(row, row->workgroups);
    const double filled = load->tasks / (double)times / places_of(row, load);
    if (times == 1 || load->tasks <= load->units) return 0;
    if (filled == 1) return times % 2 ? spread / 2 : 0;
    return spread * fmax(0.15, 0.85 - 0.7 * filled);
}

// Of workgroups that take so many blocks in turns.
static struct load find_load(const instance_t *row, const struct tessera_fmha_fwd_shape *s, int64_t units,
                             int64_t turns) {
    const int64_t queries = s->queries, bm0 = row->tile.bm0, bn0 = row->tile.bn0;
    const bool left = s->has_left, right = s->has_right;
    const int64_t blocks = tessera_max(tessera_ceil_div(queries, bm0), 1);
    const int64_t tasks = tessera_ceil_div(blocks, turns) * s->nhead_q * s->batch;
    const int64_t window = bm0 + s->window_left + (int64_t)s->window_right;
    const int64_t keys = left && right ? tessera_min(s->keys, window) : s->keys;
    const int64_t least = left == right ? keys : tessera_min(keys, tessera_max(keys - queries, 0) + bm0);
    const double longest = (double)row->start + (double)tessera_ceil_div(keys, bn0);
    const double shortest = (double)row->start + (double)tessera_ceil_div(least, bn0), both = longest + shortest;
    return (struct load){.tasks = (double)tasks,
                         .units = (double)units,
                         .most = tessera_ceil_div(tasks, units),
                         .longest = turns > 1 ? both : longest,
                         .shortest = turns > 1 ? both : shortest};
}

static bool fits(const struct tessera_fmha_fwd_shape *s, int64_t together) {
    const int64_t heads = (int64_t)s->batch * s->nhead_k, group = s->nhead_q / s->nhead_k;
    return heads % together == 0 && heads / together <= TESSERA_FMHA_FWD_GRID_MAX &&
           together * group <= TESSERA_FMHA_FWD_GRID_MAX;
}

// What memory takes. Of workgroups of a die that are further apart than FARTHEST the clock sees few that read the same
// keys (docs/simulator.md): no more than one of a unit counts.
enum { FARTHEST = 16 };
static double memory_cost(const instance_t *row, const struct tessera_fmha_fwd_shape *s, const struct load *load,
                          int64_t turns, int64_t together) {
    const double blocks = load->tasks * ((load->longest + load->shortest) / 2 - (double)turns * row->start);
    const bool is_seen = together <= (int64_t)FARTHEST * tessera_target_rates[row->base.target].dies;
    const double at_once = (is_seen ? places_of(row, load) : load->units) / (double)together;
    return tessera_fmha_fwd_cdna_memory(row, s, blocks, at_once);
}

// An order where all blocks take so much time if all heads take part at once.
static struct tessera_fmha_fwd_order find_cycles(const instance_t *row, const struct tessera_fmha_fwd_shape *s,
                                                 const struct load *load, int64_t turns, int64_t together,
                                                 double time) {
    const double memory = memory_cost(row, s, load, turns, together);
    const double tail = tail_cost(row, load, (int64_t)s->batch * s->nhead_k / together);
    return (struct tessera_fmha_fwd_order){turns, together, time + memory + tail, memory};
}

// The best of the orders where a workgroup takes so many blocks.
static struct tessera_fmha_fwd_order find_together(const instance_t *row, const struct tessera_fmha_fwd_shape *s,
                                                   int64_t units, int64_t turns) {
    const struct load load = find_load(row, s, units, turns);
    const int64_t heads = (int64_t)s->batch * s->nhead_k;
    const bool even = load.longest == load.shortest;
    const double whole = even ? load.longest * rounds_of(row, load.most) : uneven_cost(row, &load);
    const double time = 2 * s->queries <= row->tile.bm0 ? whole * (double)row->half : whole;
    struct tessera_fmha_fwd_order best = {turns, s->nhead_k, INFINITY, 0}; // which fits, if no other does
    // Multiples of the dies, so that workgroups of a key head come to one of them.
    for (int64_t together = tessera_target_rates[row->base.target].dies;; together *= 2) {
        if (together > heads) together = heads;
        const struct tessera_fmha_fwd_order order = find_cycles(row, s, &load, turns, together, time);
        if (fits(s, together) && order.cycles < best.cycles) best = order;
        if (together == heads) break;
    }
    return best.cycles == INFINITY ? find_cycles(row, s, &load, turns, best.together, time) : best;
}

struct tessera_fmha_fwd_order tessera_fmha_fwd_find_order(const instance_t *row, const struct tessera_fmha_fwd_shape *s,
                                                          int64_t units) {
    const struct tessera_fmha_fwd_order one = find_together(row, s, units, 1);
    if (row->turns <= 1) return one;
    const struct tessera_fmha_fwd_order all = find_together(row, s, units, row->turns);
    const bool at_once = find_load(row, s, units, row->turns).most <= row->workgroups;
    return all.cycles <= (at_once ? 0.94 : 1.0) * one.cycles ? all : one;
}

double tessera_fmha_fwd_cdna_cost(const instance_t *row, const struct tessera_fmha_fwd_shape *s, int64_t units) {
    if (s->in_pages != tessera_fmha_fwd_looks_up(row)) return INFINITY; // taken where there is no other
    if (row->merged) return tessera_fmha_fwd_find_parts(row, s, units).cycles;
    if (s->num_splits > 1) return INFINITY; // it does not cut keys: taken where there is no other
    const struct tessera_fmha_fwd_order order = tessera_fmha_fwd_find_order(row, s, units);
    const bool computes = row->workgroups > 1 || 2 * s->queries > row->tile.bm0;
    return computes ? tessera_fmha_fwd_cdna_beside(row, order.cycles - order.memory, order.memory) : order.cycles;
}
