// SPDX-License-Identifier: MIT
// The estimated time of a call on an NVIDIA GPU with an instance, by which instances are ranked.
//
// A workgroup, of which each multiprocessor has one, takes tasks of bm0 queries one after the other, and walks the keys
// of each in blocks of bn0. A task takes
//
//   start * alone + blocks * busy
//
// cycles, where codegen/ops/fmha_fwd/ derives `busy` from an instance's measured efficiency, and `start` is its lead:
// what is not beside products, at the beginning and at the end of a task, in blocks of a workgroup that is alone.
// Without a mask tasks are dealt out in rounds, the last ones perhaps of strips: a warpgroup that has the shared memory
// and the tensor cores for itself takes `strip` of a task's time; workgroups that share tiles in pairs take `paired` of
// it. Under a mask tasks differ, and workgroups take a new one when they are done, so that the average counts. Under a
// mask with one edge a query sees all keys less half of the shorter side on average, and a task half of its queries
// more. What an instance that merges heads takes depends on how it cuts keys: fmha_fwd_parts.c.
#include <math.h>

#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

bool tessera_fmha_fwd_is_even(const struct tessera_fmha_fwd_shape *s) {
    return s->mask_type == TESSERA_MASK_NONE && !s->is_group_mode && !s->is_cached && !s->has_lengths;
}

enum { STRIP = 64 }; // a warpgroup's rows

// Tasks are dealt out in rounds, every other one backwards: strips come first to workgroups that have no whole task of
// the last round.
static double count_rounds(const instance_t *row, int64_t whole, int64_t strips, int64_t workgroups) {
    const int64_t full = whole / workgroups, others = workgroups - whole % workgroups;
    const int64_t beside = others == workgroups ? 0 : tessera_min(strips, 2 * others);
    const double last = (double)tessera_ceil_div(beside, others) * (double)row->strip;
    const double behind = (double)tessera_ceil_div(strips - beside, workgroups) * (double)row->strip;
    return (double)full + (others == workgroups ? 0.0 : fmax(1.0, last)) + behind;
}

static struct tessera_fmha_fwd_deal deal_out(const instance_t *row, int64_t blocks, int64_t behind, int64_t whole,
                                             int64_t heads, int64_t workgroups) {
    const int64_t strips = (blocks * heads - whole) * (row->tile.bm0 / STRIP) + behind * heads;
    return (struct tessera_fmha_fwd_deal){.blocks = blocks,
                                          .behind = behind,
                                          .whole = whole,
                                          .strips = strips,
                                          .rounds = count_rounds(row, whole, strips, workgroups)};
}

enum { PAIRED_TILES = 32 }; // of a task, from which on what a pair waits for each other is less than what it gains

// Pairs workgroups, if all have tasks: where those of even numbers and those behind them have the same keys all of
// them, else whole ones, but for a block of each head that has no neighbour.
static struct tessera_fmha_fwd_deal pair_up(const instance_t *row, const struct tessera_fmha_fwd_shape *s,
                                            int64_t workgroups, struct tessera_fmha_fwd_deal deal) {
    const int64_t group = s->nhead_q / s->nhead_k, tiles = tessera_ceil_div(s->keys, row->tile.bn0);
    const int64_t tasks = deal.whole + deal.strips, odd = deal.blocks * group % 2;
    const int64_t neighbours = tessera_min(deal.whole, (deal.blocks - odd) * s->nhead_q * s->batch);
    if (!(row->paired > 0) || workgroups % 2 || tiles < PAIRED_TILES || tasks < workgroups) return deal;
    deal.blocks_behind = odd;
    deal.paired = odd || deal.behind * group % 2 ? neighbours : tasks;
    deal.rounds *= 1.0 - (1.0 - (double)row->paired) * (double)deal.paired / (double)tasks;
    return deal;
}

// The soonest of three: whole tasks alone, strips for rows behind blocks, and also for blocks that would begin a round
// that is not full.
struct tessera_fmha_fwd_deal tessera_fmha_fwd_find_deal(const instance_t *row, const struct tessera_fmha_fwd_shape *s,
                                                        int64_t units) {
    const int64_t heads = (int64_t)s->nhead_q * s->batch, workgroups = units * row->workgroups, bm0 = row->tile.bm0;
    const int64_t all = tessera_ceil_div(s->queries, bm0), blocks = s->queries / bm0;
    const int64_t behind = tessera_ceil_div(s->queries - blocks * bm0, STRIP);
    struct tessera_fmha_fwd_deal best = deal_out(row, all, 0, all * heads, heads, workgroups);
    if (!tessera_fmha_fwd_is_even(s)) return best;
    best = pair_up(row, s, workgroups, best);
    if (!(row->strip > 0) || s->queries < STRIP) return best; // with few memory counts
    const int64_t wholes[] = {blocks * heads, blocks * heads / workgroups * workgroups};
    for (int n = 0; n < 2; n++) {
        const struct tessera_fmha_fwd_deal deal =
            pair_up(row, s, workgroups, deal_out(row, blocks, behind, wholes[n], heads, workgroups));
        if (deal.rounds < best.rounds) best = deal;
    }
    return best;
}

double tessera_fmha_fwd_cuda_cost(const instance_t *row, const struct tessera_fmha_fwd_shape *s, int64_t units) {
    const bool left = s->has_left, right = s->has_right;
    const int32_t splits = s->is_cached ? s->splits : s->num_splits;
    if (!row->merged && splits > 1) return INFINITY; // it does not cut keys: taken where there is no other
    if (s->in_pages != tessera_fmha_fwd_looks_up(row)) return INFINITY; // as well
    if (row->merged) return tessera_fmha_fwd_find_parts(row, s, units).cycles;
    const int64_t tasks = tessera_max(tessera_ceil_div(s->queries, row->tile.bm0), 1) * s->nhead_q * s->batch;
    const double all = (double)s->keys, bn0 = row->tile.bn0, keys = tessera_fmha_fwd_seen_keys(s, row->tile.bm0);
    const double begin = (double)(row->start * row->alone_cycles), busy = (double)row->busy_cycles;
    if (s->mask_type == TESSERA_MASK_NONE)
        return tessera_fmha_fwd_find_deal(row, s, units).rounds *
               (begin + (double)tessera_ceil_div(s->keys, row->tile.bn0) * busy);
    const double average = (double)tasks / (double)units * (begin + (keys / bn0 + 0.5) * busy);
    const double longest = begin + (left && right ? keys : all) / bn0 * busy;
    return average > longest ? average : longest;
}
