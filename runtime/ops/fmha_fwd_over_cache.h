// SPDX-License-Identifier: MIT
// Calls of operations on caches of keys and values as calls of fmha_fwd, which attends. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_FMHA_FWD_OVER_CACHE_H
#define TESSERA_RUNTIME_OPS_FMHA_FWD_OVER_CACHE_H

#include "ops/fmha_fwd_internal.h"

// What is alike in the calls of all of them.
struct tessera_over_cache {
    struct tessera_attention_cache cache;
    struct tessera_fmha_fwd_call attention;
    const tessera_instance *wanted;  // of fmha_fwd, that must attend; NULL: that of least cost
    const tessera_instance *attends; // of fmha_fwd
    bool lacks_starts;               // seqstart_k_ptr, by which keys are counted or found, is NULL
};

// Where CK's arguments say that keys lie. See tessera/fmha_fwd_splitkv.h.
struct tessera_cache_place {
    const void *block_table_ptr, *cache_batch_idx, *seqstart_k_ptr, *seqlen_k_ptr;
    int64_t batch_stride_block_table;
    int32_t seqlen_k, cache_blocks, page_block_size, is_gappy;
};
#define TESSERA_CACHE_PLACE(a)                                                                                         \
    {                                                                                                                  \
        (a)->block_table_ptr, (a)->cache_batch_idx, (a)->seqstart_k_ptr, (a)->seqlen_k_ptr,                            \
            (a)->batch_stride_block_table, (a)->seqlen_k, (a)->cache_blocks, (a)->page_block_size, (a)->is_gappy       \
    }

// Pages as SGLang, vLLM and AITER keep them.
struct tessera_cache_pages {
    int32_t page_block_size, num_total_pages, max_seqlen_k;
    tessera_kv_layout layout;
    tessera_kv_cache_dtype dtype;
    bool are_norms_apart; // not behind the numbers of a row, where the type has norms
};

// Begins the call of fmha_fwd, whose traits and args an operation then fills in.
void tessera_over_cache_begin(struct tessera_over_cache *x);

// Checks traits that no cache can have.
tessera_status tessera_over_cache_check_traits(const tessera_fmha_fwd_traits *traits);

// Checks where keys lie, and tells the call of fmha_fwd. Reads no memory.
tessera_status tessera_over_cache_place(struct tessera_over_cache *x, const struct tessera_cache_place *place);

// Checks pages, and tells the call of fmha_fwd, whose traits and args are filled in. What is left are the table and
// lengths of `cache`.
tessera_status tessera_over_cache_set_pages(struct tessera_over_cache *x, const struct tessera_cache_pages *pages);

// For struct tessera_operation and its kernels, but for the types of their arguments.
tessera_status tessera_over_cache_check_memory(const struct tessera_over_cache *x, bool on_gpu,
                                               struct tessera_tensors *all);
tessera_status tessera_over_cache_regions(struct tessera_over_cache *x, tessera_attention_pages_cpu_run *find,
                                          struct tessera_plan *plan);
tessera_status tessera_over_cache_check_row(const struct tessera_over_cache *x);
tessera_status tessera_over_cache_steps(const struct tessera_over_cache *x, struct tessera_plan *plan);
double tessera_over_cache_cost(const tessera_instance *row, const struct tessera_request *r);

#endif
