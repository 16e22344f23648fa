// SPDX-License-Identifier: MIT
// The operation fmha_fwd_splitkv. An instance of fmha_fwd attends, which finds rows in pages, after one of
// fmha_fwd_appendkv where keys are appended first.
#include "tessera/kernel/fmha_fwd_splitkv.h"

#include "guard.h"
#include "op/typed.h"
#include "ops/fmha_fwd_appendkv_internal.h"

struct tessera_fmha_fwd_splitkv_call {
    tessera_fmha_fwd_splitkv_traits traits;
    tessera_fmha_fwd_splitkv_args args;
    struct tessera_over_cache over;
    struct tessera_append_first first;
};

typedef struct tessera_fmha_fwd_splitkv_call call_t;

enum { MOST_SPLITS = 128 };

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    const tessera_fmha_fwd_splitkv_args *const a = &call->args;
    struct tessera_fmha_fwd_call *const attention = &call->over.attention;
    const struct tessera_cache_place place = TESSERA_CACHE_PLACE(a);
    tessera_over_cache_begin(&call->over);
    tessera_append_first_begin(&call->first);
    TESSERA_ATTENTION_COPY_TRAITS(&attention->traits, &call->traits);
    TESSERA_ATTENTION_COPY(&attention->args, a);
    TESSERA_APPEND_COPY(&call->first.call, a);
    attention->args.seqlen_q = a->seqlen_q;
    attention->splits = (int32_t)tessera_max(a->num_splits, 0);
    GUARD(within(a->num_splits, TESSERA_NUM_SPLITS_CK, MOST_SPLITS),
          "num_splits is %d: 1 to %d, 0 for as many as pay, or %d for as many as CK takes", a->num_splits, MOST_SPLITS,
          TESSERA_NUM_SPLITS_CK);
    TRY(tessera_over_cache_check_traits(&attention->traits));
    TRY(tessera_over_cache_place(&call->over, &place));
    TRY(tessera_fmha_fwd_check_call(attention));
    return tessera_append_first_check_sizes(&call->first, &call->over, &place);
}

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    TRY(tessera_over_cache_check_memory(&call->over, on_gpu, all));
    return tessera_append_first_check_memory(&call->first, on_gpu, all);
}

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    tessera_text_add(out, "_b64x128x32x%ux32x%u_r4x1x1_r4x1x1_w16x16x16_w16x16x16_qr", hdims[1], hdims[0]);
}

// The axis "pagedkv".
static uint32_t count_ck(const struct tessera_request *r, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    (void)hdims;
    return ((const call_t *)r->call)->args.block_table_ptr != NULL;
}

static tessera_status check_row(const void *of, const tessera_instance *row) {
    const call_t *const call = of;
    (void)row;
    TRY(tessera_append_first_check_row(&call->first));
    return tessera_over_cache_check_row(&call->over);
}

static tessera_status add_regions(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    struct tessera_fmha_fwd_call *const attention = &call->over.attention;
    if (call->args.num_splits == TESSERA_NUM_SPLITS_CK)
        attention->splits = tessera_fmha_fwd_ck_splits(attention, plan->facts->compute_units);
    TRY(tessera_append_first_regions(&call->first, &call->over, plan));
    return tessera_over_cache_regions(&call->over, ((const tessera_fmha_fwd_splitkv_instance *)plan->row)->find, plan);
}

static tessera_status add_steps(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    TRY(tessera_append_first_steps(&call->first, &call->over, plan));
    return tessera_over_cache_steps(&call->over, plan);
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    const tessera_fmha_fwd_splitkv_args *const a = &call->args;
    tessera_fmha_fwd_operation.add_problem(out, &call->over.attention);
    tessera_text_add(out, " -num_splits=%d", a->num_splits);
    if (a->block_table_ptr) tessera_text_add(out, " -page_block_size=%d", a->page_block_size);
    if (a->cache_batch_idx) tessera_text_add(out, " -cache_batch_idx=1");
    tessera_append_first_add_problem(out, &call->first);
}

TESSERA_DEFINE_CALLS(fmha_fwd_splitkv)

const struct tessera_operation tessera_fmha_fwd_splitkv_operation = {
    TESSERA_CALL_OF(fmha_fwd_splitkv),
    .kernels = {.get_table = tessera_fmha_fwd_splitkv_get_table,
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
