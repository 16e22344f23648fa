// SPDX-License-Identifier: MIT
// The estimated time of a call on a CPU with an instance, by which instances are ranked.
//
// An instance cuts the folded rows (seqlen_q * nhead_q / nhead_k of each sequence and key head) into tiles of
// bm0, and walks the keys of each in blocks of bn0. Rows are rounded up to register tiles of wm0 and keys to wn0, so
// that the cycles are those of `rows * keys / (bm0 * bn0)` full blocks:
//
//   block  = bm0 * bn0 * (hdim_q + hdim_v) / rate + tile_cycles
//   total  = batch * nhead_k * rows * keys / (bm0 * bn0) * block + tiles * keys * copy
//   tasks  = batch * nhead_k * tiles, times the parts that the launcher cuts the keys of a tile into
//   cost   = total / tasks * ceil(tasks / compute_units)
//
// The cost is the time of the unit with most tasks: fewer and larger tiles lose where they leave units idle. A mask
// hides about the same share of keys from every instance, and is left out. In group mode only the greatest lengths are
// known: max_seqlen_q, and seqlen_k where it is given. `rate` is the instance's multiply-adds a cycle on the device, of
// quantised rows times that of the row's `rates`. Where this is 0, and where rows lie in pieces, a key and its value
// are copied as numbers for each tile, which takes `copy` cycles.
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by this formula, for all sizes.
#include "ops/fmha_fwd_internal.h"

enum { COPIED = 4 }; // numbers a cycle, as measured with AVX-512

double tessera_fmha_fwd_cpu_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                 double rate, int64_t units) {
    const tessera_fmha_fwd_tile *const tile = &row->tile;
    const int64_t tiles = tessera_max(tessera_ceil_div(s->rows, tile->bm0), 1) * s->heads;
    const double rows = (double)(tessera_round_up(s->rows, tile->wm0) * s->heads);
    const double keys = (double)tessera_round_up(s->keys, tile->wn0);
    const double area = (double)tile->bm0 * tile->bn0;
    const bool copies = s->in_pieces || row->rates[s->kv] <= 0.0f;
    const double copied = copies ? (double)tiles * keys * s->hdims / COPIED : 0;
    const double of_rows = copies ? rate : rate * (double)row->rates[s->kv];
    const double block = area * s->hdims / of_rows + (double)row->base.tile_cycles;
    const int64_t tasks = tiles * tessera_fmha_fwd_parts(s->keys, (double)s->keys * (double)tiles, units);
    return (rows * keys / area * block + copied) / (double)tasks * (double)tessera_ceil_div(tasks, units);
}
