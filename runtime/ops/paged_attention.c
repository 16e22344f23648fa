// SPDX-License-Identifier: MIT
// The operation paged_attention. On CPUs an instance of fmha_fwd attends, which finds rows in pages.
#include "tessera/kernel/paged_attention.h"

#include "guard.h"
#include "integers.h"
#include "op/typed.h"
#include "ops/attention_kv_types.h"
#include "ops/fmha_fwd_over_cache.h"

struct tessera_paged_attention_call {
    tessera_paged_attention_traits traits;
    tessera_paged_attention_args args;
    struct tessera_over_cache over;
};

typedef struct tessera_paged_attention_call call_t;

static tessera_status check_norms(const tessera_paged_attention_traits *t, const tessera_paged_attention_args *a) {
    const char *const dtype = tessera_kv_cache_dtype_string(t->kv_cache_dtype);
    const int32_t numbers = tessera_kv_types[t->kv_cache_dtype].numbers;
    GUARD(t->kv_memory_layout == TESSERA_KV_LINEAR, "kv_memory_layout is %s: caches of %s are linear",
          tessera_kv_layout_string(t->kv_memory_layout), dtype);
    GUARD(t->hdim_q % numbers == 0, "hdim_q is %d: in caches of %s a multiple of %d", t->hdim_q, dtype, numbers);
    GUARD(t->hdim_v % numbers == 0, "hdim_v is %d: in caches of %s a multiple of %d", t->hdim_v, dtype, numbers);
    GUARD(!a->k_scale_ptr == !a->v_scale_ptr, "k_scale_ptr and v_scale_ptr: norms of %s lie apart for both or neither",
          dtype);
    GUARD(a->centroids_ptr, "centroids_ptr is NULL: %s has [16] centroids", dtype);
    return TESSERA_SUCCESS;
}

static tessera_status check_traits(const tessera_paged_attention_traits *t, const tessera_paged_attention_args *a) {
    const bool scales = a->k_scale_ptr || a->v_scale_ptr;
    GUARD(t->data_type <= TESSERA_FMHA_BF16, "data_type is %d: fp32, fp16 or bf16; caches may be quantised",
          (int)t->data_type);
    GUARD(tessera_kv_cache_dtype_string(t->kv_cache_dtype), "kv_cache_dtype is %d: 0 to %d", (int)t->kv_cache_dtype,
          TESSERA_KV_CACHE_DTYPE_COUNT - 1);
    GUARD(tessera_kv_layout_string(t->kv_memory_layout), "kv_memory_layout is %d: 0 to %d", (int)t->kv_memory_layout,
          TESSERA_KV_LAYOUT_COUNT - 1);
    GUARD(t->bias_type == TESSERA_BIAS_NONE || t->bias_type == TESSERA_BIAS_ALIBI,
          "bias_type is %d: none (0) or alibi (2)", (int)t->bias_type);
    GUARD(!scales || tessera_kv_types[t->kv_cache_dtype].takes_scales,
          "k_scale_ptr or v_scale_ptr is given: caches of %s have no scales",
          tessera_kv_cache_dtype_string(t->kv_cache_dtype));
    GUARD(a->sliding_window >= 0, "sliding_window is %d: 0 or more", a->sliding_window);
    GUARD(within(a->num_splits, 0, TESSERA_FMHA_FWD_MOST_SPLITS), "num_splits is %d: 1 to %d, or 0 for as many as pay",
          a->num_splits, TESSERA_FMHA_FWD_MOST_SPLITS);
    return tessera_kv_types[t->kv_cache_dtype].has_norms ? check_norms(t, a) : TESSERA_SUCCESS;
}

static void fill_traits(const tessera_paged_attention_traits *t, tessera_fmha_fwd_traits *to) {
    to->hdim_q = t->hdim_q;
    to->hdim_v = t->hdim_v;
    to->data_type = t->data_type;
    to->is_group_mode = t->is_group_mode;
    to->is_v_rowmajor = 1;
    to->has_logits_soft_cap = t->has_logits_soft_cap;
    to->mask_type = TESSERA_MASK_BOTTOM_RIGHT;
    to->bias_type = t->bias_type;
    to->has_lse = t->has_lse;
    to->has_sink = t->has_sink;
}

