// SPDX-License-Identifier: MIT
// dq_dk_dv on an NVIDIA GPU: one launch of workgroups that stay and take tasks in turns.
#include "guard.h"
#include "ops/attention_gpu.h"
#include "ops/fmha_bwd_internal.h"
#include "tessera/kernel/fmha_bwd_cuda.h"

typedef struct tessera_fmha_bwd_cuda_args kernel_args;
typedef const struct tessera_fmha_bwd_call call_t;

// ---- tensor maps

enum { ELEMENT_BYTES = 2 };
// Rows of dq that a warpgroup adds at once: those of a product, or all of a step that are no multiple of them.
static uint32_t dq_rows(const tessera_fmha_bwd_tile *tile) { return tile->bm0 % 64 ? tile->bm0 : 64; }

// In group mode maps have all tokens in one sequence, as many as there may be.
static tessera_status add_maps(call_t *call, const struct tessera_plan *plan, kernel_args *out) {
    const tessera_fmha_bwd_args *const a = &call->args;
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)plan->row)->tile;
    const bool group = call->traits.is_group_mode;
    const int64_t queries = group ? INT32_MAX : a->seqlen_q, keys = group ? INT32_MAX : a->seqlen_k;
    const int64_t sequences = group ? 1 : a->batch;
#define TENSOR(x, columns, rows, heads, box)                                                                           \
    {                                                                                                                  \
        a->x##_ptr, 8 * ELEMENT_BYTES, columns, rows, heads, sequences, a->stride_##x, a->nhead_stride_##x,            \
            a->batch_stride_##x, box, 1, false                                                                         \
    }
    const struct tessera_attention_tensor q = TENSOR(q, a->hdim_q, queries, a->nhead_q, tile->bm0);
    const struct tessera_attention_tensor k = TENSOR(k, a->hdim_q, keys, a->nhead_k, tile->bn0);
    const struct tessera_attention_tensor v = TENSOR(v, a->hdim_v, keys, a->nhead_k, tile->bn0);
    const struct tessera_attention_tensor d_o = TENSOR(do, a->hdim_v, queries, a->nhead_q, tile->bm0);
#undef TENSOR
    TRY(tessera_attention_add_map(plan->device, &q, TESSERA_CUDA_BWD_MAP_Q, &out->map_q, &out->maps));
    TRY(tessera_attention_add_map(plan->device, &k, TESSERA_CUDA_BWD_MAP_K, &out->map_k, &out->maps));
    TRY(tessera_attention_add_map(plan->device, &v, TESSERA_CUDA_BWD_MAP_V, &out->map_v, &out->maps));
    return tessera_attention_add_map(plan->device, &d_o, TESSERA_CUDA_BWD_MAP_DO, &out->map_do, &out->maps);
}

// dq_acc, fp32. In group mode its rows are those that the workspace has room for.
static tessera_status add_dq_map(call_t *call, const struct tessera_plan *plan,
                                 const struct tessera_fmha_bwd_layout *layout, kernel_args *out) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)plan->row)->tile;
    const int64_t hdim = t->hdim_q, all = (int64_t)(layout->device_bytes / sizeof(float)) / hdim;
    const int64_t rows = t->is_group_mode ? all : t->seqlen_q,
                  planes = t->is_group_mode ? 1 : all / tessera_max(rows, 1);
    const struct tessera_tensor_map_shape shape = {
        .base = out->call.dq_acc,
        .element_bytes = sizeof(float),
        .rank = 3,
        .sizes = {(uint64_t)hdim, (uint64_t)rows, (uint64_t)planes},
        .strides = {(uint64_t)hdim * sizeof(float), (uint64_t)(rows * hdim) * sizeof(float)},
        .box = {TESSERA_ATTENTION_SLICE_BYTES / sizeof(float), dq_rows(tile), 1},
        .swizzle = TESSERA_ATTENTION_SLICE_BYTES,
        .l2_bytes = 128};
    if (!rows || !planes || rows > INT32_MAX || planes > INT32_MAX || !tessera_attention_fits_map(shape.strides[1]))
        return TESSERA_SUCCESS;
    TRY(tessera_gpu_make_tensor_map(plan->device, &shape, &out->map_dq));
    out->maps |= TESSERA_CUDA_BWD_MAP_DQ;
    return TESSERA_SUCCESS;
}

