// SPDX-License-Identifier: MIT
// What keys and values take of memory's time on an AMD GPU. Where the last cache has no room for them, queries and
// results, they come from memory, which little hides:
//
//   cycles = bytes of all blocks / (bandwidth * sharers)
//
// Workgroups that read the same keys at once find what the first of them brought. There are as many as sharers = places
// for workgroups / heads that take turns, if a key head has so many query heads and blocks.
#include <math.h>

#include "library.h"
#include "ops/attention_kv_types.h"
#include "ops/fmha_fwd_internal.h"

double tessera_fmha_fwd_key_bytes(const struct tessera_fmha_fwd_shape *s) {
    const struct tessera_kv_type *const type = &tessera_kv_types[s->kv];
    const int bits = tessera_type_bits(tessera_attention_storages[s->data_type].qkv);
    return s->hdims * (type->bytes ? (double)type->bytes / type->numbers : bits / 8.0);
}

double tessera_fmha_fwd_cdna_memory(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                    double blocks, double at_once) {
    const tessera_rates *const rates = &tessera_target_rates[row->base.target];
    const double key = tessera_fmha_fwd_key_bytes(s);
    const double query = s->hdims * tessera_type_bits(tessera_attention_storages[s->data_type].qkv) / 8; // and row of o
    const double all = (double)s->batch * s->nhead_k * (double)s->keys * key +
                       (double)s->batch * s->nhead_q * (double)s->queries * query;
    const int64_t heads = row->merged ? 1 : s->nhead_q / s->nhead_k; // whose blocks of queries stand apart
    const int64_t readers = tessera_fmha_fwd_count_blocks(row, s->queries, s->nhead_q / s->nhead_k) * heads;
    const double sharers = fmax(fmin(at_once, (double)readers), 1);
    return all >= rates->cache_bytes ? blocks * row->tile.bn0 * key / (rates->device_bytes * sharers) : 0;
}

double tessera_fmha_fwd_longer_of(double a, double b) { return sqrt(sqrt(a * a * a * a + b * b * b * b)); }

double tessera_fmha_fwd_cdna_beside(const tessera_fmha_fwd_instance *row, double time, double memory) {
    return tessera_target_rates[row->base.target].dies > 1 ? tessera_fmha_fwd_longer_of(time, memory) : time + memory;
}
