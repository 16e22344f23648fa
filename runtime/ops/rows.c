// SPDX-License-Identifier: MIT
// What the operations on rows share.
#include "ops/rows.h"

#include <math.h>

#include "guard.h"
#include "integers.h"
#include "words.h"

static const char *const numbers[] = {"0", "1", "2"};
WORDS(fused_add, "fused add", numbers, TESSERA_FUSED_ADD_COUNT)
WORDS(fused_quant, "fused quantization", numbers, TESSERA_FUSED_QUANT_COUNT)

typedef const struct tessera_rows_call call_t;

// ---- traits and sizes

static bool is_input(tessera_type type) {
    return type == TESSERA_TYPE_FP32 || type == TESSERA_TYPE_FP16 || type == TESSERA_TYPE_BF16;
}
static bool is_quantized(tessera_type type) {
    return type == TESSERA_TYPE_INT8 || type == TESSERA_TYPE_E4M3 || type == TESSERA_TYPE_E4M3FNUZ;
}
static const char *type_word(tessera_type type) {
    const char *const word = tessera_type_string(type);
    return word ? word : "none of tessera_type";
}

tessera_status tessera_rows_begin(struct tessera_rows_call *rows, const char *m_name, int32_t m, const char *n_name,
                                  int32_t n, tessera_type prec_i, tessera_type prec_o) {
    GUARD(n >= 1, "%s is %d: 1 or more", n_name, n);
    GUARD(m >= 0, "%s is %d: 0 or more", m_name, m);
    GUARD(is_input(prec_i), "prec_i is %d (%s): fp32, fp16, bf16", (int)prec_i, type_word(prec_i));
    GUARD(is_input(prec_o) || is_quantized(prec_o), "prec_o is %d (%s): prec_i, int8, e4m3, e4m3fnuz", (int)prec_o,
          type_word(prec_o));
    rows->problem = (struct tessera_rows_problem){.m = m, .n = n, .slots = 1, .in = prec_i, .out = prec_o};
    rows->fused_quant = TESSERA_FUSED_QUANT_NONE;
    rows->tensor_count = 0;
    return TESSERA_SUCCESS;
}

tessera_status tessera_rows_check_quantized(tessera_type prec_o) {
    GUARD(is_quantized(prec_o), "prec_o is %s: int8, or the device's fp8 (e4m3, on gfx942 e4m3fnuz)",
          type_word(prec_o));
    return TESSERA_SUCCESS;
}

tessera_status tessera_rows_check_fused(tessera_type prec_i, tessera_type prec_o, tessera_fused_add add,
                                        tessera_fused_quant quant) {
    GUARD(tessera_fused_add_string(add), "fused_add is %d: 0, 1, 2", (int)add);
    GUARD(tessera_fused_quant_string(quant), "fused_quant is %d: 0, 1, 2", (int)quant);
    if (quant != TESSERA_FUSED_QUANT_NONE) return tessera_rows_check_quantized(prec_o);
    GUARD(prec_o == prec_i, "prec_o is %s and prec_i %s: the same without fused_quant", type_word(prec_o),
          type_word(prec_i));
    return TESSERA_SUCCESS;
}

tessera_status tessera_rows_check_flag(const char *name, int32_t value) {
    GUARD(within(value, 0, 1), "%s is %d: 0 or 1", name, value);
    return TESSERA_SUCCESS;
}

tessera_status tessera_rows_set_epsilon(struct tessera_rows_call *rows, float epsilon) {
    GUARD(epsilon >= 0 && isfinite(epsilon), "epsilon is %g: 0 or more, and finite", (double)epsilon);
    rows->problem.epsilon = epsilon;
    return TESSERA_SUCCESS;
}

// ---- tensors

void *tessera_rows_add(struct tessera_rows_call *rows, struct tessera_rows_tensor tensor) {
    rows->tensors[rows->tensor_count++] = tensor;
    return (void *)(uintptr_t)tensor.pointer;
}

tessera_status tessera_rows_check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    call_t *const call = of;
    (void)on_gpu;
    for (int i = 0; i < call->tensor_count && call->problem.m > 0; i++) {
        const struct tessera_rows_tensor *const x = &call->tensors[i];
        const struct tessera_axis none = {NULL, 1, 0}, rows = {x->stride_name, x->count, x->stride};
        const bool strides_matter = x->written && x->stride_name && x->count > 1;
        GUARD(!strides_matter || x->stride >= x->columns, "%s is %lld: %lld, the columns, or more", x->stride_name,
              (long long)x->stride, (long long)x->columns);
        tessera_add_tensor(all, x->name, x->pointer, x->bits, x->written, none, none, rows, x->columns);
        all->list[all->count - 1].in_place = x->stride_name != NULL;
    }
    return TESSERA_SUCCESS;
}

// The bits that a unit of a start counts for. Where results of 8 bits begin at words, a column counts as much as one of
// the inputs: kernels that load more than a word of these at once store as many columns as that holds.
static int unit_of(call_t *call, const struct tessera_rows_tensor *x, uint64_t start, int bits) {
    return x->bits == 8 && start % 4 == 0 ? tessera_type_bits((tessera_type)call->problem.in) : bits;
}

