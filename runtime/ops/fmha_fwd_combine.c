// SPDX-License-Identifier: MIT
// Partial results of a call on a GPU whose keys are cut into parts, and the launch that combines them.
#include "tessera/kernel/fmha_fwd_combine_gpu.h"

#include "guard.h"
#include "ops/fmha_fwd_internal.h"

typedef const struct tessera_fmha_fwd_call call_t;

// There is one for each target, and memory is its limit.
static double combine_cost(const tessera_instance *row, const struct tessera_request *r) {
    call_t *const call = r->call;
    return (double)call->args.batch * call->args.nhead_q * (double)call->queries * call->args.hdim_v /
           (double)row->macs_per_cycle / r->units;
}
static const struct tessera_kernels combine_kernels = {.get_table = tessera_fmha_fwd_combine_get_table,
                                                       .cost = combine_cost};

// ---- partial results

static size_t partial_rows(call_t *call, int64_t parts) {
    return (size_t)call->args.batch * (size_t)call->args.nhead_q * (size_t)call->queries * (size_t)parts;
}

tessera_status tessera_fmha_fwd_check_parts(const tessera_fmha_fwd_instance *instance, call_t *call) {
    const int32_t splits = call->args.num_splits;
    GUARD(instance->merged || splits <= 1, "num_splits is %d: %s does not cut keys into parts", splits,
          instance->base.name);
    GUARD(splits <= 1 || partial_rows(call, 1) <= INT32_MAX / 2,
          "batch * nhead_q * queries are %zu: at most %d where num_splits asks for parts", partial_rows(call, 1),
          INT32_MAX / 2);
    return TESSERA_SUCCESS;
}

static const char o_acc_region[] = "o_acc", lse_acc_region[] = "lse_acc";

tessera_status tessera_fmha_fwd_add_partial(call_t *call, int64_t parts, struct tessera_plan *plan) {
    const size_t rows = partial_rows(call, parts);
    const tessera_instance *combine;
    TRY(tessera_plan_choose(plan, &combine_kernels, &call->traits, call, NULL, &combine));
    TRY(tessera_add_region(plan, o_acc_region, rows * (size_t)call->args.hdim_v * sizeof(float), false));
    return tessera_add_region(plan, lse_acc_region, rows * sizeof(float), false);
}

struct tessera_fmha_fwd_partial tessera_fmha_fwd_get_partial(const struct tessera_plan *plan, int64_t parts) {
    return (struct tessera_fmha_fwd_partial){tessera_region_memory(plan, o_acc_region),
                                             tessera_region_memory(plan, lse_acc_region), parts};
}

// ---- the launch

static int32_t combined_type(tessera_type o) {
    return o == TESSERA_TYPE_FP16   ? TESSERA_COMBINED_FP16
           : o == TESSERA_TYPE_BF16 ? TESSERA_COMBINED_BF16
           : o == TESSERA_TYPE_FP32 ? TESSERA_COMBINED_FP32
                                    : TESSERA_COMBINED_FP8;
}

tessera_status tessera_fmha_fwd_add_combine(call_t *call, const struct tessera_fmha_fwd_partial *partial,
                                            const struct tessera_fmha_fwd_gpu_args *k, struct tessera_plan *plan) {
    const tessera_instance *const row = plan->rows[plan->row_count - 1].row;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t rows = (int64_t)partial_rows(call, 1);
    const int32_t of_group = ((const tessera_fmha_fwd_combine_instance *)row)->tile.rows;
    const uint32_t grid[3] = {(uint32_t)tessera_ceil_div(rows, of_group), 1, 1};
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct tessera_fmha_fwd_combine_args), &room));
    struct tessera_fmha_fwd_combine_args *const c = room;
    *c = (struct tessera_fmha_fwd_combine_args){
        .o_acc = partial->o_acc,
        .lse_acc = partial->lse_acc,
        .o = k->o,
        .lse = k->lse,
        .sink = k->sink,
        .seqstart_q = k->seqstart_q,
        .seqlen_q_of = k->seqlen_q_of,
        .cu_seqlen_q = k->cu_seqlen_q,
        .stride_o = k->stride_o,
        .nhead_stride_o = k->nhead_stride_o,
        .batch_stride_o = k->batch_stride_o,
        .nhead_stride_lse = k->nhead_stride_lse,
        .batch_stride_lse = k->batch_stride_lse,
        .batch = a->batch,
        .nhead_q = a->nhead_q,
        .queries = (int32_t)call->queries,
        .splits = (int32_t)partial->parts,
        .seqlen_q = k->seqlen_q,
        .min_seqlen_q = k->min_seqlen_q,
        .hdim_v = k->hdim_v,
        .type = combined_type(tessera_attention_storages[call->traits.data_type].o),
    };
    return tessera_add_launch(plan, row, grid, 0, c, sizeof *c);
}
