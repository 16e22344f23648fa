// SPDX-License-Identifier: MIT
// Calls of operations on caches of keys and values as calls of fmha_fwd.
#include "ops/fmha_fwd_over_cache.h"

#include "guard.h"
#include "ops/attention_kv_types.h"

void tessera_over_cache_begin(struct tessera_over_cache *x) {
    x->attention.traits = tessera_fmha_fwd_traits_init();
    x->attention.args = tessera_fmha_fwd_args_init();
    x->attention.cache = NULL;
    x->attention.splits = 0;
    x->attention.leaves_longer = false;
    x->attention.hdim_rope = 0;
    x->wanted = NULL;
    x->lacks_starts = false;
}

tessera_status tessera_over_cache_check_traits(const tessera_fmha_fwd_traits *t) {
    GUARD(t->data_type != TESSERA_FMHA_MXFP8 && t->data_type != TESSERA_FMHA_MXFP4,
          "data_type is %s: all but mxfp8 and mxfp4, whose scales a cache has no room for",
          tessera_fmha_dtype_string(t->data_type));
    GUARD(t->is_v_rowmajor == 1, "is_v_rowmajor is %d: 1", t->is_v_rowmajor);
    GUARD(t->qscale_type != TESSERA_QSCALE_BLOCK, "qscale_type is bs: a cache has no blocks with scales; no, or pt");
    return tessera_fmha_fwd_check_traits(t); // what follows finds records by data_type
}

static tessera_status check_place(const tessera_fmha_fwd_traits *t, int32_t batch,
                                  const struct tessera_cache_place *at) {
    const bool group = t->is_group_mode, paged = at->block_table_ptr != NULL;
    GUARD(within(at->is_gappy, 0, 1), "is_gappy is %d: 0 or 1", at->is_gappy);
    GUARD(!at->is_gappy || (group && paged), "is_gappy is 1: for pages in group mode alone");
    GUARD(!at->cache_batch_idx || (!group && !paged), "cache_batch_idx is given: NULL with pages and in group mode");
    GUARD(!group || !paged || within(at->seqlen_k, 0, TESSERA_ATTENTION_MAX_SEQLEN), "seqlen_k is %d: 0 to %d",
          at->seqlen_k, TESSERA_ATTENTION_MAX_SEQLEN);
    GUARD(!paged || at->page_block_size >= 1, "page_block_size is %d: 1 or more", at->page_block_size);
    if (group && !paged) return TESSERA_SUCCESS;
    GUARD(at->cache_blocks >= 0, "cache_blocks is %d: 0 or more", at->cache_blocks);
    GUARD(paged || at->cache_batch_idx || at->cache_blocks >= batch,
          "cache_blocks is %d: at least batch, %d, without cache_batch_idx", at->cache_blocks, batch);
    return TESSERA_SUCCESS;
}

static void set_rows(struct tessera_attention_pages *p, const tessera_fmha_fwd_traits *t, tessera_kv_cache_dtype dtype,
                     bool are_norms_apart) {
    const struct tessera_kv_type *const type = &tessera_kv_types[dtype];
    const int32_t tail = are_norms_apart ? 0 : type->tail;
    p->dtype = dtype;
    p->number = tessera_attention_storages[t->data_type].qkv;
    p->element_bytes = type->bytes ? type->bytes : tessera_type_bits(p->number) / 8;
    p->hdim_q = t->hdim_q;
    p->hdim_v = t->hdim_v;
    p->row_k = (int32_t)tessera_ceil_div(t->hdim_q, type->numbers) + tail;
    p->row_v = (int32_t)tessera_ceil_div(t->hdim_v, type->numbers) + tail;
}

static struct tessera_attention_cache cache_of(const struct tessera_fmha_fwd_call *attention,
                                               const struct tessera_cache_place *at) {
    const tessera_fmha_fwd_args *const a = &attention->args;
    const bool paged = at->block_table_ptr != NULL;
    return (struct tessera_attention_cache){
        .pages = {.table = paged ? at->block_table_ptr : at->cache_batch_idx,
                  .offset = at->is_gappy ? at->seqstart_k_ptr : NULL,
                  .table_stride = paged ? at->batch_stride_block_table : 1,
                  .page_size = paged ? at->page_block_size : INT32_MAX,
                  .k = a->k_ptr,
                  .v = a->v_ptr,
                  .of_k = {a->batch_stride_k, a->nhead_stride_k, a->stride_k},
                  .of_v = {a->batch_stride_v, a->nhead_stride_v, a->stride_v}},
        .blocks = at->cache_blocks,
        .rows = paged ? at->page_block_size : at->seqlen_k,
        .seqlen_k = at->seqlen_k_ptr,
        .starts = attention->traits.is_group_mode && !at->seqlen_k_ptr ? at->seqstart_k_ptr : NULL,
        .max_seqlen_k = at->seqlen_k,
        .is_paged = paged,
        .table_name = "block_table_ptr",
    };
}