static void fill_args(const tessera_paged_attention_args *a, tessera_fmha_fwd_args *to) {
    to->q_ptr = a->q_ptr;
    to->k_ptr = a->k_ptr;
    to->v_ptr = a->v_ptr;
    to->bias_ptr = a->alibi_slopes_ptr;
    to->sink_ptr = a->sink_ptr;
    to->lse_ptr = a->lse_ptr;
    to->o_ptr = a->o_ptr;
    to->seqstart_q_ptr = a->seqstart_q_ptr;
    to->batch = a->batch;
    to->seqlen_q = to->max_seqlen_q = a->max_seqlen_q;
    to->hdim_q = a->hdim_q;
    to->hdim_v = a->hdim_v;
    to->nhead_q = a->nhead_q;
    to->nhead_k = a->nhead_k;
    to->scale_s = a->scale_s;
    to->logits_soft_cap = a->logits_soft_cap;
    to->stride_q = a->stride_q;
    to->stride_k = a->stride_k;
    to->stride_v = a->stride_v;
    to->stride_o = a->stride_o;
    to->nhead_stride_q = a->nhead_stride_q;
    to->nhead_stride_k = a->nhead_stride_k;
    to->nhead_stride_v = a->nhead_stride_v;
    to->nhead_stride_lse = a->nhead_stride_lse;
    to->nhead_stride_o = a->nhead_stride_o;
    to->batch_stride_q = a->batch_stride_q;
    to->batch_stride_k = a->batch_stride_k;
    to->batch_stride_v = a->batch_stride_v;
    to->batch_stride_lse = a->batch_stride_lse;
    to->batch_stride_o = a->batch_stride_o;
    to->window_size_left = a->sliding_window - 1;
    to->window_size_right = 0;
    to->mask_type = TESSERA_MASK_BOTTOM_RIGHT;
}

static struct tessera_attention_page_scales scales_of(const void *base, tessera_type type,
                                                      struct tessera_attention_page_strides of) {
    const int bytes = tessera_type_bits(type) / 8;
    return (struct tessera_attention_page_scales){base,
                                                  type,
                                                  {tessera_stride_bytes(of.page, bytes),
                                                   tessera_stride_bytes(of.head, bytes),
                                                   tessera_stride_bytes(of.row, bytes)}};
}

// A tensor's only scale is the call's; others belong to rows.
static void set_scale(const float *scale, struct tessera_attention_page_strides of, const float **of_all,
                      struct tessera_attention_page_scales *of_rows) {
    const bool only = of.page == 0 && of.head == 0 && of.row == 0;
    *of_all = only ? scale : NULL;
    *of_rows = scales_of(only ? NULL : scale, TESSERA_TYPE_FP32, of);
}

// Norms are scales of rows: those of a tensor of their own, or those behind the numbers of each row, at a pointer that
// is not checked yet.
static void set_norms(const void *apart, struct tessera_attention_page_strides of, const void *rows, int64_t numbers,
                      const struct tessera_attention_page_strides *of_rows, struct tessera_attention_page_scales *to) {
    *to = apart ? scales_of(apart, TESSERA_TYPE_FP16, of)
                : (struct tessera_attention_page_scales){(const void *)((uintptr_t)rows + (uintptr_t)numbers),
                                                         TESSERA_TYPE_FP16, *of_rows};
}

