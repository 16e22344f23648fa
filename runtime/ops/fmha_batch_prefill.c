// SPDX-License-Identifier: MIT
// The operation fmha_batch_prefill. An instance of fmha_fwd attends, which finds rows in pages.
#include "tessera/kernel/fmha_batch_prefill.h"

#include "guard.h"
#include "integers.h"
#include "op/typed.h"
#include "ops/fmha_fwd_over_cache.h"

struct tessera_fmha_batch_prefill_call {
    tessera_fmha_batch_prefill_traits traits;
    tessera_fmha_batch_prefill_args args;
    struct tessera_over_cache over;
};

typedef struct tessera_fmha_batch_prefill_call call_t;

static tessera_status check_traits(const tessera_fmha_batch_prefill_traits *t,
                                   const tessera_fmha_batch_prefill_args *a) {
    GUARD(t->is_group_mode == 1, "is_group_mode is %d: 1", t->is_group_mode);
    GUARD(tessera_kv_layout_string(t->kv_memory_layout), "kv_memory_layout is %d: 0 to 2", (int)t->kv_memory_layout);
    GUARD(tessera_kv_lookup_string(t->kv_lookup_table), "kv_lookup_table is %d: 0, 1", (int)t->kv_lookup_table);
    GUARD(a->kv_memory_layout == t->kv_memory_layout, "args->kv_memory_layout is %d: traits->kv_memory_layout is %d",
          (int)a->kv_memory_layout, (int)t->kv_memory_layout);
    GUARD(a->kv_lookup_table == t->kv_lookup_table, "args->kv_lookup_table is %d: traits->kv_lookup_table is %d",
          (int)a->kv_lookup_table, (int)t->kv_lookup_table);
    return TESSERA_SUCCESS;
}

static void fill_attention(const call_t *call, struct tessera_fmha_fwd_call *to) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    TESSERA_ATTENTION_COPY_TRAITS(&to->traits, &call->traits);
    TESSERA_ATTENTION_COPY(&to->args, a);
    to->traits.has_dropout = call->traits.has_dropout;
    to->traits.skip_min_seqlen_q = call->traits.skip_min_seqlen_q;
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

static void set_tables(const tessera_fmha_batch_prefill_args *a, struct tessera_attention_cache *cache) {
    const bool list = a->kv_lookup_table == TESSERA_KV_SGLANG_1D;
    cache->pages.table = a->kv_page_indices;
    cache->pages.begin = list ? a->kv_indptr : NULL;
    cache->pages.table_stride = a->batch_stride_block_table;
    cache->seqlen_k = list ? NULL : a->seqlen_k_ptr;
    cache->last = list ? a->kv_last_page_lens : NULL;
    cache->table_name = "kv_page_indices";
}

// ---- descales of caches: attention gets them with the rows

static bool has_scaled_rows(const call_t *call) {
    const tessera_qscale type = call->traits.qscale_type;
    return type == TESSERA_QSCALE_KV_BLOCK || type == TESSERA_QSCALE_TOKEN_HEAD;
}

static tessera_status check_scaled_rows(const tessera_fmha_batch_prefill_traits *t) {
    const tessera_fmha_dtype type = t->data_type;
    GUARD(type == TESSERA_FMHA_FP8 || type == TESSERA_FMHA_FP8BF16 || type == TESSERA_FMHA_FP8FP32,
          "qscale_type %s with data_type %d: only fp8, fp8bf16 and fp8fp32 take it",
          tessera_qscale_string(t->qscale_type), (int)type);
    return TESSERA_SUCCESS;
}

// Where scales of k lie; those of v, where v_heads, are of heads alone.
static struct tessera_attention_page_strides strides_of_scales(const call_t *call, bool v_heads) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    const int64_t bytes = sizeof(float), heads = bytes * a->nhead_k;
    if (call->traits.qscale_type == TESSERA_QSCALE_KV_BLOCK)
        return (struct tessera_attention_page_strides){
            .page = tessera_stride_bytes(a->nblock_stride_kv_block_descale, bytes),
            .head = tessera_stride_bytes(a->nhead_stride_kv_block_descale, bytes)};
    if (v_heads) return (struct tessera_attention_page_strides){.head = bytes};
    return (struct tessera_attention_page_strides){heads * a->page_block_size, bytes, heads};
}

