// SPDX-License-Identifier: MIT
// Where keys of a cache lie: lengths, and checks of tables.
#include "ops/attention_cache.h"

#include "guard.h"
#include "integers.h"
#include "tensors.h"

static int64_t columns_of(const struct tessera_attention_cache *cache) {
    const struct tessera_attention_pages *const p = &cache->pages;
    return tessera_ceil_div(cache->max_seqlen_k + (p->offset ? (int64_t)p->page_size - 1 : 0), p->page_size);
}

void tessera_attention_add_cache(const struct tessera_attention_cache *cache, int32_t batch,
                                 struct tessera_tensors *all) {
    const struct tessera_attention_pages *const p = &cache->pages;
    const struct tessera_axis none = {NULL, 1, 0}, rows = {"batch_stride_block_table", batch, p->table_stride};
    if (cache->seqlen_k) tessera_add_array(all, "seqlen_k_ptr", cache->seqlen_k, 32, batch);
    if (cache->starts) tessera_add_array(all, "seqstart_k_ptr", cache->starts, 32, (int64_t)batch + 1);
    if (p->offset) tessera_add_array(all, "seqstart_k_ptr", p->offset, 32, batch);
    if (p->begin) tessera_add_array(all, "kv_indptr", p->begin, 32, (int64_t)batch + 1);
    if (cache->last) tessera_add_array(all, "kv_last_page_lens", cache->last, 32, batch);
    if (!cache->is_paged && p->table) tessera_add_array(all, "cache_batch_idx", p->table, 32, batch);
    if (cache->is_paged && p->begin) tessera_add_array(all, cache->table_name, p->table, 32, 1); // the rest comes later
    if (cache->is_paged && !p->begin)
        tessera_add_tensor(all, cache->table_name, p->table, 32, false, none, none, rows, columns_of(cache));
}

void tessera_attention_add_list(const struct tessera_attention_cache *cache, int32_t batch,
                                struct tessera_tensors *all) {
    if (cache->pages.begin)
        tessera_add_array(all, cache->table_name, cache->pages.table, 32, cache->pages.begin[batch]);
}

static int32_t listed_keys(const struct tessera_attention_cache *cache, int32_t b) {
    const int32_t *const begin = cache->pages.begin, size = cache->pages.page_size;
    const int64_t pages = (int64_t)begin[b + 1] - begin[b];
    if (pages <= 0) return 0;
    return (int32_t)tessera_min((pages - 1) * size + (cache->last ? cache->last[b] : size), INT32_MAX);
}

void tessera_attention_set_keys(const struct tessera_attention_cache *cache, struct tessera_attention_sequence *s) {
    s->token_k = 0;
    s->physical_k = s->seqlen_k = cache->max_seqlen_k;
    if (cache->seqlen_k)
        s->seqlen_k = cache->seqlen_k[s->batch];
    else if (cache->pages.begin)
        s->seqlen_k = listed_keys(cache, s->batch);
    else if (cache->starts)
        s->seqlen_k = (int32_t)tessera_max(
            -1, tessera_min((int64_t)cache->starts[s->batch + 1] - cache->starts[s->batch], INT32_MAX));
}

static tessera_status check_list(const struct tessera_attention_cache *cache, int32_t b) {
    const int32_t *const begin = cache->pages.begin, size = cache->pages.page_size;
    GUARD(begin[b] >= 0, "kv_indptr[%d] is %d: 0 or more", b, begin[b]);
    GUARD(begin[b + 1] >= begin[b], "kv_indptr[%d] is %d: at least the one before, %d", b + 1, begin[b + 1], begin[b]);
    GUARD(!cache->last || begin[b + 1] == begin[b] || within(cache->last[b], 1, size),
          "kv_last_page_lens[%d] is %d: 1 to page_block_size, %d", b, cache->last[b], size);
    return TESSERA_SUCCESS;
}

tessera_status tessera_attention_check_cache(const struct tessera_attention_cache *cache,
                                             const struct tessera_attention_sequence *s) {
    const struct tessera_attention_pages *const p = &cache->pages;
    const int32_t b = s->batch, offset = p->offset ? p->offset[b] : 0;
    if (!cache->is_paged) {
        GUARD(!p->table || s->seqlen_k == 0 || within(p->table[b], 0, cache->blocks - 1),
              "cache_batch_idx[%d] is %d: 0 to %lld", b, p->table[b], (long long)cache->blocks - 1);
        return TESSERA_SUCCESS;
    }
    if (p->begin) TRY(check_list(cache, b));
    GUARD(within(offset, 0, (int64_t)p->page_size - 1),
          "seqstart_k_ptr[%d] is %d: with is_gappy a row of the first page, 0 to %d", b, offset, p->page_size - 1);
    const int64_t pages = tessera_ceil_div((int64_t)offset + s->seqlen_k, p->page_size);
    const int32_t *const table = p->table + (p->begin ? p->begin[b] : b * p->table_stride);
    for (int64_t page = 0; page < pages && s->seqlen_k > 0; page++)
        GUARD(within(table[page], 0, cache->blocks - 1), "%s[%d][%lld] is %d: a page, 0 to %lld", cache->table_name, b,
              (long long)page, table[page], (long long)cache->blocks - 1);
    return TESSERA_SUCCESS;
}
