// SPDX-License-Identifier: MIT
// Parts of keys on a GPU: into how many an instance that merges heads cuts those of a task, and what that costs. Equal
// calls on equal devices are cut alike.
//
// A call takes the time of a workgroup's tiles or that of reading memory, whichever is longer; what of it keys and
// values take on AMD's GPUs, fmha_fwd_memory.c says, and how the two add up there fmha_fwd_cost_cdna.c. More parts give
// work to more compute units, and cost the way of their results to memory and back, and the launch that combines them.
// Where sequences have lengths that only the device knows, some workgroup begins the last part when the others are
// done, and where memory is the limit on AMD's GPUs products of a task's last tile follow its rows.
#include <math.h>

#include "library.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef struct tessera_fmha_fwd_parts parts_t;

// Of a launch behind another one, until both have as many bytes on their way as before: some 6 us on an H200, or 2.8 us
// where all tasks begin at once; and of each part's results there, where a row's parts follow one another: 0.2 us.
// AMD's are of the simulator's clock, which has 5000 cycles of a launch (gfx950: 8.5 thousand for 8 parts, 18.2 for
// 64); on gfx90a short calls in parts take longer than the rest says, and as much as on an H200 ranks them right.
static const double combine_cycles = 12000, combine_at_once_cycles = 5500, part_cycles = 400;
static const double cdna_combine_cycles = 7300, cdna_part_cycles = 175;

enum { MOST_GRID = 65535 }; // workgroups along y, which parts and blocks of rows share on AMD's GPUs

double tessera_fmha_fwd_seen_keys(const struct tessera_fmha_fwd_shape *s, int64_t queries) {
    const bool left = s->has_left, right = s->has_right;
    const double all = (double)s->keys, beside = (double)queries;
    double keys = all;
    if (left && right) keys = beside + s->window_left + (double)s->window_right;
    if (left != right) keys = all - (double)tessera_min(s->queries, s->keys) / 2 + beside / 2;
    return keys < all ? keys : all;
}

struct work {
    int64_t blocks, tasks, tiles; // blocks of rows; tasks of one part each; tiles of a task, on average
    int64_t longest;              // tiles, under a mask with one edge those of the last queries
    double rows, tile_bytes;
};

static struct work work_of(const instance_t *row, const struct tessera_fmha_fwd_shape *s) {
    const double keys = tessera_fmha_fwd_seen_keys(s, tessera_ceil_div(row->tile.bm0, s->nhead_q / s->nhead_k));
    const bool has_two_edges = s->window_left >= 0 && s->window_right >= 0;
    const int64_t blocks = tessera_max(1, tessera_fmha_fwd_count_blocks(row, s->queries, s->nhead_q / s->nhead_k));
    const int64_t tiles = tessera_max(1, tessera_ceil_div((int64_t)keys, row->tile.bn0));
    const int64_t longest = has_two_edges ? tiles : tessera_ceil_div(s->keys, row->tile.bn0);
    return (struct work){blocks,
                         blocks * (s->nhead_k / tessera_fmha_fwd_heads_of(row)) * s->batch,
                         tiles,
                         tessera_max(tiles, longest),
                         (double)s->batch * s->nhead_q * (double)s->queries,
                         tessera_fmha_fwd_key_bytes(s) * row->tile.bn0 * (double)tessera_fmha_fwd_heads_of(row)};
}

static bool is_cuda(const instance_t *row) { return row->base.target == TESSERA_TARGET_SM_90A; }

// Cycles of a task beside its tiles, and of a tile, where so many workgroups are beside one another on a unit.
struct pace {
    double begin, tile;
};

// How many workgroups take as long: on AMD's GPUs waves go round SIMDs, and the one with most is the last.
enum { SIMDS = 4 };
static double even_on_simds(const instance_t *row, double beside) {
    const double waves = is_cuda(row) ? SIMDS : (double)row->tile.rm0;
    return SIMDS / waves * ceil(beside * waves / SIMDS);
}

static struct pace pace_of(const instance_t *row, double beside) {
    const double alone = (double)row->alone_cycles, busy = (double)row->busy_cycles * even_on_simds(row, beside);
    const double tile = alone > busy ? alone : busy;
    return (struct pace){(double)row->start * (is_cuda(row) ? alone : tile), tile};
}

