// SPDX-License-Identifier: MIT
// The operation kv_cache_quantize_turbo4.
#include "tessera/kernel/kv_cache_quantize_turbo4.h"

#include "guard.h"
#include "integers.h"
#include "op/typed.h"
#include "ops/attention.h"
#include "ops/row_tasks.h"
#include "tessera/turbo4.h"

struct tessera_kv_cache_quantize_turbo4_call {
    tessera_kv_cache_quantize_turbo4_traits traits;
    tessera_kv_cache_quantize_turbo4_args args;
    struct tessera_kv_cache_quantize_turbo4_problem problem;
    tessera_kv_cache_quantize_turbo4_cpu_run *run;
    int64_t rows, task_rows;
};

typedef struct tessera_kv_cache_quantize_turbo4_call call_t;
typedef const tessera_kv_cache_quantize_turbo4_instance *instance_t;

enum { MOST_HDIM = 512, NUMBERS = 2, NORM_BYTES = 2 };

// ---- traits and sizes

static tessera_status check_hdim(const char *name, int32_t hdim, bool is_rotated) {
    GUARD(within(hdim, NUMBERS, MOST_HDIM) && hdim % NUMBERS == 0, "%s is %d: even, 2 to %d", name, hdim, MOST_HDIM);
    GUARD(!is_rotated || hdim == 64 || hdim == 128 || hdim == 256, "%s is %d: with has_rotation 64, 128 or 256", name,
          hdim);
    return TESSERA_SUCCESS;
}

static tessera_status check_numbers(const tessera_kv_cache_quantize_turbo4_traits *t,
                                    const tessera_kv_cache_quantize_turbo4_args *a) {
    GUARD(t->data_type <= TESSERA_FMHA_BF16, "data_type is %d: fp32, fp16 or bf16", (int)t->data_type);
    GUARD(within(t->has_rotation, 0, 1), "has_rotation is %d: 0 or 1", t->has_rotation);
    TRY(check_hdim("hdim_q", t->hdim_q, t->has_rotation));
    TRY(check_hdim("hdim_v", t->hdim_v, t->has_rotation));
    GUARD(a->tokens >= 0, "tokens is %d: 0 or more", a->tokens);
    GUARD(a->nhead_k >= 1, "nhead_k is %d: 1 or more", a->nhead_k);
    GUARD(a->num_total_pages >= 0, "num_total_pages is %d: 0 or more", a->num_total_pages);
    GUARD(a->page_block_size >= 1, "page_block_size is %d: 1 or more", a->page_block_size);
    GUARD(!a->k_norm_ptr == !a->v_norm_ptr, "k_norm_ptr and v_norm_ptr: norms lie apart for both or neither");
    return TESSERA_SUCCESS;
}

static int64_t rows_of_pages(const tessera_kv_cache_quantize_turbo4_args *a) {
    return (int64_t)a->num_total_pages * a->page_block_size;
}