// ---- the launch

// Bytes of q, do and dq_acc that heads whose tasks run beside one another may have, so that they stay in L2: of 50 MB
// on an H100, where tasks are as long as another; under a mask more heads do better than fewer bytes.
enum { L2_SHARE = 16 << 20, L2_SHARE_UNDER_MASK = 32 << 20 };

// Heads of dk whose tasks take turns. Under a mask long tasks come first, and to keep the short ones for the end as
// many heads take part as L2 has room for; where tasks of a head wait for each other, so that few of them do at a time.
// Else each head's tasks follow each other.
static int32_t heads_together(call_t *call, const struct tessera_fmha_bwd_layout *layout, int64_t heads) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const double queries = t->is_group_mode ? t->max_seqlen_q : t->seqlen_q;
    const double bytes = queries * ((double)ELEMENT_BYTES * (t->hdim_q + t->hdim_v) + 4.0 * t->hdim_q);
    if (t->mask_type == TESSERA_MASK_NONE && !layout->is_ordered) return 1;
    const double room = t->mask_type == TESSERA_MASK_NONE ? L2_SHARE : L2_SHARE_UNDER_MASK;
    const int64_t fitting = bytes * (double)heads <= room ? heads : (int64_t)(room / bytes);
    return (int32_t)tessera_max(1, fitting);
}

static int64_t count_tasks(call_t *call, const struct tessera_fmha_bwd_layout *layout) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    return tessera_ceil_div(t->is_group_mode ? t->max_seqlen_k : t->seqlen_k, layout->bn0) * layout->heads * t->batch;
}

// Whether workgroups take tasks from a counter, so that one that had short tasks takes more. Where all tasks take as
// long they are dealt out, which spares zeroing the counter. By traits alone, since a workspace is sized by them.
static bool is_counted(call_t *call, const struct tessera_plan *plan, const struct tessera_fmha_bwd_layout *layout) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    const bool even = t->mask_type == TESSERA_MASK_NONE && !t->is_group_mode;
    return !even && count_tasks(call, layout) > plan->facts->compute_units;
}

// That of tasks, and those of turns behind it.
int64_t tessera_fmha_bwd_cuda_counters(call_t *call, const struct tessera_plan *plan,
                                       const struct tessera_fmha_bwd_layout *layout) {
    const int64_t rows = (int64_t)(layout->device_bytes / sizeof(float)) / call->traits.hdim_q;
    if (layout->is_ordered) return 1 + rows;
    return is_counted(call, plan, layout);
}

tessera_status tessera_fmha_bwd_cuda_add(call_t *call, struct tessera_plan *plan,
                                         const struct tessera_fmha_bwd_layout *layout,
                                         const struct tessera_fmha_bwd_gpu_args *filled) {
    const int64_t tasks = count_tasks(call, layout), units = plan->facts->compute_units;
    const uint32_t grid[3] = {(uint32_t)tessera_min(tasks, units), 1, 1}; // all at once: they may wait for each other
    void *room;
    TRY(tessera_plan_room(plan, sizeof(kernel_args), &room));
    kernel_args *const args = room;
    args->call = *filled;
    TRY(add_maps(call, plan, args));
    TRY(add_dq_map(call, plan, layout, args));
    args->tasks = (int32_t)tasks;
    args->heads = (int32_t)layout->heads;
    args->heads_together = heads_together(call, layout, layout->heads * call->traits.batch);
    if (is_counted(call, plan, layout)) args->counter = plan->regions[TESSERA_FMHA_BWD_COUNTERS].memory;
    if (layout->is_ordered) args->turns = (uint32_t *)plan->regions[TESSERA_FMHA_BWD_COUNTERS].memory + 1;
    const uint32_t bytes = ((const tessera_fmha_bwd_instance *)plan->row)->shared_bytes;
    return tessera_add_launch(plan, plan->row, grid, bytes, args, sizeof *args);
}