static void set_tables(const call_t *call, struct tessera_attention_cache *cache) {
    const tessera_paged_attention_args *const a = &call->args;
    const struct tessera_kv_type *const type = &tessera_kv_types[call->traits.kv_cache_dtype];
    struct tessera_attention_pages *const p = &cache->pages;
    const struct tessera_attention_page_strides of_k = {a->batch_stride_k_scale, a->nhead_stride_k_scale,
                                                        a->stride_k_scale};
    const struct tessera_attention_page_strides of_v = {a->batch_stride_v_scale, a->nhead_stride_v_scale,
                                                        a->stride_v_scale};
    cache->pages.table = a->block_table_ptr;
    cache->pages.table_stride = a->batch_stride_block_table;
    cache->seqlen_k = a->seqlen_k_ptr;
    cache->table_name = "block_table_ptr";
    if (type->has_norms) {
        p->centroids = a->centroids_ptr;
        set_norms(a->k_scale_ptr, of_k, a->k_ptr, a->hdim_q / type->numbers, &p->of_k, &p->k_scale);
        set_norms(a->v_scale_ptr, of_v, a->v_ptr, a->hdim_v / type->numbers, &p->of_v, &p->v_scale);
        return;
    }
    set_scale(a->k_scale_ptr, of_k, &cache->scale_k, &p->k_scale);
    set_scale(a->v_scale_ptr, of_v, &cache->scale_v, &p->v_scale);
}

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    const tessera_paged_attention_traits *const t = &call->traits;
    const tessera_paged_attention_args *const a = &call->args;
    struct tessera_over_cache *const over = &call->over;
    const struct tessera_cache_pages pages = {.page_block_size = a->page_block_size,
                                              .num_total_pages = a->num_total_pages,
                                              .max_seqlen_k = a->max_seqlen_k,
                                              .layout = t->kv_memory_layout,
                                              .dtype = t->kv_cache_dtype,
                                              .are_norms_apart = a->k_scale_ptr != NULL};
    TRY(check_traits(t, a));
    tessera_over_cache_begin(over);
    over->attention.leaves_longer = true;
    over->attention.splits = a->num_splits;
    over->wanted = (const tessera_instance *)a->attends;
    fill_traits(t, &over->attention.traits);
    fill_args(a, &over->attention.args);
    TRY(tessera_fmha_fwd_check_traits(&over->attention.traits));
    TRY(tessera_over_cache_set_pages(over, &pages));
    set_tables(call, &over->cache);
    return tessera_fmha_fwd_check_call(&over->attention);
}

#define SCALES(x)                                                                                                      \
    tessera_add_tensor(                                                                                                \
        all, #x "_scale_ptr", a->x##_scale_ptr, scale_bits, false,                                                     \
        (struct tessera_axis){"batch_stride_" #x "_scale", a->num_total_pages, a->batch_stride_##x##_scale},           \
        (struct tessera_axis){"nhead_stride_" #x "_scale", a->nhead_k, a->nhead_stride_##x##_scale},                   \
        (struct tessera_axis){"stride_" #x "_scale", a->page_block_size, a->stride_##x##_scale}, 1)

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_paged_attention_args *const a = &call->args;
    GUARD(a->seqlen_k_ptr, "seqlen_k_ptr is NULL: [batch] lengths");
    GUARD(call->traits.bias_type == TESSERA_BIAS_NONE || a->alibi_slopes_ptr, "alibi_slopes_ptr is NULL: [nhead_q]");
    const int scale_bits = tessera_kv_types[call->traits.kv_cache_dtype].has_norms ? 16 : 32;
    if (a->k_scale_ptr) SCALES(k);
    if (a->v_scale_ptr) SCALES(v);
    if (a->centroids_ptr) tessera_add_array(all, "centroids_ptr", a->centroids_ptr, 32, 16);
    return tessera_over_cache_check_memory(&call->over, on_gpu, all);
}

static tessera_status check_row(const void *of, const tessera_instance *row) {
    (void)row;
    return tessera_over_cache_check_row(&((const call_t *)of)->over);
}

static tessera_status add_regions(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    return tessera_over_cache_regions(&call->over, ((const tessera_paged_attention_instance *)plan->row)->find, plan);
}

static tessera_status add_steps(void *of, struct tessera_plan *plan) {
    return tessera_over_cache_steps(&((const call_t *)of)->over, plan);
}

// AITER's kernels cut keys into partitions of 256.
static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    (void)hdims;
    tessera_text_add(out, "_p256");
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    tessera_fmha_fwd_operation.add_problem(out, &call->over.attention);
    tessera_text_add(out, " -page_block_size=%d -kv_memory_layout=%s -kv_cache_dtype=%s", call->args.page_block_size,
                     tessera_kv_layout_string(call->traits.kv_memory_layout),
                     tessera_kv_cache_dtype_string(call->traits.kv_cache_dtype));
    if (call->args.num_splits) tessera_text_add(out, " -num_splits=%d", call->args.num_splits);
}

TESSERA_DEFINE_CALLS(paged_attention)

const struct tessera_operation tessera_paged_attention_operation = {
    TESSERA_CALL_OF(paged_attention),
    .kernels = {.get_table = tessera_paged_attention_get_table,
                .cost = tessera_over_cache_cost,
                .add_ck_tile = add_ck_tile},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .check_row = check_row,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
