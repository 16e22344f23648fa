// SPDX-License-Identifier: MIT
// The operation hadamard_rotate.
#include "tessera/kernel/hadamard_rotate.h"

#include "guard.h"
#include "op/typed.h"
#include "ops/attention.h"
#include "ops/row_tasks.h"

struct tessera_hadamard_rotate_call {
    tessera_hadamard_rotate_traits traits;
    tessera_hadamard_rotate_args args;
    struct tessera_hadamard_rotate_problem problem;
    tessera_hadamard_rotate_cpu_run *run;
    int64_t rows, task_rows;
};

typedef struct tessera_hadamard_rotate_call call_t;
typedef const tessera_hadamard_rotate_instance *instance_t;

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    const tessera_hadamard_rotate_traits *const t = &call->traits;
    const tessera_hadamard_rotate_args *const a = &call->args;
    GUARD(t->data_type <= TESSERA_FMHA_BF16, "data_type is %d: fp32, fp16 or bf16", (int)t->data_type);
    GUARD(t->hdim == 64 || t->hdim == 128 || t->hdim == 256, "hdim is %d: 64, 128 or 256", t->hdim);
    GUARD(a->tokens >= 0, "tokens is %d: 0 or more", a->tokens);
    GUARD(a->nhead >= 1, "nhead is %d: 1 or more", a->nhead);
    call->rows = (int64_t)a->tokens * a->nhead;
    call->problem = (struct tessera_hadamard_rotate_problem){
        .x = a->x_ptr,
        .y = a->y_ptr,
        .stride_x = a->stride_x,
        .nhead_stride_x = a->nhead_stride_x,
        .stride_y = a->stride_y,
        .nhead_stride_y = a->nhead_stride_y,
        .nhead = a->nhead,
        .hdim = t->hdim,
        .rows = (int32_t)call->rows,
        .type = (int32_t)tessera_attention_storages[t->data_type].qkv,
    };
    return TESSERA_SUCCESS;
}

#define ADD(x, written)                                                                                                \
    (tessera_add_tensor(all, #x "_ptr", a->x##_ptr, bits, written, (struct tessera_axis){NULL, 1, 0},                  \
                        (struct tessera_axis){"nhead_stride_" #x, a->nhead, a->nhead_stride_##x},                      \
                        (struct tessera_axis){"stride_" #x, a->tokens, a->stride_##x}, call->traits.hdim),             \
     all->list[all->count - 1].in_place = true)

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_hadamard_rotate_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type);
    (void)on_gpu;
    if (call->rows == 0) return TESSERA_SUCCESS;
    ADD(x, false);
    ADD(y, true);
    return TESSERA_SUCCESS;
}

static double bytes_of(const call_t *call) {
    return 2.0 * (double)call->rows * call->traits.hdim * tessera_type_bits((tessera_type)call->problem.type) / 8;
}

static double cost(const tessera_instance *row, const struct tessera_request *r) {
    const call_t *const call = r->call;
    const int64_t tasks = tessera_ceil_div(call->rows, ((instance_t)row)->tile.rows);
    return tessera_roofline(row, r, (struct tessera_work){bytes_of(call), bytes_of(call), tasks});
}

// ---- what GPUs need

#define STARTS(x)                                                                                                      \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true, true};                             \
    starts[n++] = (struct tessera_start){"stride_" #x, (uint64_t)a->stride_##x, bits, false, a->tokens > 1};           \
    starts[n++] = (struct tessera_start) {                                                                             \
        "nhead_stride_" #x, (uint64_t)a->nhead_stride_##x, bits, false, a->nhead > 1                                   \
    }

static int list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_hadamard_rotate_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type);
    int n = 0;
    STARTS(x);
    STARTS(y);
    return n;
}

static tessera_status check_row(const void *of, const tessera_instance *row) {
    const call_t *const call = of;
    return tessera_check_gpu_rows(row, call->rows);
}

// ---- what a call does

static void run_rows(void *of, int64_t task, void *scratch) {
    const call_t *const call = of;
    const int64_t begin = task * call->task_rows;
    (void)scratch;
    call->run(&call->problem, begin, tessera_min(begin + call->task_rows, call->rows));
}

static tessera_status add_steps(void *of, struct tessera_plan *plan) {
    call_t *const call = of;
    if (call->rows == 0) return TESSERA_SUCCESS;
    if (plan->row->symbol) {
        const uint32_t grid[] = {(uint32_t)tessera_ceil_div(call->rows, ((instance_t)plan->row)->tile.rows), 1, 1};
        return tessera_add_launch(plan, plan->row, grid, 0, &call->problem, sizeof call->problem);
    }
    const struct tessera_row_tasks tasks = tessera_cut_rows(call->rows, bytes_of(call), plan->threads);
    call->task_rows = tasks.rows;
    call->run = ((instance_t)plan->row)->run;
    return tessera_add_work(plan, run_rows, call, tasks.count, tasks.workers, NULL, 0);
}

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *limits) {
    (void)out, (void)row, (void)limits; // CK has no such operation, so no tile
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    tessera_text_add(out, "-prec=%s -tokens=%d -h=%d -d=%d", tessera_fmha_dtype_string(call->traits.data_type),
                     call->args.tokens, call->args.nhead, call->traits.hdim);
}

TESSERA_DEFINE_CALLS(hadamard_rotate)

const struct tessera_operation tessera_hadamard_rotate_operation = {
    TESSERA_CALL_OF(hadamard_rotate),
    .kernels = {.get_table = tessera_hadamard_rotate_get_table,
                .cost = cost,
                .list_starts = list_starts,
                .add_ck_tile = add_ck_tile},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .check_row = check_row,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