tessera_status tessera_over_cache_place(struct tessera_over_cache *x, const struct tessera_cache_place *at) {
    struct tessera_fmha_fwd_call *const attention = &x->attention;
    TRY(check_place(&attention->traits, attention->args.batch, at));
    attention->args.seqlen_k = at->seqlen_k;
    if (attention->traits.is_group_mode && !at->block_table_ptr) {
        attention->args.seqstart_k_ptr = at->seqstart_k_ptr;
        attention->args.seqlen_k_ptr = at->seqlen_k_ptr;
        return TESSERA_SUCCESS;
    }
    x->cache = cache_of(attention, at);
    x->lacks_starts = attention->traits.is_group_mode && (at->is_gappy || !at->seqlen_k_ptr) && !at->seqstart_k_ptr;
    set_rows(&x->cache.pages, &attention->traits, TESSERA_KV_AUTO, false);
    attention->cache = &x->cache;
    return TESSERA_SUCCESS;
}

enum { MOST_PAGE = 1 << 16 };

static tessera_status check_pages(const struct tessera_cache_pages *at) {
    const int32_t size = at->page_block_size;
    GUARD(size > 0 && (size & (size - 1)) == 0, "page_block_size is %d: a power of two", size);
    GUARD(size <= MOST_PAGE, "page_block_size is %d: at most %d", size, MOST_PAGE);
    GUARD(at->num_total_pages >= 0, "num_total_pages is %d: 0 or more", at->num_total_pages);
    GUARD(within(at->max_seqlen_k, 0, TESSERA_ATTENTION_MAX_SEQLEN), "max_seqlen_k is %d: 0 to %d", at->max_seqlen_k,
          TESSERA_ATTENTION_MAX_SEQLEN);
    return TESSERA_SUCCESS;
}

static tessera_status set_pieces(struct tessera_attention_pages *p, const struct tessera_cache_pages *at) {
    const int32_t piece = TESSERA_PIECE_BYTES / p->element_bytes;
    const bool vectorized = at->layout == TESSERA_KV_VECTORIZED;
    p->piece_v = 0;
    if (at->layout == TESSERA_KV_LINEAR) return TESSERA_SUCCESS;
    GUARD(p->hdim_q % piece == 0, "hdim_q is %d: in %s pages a multiple of %d", p->hdim_q,
          tessera_kv_layout_string(at->layout), piece);
    GUARD(!vectorized || p->hdim_v % piece == 0, "hdim_v is %d: in vectorized pages a multiple of %d", p->hdim_v,
          piece);
    GUARD(!vectorized || p->page_size % piece == 0,
          "page_block_size is %d: vectorized pages have a multiple of %d rows", p->page_size, piece);
    p->piece_v = vectorized ? piece : p->page_size;
    return TESSERA_SUCCESS;
}

tessera_status tessera_over_cache_set_pages(struct tessera_over_cache *x, const struct tessera_cache_pages *at) {
    const tessera_fmha_fwd_args *const a = &x->attention.args;
    TRY(check_pages(at));
    x->cache = (struct tessera_attention_cache){
        .pages = {.page_size = at->page_block_size,
                  .k = a->k_ptr,
                  .v = a->v_ptr,
                  .of_k = {a->batch_stride_k, a->nhead_stride_k, a->stride_k},
                  .of_v = {a->batch_stride_v, a->nhead_stride_v, a->stride_v}},
        .blocks = at->num_total_pages,
        .rows = at->page_block_size,
        .max_seqlen_k = at->max_seqlen_k,
        .is_paged = true,
    };
    x->attention.args.seqlen_k = at->max_seqlen_k;
    x->attention.cache = &x->cache;
    set_rows(&x->cache.pages, &x->attention.traits, at->dtype, at->are_norms_apart);
    return set_pieces(&x->cache.pages, at);
}

tessera_status tessera_over_cache_check_memory(const struct tessera_over_cache *x, bool on_gpu,
                                               struct tessera_tensors *all) {
    const struct tessera_attention_cache *const cache = x->attention.cache;
    GUARD(!x->lacks_starts,
          "seqstart_k_ptr is NULL: in group mode pages need it with is_gappy, or without seqlen_k_ptr");
    GUARD(!cache || !cache->pages.offset || cache->seqlen_k, "seqlen_k_ptr is NULL: is_gappy needs it");
    return tessera_fmha_fwd_check_memory(&x->attention, on_gpu, all);
}

// ---- on a GPU, and on a CPU, whose rows find keys by a function of their own

tessera_status tessera_over_cache_regions(struct tessera_over_cache *x, tessera_attention_pages_cpu_run *find,
                                          struct tessera_plan *plan) {
    x->cache.find = find;
    TRY(tessera_plan_choose(plan, &tessera_fmha_fwd_operation.kernels, &x->attention.traits, &x->attention, x->wanted,
                            &x->attends));
    return tessera_fmha_fwd_regions(&x->attention, x->attends, plan);
}

tessera_status tessera_over_cache_check_row(const struct tessera_over_cache *x) {
    return tessera_fmha_fwd_check_row(&x->attention, x->attends);
}

tessera_status tessera_over_cache_steps(const struct tessera_over_cache *x, struct tessera_plan *plan) {
    return tessera_fmha_fwd_steps(&x->attention, x->attends, plan);
}

// Rows of one target differ in nothing that a call could prefer.
double tessera_over_cache_cost(const tessera_instance *row, const struct tessera_request *r) {
    (void)r;
    return (double)row->tile_cycles;
}
