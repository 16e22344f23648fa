// SPDX-License-Identifier: MIT
// The operation mla_prefill. On CPUs an instance of fmha_fwd attends: at once where keys lie in one piece, else to
// copies of blocks of keys. AMD's GPUs have kernels of their own (mla_prefill_cdna.c).
#include "guard.h"
#include "op/typed.h"
#include "ops/mla_prefill_internal.h"

typedef struct tessera_mla_prefill_call call_t;

static int bits_of(const call_t *call) {
    return tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
}

static tessera_status check_traits(const tessera_mla_prefill_traits *t) {
    GUARD(t->hdim_q == TESSERA_MLA_QK, "hdim_q is %d: %d", t->hdim_q, TESSERA_MLA_QK);
    GUARD(t->hdim_v == TESSERA_MLA_V, "hdim_v is %d: %d", t->hdim_v, TESSERA_MLA_V);
    GUARD(t->data_type == TESSERA_FMHA_BF16 || t->data_type == TESSERA_FMHA_FP8BF16, "data_type is %d: bf16, fp8bf16",
          (int)t->data_type);
    GUARD((uint32_t)t->mask_type <= TESSERA_MASK_BOTTOM_RIGHT, "mask_type is %d: no, top_left, bottom_right",
          (int)t->mask_type);
    GUARD((uint32_t)t->qscale_type <= TESSERA_QSCALE_PER_TENSOR, "qscale_type is %d: no, pt", (int)t->qscale_type);
    return TESSERA_SUCCESS;
}

static void fill_traits(const tessera_mla_prefill_traits *t, tessera_fmha_fwd_traits *to) {
    to->hdim_q = t->hdim_q;
    to->hdim_v = t->hdim_v;
    to->data_type = t->data_type;
    to->is_group_mode = t->is_group_mode;
    to->mask_type = t->mask_type;
    to->has_lse = t->has_lse;
    to->qscale_type = t->qscale_type;
}

static void fill_args(const call_t *call, tessera_fmha_fwd_args *to) {
    const tessera_mla_prefill_args *const a = &call->args;
#define STRIDES(x)                                                                                                     \
    to->stride_##x = a->stride_##x, to->nhead_stride_##x = a->nhead_stride_##x,                                        \
    to->batch_stride_##x = a->batch_stride_##x, to->x##_ptr = a->x##_ptr
    STRIDES(q), STRIDES(k), STRIDES(v), STRIDES(o);
#undef STRIDES
    to->lse_ptr = a->lse_ptr;
    to->nhead_stride_lse = a->nhead_stride_lse;
    to->batch_stride_lse = a->batch_stride_lse;
    to->q_descale_ptr = a->q_descale_ptr;
    to->k_descale_ptr = a->k_descale_ptr;
    to->v_descale_ptr = a->v_descale_ptr;
    to->seqstart_q_ptr = a->seqstart_q_ptr;
    to->seqstart_k_ptr = a->seqstart_k_ptr;
    to->seqlen_q = a->seqlen_q;
    to->seqlen_k = a->seqlen_k;
    to->batch = a->batch;
    to->max_seqlen_q = a->max_seqlen_q;
    to->hdim_q = call->traits.hdim_q;
    to->hdim_v = call->traits.hdim_v;
    to->nhead_q = a->nhead_q;
    to->nhead_k = a->nhead_k;
    to->scale_s = a->scale_s;
    to->mask_type = call->traits.mask_type;
    to->window_size_right = to->mask_type == TESSERA_MASK_NONE ? -1 : 0;
}

static bool is_one_piece(const call_t *call) {
    const tessera_mla_prefill_args *const a = &call->args;
    return (uintptr_t)a->k_rope_ptr - (uintptr_t)a->k_ptr == (uintptr_t)(TESSERA_MLA_NOPE * bits_of(call) / 8) &&
           a->stride_k_rope == a->stride_k && a->nhead_stride_k_rope == a->nhead_stride_k &&
           (call->traits.is_group_mode || a->batch_stride_k_rope == a->batch_stride_k);
}