// Where norms lie apart their strides count fp16; else they lie behind the numbers. Pointers are not checked yet.
#define ROWS(x, x_hdim)                                                                                                \
    {                                                                                                                  \
        .from = a->x##new_ptr, .slots = a->x##_ptr,                                                                    \
        .norms = apart ? (uint8_t *)a->x##_norm_ptr                                                                    \
                       : (uint8_t *)((uintptr_t)a->x##_ptr + (uintptr_t)(t->x_hdim / NUMBERS)),                        \
        .token = a->stride_##x##new, .head = a->nhead_stride_##x##new, .page = a->batch_stride_##x,                    \
        .head_of_page = a->nhead_stride_##x, .row = a->stride_##x,                                                     \
        .norm_page = apart ? tessera_stride_bytes(a->batch_stride_##x##_norm, NORM_BYTES) : a->batch_stride_##x,       \
        .norm_head = apart ? tessera_stride_bytes(a->nhead_stride_##x##_norm, NORM_BYTES) : a->nhead_stride_##x,       \
        .norm_row = apart ? tessera_stride_bytes(a->stride_##x##_norm, NORM_BYTES) : a->stride_##x, .hdim = t->x_hdim  \
    }

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    const tessera_kv_cache_quantize_turbo4_traits *const t = &call->traits;
    const tessera_kv_cache_quantize_turbo4_args *const a = &call->args;
    const bool apart = a->k_norm_ptr != NULL;
    TRY(check_numbers(t, a));
    call->rows = (int64_t)a->tokens * a->nhead_k;
    call->problem = (struct tessera_kv_cache_quantize_turbo4_problem){
        .k = ROWS(k, hdim_q),
        .v = ROWS(v, hdim_v),
        .centroids = a->centroids_ptr,
        .slot_mapping = a->slot_mapping_ptr,
        .nhead = a->nhead_k,
        .page_size = a->page_block_size,
        .rows = (int32_t)call->rows,
        .room = (int32_t)rows_of_pages(a),
        .has_rotation = t->has_rotation,
        .type = (int32_t)tessera_attention_storages[t->data_type].qkv,
    };
    return TESSERA_SUCCESS;
}

// ---- tensors

static tessera_status check_contents(const call_t *call) {
    const tessera_kv_cache_quantize_turbo4_args *const a = &call->args;
    const float *const centroids = a->centroids_ptr;
    const int64_t *const slots = a->slot_mapping_ptr, count = rows_of_pages(a);
    for (int n = 1; n < TESSERA_TURBO4_CENTROIDS; n++)
        GUARD(centroids[n - 1] <= centroids[n], "centroids_ptr[%d] is %g and [%d] %g: in ascending order", n - 1,
              (double)centroids[n - 1], n, (double)centroids[n]);
    for (int32_t t = 0; t < a->tokens; t++)
        GUARD(slots[t] < count, "slot_mapping_ptr[%d] is %lld: a slot, up to %lld, or below 0", t, (long long)slots[t],
              (long long)count - 1);
    return TESSERA_SUCCESS;
}

#define NEW(x, x_hdim)                                                                                                 \
    tessera_add_tensor(all, #x "new_ptr", a->x##new_ptr, bits, false, (struct tessera_axis){NULL, 1, 0},               \
                       (struct tessera_axis){"nhead_stride_" #x "new", a->nhead_k, a->nhead_stride_##x##new},          \
                       (struct tessera_axis){"stride_" #x "new", a->tokens, a->stride_##x##new}, t->x_hdim)
#define CACHED(x, bits, inner)                                                                                         \
    tessera_add_tensor(all, #x "_ptr", a->x##_ptr, bits, true,                                                         \
                       (struct tessera_axis){"batch_stride_" #x, a->num_total_pages, a->batch_stride_##x},             \
                       (struct tessera_axis){"nhead_stride_" #x, a->nhead_k, a->nhead_stride_##x},                     \
                       (struct tessera_axis){"stride_" #x, a->page_block_size, a->stride_##x}, inner)

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_kv_cache_quantize_turbo4_traits *const t = &call->traits;
    const tessera_kv_cache_quantize_turbo4_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type), tail = a->k_norm_ptr ? 0 : NORM_BYTES;
    if (call->rows == 0) return TESSERA_SUCCESS;
    NEW(k, hdim_q);
    NEW(v, hdim_v);
    CACHED(k, 8, t->hdim_q / NUMBERS + tail);
    CACHED(v, 8, t->hdim_v / NUMBERS + tail);
    if (a->k_norm_ptr) {
        CACHED(k_norm, 16, 1);
        CACHED(v_norm, 16, 1);
    }
    tessera_add_array(all, "centroids_ptr", a->centroids_ptr, 32, TESSERA_TURBO4_CENTROIDS);
    tessera_add_array(all, "slot_mapping_ptr", a->slot_mapping_ptr, 64, a->tokens);
    TRY(tessera_check_tensors(all)); // before any of them is read
    return on_gpu ? TESSERA_SUCCESS : check_contents(call);
}

// ---- instances and steps

static double bytes_of(const call_t *call) {
    const double read = tessera_type_bits((tessera_type)call->problem.type) / 8.0, written = 1.0 / NUMBERS;
    return (double)call->rows * (call->traits.hdim_q + call->traits.hdim_v) * (read + written);
}

static double cost(const tessera_instance *row, const struct tessera_request *r) {
    const call_t *const call = r->call;
    const int64_t tasks = tessera_ceil_div(call->rows, ((instance_t)row)->tile.rows);
    return tessera_roofline(row, r, (struct tessera_work){bytes_of(call), bytes_of(call), tasks});
}

// ---- what GPUs need

// Slots, and norms in them, have to begin at even addresses where rows have to at multiples of 16: a byte of theirs
// counts as 8.
enum { SLOT_BITS = 64 };

#define START(name, value, bits, matters)                                                                              \
    starts[n++] = (struct tessera_start) { name, (uint64_t)(value), bits, false, matters }
#define STARTS(x)                                                                                                      \
    starts[n++] = (struct tessera_start){#x "new_ptr", (uintptr_t)a->x##new_ptr, 8, true, true};                       \
    START("stride_" #x "new", a->stride_##x##new, bits, a->tokens > 1);                                                \
    START("nhead_stride_" #x "new", a->nhead_stride_##x##new, bits, a->nhead_k > 1);                                   \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, SLOT_BITS, true, true};                     \
    START("batch_stride_" #x, a->batch_stride_##x, SLOT_BITS, a->num_total_pages > 1);                                 \
    START("nhead_stride_" #x, a->nhead_stride_##x, SLOT_BITS, a->nhead_k > 1);                                         \
    START("stride_" #x, a->stride_##x, SLOT_BITS, a->page_block_size > 1)

static int list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_kv_cache_quantize_turbo4_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type);
    int n = 0;
    STARTS(k);
    STARTS(v);
    return n;
}

static tessera_status check_row(const void *of, const tessera_instance *row) {
    const call_t *const call = of;
    const int64_t room = rows_of_pages(&call->args);
    GUARD(!row->symbol || room <= INT32_MAX, "pages have %lld rows: on a GPU at most %d", (long long)room, INT32_MAX);
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
        const uint32_t keys_and_values = 2, tile_rows = ((instance_t)plan->row)->tile.rows;
        const uint32_t grid[] = {(uint32_t)tessera_ceil_div(call->rows, tile_rows), keys_and_values, 1};
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
    const tessera_kv_cache_quantize_turbo4_traits *const t = &call->traits;
    tessera_text_add(out, "-prec=%s -tokens=%d -h_k=%d -d=%d -d_v=%d -rotate=%d",
                     tessera_fmha_dtype_string(t->data_type), call->args.tokens, call->args.nhead_k, t->hdim_q,
                     t->hdim_v, t->has_rotation);
}

TESSERA_DEFINE_CALLS(kv_cache_quantize_turbo4)

const struct tessera_operation tessera_kv_cache_quantize_turbo4_operation = {
    TESSERA_CALL_OF(kv_cache_quantize_turbo4),
    .kernels = {.get_table = tessera_kv_cache_quantize_turbo4_get_table,
                .cost = cost,
                .list_starts = list_starts,
                .add_ck_tile = add_ck_tile},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .check_row = check_row,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
