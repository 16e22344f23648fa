// SPDX-License-Identifier: MIT
// What chooses instances beside the traits: where rows in memory begin, the number of queries; and the sub-kernels that
// take tensors row by row, whose limit is memory.
#include "guard.h"
#include "ops/fmha_bwd_internal.h"

typedef struct tessera_fmha_bwd_call call_t;

static int bits_of(const call_t *call) { return call->traits.data_type == TESSERA_FMHA_FP32 ? 32 : 16; }

bool tessera_fmha_bwd_keeps_out(const tessera_instance *row, const struct tessera_request *r,
                                struct tessera_text *why) {
    const struct tessera_fmha_bwd_shape *const shape = (const void *)r->shape;
    const int max_q = ((const tessera_fmha_bwd_instance *)row)->tile.max_q, seqlen_q = shape->seqlen_q;
    if (!max_q || seqlen_q <= max_q) return false;
    tessera_text_add(why, "seqlen_q %d (at most %d)", seqlen_q, max_q);
    return true;
}

// Pointer and strides of a tensor x.
#define START(x, heads, rows)                                                                                          \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true, true};                             \
    starts[n++] = (struct tessera_start){"batch_stride_" #x, (uint64_t)a->batch_stride_##x, bits, false, many};        \
    starts[n++] = (struct tessera_start){"nhead_stride_" #x, (uint64_t)a->nhead_stride_##x, bits, false, (heads) > 1}; \
    starts[n++] = (struct tessera_start) { "stride_" #x, (uint64_t)a->stride_##x, bits, false, (rows) > 1 }

int tessera_fmha_bwd_list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_fmha_bwd_args *const a = &call->args;
    const int bits = bits_of(call), dkv_heads = call->traits.is_dkv_reduced ? a->nhead_k : a->nhead_q;
    const bool many = !call->traits.is_group_mode && a->batch > 1;
    int n = 0;
    START(q, a->nhead_q, a->seqlen_q);
    START(k, a->nhead_k, a->seqlen_k);
    START(v, a->nhead_k, a->seqlen_k);
    START(do, a->nhead_q, a->seqlen_q);
    START(dk, dkv_heads, a->seqlen_k);
    START(dv, dkv_heads, a->seqlen_k);
    return n;
}

static int list_o(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_fmha_bwd_args *const a = &call->args;
    const int bits = bits_of(call);
    const bool many = !call->traits.is_group_mode && a->batch > 1;
    int n = 0;
    START(o, a->nhead_q, a->seqlen_q);
    START(do, a->nhead_q, a->seqlen_q);
    return n;
}

static int list_dq(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_fmha_bwd_args *const a = &call->args;
    const int bits = bits_of(call);
    const bool many = !call->traits.is_group_mode && a->batch > 1;
    int n = 0;
    START(dq, a->nhead_q, a->seqlen_q);
    return n;
}

// Tasks of bm0 rows.
static double rows_cost(const tessera_instance *row, const struct tessera_request *r, double bm0) {
    const tessera_fmha_bwd_traits *const t = &((const call_t *)r->call)->traits;
    const double rows = (double)t->batch * t->nhead_q * t->seqlen_q;
    return rows * (t->hdim_q / (double)row->macs_per_cycle + (double)row->tile_cycles / bm0) / r->units;
}
static double dot_do_o_cost(const tessera_instance *row, const struct tessera_request *r) {
    return rows_cost(row, r, ((const tessera_fmha_bwd_dot_do_o_instance *)row)->tile.bm0);
}
static double convert_dq_cost(const tessera_instance *row, const struct tessera_request *r) {
    return rows_cost(row, r, ((const tessera_fmha_bwd_convert_dq_instance *)row)->tile.bm0);
}

static const struct tessera_kernels dot_do_o_kernels = {
    .get_table = tessera_fmha_bwd_dot_do_o_get_table, .cost = dot_do_o_cost, .list_starts = list_o};
static const struct tessera_kernels convert_dq_kernels = {
    .get_table = tessera_fmha_bwd_convert_dq_get_table, .cost = convert_dq_cost, .list_starts = list_dq};

tessera_status tessera_fmha_bwd_choose_rows(call_t *call, struct tessera_plan *plan) {
    const tessera_instance *row;
    TRY(tessera_plan_choose(plan, &dot_do_o_kernels, &call->traits, call, NULL, &row));
    call->dot_do_o = (const tessera_fmha_bwd_dot_do_o_instance *)row;
    if (((const tessera_fmha_bwd_instance *)plan->row)->tile.max_q) return TESSERA_SUCCESS;
    TRY(tessera_plan_choose(plan, &convert_dq_kernels, &call->traits, call, NULL, &row));
    call->convert_dq = (const tessera_fmha_bwd_convert_dq_instance *)row;
    return TESSERA_SUCCESS;
}