// A cache of which each sequence is a page.
static struct tessera_attention_cache cache_of(const call_t *call) {
    const tessera_mla_prefill_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    return (struct tessera_attention_cache){
        .pages = {.offset = group ? a->seqstart_k_ptr : NULL,
                  .k = a->k_ptr,
                  .k_rope = a->k_rope_ptr,
                  .v = a->v_ptr,
                  .of_k = {group ? 0 : a->batch_stride_k, a->nhead_stride_k, a->stride_k},
                  .of_k_rope = {group ? 0 : a->batch_stride_k_rope, a->nhead_stride_k_rope, a->stride_k_rope},
                  .of_v = {group ? 0 : a->batch_stride_v, a->nhead_stride_v, a->stride_v},
                  .hdim_q = TESSERA_MLA_QK,
                  .hdim_rope = TESSERA_MLA_ROPE,
                  .hdim_v = TESSERA_MLA_V,
                  .element_bytes = bits_of(call) / 8,
                  .number = tessera_attention_storages[call->traits.data_type].qkv},
        .starts = group ? a->seqstart_k_ptr : NULL,
        .max_seqlen_k = a->seqlen_k,
    };
}

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    struct tessera_fmha_fwd_call *const attention = &call->over.attention;
    TRY(check_traits(&call->traits));
    tessera_over_cache_begin(&call->over);
    fill_traits(&call->traits, &attention->traits);
    fill_args(call, &attention->args);
    attention->hdim_rope = TESSERA_MLA_ROPE;
    TRY(tessera_fmha_fwd_check_call(attention));
    if (is_one_piece(call)) return TESSERA_SUCCESS;
    call->over.cache = cache_of(call);
    attention->cache = &call->over.cache;
    return TESSERA_SUCCESS;
}

// Lengths and tensors are checked as fmha_fwd's own, for which keys lie in no cache.
static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_mla_prefill_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    const struct tessera_fmha_fwd_call attention = tessera_mla_prefill_attention(call);
    TRY(tessera_fmha_fwd_check_memory(&attention, on_gpu, all));
    const int64_t tokens = !group ? a->seqlen_k : on_gpu ? 1 : ((const int32_t *)a->seqstart_k_ptr)[a->batch];
    tessera_add_tensor(all, "k_rope_ptr", a->k_rope_ptr, bits_of(call), false,
                       (struct tessera_axis){"batch_stride_k_rope", group ? 1 : a->batch, a->batch_stride_k_rope},
                       (struct tessera_axis){"nhead_stride_k_rope", a->nhead_k, a->nhead_stride_k_rope},
                       (struct tessera_axis){"stride_k_rope", tokens, a->stride_k_rope}, TESSERA_MLA_ROPE);
    return TESSERA_SUCCESS;
}

// ---- what a call asks of an instance

// Those of fmha_fwd, and the rotated part's.
static int list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_mla_prefill_args *const a = &call->args;
    const struct tessera_fmha_fwd_call attention = tessera_mla_prefill_attention(call);
    const bool group = call->traits.is_group_mode;
    struct tessera_request of_attention = *r;
    of_attention.call = &attention;
    int n = tessera_fmha_fwd_operation.kernels.list_starts(&of_attention, starts);
    starts[n++] = (struct tessera_start){"k_rope_ptr", (uintptr_t)a->k_rope_ptr, 8, true, true};
#define STRIDE(name, matters)                                                                                          \
    starts[n++] = (struct tessera_start){#name, (uint64_t)a->name, bits_of(call), false, matters}
    STRIDE(stride_k_rope, group || a->seqlen_k > 1);
    STRIDE(nhead_stride_k_rope, a->nhead_k > 1);
    STRIDE(batch_stride_k_rope, !group && a->batch > 1);
#undef STRIDE
    return n;
}

static uint32_t describe(const void *call, void *shape) {
    return tessera_fmha_fwd_describe(&((const call_t *)call)->over.attention, shape);
}

static double cost(const tessera_instance *row, const struct tessera_request *r) {
    if (!row->symbol) return tessera_over_cache_cost(row, r);
    return tessera_mla_prefill_cdna_cost((const tessera_mla_prefill_instance *)row, (const void *)r->shape, r->units);
}

// ---- what a call does

static tessera_status check_row(const void *call, const tessera_instance *row) {
    if (!row->symbol) return TESSERA_SUCCESS;
    return tessera_mla_prefill_cdna_check((const tessera_mla_prefill_instance *)row, call);
}

static tessera_status add_regions(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    if (plan->row->symbol) return TESSERA_SUCCESS;
    return tessera_over_cache_regions(&call->over, ((const tessera_mla_prefill_instance *)plan->row)->find, plan);
}

static tessera_status add_steps(void *of, struct tessera_plan *plan) {
    const call_t *const call = of;
    if (!plan->row->symbol) return tessera_over_cache_steps(&call->over, plan);
    return tessera_mla_prefill_cdna_steps((const tessera_mla_prefill_instance *)plan->row, call, plan);
}

// ---- names and texts

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    tessera_text_add(out, "_b128x128x32x%ux32x%u_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async", hdims[1], hdims[0]);
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    tessera_fmha_fwd_operation.add_problem(out, &call->over.attention);
    if (is_one_piece(call)) tessera_text_add(out, " -joined=1");
}

TESSERA_DEFINE_CALLS(mla_prefill)

const struct tessera_operation tessera_mla_prefill_operation = {
    TESSERA_CALL_OF(mla_prefill),
    .kernels = {.get_table = tessera_mla_prefill_get_table,
                .describe = describe,
                .cost = cost,
                .list_starts = list_starts,
                .add_ck_tile = add_ck_tile},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .check_row = check_row,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
