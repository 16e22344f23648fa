// SPDX-License-Identifier: MIT
// The operation fmha_fwd: where rows of its tensors begin, the tile in CK's names, the text of its problem, and its
// public functions. Validation, costs and launches have files of their own.
#include "guard.h"
#include "op/typed.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;

// ---- what a call asks of an instance

static int list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const struct tessera_fmha_fwd_call *const call = r->call;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool batches = !call->traits.is_group_mode && a->batch > 1, batch_mode = !call->traits.is_group_mode;
    const bool aligned = !call->cache || call->cache->pages.dtype == TESSERA_KV_AUTO; // others begin anywhere
    const bool blocks = call->cache ? call->cache->blocks > 1 : batches;              // of k and v
    const bool rows_q = !batch_mode || a->seqlen_q > 1, pieces = tessera_fmha_fwd_in_pieces(call);
    const bool rows_k = !pieces && (!batch_mode || a->seqlen_k > 1);
    const bool rows_v = call->traits.is_v_rowmajor ? rows_k : a->hdim_v > 1;
    const int in = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    const int out = tessera_type_bits(tessera_attention_storages[call->traits.data_type].o);
    int n = 0;
#define STRIDE(name, bits, matters) starts[n++] = (struct tessera_start){#name, (uint64_t)a->name, bits, false, matters}
#define ADD(x, bits, rows, heads, batches)                                                                             \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true, true};                             \
    STRIDE(stride_##x, bits, rows);                                                                                    \
    STRIDE(nhead_stride_##x, bits, heads > 1);                                                                         \
    STRIDE(batch_stride_##x, bits, batches)
    ADD(q, in, rows_q, a->nhead_q, batches);
    if (aligned) {
        ADD(k, in, rows_k, a->nhead_k, blocks);
        ADD(v, in, rows_v, a->nhead_k, blocks);
    }
    ADD(o, out, rows_q, a->nhead_q, batches);
#undef ADD
#undef STRIDE
    return n;
}

static bool is_cuda(const tessera_instance *row) { return row->target == TESSERA_TARGET_SM_90A; }

static double cost(const tessera_instance *row, const struct tessera_request *r) {
    const instance_t *const instance = (const instance_t *)row;
    const struct tessera_fmha_fwd_shape *const shape = (const void *)r->shape;
    if (!row->symbol) return tessera_fmha_fwd_cpu_cost(instance, shape, tessera_rate(row, r->targets), r->units);
    if (is_cuda(row)) return tessera_fmha_fwd_cuda_cost(instance, shape, r->units);
    double cost;
    tessera_fmha_fwd_find_rest(instance, r, &cost);
    return cost;
}

static struct tessera_cut cut_whole(const instance_t *instance, const struct tessera_request *r) {
    const struct tessera_fmha_fwd_shape *const shape = (const void *)r->shape;
    double cost;
    struct tessera_cut cut = tessera_fmha_fwd_find_rest(instance, r, &cost);
    const struct tessera_fmha_fwd_shape first =
        cut.rest ? tessera_fmha_fwd_narrow(shape, shape->apart - cut.rest) : *shape;
    const struct tessera_fmha_fwd_order order = tessera_fmha_fwd_find_order(instance, &first, r->units);
    cut.parts = order.turns, cut.length = order.together;
    return cut;
}

static struct tessera_cut cut(const tessera_instance *row, const struct tessera_request *r) {
    const instance_t *const instance = (const instance_t *)row;
    if (!row->symbol || (is_cuda(row) && !instance->merged)) return (struct tessera_cut){.parts = 1, .length = 1};
    if (!instance->merged) return cut_whole(instance, r);
    const struct tessera_fmha_fwd_parts parts = tessera_fmha_fwd_find_parts(instance, (const void *)r->shape, r->units);
    return (struct tessera_cut){.parts = parts.parts, .length = parts.tiles};
}

// ---- CK's names

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    const tessera_fmha_fwd_tile *const tile = &((const instance_t *)row)->tile;
    const unsigned bn1 = tile->bn1 ? tile->bn1 : hdims[1], bk0max = tile->bk0max ? tile->bk0max : hdims[0];
    tessera_text_add(out, "_b%ux%ux%ux%ux%ux%u", tile->bm0, tile->bn0, tile->bk0, bn1, tile->bk1, bk0max);
    tessera_text_add(out, "_r%dx%dx%d_r%dx%dx%d", tile->rm0, tile->rn0, tile->rk0, tile->rm1, tile->rn1, tile->rk1);
    tessera_text_add(out, "_w%dx%dx%d_w%dx%dx%d", tile->wm0, tile->wn0, tile->wk0, tile->wm1, tile->wn1, tile->wk1);
    tessera_text_add(out, "_%s", row->pipeline);
}

// A bit for each of s, sk, d and dv that the tile does not divide, so that CK would pad it. In group mode, and with
// lengths given in memory, s and sk are always padded.
static uint32_t count_pads(const struct tessera_request *r, const tessera_instance *row, const uint32_t *hdims) {
    const struct tessera_fmha_fwd_call *const call = r->call;
    const tessera_fmha_fwd_tile *const tile = &((const instance_t *)row)->tile;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    const uint32_t s = group || a->cu_seqlen_q_ptr || a->seqlen_q % tile->bm0 != 0;
    const uint32_t sk = group || a->cu_seqlen_k_ptr || a->seqlen_k % tile->bn0 != 0;
    return s | sk << 1 | (uint32_t)(r->sizes[0] != hdims[0]) << 2 | (uint32_t)(r->sizes[1] != hdims[1]) << 3;
}

// ---- the text of a problem, for TESSERA_VERBOSE

static void add_mask(const struct tessera_fmha_fwd_call *call, struct tessera_text *out) {
    static const char letters[TESSERA_MASK_COUNT] = {
        [TESSERA_MASK_TOP_LEFT] = 't', [TESSERA_MASK_BOTTOM_RIGHT] = 'b', [TESSERA_MASK_GENERIC] = 'g'};
    const tessera_fmha_fwd_args *const a = &call->args;
    if (call->traits.mask_type == TESSERA_MASK_NONE) return;
    tessera_text_add(out, " -mask=%c:%d,%d", letters[call->traits.mask_type], a->window_size_left,
                     a->window_size_right);
    if (call->traits.has_sink && a->sink_size > 0) tessera_text_add(out, ",%d", a->sink_size);
}

// Lengths in memory are not read: in group mode -s is max_seqlen_q, and -s_k is seqlen_k as the caller gave it.
static void add_problem(struct tessera_text *out, const void *of) {
    const struct tessera_fmha_fwd_call *const call = of;
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    tessera_text_add(out, "-prec=%s -mode=%d -b=%d -h=%d -h_k=%d -s=%d -s_k=%d -d=%d -d_v=%d",
                     tessera_fmha_dtype_string(t->data_type), t->is_group_mode ? 1 : 0, a->batch, a->nhead_q,
                     a->nhead_k, t->is_group_mode ? a->max_seqlen_q : a->seqlen_q, a->seqlen_k, a->hdim_q, a->hdim_v);
    add_mask(call, out);
    if (t->bias_type != TESSERA_BIAS_NONE)
        tessera_text_add(out, " -bias=%c", t->bias_type == TESSERA_BIAS_ALIBI ? 'a' : 'e');
    if (t->has_logits_soft_cap) tessera_text_add(out, " -logits_soft_cap=%g", (double)a->logits_soft_cap);
    if (t->qscale_type != TESSERA_QSCALE_NONE)
        tessera_text_add(out, " -qscale=%s", tessera_qscale_string(t->qscale_type));
    if (!t->is_v_rowmajor) tessera_text_add(out, " -vlayout=c");
    if (t->has_lse) tessera_text_add(out, " -lse=1");
    if (t->has_dropout) tessera_text_add(out, " -p_drop=%g", (double)a->p_drop);
    if (t->has_sink && a->sink_ptr) tessera_text_add(out, " -init_sink=1");
    if (t->skip_min_seqlen_q) tessera_text_add(out, " -min_seqlen_q=%d", a->min_seqlen_q);
    if (a->num_splits) tessera_text_add(out, " -num_splits=%d", a->num_splits);
}

// ---- what a call does

tessera_status tessera_fmha_fwd_check_row(const struct tessera_fmha_fwd_call *call, const tessera_instance *row) {
    if (!row->symbol) return TESSERA_SUCCESS;
    return (is_cuda(row) ? tessera_fmha_fwd_cuda_check : tessera_fmha_fwd_cdna_check)((const instance_t *)row, call);
}

// The instance of what the chosen one leaves to a second launch gets a place in the plan, which loads it.
static tessera_status take_other(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                 struct tessera_plan *plan) {
    const struct tessera_cut cut = tessera_plan_cut(plan, row);
    const tessera_instance *other;
    if (cut.rest == 0) return TESSERA_SUCCESS;
    const struct tessera_fmha_fwd_call rest = tessera_fmha_fwd_rest(call, cut.rest);
    TRY(tessera_plan_choose(plan, &tessera_fmha_fwd_operation.kernels, &rest.traits, &rest, cut.other, &other));
    return tessera_fmha_fwd_check_row(&rest, other);
}

tessera_status tessera_fmha_fwd_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                        struct tessera_plan *plan) {
    TRY(take_other(call, row, plan));
    if (is_cuda(row)) return tessera_fmha_fwd_cuda_regions(call, row, plan);
    return (row->symbol ? tessera_fmha_fwd_cdna_regions : tessera_fmha_fwd_cpu_regions)(call, row, plan);
}

