// SPDX-License-Identifier: MIT
// The estimated time of a call on a CPU with an instance, by which instances are ranked.
//
// An instance cuts the folded rows (seqlen_q * nhead_q / nhead_k of each sequence and key head) into tiles of
// bm0, and walks the keys of each in blocks of bn0. Numbers of keys and values are loaded once for all rows that they
// are multiplied with: to be packed for a tile, or made numbers in registers for as many rows as there is a loop for.
// Rows are rounded up to row_step and keys to wn0, and a block's other cycles are those of `rows * keys / (bm0 * bn0)`
// full ones:
//
//   loads   = of whole tiles and of the last one's rows, each cut into the greatest `heights` that it has
//   product = 1 / rate - loads of a whole tile * load / bm0
//   total   = batch * nhead_k * keys * ((hdim_q + hdim_v) * (loads * load + rows * product) +
//                                       rows * tile_cycles / (bm0 * bn0))
//   tasks   = batch * nhead_k * tiles, times the parts that the launcher cuts the keys of a tile into
//   cost    = total / tasks * ceil(tasks / compute_units)
//
// The cost is the time of the unit with most tasks: fewer and larger tiles lose where they leave units idle. A mask
// hides about the same share of keys from every instance, and is left out. In group mode only the greatest lengths are
// known: max_seqlen_q, and seqlen_k where it is given. `rate` is the multiply-adds a cycle of whole tiles on the
// device; products of quantised rows are as much faster as the row's `rates` say. Where this is 0, and where rows lie
// in pieces, a key and its value are copied as numbers for each tile before.
//
// FmhaFwd.shadows() in codegen/ops/fmha_fwd/ compares two instances by this formula, for all sizes.
#include "ops/fmha_fwd_internal.h"

static const double copy_cycles = 0.25; // of a number, as measured with AVX-512

// How often keys are loaded for so many rows of a tile.
static int64_t count_loads(const tessera_fmha_fwd_instance *row, int64_t rows) {
    int64_t loads = 0;
    if (!row->heights) return rows > 0;
    for (int64_t height = row->tile.bm0; rows > 0; height--)
        if (height < 32 && row->heights >> height & 1) {
            loads += rows / height;
            rows %= height;
        }
    return loads;
}

// What rows are where they are not quantised: rows of e4m3 take as long to load as a cache's.
static tessera_kv_cache_dtype numbers_of(const struct tessera_fmha_fwd_shape *s) {
    return tessera_attention_storages[s->data_type].qkv == TESSERA_TYPE_E4M3 ? TESSERA_KV_FP8_E4M3 : TESSERA_KV_AUTO;
}

double tessera_fmha_fwd_cpu_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                 double rate, int64_t units) {
    const int64_t bm0 = row->tile.bm0, tiles = tessera_max(tessera_ceil_div(s->rows, bm0), 1) * s->heads;
    const double rows = (double)(tessera_round_up(s->rows, row->row_step) * s->heads);
    const double keys = (double)tessera_round_up(s->keys, row->tile.wn0);
    const bool copies = s->in_pieces || row->rates[s->kv] <= 0.0f;
    const tessera_kv_cache_dtype kv = copies || s->kv == TESSERA_KV_AUTO ? numbers_of(s) : s->kv;
    const int64_t of_tile = count_loads(row, bm0), of_head = s->rows / bm0 * of_tile + count_loads(row, s->rows % bm0);
    const double rate_of_codes = copies ? 1.0 : (double)row->rates[s->kv];
    const double product = 1 / rate - (double)of_tile * (double)row->loads[TESSERA_KV_AUTO] / (double)bm0;
    const double loaded =
        (double)(of_head * s->heads) * (double)row->loads[kv] + (copies ? (double)tiles * copy_cycles : 0);
    const double of_key = s->hdims * (loaded + rows * product / rate_of_codes) +
                          rows * (double)row->base.tile_cycles / (double)(bm0 * row->tile.bn0);
    const int64_t tasks = tiles * tessera_fmha_fwd_parts(s->keys, (double)s->keys * (double)tiles, units);
    return keys * of_key / (double)tasks * (double)tessera_ceil_div(tasks, units);
}