// Cycles of reading all keys and values, which little hides on AMD's GPUs, whose last cache may have room for them.
static double keys_from_memory(const instance_t *row, const struct tessera_fmha_fwd_shape *s, const struct work *w,
                               int64_t units) {
    const double tiles = (double)(w->tasks * w->tiles);
    if (!is_cuda(row)) return tessera_fmha_fwd_cdna_memory(row, s, tiles, (double)(units / s->nhead_k));
    return tiles * w->tile_bytes / tessera_target_rates[row->base.target].device_bytes;
}

// Cycles with so many tiles in a part.
static double cycles_of(const instance_t *row, const struct tessera_fmha_fwd_shape *s, const struct work *w,
                        int64_t tiles, int64_t units) {
    const tessera_rates *const rates = &tessera_target_rates[row->base.target];
    const int64_t parts = tessera_ceil_div(w->tiles, tiles), tasks = w->tasks * parts;
    const double beside = (double)tessera_min(row->workgroups, tessera_ceil_div(tasks, units));
    const double of_unit = beside * w->tile_bytes / rates->unit_bytes;
    const struct pace pace = pace_of(row, beside);
    const double tile = pace.tile > of_unit ? pace.tile : of_unit, part = pace.begin + (double)tiles * tile;
    const double last = pace.begin + (double)tessera_ceil_div(w->longest, parts) * tile;
    const double results = parts > 1 ? 8 * w->rows * (double)parts * s->hdim_v : 0;
    const double keys = keys_from_memory(row, s, w, units), memory = keys + results / rates->device_bytes;
    const int64_t places = units * (int64_t)beside;
    const bool at_once = tasks <= places; // as measured on an H200: then none waits for others
    double time = (double)tessera_ceil_div(tasks, places) * part;
    if (time < last) time = last;
    if (!is_cuda(row))
        time = tessera_fmha_fwd_cdna_beside(row, time, keys) + results / rates->device_bytes;
    else if (time < memory + time / 16)
        time = memory + time / 16; // what begins and ends sooner leaves memory idle less
    if (s->is_ragged) {
        const int64_t reading = is_cuda(row) ? tessera_min(tasks, places) : places; // of which units get equal shares
        const double share = keys / (double)(w->tasks * w->tiles) * (double)reading;
        const double last_one = is_cuda(row) || pace.tile > share ? 0 : pace.tile; // whose rows nothing hides any more
        const double slow = pace.begin + (double)tiles * (pace.tile > share ? pace.tile : share) + last_one;
        time = at_once ? slow : (double)tasks / (double)places * slow + slow;
        if (is_cuda(row)) time += results / rates->device_bytes;
    }
    if (parts == 1) return time;
    if (!is_cuda(row))
        return time + (rates->dies > 1 ? cdna_combine_cycles + cdna_part_cycles * (double)parts : combine_cycles);
    return time + (at_once ? combine_at_once_cycles : combine_cycles) + part_cycles * (double)parts;
}

// Nothing says how long sequences are: enough parts for 16 tasks of each multiprocessor, of a length that is worth one.
static parts_t unknown_lengths(const struct work *w, int64_t units) {
    const int64_t parts = tessera_min(tessera_ceil_div(16 * units, w->tasks), 32);
    return (parts_t){parts, parts > 1 ? 4 : 1, 0};
}

parts_t tessera_fmha_fwd_find_parts(const instance_t *row, const struct tessera_fmha_fwd_shape *s, int64_t units) {
    const struct work w = work_of(row, s);
    const int64_t asked = s->is_cached || s->splits ? s->splits : s->num_splits;
    parts_t best = {1, w.tiles, cycles_of(row, s, &w, w.tiles, units)};
    if (asked == 1 || w.rows > INT32_MAX / 2) return best;
    if (asked > 1) {
        best.tiles = tessera_ceil_div(w.tiles, asked);
        best.parts = s->is_ragged ? asked : tessera_ceil_div(w.tiles, best.tiles);
        return best;
    }
    if (s->is_group_mode && s->seqlen_k <= 0) {
        const parts_t guess = unknown_lengths(&w, units);
        return (parts_t){guess.parts, guess.tiles, best.cycles};
    }
    const int64_t most = tessera_min(TESSERA_FMHA_FWD_MOST_SPLITS, MOST_GRID / w.blocks);
    for (int64_t tiles = w.tiles; tiles > 1;) {
        const int64_t parts = tessera_ceil_div(w.tiles, tiles - 1); // the least that have fewer
        if (parts > most) break;
        tiles = tessera_ceil_div(w.tiles, parts);
        const double cycles = cycles_of(row, s, &w, tiles, units);
        if (cycles < best.cycles) best = (parts_t){parts, tiles, cycles};
    }
    return best;
}