int tessera_rows_list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    call_t *const call = r->call;
    int n = 0;
    for (int i = 0; i < call->tensor_count; i++) {
        const struct tessera_rows_tensor *const x = &call->tensors[i];
        if (x->columns == 1 && !x->stride_name) continue; // numbers of rows are read and written one by one
        const uint64_t address = (uintptr_t)x->pointer, stride = (uint64_t)x->stride;
        starts[n++] = (struct tessera_start){x->name, address, unit_of(call, x, address, 8), true, true};
        if (x->stride_name)
            starts[n++] =
                (struct tessera_start){x->stride_name, stride, unit_of(call, x, stride, x->bits), false, x->count > 1};
    }
    return n;
}

// ---- instances

uint32_t tessera_rows_describe(const void *call, void *shape) {
    const struct tessera_rows_problem *const p = &((call_t *)call)->problem;
    *(struct tessera_rows_shape *)shape = (struct tessera_rows_shape){p->m, p->n};
    return sizeof(struct tessera_rows_shape);
}

// Of a compute unit, where all have rows; of a CPU vectors count. Memory takes all instances of a device as long.
double tessera_rows_cost(const tessera_instance *row, const struct tessera_request *r) {
    const struct tessera_rows_shape *const s = (const void *)r->shape;
    const tessera_rows_tile *const tile = &((const tessera_rows_instance *)row)->tile;
    const int64_t piece = (int64_t)tile->rn * tile->tn * tile->vn;
    const double cycles = row->symbol ? (double)row->tile_cycles : 1;
    return (double)(tessera_ceil_div(s->m, r->units) * tessera_ceil_div(s->n, piece)) * cycles;
}

// runtime's half of ck_middle() in codegen/ops/rows/__init__.py.
void tessera_rows_add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *limits) {
    const tessera_rows_tile *const tile = &((const tessera_rows_instance *)row)->tile;
    const int warps = tile->tn / tile->wn; // of a row
    (void)limits;
    tessera_text_add(out, "_%dx%d_%dx%d", tile->rm * tile->tm, tile->rn * tile->tn * tile->vn, tile->tm, warps);
    tessera_text_add(out, "_1x%d_1x%d", tile->tn / warps * tile->vn, tile->vn);
    tessera_text_add(out, "_%s_%s", warps > 1 ? "bpr" : "wpr", strcmp(row->pipeline, "one_pass") == 0 ? "op" : "tp");
}

// The axis "scales": those of fused_quant, in the same order.
uint32_t tessera_rows_count_ck(const struct tessera_request *r, const tessera_instance *row, const uint32_t *limits) {
    (void)row;
    (void)limits;
    return (uint32_t)((call_t *)r->call)->fused_quant;
}

// ---- what a call does

struct job {
    const struct tessera_rows_problem *problem;
    tessera_rows_cpu_run *run;
    int64_t rows; // of a task
};

static void run_rows(void *context, int64_t index, void *scratch) {
    const struct job *const job = context;
    const int64_t begin = index * job->rows;
    (void)scratch;
    job->run(job->problem, begin, tessera_min(begin + job->rows, job->problem->m));
}

static double bytes_of(call_t *call) {
    double bits = 0;
    for (int i = 0; i < call->tensor_count; i++)
        bits += (double)call->tensors[i].bits * (double)call->tensors[i].count * (double)call->tensors[i].columns;
    return bits / 8;
}

// Waking a thread pays from some bytes on; a task is long beside taking it, and short beside the call.
enum { THREAD_BYTES = 128 << 10, TASK_BYTES = 256 << 10, PAST_BYTES = 24 << 20 };

static tessera_status add_work(struct tessera_rows_call *call, struct tessera_plan *plan) {
    struct tessera_rows_problem *const p = &call->problem;
    const double bytes = bytes_of(call), useful = 1 + bytes / THREAD_BYTES;
    const int64_t workers = useful < plan->threads ? (int64_t)useful : plan->threads;
    const int64_t by_bytes = 1 + (int64_t)(TASK_BYTES / (bytes / (double)p->m));
    const int64_t rows = workers == 1 ? p->m : tessera_min(by_bytes, tessera_ceil_div(p->m, workers));
    struct job *job;
    void *room;
    p->past = bytes > PAST_BYTES;
    TRY(tessera_plan_room(plan, sizeof *job, &room));
    job = room;
    *job = (struct job){p, ((const tessera_rows_instance *)plan->row)->run, tessera_round_up(rows, p->slots)};
    return tessera_add_work(plan, run_rows, job, tessera_ceil_div(p->m, job->rows), workers, NULL, 0);
}

static tessera_status add_launch(struct tessera_rows_call *call, struct tessera_plan *plan) {
    const struct tessera_rows_problem *const p = &call->problem;
    const tessera_rows_tile *const tile = &((const tessera_rows_instance *)plan->row)->tile;
    const int64_t blocks = tessera_ceil_div(p->m, (int64_t)tile->rm * tile->tm);
    const uint32_t grid[] = {(uint32_t)tessera_min(blocks, TESSERA_ROWS_GRID_X),
                             (uint32_t)tessera_ceil_div(blocks, TESSERA_ROWS_GRID_X), 1};
    return tessera_add_launch(plan, plan->row, grid, 0, p, sizeof *p);
}

tessera_status tessera_rows_add_steps(void *of, struct tessera_plan *plan) {
    struct tessera_rows_call *const call = of;
    if (call->problem.m == 0) return TESSERA_SUCCESS;
    return (plan->row->symbol ? add_launch : add_work)(call, plan);
}
