// SPDX-License-Identifier: MIT
// A call on a GPU of any kind: its launches, one after the other on a stream. Lengths stay on the device, so that a
// graph of them may be replayed with others.
#include "guard.h"
#include "ops/fmha_bwd_internal.h"

typedef struct tessera_fmha_bwd_gpu_args kernel_args;
typedef struct tessera_fmha_bwd_call call_t;

static bool is_cuda(const tessera_instance *row) { return row->target == TESSERA_TARGET_SM_90A; }

// Limits of workgroups along y and z of HIP and CUDA.
enum { GRID_MAX = 65535 };

static int32_t most_queries(const tessera_fmha_bwd_traits *t) {
    return t->is_group_mode ? t->max_seqlen_q : t->seqlen_q;
}
static int32_t most_keys(const tessera_fmha_bwd_traits *t) { return t->is_group_mode ? t->max_seqlen_k : t->seqlen_k; }

// ---- checks

// Kernels address the rows of a block by 32-bit byte offsets from its first row.
static tessera_status check_strides(const tessera_fmha_bwd_instance *instance, const call_t *call) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const tessera_fmha_bwd_args *const a = &call->args;
    const int bits = t->data_type == TESSERA_FMHA_FP32 ? 32 : 16;
    const int64_t queries = instance->tile.bm0, keys = instance->tile.bn0;
    const bool bias = t->bias_type == TESSERA_BIAS_ELEMENTWISE;
    const struct {
        const char *name;
        int64_t stride, rows;
        int bits;
    } tensors[] = {{"stride_q", a->stride_q, queries, bits},
                   {"stride_k", a->stride_k, keys, bits},
                   {"stride_v", a->stride_v, keys, bits},
                   {"stride_do", a->stride_do, queries, bits},
                   {"stride_dq", instance->tile.max_q ? a->stride_dq : 0, queries, bits},
                   {"stride_dk", a->stride_dk, keys, bits},
                   {"stride_dv", a->stride_dv, keys, bits},
                   {"stride_bias", bias ? a->stride_bias : 0, queries, bits},
                   {"stride_dbias", t->has_dbias ? a->stride_dbias : 0, queries, bits},
                   {"stride_randval", t->is_store_randval ? a->stride_randval : 0, queries, 8}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int64_t end = (int64_t)INT32_MAX * 8 / tensors[i].bits / tensors[i].rows;
        GUARD(tensors[i].stride < end, "%s is %lld: less than %lld on a GPU", tensors[i].name,
              (long long)tensors[i].stride, (long long)end);
    }
    return TESSERA_SUCCESS;
}

// As fmha_fwd_fill_gpu.c has it.
static float greatest_cap(tessera_fmha_dtype data_type) { return data_type == TESSERA_FMHA_FP32 ? 128.0f : 4096.0f; }

// Workgroups that take blocks of keys in turns number all of them.
static tessera_status check_blocks(const tessera_fmha_bwd_traits *t, const tessera_instance *row) {
    const int64_t blocks = tessera_ceil_div(most_keys(t), ((const tessera_fmha_bwd_instance *)row)->tile.bn0);
    const int64_t all = blocks * t->batch * t->nhead_q;
    GUARD(all <= INT32_MAX, "%lld blocks of keys of all sequences and heads: at most %d on a GPU", (long long)all,
          INT32_MAX);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_gpu_check(const call_t *call, const tessera_instance *row) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const float cap = greatest_cap(t->data_type);
    GUARD(!t->has_logits_soft_cap || call->args.logits_soft_cap <= cap,
          "logits_soft_cap is %g: at most %g for %s on a GPU", (double)call->args.logits_soft_cap, (double)cap,
          tessera_fmha_dtype_string(t->data_type));
    GUARD(t->nhead_q <= GRID_MAX, "nhead_q is %d: at most %d on a GPU", t->nhead_q, GRID_MAX);
    GUARD(t->batch <= GRID_MAX, "batch is %d: at most %d on a GPU", t->batch, GRID_MAX);
    TRY(check_blocks(t, row));
    return check_strides((const tessera_fmha_bwd_instance *)row, call);
}

// ---- the workspace

tessera_status tessera_fmha_bwd_gpu_regions(call_t *call, struct tessera_plan *plan) {
    struct tessera_fmha_bwd_layout layout;
    TRY(tessera_fmha_bwd_choose_rows(call, plan));
    TRY(tessera_fmha_bwd_lay_out(&call->traits, plan->row, plan->facts->compute_units, &layout));
    if (layout.is_direct) return TESSERA_SUCCESS;
    TRY(tessera_add_region(plan, "nsplits, offsets, dq_acc", layout.host_bytes + layout.device_bytes,
                           layout.is_zeroed && !call->args.is_workspace_prepared));
    const int64_t counters = is_cuda(plan->row) ? tessera_fmha_bwd_cuda_counters(call, plan, &layout) : 0;
    if (!counters) return TESSERA_SUCCESS;
    return tessera_add_region(plan, "counters of tasks and turns", (size_t)counters * sizeof(uint32_t), true);
}

