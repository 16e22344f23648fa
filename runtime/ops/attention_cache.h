// SPDX-License-Identifier: MIT
// What operations on caches of keys and values share: where keys lie, checks of that, and their calls as calls of
// fmha_fwd, which attends. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ATTENTION_CACHE_H
#define TESSERA_RUNTIME_OPS_ATTENTION_CACHE_H

#include "op/operation.h"
#include "ops/attention.h"
#include "tessera/kernel/attention_pages.h"

// Keys and values that lie in sequences or pages of a cache, in place of tensors as fmha_fwd has them.
struct tessera_attention_cache {
    struct tessera_attention_pages pages; // rows of the table without pages: cache_batch_idx
    tessera_attention_pages_cpu_run *find;
    int64_t blocks, rows;           // sequences or pages, and rows of one
    const int32_t *seqlen_k;        // of each sequence; NULL: all have max_seqlen_k, or
    const int32_t *starts;          // the differences of these
    const int32_t *last;            // with pages.begin: rows of the last page of each sequence; NULL: all
    const float *scale_k, *scale_v; // of all keys, and of all values; NULL: 1
    const float *scale_q;           // of all queries; NULL: 1
    const float *q_scales;          // of each query and its head, [tokens][nhead_q]; NULL: 1
    int32_t max_seqlen_k;
    bool is_paged;
    const char *table_name; // of pages
};

// The arrays that say where keys lie, for the checks that all operations share.
void tessera_attention_add_cache(const struct tessera_attention_cache *cache, int32_t batch,
                                 struct tessera_tensors *all);
// The list of all pages, whose length they say. Reads them.
void tessera_attention_add_list(const struct tessera_attention_cache *cache, int32_t batch,
                                struct tessera_tensors *all);
// Lengths and room of a sequence's keys.
void tessera_attention_set_keys(const struct tessera_attention_cache *cache, struct tessera_attention_sequence *s);
// Whether the table names blocks that exist for all keys of a sequence. Reads the arrays.
tessera_status tessera_attention_check_cache(const struct tessera_attention_cache *cache,
                                             const struct tessera_attention_sequence *s);

// Copies the fields that args of an operation on caches share with those of fmha_fwd.
#define TESSERA_ATTENTION_COPY(to, from)                                                                               \
    ((to)->q_ptr = (from)->q_ptr, (to)->k_ptr = (from)->k_ptr, (to)->v_ptr = (from)->v_ptr,                            \
     (to)->bias_ptr = (from)->bias_ptr, (to)->q_descale_ptr = (from)->q_descale_ptr,                                   \
     (to)->k_descale_ptr = (from)->k_descale_ptr, (to)->v_descale_ptr = (from)->v_descale_ptr,                         \
     (to)->lse_ptr = (from)->lse_ptr, (to)->o_ptr = (from)->o_ptr, (to)->seqstart_q_ptr = (from)->seqstart_q_ptr,      \
     (to)->sink_ptr = (from)->sink_ptr, (to)->batch = (from)->batch, (to)->max_seqlen_q = (from)->max_seqlen_q,        \
     (to)->hdim_q = (from)->hdim_q, (to)->hdim_v = (from)->hdim_v, (to)->nhead_q = (from)->nhead_q,                    \
     (to)->nhead_k = (from)->nhead_k, (to)->scale_s = (from)->scale_s,                                                 \
     (to)->logits_soft_cap = (from)->logits_soft_cap, (to)->stride_q = (from)->stride_q,                               \
     (to)->stride_k = (from)->stride_k, (to)->stride_v = (from)->stride_v, (to)->stride_bias = (from)->stride_bias,    \
     (to)->stride_o = (from)->stride_o, (to)->nhead_stride_q = (from)->nhead_stride_q,                                 \
     (to)->nhead_stride_k = (from)->nhead_stride_k, (to)->nhead_stride_v = (from)->nhead_stride_v,                     \
     (to)->nhead_stride_bias = (from)->nhead_stride_bias, (to)->nhead_stride_lse = (from)->nhead_stride_lse,           \
     (to)->nhead_stride_o = (from)->nhead_stride_o, (to)->batch_stride_q = (from)->batch_stride_q,                     \
     (to)->batch_stride_k = (from)->batch_stride_k, (to)->batch_stride_v = (from)->batch_stride_v,                     \
     (to)->batch_stride_bias = (from)->batch_stride_bias, (to)->batch_stride_lse = (from)->batch_stride_lse,           \
     (to)->batch_stride_o = (from)->batch_stride_o, (to)->window_size_left = (from)->window_size_left,                 \
     (to)->window_size_right = (from)->window_size_right, (to)->sink_size = (from)->sink_size,                         \
     (to)->mask_type = (from)->mask_type)

// The same for traits.
#define TESSERA_ATTENTION_COPY_TRAITS(to, from)                                                                        \
    ((to)->hdim_q = (from)->hdim_q, (to)->hdim_v = (from)->hdim_v, (to)->data_type = (from)->data_type,                \
     (to)->is_group_mode = (from)->is_group_mode, (to)->is_v_rowmajor = (from)->is_v_rowmajor,                         \
     (to)->has_logits_soft_cap = (from)->has_logits_soft_cap, (to)->mask_type = (from)->mask_type,                     \
     (to)->bias_type = (from)->bias_type, (to)->has_lse = (from)->has_lse, (to)->qscale_type = (from)->qscale_type,    \
     (to)->has_sink = (from)->has_sink)

#endif
