// SPDX-License-Identifier: MIT
// A call on an NVIDIA GPU: checks, and one launch of workgroups that stay and take tasks in turns.
#include <string.h>

#include "guard.h"
#include "ops/fmha_fwd_internal.h"
#include "tessera/kernel/fmha_fwd_cuda.h"

typedef struct tessera_fmha_fwd_cuda_args kernel_args;

// ---- tensor maps

// A tensor of q, k or v with the dimensions column, row, head, sequence.
struct tensor {
    const void *base;
    int bits; // of an element
    int64_t columns, rows, heads, sequences;
    int64_t stride, nhead_stride, batch_stride; // elements
    int32_t box_rows;                           // of a tile
};

enum { SLICE_BYTES = 128 }; // of a row of a tile, in shared memory

// Strides of dimensions of one element do not matter, but a map has to have some.
static uint64_t stride_of(int64_t stride, int64_t size, int bits) {
    return size == 1 ? 16 : (uint64_t)stride * (uint64_t)bits / 8;
}

static bool fits(uint64_t stride) { return stride > 0 && stride % 16 == 0 && stride < UINT64_C(1) << 40; }

// Makes the tensor's map, and sets its bit; a tensor that maps cannot describe, such as one that is broadcast, is left
// to the lanes that copy.
static tessera_status add_map(const struct tessera_plan *plan, const struct tensor *x, uint32_t bit,
                              struct tessera_tensor_map *out, uint32_t *maps) {
    const struct tessera_tensor_map_shape shape = {
        .base = x->base,
        .element_bytes = (uint32_t)x->bits / 8,
        .rank = 4,
        .sizes = {(uint64_t)x->columns, (uint64_t)x->rows, (uint64_t)x->heads, (uint64_t)x->sequences},
        .strides = {stride_of(x->stride, x->rows, x->bits), stride_of(x->nhead_stride, x->heads, x->bits),
                    stride_of(x->batch_stride, x->sequences, x->bits)},
        .box = {(uint32_t)(SLICE_BYTES * 8 / x->bits), (uint32_t)x->box_rows, 1, 1},
        .swizzle = SLICE_BYTES,
        .l2_bytes = 128};
    if (x->rows == 0) return TESSERA_SUCCESS;
    for (int i = 0; i < 3; i++)
        if (!fits(shape.strides[i])) return TESSERA_SUCCESS;
    TRY(tessera_gpu_make_tensor_map(plan->device, &shape, out));
    *maps |= bit;
    return TESSERA_SUCCESS;
}

// In group mode maps have all tokens in one sequence, as many as there may be.
static tessera_status add_maps(const struct tessera_fmha_fwd_call *call, const struct tessera_plan *plan,
                               kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const tessera_fmha_fwd_tile *const tile = &((const tessera_fmha_fwd_instance *)plan->row)->tile;
    const bool group = call->traits.is_group_mode;
    const int bits = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    const int64_t rows_q = group ? INT32_MAX : a->seqlen_q, rows_k = group ? INT32_MAX : a->seqlen_k;
    const int64_t sequences = group ? 1 : a->batch;
    const struct tensor q = {a->q_ptr,          bits,      a->hdim_q,   rows_q,
                             a->nhead_q,        sequences, a->stride_q, a->nhead_stride_q,
                             a->batch_stride_q, tile->bm0};
    const struct tensor k = {a->k_ptr,          bits,      a->hdim_q,   rows_k,
                             a->nhead_k,        sequences, a->stride_k, a->nhead_stride_k,
                             a->batch_stride_k, tile->bn0};
    const struct tensor v = {a->v_ptr,          bits,      a->hdim_v,   rows_k,
                             a->nhead_k,        sequences, a->stride_v, a->nhead_stride_v,
                             a->batch_stride_v, tile->bn0};
    TRY(add_map(plan, &q, TESSERA_CUDA_MAP_Q, &out->map_q, &out->maps));
    TRY(add_map(plan, &k, TESSERA_CUDA_MAP_K, &out->map_k, &out->maps));
    return add_map(plan, &v, TESSERA_CUDA_MAP_V, &out->map_v, &out->maps);
}

// ---- the launch

// Bytes of k and v that heads whose tasks run beside one another may have: well within L2.
enum { L2_SHARE = 32 << 20 };

// Query heads whose tasks take turns. Under a mask long tasks come first, and to keep the short ones for the end as
// many heads take part as L2 has room for; without one each head's tasks follow each other.
static int32_t heads_together(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const int bits = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    const double bytes = (double)call->keys * call->hdims * bits / 8;
    const int64_t group = a->nhead_q / a->nhead_k, heads = (int64_t)a->nhead_q * a->batch;
    if (call->traits.mask_type == TESSERA_MASK_NONE) return 1;
    const int64_t fitting = bytes * (double)heads <= L2_SHARE * (double)group ? heads : (int64_t)(L2_SHARE / bytes);
    return (int32_t)tessera_max(1, tessera_min(fitting * group, heads));
}

enum { MOST_TASKS = INT32_MAX / 2 };

static int64_t count_tasks(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call) {
    return tessera_fmha_fwd_blocks(instance, call) * call->args.nhead_q * call->args.batch;
}

// Whether workgroups take tasks from a counter, so that one that had short tasks takes more. Where all tasks take as
// long they are dealt out, which spares zeroing the counter.
static bool is_counted(const struct tessera_fmha_fwd_call *call, const struct tessera_plan *plan) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool even = call->traits.mask_type == TESSERA_MASK_NONE && !call->traits.is_group_mode &&
                      !a->cu_seqlen_q_ptr && !a->cu_seqlen_k_ptr;
    return !even && count_tasks((const tessera_fmha_fwd_instance *)plan->row, call) > plan->facts->compute_units;
}

tessera_status tessera_fmha_fwd_cuda_regions(const struct tessera_fmha_fwd_call *call, struct tessera_plan *plan) {
    if (!is_counted(call, plan)) return TESSERA_SUCCESS;
    return tessera_add_region(plan, "counter of tasks", sizeof(uint32_t), true);
}

tessera_status tessera_fmha_fwd_cuda_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call) {
    const int64_t tasks = count_tasks(instance, call);
    GUARD(tasks <= MOST_TASKS, "batch * nhead_q * blocks of %d queries are %lld: at most %d on a GPU",
          instance->tile.bm0, (long long)tasks, MOST_TASKS);
    return tessera_fmha_fwd_check_cap(call);
}

tessera_status tessera_fmha_fwd_cuda_steps(const struct tessera_fmha_fwd_call *call, struct tessera_plan *plan) {
    const tessera_fmha_fwd_instance *const instance = (const tessera_fmha_fwd_instance *)plan->row;
    const int64_t tasks = count_tasks(instance, call);
    const uint32_t grid[3] = {(uint32_t)tessera_min(tasks, plan->facts->compute_units), 1, 1};
    void *room;
    if (tasks == 0) return TESSERA_SUCCESS;
    TRY(tessera_plan_room(plan, sizeof(kernel_args), &room));
    kernel_args *const args = memset(room, 0, sizeof *args);
    tessera_fmha_fwd_fill(call, (int32_t)tessera_fmha_fwd_blocks(instance, call), &args->call);
    TRY(add_maps(call, plan, args));
    args->tasks = (int32_t)tasks;
    args->heads_together = heads_together(call);
    if (is_counted(call, plan)) args->counter = plan->regions[0].memory;
    return tessera_add_launch(plan, plan->row, grid, instance->shared_bytes, args, sizeof *args);
}