static tessera_status add_launch(struct tessera_plan *plan, const tessera_instance *row, const uint32_t grid[3],
                                 const kernel_args *args, int32_t phase) {
    void *room;
    if (!grid[0] || !grid[1] || !grid[2]) return TESSERA_SUCCESS;
    TRY(tessera_plan_room(plan, sizeof *args, &room));
    *(kernel_args *)room = *args;
    ((kernel_args *)room)->phase = phase;
    return tessera_add_launch(plan, row, grid, 0, room, sizeof *args);
}

static tessera_status add_head(const call_t *call, struct tessera_plan *plan, const kernel_args *args) {
    return add_launch(plan, &call->dot_do_o->base, (const uint32_t[3]){1, 1, 1}, args, TESSERA_BWD_HEAD);
}

tessera_status tessera_fmha_bwd_gpu_prepare(call_t *call, struct tessera_plan *plan, const void *seqstart_q,
                                            const void *seqstart_k) {
    struct tessera_fmha_bwd_layout layout;
    kernel_args args;
    TRY(tessera_fmha_bwd_lay_out(&call->traits, plan->row, plan->facts->compute_units, &layout));
    memset(&args, 0, sizeof args);
    tessera_fmha_bwd_fill_workspace(&call->traits, &layout, plan->regions[TESSERA_FMHA_BWD_UNIFIED].memory, &args);
    args.seqstart_q = call->traits.is_group_mode ? seqstart_q : NULL;
    args.seqstart_k = call->traits.is_group_mode ? seqstart_k : NULL;
    return add_head(call, plan, &args);
}

// ---- launches

static tessera_status add_rows(const call_t *call, struct tessera_plan *plan, const tessera_instance *row, int64_t bm0,
                               const kernel_args *args) {
    const int64_t blocks = tessera_ceil_div(most_queries(&call->traits), bm0);
    const uint32_t grid[3] = {(uint32_t)blocks, (uint32_t)call->traits.nhead_q, (uint32_t)call->traits.batch};
    return add_launch(plan, row, grid, args, TESSERA_BWD_ROWS);
}

// A sequence without keys has parts of dq where these are stored; and none has more than max_seqlen_k gives.
static tessera_status add_dq_dk_dv(const call_t *call, struct tessera_plan *plan,
                                   const struct tessera_fmha_bwd_layout *layout, const kernel_args *args) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    if (is_cuda(plan->row)) return tessera_fmha_bwd_cuda_add(call, plan, layout, args);
    uint32_t grid[3] = {(uint32_t)args->blocks_k, (uint32_t)layout->heads, (uint32_t)t->batch};
    if (args->share) {
        const int64_t all = t->batch * layout->heads * layout->blocks;
        grid[0] = (uint32_t)tessera_ceil_div(all, layout->share);
        grid[1] = grid[2] = 1;
    }
    return add_launch(plan, plan->row, grid, args, 0);
}

// A workgroup of a head goes over all keys, of which there may be none: it writes dq.
static tessera_status add_all_keys(const call_t *call, struct tessera_plan *plan, const kernel_args *args) {
    const uint32_t grid[3] = {1, (uint32_t)call->traits.nhead_q, (uint32_t)call->traits.batch};
    return add_launch(plan, plan->row, grid, args, 0);
}

tessera_status tessera_fmha_bwd_gpu_steps(call_t *call, struct tessera_plan *plan) {
    struct tessera_fmha_bwd_layout layout;
    kernel_args args;
    TRY(tessera_fmha_bwd_lay_out(&call->traits, plan->row, plan->facts->compute_units, &layout));
    tessera_fmha_bwd_fill(call, &layout, layout.is_direct ? NULL : plan->regions[TESSERA_FMHA_BWD_UNIFIED].memory,
                          &args);
    if (!layout.is_direct && !call->args.is_workspace_prepared) TRY(add_head(call, plan, &args));
    TRY(add_rows(call, plan, &call->dot_do_o->base, call->dot_do_o->tile.bm0, &args));
    if (args.sink) {
        const uint32_t grid[3] = {(uint32_t)call->traits.nhead_q, 1, 1};
        TRY(add_launch(plan, &call->dot_do_o->base, grid, &args, TESSERA_BWD_D_SINK));
    }
    if (layout.is_direct) return add_all_keys(call, plan, &args);
    if (most_keys(&call->traits)) TRY(add_dq_dk_dv(call, plan, &layout, &args));
    return add_rows(call, plan, &call->convert_dq->base, call->convert_dq->tile.bm0, &args);
}