tessera_status tessera_fmha_fwd_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                      struct tessera_plan *plan) {
    if (is_cuda(row)) return tessera_fmha_fwd_cuda_steps(call, row, plan);
    return (row->symbol ? tessera_fmha_fwd_cdna_steps : tessera_fmha_fwd_cpu_steps)(call, row, plan);
}

static tessera_status check_row(const void *call, const tessera_instance *row) {
    const int32_t splits = ((const struct tessera_fmha_fwd_call *)call)->args.num_splits;
    GUARD(row->symbol || splits <= 1, "num_splits is %d: %s does not cut keys into parts", splits, row->name);
    return tessera_fmha_fwd_check_row(call, row);
}

static tessera_status add_regions(void *call, struct tessera_plan *plan) {
    return tessera_fmha_fwd_regions(call, plan->row, plan);
}

static tessera_status add_steps(void *call, struct tessera_plan *plan) {
    return tessera_fmha_fwd_steps(call, plan->row, plan);
}

TESSERA_DEFINE_CALLS(fmha_fwd)

const struct tessera_operation tessera_fmha_fwd_operation = {
    TESSERA_CALL_OF(fmha_fwd),
    .kernels = {.get_table = tessera_fmha_fwd_get_table,
                .describe = tessera_fmha_fwd_describe,
                .cost = cost,
                .list_starts = list_starts,
                .add_ck_tile = add_ck_tile,
                .count_ck = count_pads,
                .keeps_out = tessera_fmha_fwd_keeps_out,
                .cut = cut},
    .check_sizes = tessera_fmha_fwd_check_sizes,
    .check_memory = tessera_fmha_fwd_check_memory,
    .check_row = check_row,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