static void set_scaled_rows(const call_t *call, struct tessera_attention_cache *cache) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    const bool tokens = call->traits.qscale_type == TESSERA_QSCALE_TOKEN_HEAD;
    cache->scale_q = tokens ? NULL : a->q_descale_ptr;
    cache->q_scales = tokens ? a->q_descale_ptr : NULL;
    cache->pages.k_scale =
        (struct tessera_attention_page_scales){a->k_descale_ptr, TESSERA_TYPE_FP32, strides_of_scales(call, false)};
    cache->pages.v_scale =
        (struct tessera_attention_page_scales){a->v_descale_ptr, TESSERA_TYPE_FP32, strides_of_scales(call, true)};
}

#define PAGE_SCALES(x)                                                                                                 \
    tessera_add_tensor(                                                                                                \
        all, #x "_descale_ptr", a->x##_descale_ptr, 32, false, (struct tessera_axis){NULL, 1, 0},                      \
        (struct tessera_axis){"nhead_stride_kv_block_descale", a->nhead_k, a->nhead_stride_kv_block_descale},          \
        (struct tessera_axis){"nblock_stride_kv_block_descale", a->num_total_pages,                                    \
                              a->nblock_stride_kv_block_descale},                                                      \
        1)

// How many queries there are the host knows of a CPU alone.
static void add_scaled_rows(const call_t *call, bool on_gpu, struct tessera_tensors *all) {
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    if (call->traits.qscale_type == TESSERA_QSCALE_KV_BLOCK) {
        tessera_add_array(all, "q_descale_ptr", a->q_descale_ptr, 32, 1);
        PAGE_SCALES(k);
        PAGE_SCALES(v);
        return;
    }
    const int32_t *const starts = a->seqstart_q_ptr;
    const int64_t tokens = on_gpu ? a->max_seqlen_q > 0 : starts[a->batch];
    tessera_add_array(all, "q_descale_ptr", a->q_descale_ptr, 32, tokens * a->nhead_q);
    const int64_t row = a->nhead_k, page = row * a->page_block_size;
    tessera_add_tensor(all, "k_descale_ptr", a->k_descale_ptr, 32, false, (struct tessera_axis){NULL, 1, 0},
                       (struct tessera_axis){NULL, a->num_total_pages, page},
                       (struct tessera_axis){NULL, a->page_block_size, row}, row);
    tessera_add_array(all, "v_descale_ptr", a->v_descale_ptr, 32, a->nhead_k);
}

// ---- the call

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    struct tessera_over_cache *const over = &call->over;
    const struct tessera_cache_pages pages = {.page_block_size = a->page_block_size,
                                              .num_total_pages = a->num_total_pages,
                                              .max_seqlen_k = a->max_seqlen_k,
                                              .layout = a->kv_memory_layout};
    TRY(check_traits(&call->traits, a));
    if (has_scaled_rows(call)) TRY(check_scaled_rows(&call->traits));
    tessera_over_cache_begin(over);
    fill_attention(call, &over->attention);
    if (has_scaled_rows(call)) over->attention.traits.qscale_type = TESSERA_QSCALE_NONE;
    TRY(tessera_over_cache_check_traits(&over->attention.traits));
    TRY(tessera_over_cache_set_pages(over, &pages));
    set_tables(a, &over->cache);
    if (has_scaled_rows(call)) set_scaled_rows(call, &over->cache);
    return tessera_fmha_fwd_check_call(&over->attention);
}

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_fmha_batch_prefill_args *const a = &call->args;
    const bool list = a->kv_lookup_table == TESSERA_KV_SGLANG_1D;
    GUARD(!list || a->kv_indptr, "kv_indptr is NULL: the 1-D lookup table needs it");
    GUARD(!list || a->kv_last_page_lens || a->page_block_size == 1,
          "kv_last_page_lens is NULL: pages of more than one row need it");
    GUARD(list || a->seqlen_k_ptr, "seqlen_k_ptr is NULL: the 2-D lookup table needs it");
    TRY(tessera_over_cache_check_memory(&call->over, on_gpu, all));
    if (has_scaled_rows(call)) add_scaled_rows(call, on_gpu, all);
    return TESSERA_SUCCESS;
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

static tessera_status check_row(const void *of, const tessera_instance *row) {
    (void)row;
    return tessera_over_cache_check_row(&((const call_t *)of)->over);
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
    if (has_scaled_rows(call)) tessera_text_add(out, " -qscale=%s", tessera_qscale_string(call->traits.qscale_type));
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
    .check_row = check_row,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
