// SPDX-License-Identifier: MIT
// A call of mla_prefill on an AMD GPU: one launch, of a workgroup for each work item, or of as many workgroups as the
// GPU has units, which take items in turns. A work item is `rows` queries of a head of a sequence.
#include "tessera/kernel/mla_prefill_cdna.h"
#include "guard.h"
#include "ops/mla_prefill_internal.h"

typedef const tessera_mla_prefill_instance instance_t;
typedef const struct tessera_mla_prefill_call call_t;

static int64_t count_blocks(instance_t *row, int64_t queries) { return tessera_ceil_div(queries, row->tile.rows); }

static int64_t count_items(instance_t *row, const struct tessera_fmha_fwd_call *attention) {
    return count_blocks(row, attention->queries) * attention->args.nhead_q * attention->args.batch;
}

// A unit has one workgroup. Items take `start` tiles' time beside their tiles; where a mask lets them differ, units end
// at about the same time, but not before the longest item.
double tessera_mla_prefill_cdna_cost(instance_t *row, const struct tessera_fmha_fwd_shape *attention, int64_t units) {
    const int64_t items = count_blocks(row, attention->queries) * attention->nhead_q * attention->batch;
    const double keys = row->tile.keys;
    const double macs = (double)row->tile.rows * keys * (TESSERA_MLA_QK + TESSERA_MLA_V);
    const double tile = macs / (double)row->base.macs_per_cycle;
    const double longest = ((double)row->start + (double)tessera_ceil_div(attention->keys, row->tile.keys)) * tile;
    if (attention->mask_type == TESSERA_MASK_NONE) return (double)tessera_ceil_div(items, units) * longest;
    const double seen = tessera_fmha_fwd_seen_keys(attention, row->tile.rows) / keys + 0.5;
    const double average = (double)items / (double)units * ((double)row->start + seen) * tile;
    return average > longest ? average : longest;
}

// The HIP runtime's limit of workgroups along y and z; heads are along x.
enum { GRID_MAX = 65535 };

tessera_status tessera_mla_prefill_cdna_check(instance_t *row, call_t *call) {
    const tessera_mla_prefill_args *const a = &call->args;
    const struct tessera_fmha_fwd_call *const attention = &call->over.attention;
    const int64_t end = INT32_MAX / row->tile.keys;
    TRY(tessera_fmha_fwd_cdna_check_strides(attention, row->tile.rows, row->tile.keys));
    GUARD(a->stride_k_rope < end, "stride_k_rope is %lld: 0 to less than %lld on a GPU", (long long)a->stride_k_rope,
          (long long)end);
    GUARD(a->nhead_q <= GRID_MAX, "nhead_q is %d: at most %d on a GPU", a->nhead_q, GRID_MAX);
    GUARD(a->batch <= GRID_MAX, "batch is %d: at most %d on a GPU", a->batch, GRID_MAX);
    GUARD(count_blocks(row, attention->queries) <= GRID_MAX, "%s is %lld: at most %d on a GPU",
          call->traits.is_group_mode ? "max_seqlen_q" : "seqlen_q", (long long)attention->queries,
          GRID_MAX * row->tile.rows);
    GUARD(count_items(row, attention) <= INT32_MAX,
          "nhead_q, batch and lengths of queries make %lld work items: at most %d on a GPU",
          (long long)count_items(row, attention), INT32_MAX);
    return TESSERA_SUCCESS;
}

tessera_status tessera_mla_prefill_cdna_steps(instance_t *row, call_t *call, struct tessera_plan *plan) {
    const tessera_mla_prefill_args *const a = &call->args;
    const struct tessera_fmha_fwd_call attention = tessera_mla_prefill_attention(call);
    const int64_t blocks = count_blocks(row, attention.queries), items = count_items(row, &attention);
    const uint32_t workgroups = (uint32_t)tessera_min(items, plan->facts->compute_units);
    const uint32_t a_workgroup_each[3] = {(uint32_t)a->nhead_q, (uint32_t)blocks, (uint32_t)a->batch};
    const uint32_t some[3] = {workgroups, 1, 1};
    void *room;
    if (items == 0) return TESSERA_SUCCESS;
    TRY(tessera_plan_room(plan, sizeof(struct tessera_mla_prefill_cdna_args), &room));
    struct tessera_mla_prefill_cdna_args *const args = room;
    tessera_fmha_fwd_fill(&attention, (int32_t)blocks, &args->call);
    args->k_rope = a->k_rope_ptr;
    args->stride_k_rope = a->stride_k_rope;
    args->nhead_stride_k_rope = a->nhead_stride_k_rope;
    args->batch_stride_k_rope = call->traits.is_group_mode ? 0 : a->batch_stride_k_rope;
    args->items = (uint32_t)items;
    args->workgroups = workgroups;
    return tessera_add_launch(plan, &row->base, row->persistent ? some : a_workgroup_each, 0, args, sizeof *args);
}
