// SPDX-License-Identifier: MIT
// The operation fmha_batch_prefill. On CPUs an instance of fmha_fwd attends, which finds rows in pages.
#include "tessera/kernel/fmha_batch_prefill.h"

#include "guard.h"
#include "op/typed.h"
#include "ops/fmha_fwd_over_cache.h"

struct tessera_fmha_batch_prefill_call {
    tessera_fmha_batch_prefill_traits traits;
    tessera_fmha_batch_prefill_args args;
    struct tessera_over_cache over;
};

typedef struct tessera_fmha_batch_prefill_call call_t;

enum { MOST_PAGE = 1 << 16, PIECE_BYTES = 16 };

static bool is_power_of_two(int32_t n) { return n > 0 && (n & (n - 1)) == 0; }

static tessera_status check_traits(const tessera_fmha_batch_prefill_traits *t,
                                   const tessera_fmha_batch_prefill_args *a) {
    GUARD(t->is_group_mode == 1, "is_group_mode is %d: 1", t->is_group_mode);
    GUARD(tessera_kv_layout_string(t->kv_memory_layout), "kv_memory_layout is %d: 0, 1", (int)t->kv_memory_layout);
    GUARD(tessera_kv_lookup_string(t->kv_lookup_table), "kv_lookup_table is %d: 0, 1", (int)t->kv_lookup_table);
    GUARD(a->kv_memory_layout == t->kv_memory_layout, "args->kv_memory_layout is %d: traits->kv_memory_layout is %d",
          (int)a->kv_memory_layout, (int)t->kv_memory_layout);
    GUARD(a->kv_lookup_table == t->kv_lookup_table, "args->kv_lookup_table is %d: traits->kv_lookup_table is %d",
          (int)a->kv_lookup_table, (int)t->kv_lookup_table);
    return TESSERA_SUCCESS;
}

static tessera_status check_pages(const tessera_fmha_batch_prefill_args *a) {
    GUARD(is_power_of_two(a->page_block_size), "page_block_size is %d: a power of two", a->page_block_size);
    GUARD(a->page_block_size <= MOST_PAGE, "page_block_size is %d: at most %d", a->page_block_size, MOST_PAGE);
    GUARD(a->num_total_pages >= 0, "num_total_pages is %d: 0 or more", a->num_total_pages);
    GUARD(within(a->max_seqlen_k, 0, TESSERA_ATTENTION_MAX_SEQLEN), "max_seqlen_k is %d: 0 to %d", a->max_seqlen_k,
          TESSERA_ATTENTION_MAX_SEQLEN);
    return TESSERA_SUCCESS;
}

static tessera_status check_pieces(const tessera_fmha_batch_prefill_args *a, int32_t piece) {
    GUARD(a->page_block_size % piece == 0, "page_block_size is %d: vectorized pages have a multiple of %d rows",
          a->page_block_size, piece);
    GUARD(a->hdim_q % piece == 0, "hdim_q is %d: in vectorized pages a multiple of %d", a->hdim_q, piece);
    GUARD(a->hdim_v % piece == 0, "hdim_v is %d: in vectorized pages a multiple of %d", a->hdim_v, piece);
    return TESSERA_SUCCESS;
}

static void fill_attention(const call_t *call, struct tessera_fmha_fwd_call *to) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    TESSERA_ATTENTION_COPY_TRAITS(&to->traits, &call->traits);
    TESSERA_ATTENTION_COPY(&to->args, a);
    to->traits.has_dropout = call->traits.has_dropout;
    to->traits.skip_min_seqlen_q = call->traits.skip_min_seqlen_q;
    to->args.seqlen_k = a->max_seqlen_k;
    to->args.min_seqlen_q = a->min_seqlen_q;
    to->args.p_drop = a->p_drop;
    to->args.s_randval = a->s_randval;
    to->args.drop_prefs = a->drop_prefs;
    to->args.drop_seed = a->drop_seed;
    to->args.drop_offset = a->drop_offset;
    to->args.drop_seed_ptr = a->drop_seed_ptr;
    to->args.drop_offset_ptr = a->drop_offset_ptr;
    to->args.rand_val_ptr = a->rand_val_ptr;
    to->args.stride_randval = a->stride_randval;
    to->args.nhead_stride_randval = a->nhead_stride_randval;
}

