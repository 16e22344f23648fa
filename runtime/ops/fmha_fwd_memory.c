// SPDX-License-Identifier: MIT
// What keys and values take of memory's time on an AMD GPU. Where the last cache has no room for all of them, they come
// from memory, which little hides:
//
//   cycles = bytes of all blocks / (bandwidth * sharers)
//
// Workgroups on neighbouring units that read the same keys find what the first of them brought; in the order of the
// grid these are nhead_k workgroups apart, so there are sharers = compute_units / nhead_k of them, if there are so
// many.
#include "library.h"
#include "ops/attention_kv_types.h"
#include "ops/fmha_fwd_internal.h"

double tessera_fmha_fwd_key_bytes(const struct tessera_fmha_fwd_call *call) {
    const struct tessera_kv_type *const type =
        &tessera_kv_types[call->cache ? call->cache->pages.dtype : TESSERA_KV_AUTO];
    const int bits = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    return call->hdims * (type->bytes ? (double)type->bytes / type->numbers : bits / 8.0);
}

double tessera_fmha_fwd_cdna_memory(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_call *call,
                                    double blocks, int64_t units) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const tessera_rates *const rates = &tessera_target_rates[row->base.target];
    const double key = tessera_fmha_fwd_key_bytes(call);
    const double all = (double)a->batch * a->nhead_k * (double)call->keys * key;
    const int64_t heads = row->merged ? 1 : a->nhead_q / a->nhead_k; // whose blocks of queries stand apart
    const int64_t readers = tessera_fmha_fwd_blocks(row, call) * heads;
    const double sharers = (double)tessera_max(tessera_min(units / a->nhead_k, readers), 1);
    return all > rates->cache_bytes ? blocks * row->tile.bn0 * key / (rates->device_bytes * sharers) : 0;
}