static struct tessera_attention_cache cache_of(const call_t *call, int32_t piece) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    const bool list = a->kv_lookup_table == TESSERA_KV_SGLANG_1D;
    return (struct tessera_attention_cache){
        .pages = {.table = a->kv_page_indices,
                  .begin = list ? a->kv_indptr : NULL,
                  .table_stride = a->batch_stride_block_table,
                  .page_size = a->page_block_size,
                  .k = a->k_ptr,
                  .v = a->v_ptr,
                  .of_k = {a->batch_stride_k, a->nhead_stride_k, a->stride_k},
                  .of_v = {a->batch_stride_v, a->nhead_stride_v, a->stride_v},
                  .piece = piece,
                  .hdim_q = a->hdim_q,
                  .hdim_v = a->hdim_v,
                  .element_bytes = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv) / 8},
        .blocks = a->num_total_pages,
        .rows = a->page_block_size,
        .seqlen_k = list ? NULL : a->seqlen_k_ptr,
        .last = list ? a->kv_last_page_lens : NULL,
        .max_seqlen_k = a->max_seqlen_k,
        .is_paged = true,
        .table_name = "kv_page_indices",
    };
}

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    struct tessera_over_cache *const over = &call->over;
    TRY(check_traits(&call->traits, &call->args));
    TRY(check_pages(&call->args));
    tessera_over_cache_begin(over);
    fill_attention(call, &over->attention);
    TRY(tessera_over_cache_check_traits(&over->attention.traits));
    over->attention.cache = &over->cache;
    TRY(tessera_fmha_fwd_check_call(&over->attention));
    const int bits = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    const int32_t piece = call->args.kv_memory_layout == TESSERA_KV_VECTORIZED ? PIECE_BYTES * 8 / bits : 0;
    if (piece) TRY(check_pieces(&call->args, piece));
    over->cache = cache_of(call, piece);
    return TESSERA_SUCCESS;
}

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const tessera_fmha_batch_prefill_args *const a = &((const call_t *)of)->args;
    const bool list = a->kv_lookup_table == TESSERA_KV_SGLANG_1D;
    GUARD(!list || a->kv_indptr, "kv_indptr is NULL: the 1-D lookup table needs it");
    GUARD(!list || a->kv_last_page_lens || a->page_block_size == 1,
          "kv_last_page_lens is NULL: pages of more than one row need it");
    GUARD(list || a->seqlen_k_ptr, "seqlen_k_ptr is NULL: the 2-D lookup table needs it");
    return tessera_over_cache_check_memory(&((const call_t *)of)->over, on_gpu, all);
}

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    tessera_text_add(out, "_b128x128x32x%ux32x%u_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async", hdims[1], hdims[0]);
}

// The axis "page": the power of two.
static uint32_t count_ck(const struct tessera_request *r, const tessera_instance *row, const uint32_t *hdims) {
    const int32_t size = ((const call_t *)r->call)->args.page_block_size;
    uint32_t power = 0;
    (void)row;
    (void)hdims;
    while (1 << power < size) power++;
    return power;
}

static tessera_status add_regions(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    return tessera_over_cache_regions(&call->over, ((const tessera_fmha_batch_prefill_instance *)plan->row)->find,
                                      plan);
}

static tessera_status add_steps(void *of, struct tessera_plan *plan) {
    return tessera_over_cache_steps(&((const call_t *)of)->over, plan);
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    tessera_fmha_fwd_operation.add_problem(out, &call->over.attention);
    tessera_text_add(out, " -page_block_size=%d -kv_memory_layout=%s -kv_lookup_table=%s", call->args.page_block_size,
                     tessera_kv_layout_string(call->traits.kv_memory_layout),
                     tessera_kv_lookup_string(call->traits.kv_lookup_table));
}

TESSERA_DEFINE_CALLS(fmha_batch_prefill)

const struct tessera_operation tessera_fmha_batch_prefill_operation = {
    TESSERA_CALL_OF(fmha_batch_prefill),
    .kernels = {.get_table = tessera_fmha_batch_prefill_get_table,
                .cost = tessera_over_cache_cost,
                .add_ck_tile = add_ck_tile,
                .count_ck = count_ck},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
