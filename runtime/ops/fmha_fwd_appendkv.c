// SPDX-License-Identifier: MIT
// The operation fmha_fwd_appendkv.
#include "guard.h"
#include "integers.h"
#include "op/typed.h"
#include "ops/attention.h"
#include "ops/fmha_fwd_appendkv_internal.h"
#include "ops/row_tasks.h"

typedef struct tessera_fmha_fwd_appendkv_call call_t;
typedef const tessera_fmha_fwd_appendkv_instance *instance_t;

enum { MOST_HDIM = 512, ROTARY_MULTIPLE = 16, MOST_GRID_Y = 65535 };

// ---- traits and sizes

static tessera_status check_traits(const tessera_fmha_fwd_appendkv_traits *t) {
    const char *const dtype = tessera_fmha_dtype_string(t->data_type);
    const bool mx = t->data_type == TESSERA_FMHA_MXFP8 || t->data_type == TESSERA_FMHA_MXFP4;
    GUARD(dtype, "data_type is %d: 0 to %d", (int)t->data_type, TESSERA_FMHA_DTYPE_COUNT - 1);
    GUARD(!mx, "data_type is %s: all but mxfp8 and mxfp4, whose scales a cache has no room for", dtype);
    GUARD(within(t->hdim_q, 1, MOST_HDIM), "hdim_q is %d: 1 to %d", t->hdim_q, MOST_HDIM);
    GUARD(within(t->hdim_v, 1, MOST_HDIM), "hdim_v is %d: 1 to %d", t->hdim_v, MOST_HDIM);
    GUARD(t->is_v_rowmajor == 1, "is_v_rowmajor is %d: 1", t->is_v_rowmajor);
    GUARD(tessera_rope_string(t->rope_type), "rope_type is %d: 0, 1, 2", (int)t->rope_type);
    return TESSERA_SUCCESS;
}

static tessera_status check_rope(const tessera_fmha_fwd_appendkv_traits *t, const tessera_fmha_fwd_appendkv_args *a) {
    const int bits = tessera_type_bits(tessera_attention_storages[t->data_type].qkv);
    if (t->rope_type == TESSERA_ROPE_NONE) return TESSERA_SUCCESS;
    GUARD(bits >= 16, "rope_type is %s: fp8 is not rotated", tessera_rope_string(t->rope_type));
    GUARD(a->rotary_dim > 0 && a->rotary_dim % ROTARY_MULTIPLE == 0 && a->rotary_dim <= t->hdim_q,
          "rotary_dim is %d: a multiple of %d up to hdim_q, %d", a->rotary_dim, ROTARY_MULTIPLE, t->hdim_q);
    GUARD(a->rotary_rows >= 0, "rotary_rows is %d: 0 or more", a->rotary_rows);
    GUARD(within(a->has_mask, 0, 1), "has_mask is %d: 0 or 1", a->has_mask);
    return TESSERA_SUCCESS;
}

static tessera_status check_cache(const tessera_fmha_fwd_appendkv_args *a) {
    GUARD(a->max_seqlen_k >= 0, "max_seqlen_k is %d: 0 or more", a->max_seqlen_k);
    GUARD(a->cache_blocks >= 0, "cache_blocks is %d: 0 or more", a->cache_blocks);
    if (!a->block_table_ptr) {
        GUARD(a->cache_batch_idx || a->cache_blocks >= a->batch || a->seqlen_knew == 0,
              "cache_blocks is %d: at least batch, %d, without cache_batch_idx", a->cache_blocks, a->batch);
        return TESSERA_SUCCESS;
    }
    GUARD(!a->cache_batch_idx, "cache_batch_idx is given: NULL with pages, which block_table_ptr finds");
    GUARD(a->page_block_size >= 1, "page_block_size is %d: 1 or more", a->page_block_size);
    return TESSERA_SUCCESS;
}

static tessera_status check_numbers(call_t *call) {
    const tessera_fmha_fwd_appendkv_traits *const t = &call->traits;
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const bool rotates = t->rope_type != TESSERA_ROPE_NONE;
    GUARD(a->hdim_q == t->hdim_q && a->hdim_v == t->hdim_v, "hdim_q, hdim_v are %d, %d: those of the traits, %d, %d",
          a->hdim_q, a->hdim_v, t->hdim_q, t->hdim_v);
    GUARD(a->batch >= 0, "batch is %d: 0 or more", a->batch);
    GUARD(a->seqlen_q >= 0, "seqlen_q is %d: 0 or more", a->seqlen_q);
    GUARD(a->seqlen_knew >= 0, "seqlen_knew is %d: 0 or more", a->seqlen_knew);
    GUARD(a->nhead_k >= 1, "nhead_k is %d: 1 or more", a->nhead_k);
    GUARD(a->nhead_q >= 1 && a->nhead_q % a->nhead_k == 0, "nhead_q is %d: a multiple of nhead_k, %d", a->nhead_q,
          a->nhead_k);
    call->rows = (int64_t)a->seqlen_knew * a->nhead_k + (rotates ? (int64_t)a->seqlen_q * a->nhead_q : 0);
    GUARD(call->rows <= INT32_MAX, "a sequence has %lld rows, of all tokens and heads: at most %d",
          (long long)call->rows, INT32_MAX);
    return TESSERA_SUCCESS;
}

static struct tessera_fmha_fwd_appendkv_problem make_problem(const call_t *call) {
    const tessera_fmha_fwd_appendkv_traits *const t = &call->traits;
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const bool rotates = t->rope_type != TESSERA_ROPE_NONE;
#define STRIDES(x)                                                                                                     \
    { a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x }
    return (struct tessera_fmha_fwd_appendkv_problem){.q = a->q_ptr,
                                                      .knew = a->knew_ptr,
                                                      .vnew = a->vnew_ptr,
                                                      .cos = a->rotary_cos_ptr,
                                                      .sin = a->rotary_sin_ptr,
                                                      .q_rotated = a->q_rotated_ptr,
                                                      .k = a->k_ptr,
                                                      .v = a->v_ptr,
                                                      .seqlen_k = a->seqlen_k_ptr,
                                                      .block_table = a->block_table_ptr,
                                                      .cache_batch_idx = a->cache_batch_idx,
                                                      .of_q = STRIDES(q),
                                                      .of_q_rotated = STRIDES(q_rotated),
                                                      .of_k = STRIDES(k),
                                                      .of_v = STRIDES(v),
                                                      .of_knew = STRIDES(knew),
                                                      .of_vnew = STRIDES(vnew),
                                                      .table_stride = a->batch_stride_block_table,
                                                      .batch = a->batch,
                                                      .seqlen_q = a->seqlen_q,
                                                      .seqlen_knew = a->seqlen_knew,
                                                      .nhead_q = a->nhead_q,
                                                      .nhead_k = a->nhead_k,
                                                      .hdim_q = a->hdim_q,
                                                      .hdim_v = a->hdim_v,
                                                      .rotary_dim = rotates ? a->rotary_dim : 0,
                                                      .rotary_rows = a->rotary_rows,
                                                      .has_mask = a->has_mask,
                                                      .max_seqlen_k = a->max_seqlen_k,
                                                      .cache_blocks = a->cache_blocks,
                                                      .page_size = a->page_block_size,
                                                      .type = (int32_t)tessera_attention_storages[t->data_type].qkv,
                                                      .rope = (int32_t)t->rope_type};
#undef STRIDES
}

static tessera_status check_sizes(void *of) {
    call_t *const call = of;
    TRY(check_traits(&call->traits));
    TRY(check_rope(&call->traits, &call->args));
    TRY(check_numbers(call));
    TRY(check_cache(&call->args));
    call->problem = make_problem(call);
    call->is_step = false;
    return TESSERA_SUCCESS;
}

// ---- arrays and tensors

static tessera_status check_pages(const tessera_fmha_fwd_appendkv_args *a, int32_t b, int32_t first, int32_t last) {
    const int32_t *const table = (const int32_t *)a->block_table_ptr + b * a->batch_stride_block_table;
    for (int32_t page = first; page <= last; page++)
        GUARD(within(table[page], 0, (int64_t)a->cache_blocks - 1), "block_table_ptr[%d][%d] is %d: a page, 0 to %d", b,
              page, table[page], a->cache_blocks - 1);
    return TESSERA_SUCCESS;
}

static tessera_status check_sequence(const call_t *call, int32_t b) {
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const int32_t *const before = a->seqlen_k_ptr, *const ids = a->cache_batch_idx;
    const int64_t keys = (int64_t)before[b] + a->seqlen_knew;
    GUARD(before[b] >= 0, "seqlen_k_ptr[%d] is %d: 0 or more", b, before[b]);
    GUARD(keys <= a->max_seqlen_k || a->seqlen_knew == 0, "sequence %d has %d keys and gets %d: it has room for %d", b,
          before[b], a->seqlen_knew, a->max_seqlen_k);
    if (call->problem.rotary_dim) {
        const int32_t queries = a->seqlen_q && !a->has_mask ? 1 : a->seqlen_q;
        const int64_t end = before[b] + tessera_max(a->seqlen_knew, queries);
        GUARD(end <= a->rotary_rows || end == before[b], "rotary_rows is %d: sequence %d has positions up to %lld",
              a->rotary_rows, b, (long long)end - 1);
    }
    if (a->seqlen_knew == 0) return TESSERA_SUCCESS;
    if (a->block_table_ptr)
        return check_pages(a, b, before[b] / a->page_block_size, (int32_t)((keys - 1) / a->page_block_size));
    GUARD(!ids || within(ids[b], 0, (int64_t)a->cache_blocks - 1), "cache_batch_idx[%d] is %d: 0 to %d", b, ids[b],
          a->cache_blocks - 1);
    return TESSERA_SUCCESS;
}

#define AXES(x, blocks, heads, rows)                                                                                   \
    (struct tessera_axis){"batch_stride_" #x, blocks, a->batch_stride_##x},                                            \
        (struct tessera_axis){"nhead_stride_" #x, heads, a->nhead_stride_##x}, (struct tessera_axis) {                 \
        "stride_" #x, rows, a->stride_##x                                                                              \
    }
#define ADD(x, written, blocks, heads, rows, columns)                                                                  \
    tessera_add_tensor(all, #x "_ptr", a->x##_ptr, bits, written, AXES(x, blocks, heads, rows), columns)

static void add_keys(const tessera_fmha_fwd_appendkv_args *a, int bits, struct tessera_tensors *all) {
    const int32_t rows = a->block_table_ptr ? a->page_block_size : a->max_seqlen_k;
    if (a->seqlen_knew == 0) return;
    ADD(knew, false, a->batch, a->nhead_k, a->seqlen_knew, a->hdim_q);
    ADD(vnew, false, a->batch, a->nhead_k, a->seqlen_knew, a->hdim_v);
    ADD(k, true, a->cache_blocks, a->nhead_k, rows, a->hdim_q);
    ADD(v, true, a->cache_blocks, a->nhead_k, rows, a->hdim_v);
}

static void add_rotation(const call_t *call, int bits, struct tessera_tensors *all) {
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const int64_t angles = (int64_t)a->rotary_rows * (a->rotary_dim / 2);
    tessera_add_array(all, "rotary_cos_ptr", a->rotary_cos_ptr, bits, angles);
    tessera_add_array(all, "rotary_sin_ptr", a->rotary_sin_ptr, bits, angles);
    ADD(q, false, a->batch, a->nhead_q, a->seqlen_q, a->hdim_q);
    if (call->is_step) return;
    all->list[all->count - 1].in_place = true;
    ADD(q_rotated, true, a->batch, a->nhead_q, a->seqlen_q, a->hdim_q);
    all->list[all->count - 1].in_place = true;
}

static tessera_status check_memory(const void *of, bool on_gpu, struct tessera_tensors *all) {
    const call_t *const call = of;
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type);
    if (call->rows == 0 || a->batch == 0) return TESSERA_SUCCESS;
    tessera_add_array(all, "seqlen_k_ptr", a->seqlen_k_ptr, 32, a->batch);
    if (a->block_table_ptr)
        tessera_add_tensor(all, "block_table_ptr", a->block_table_ptr, 32, false, (struct tessera_axis){NULL, 1, 0},
                           (struct tessera_axis){NULL, 1, 0},
                           (struct tessera_axis){"batch_stride_block_table", a->batch, a->batch_stride_block_table},
                           tessera_ceil_div(a->max_seqlen_k, a->page_block_size));
    if (a->cache_batch_idx) tessera_add_array(all, "cache_batch_idx", a->cache_batch_idx, 32, a->batch);
    add_keys(a, bits, all);
    if (call->problem.rotary_dim) add_rotation(call, bits, all);
    TRY(tessera_check_tensors(all)); // before any of them is read
    for (int32_t b = 0; b < a->batch && !on_gpu; b++) TRY(check_sequence(call, b));
    return TESSERA_SUCCESS;
}

// ---- instances

static int list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const call_t *const call = r->call;
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const int bits = tessera_type_bits((tessera_type)call->problem.type);
    const bool appends = a->seqlen_knew > 0, rotates = call->problem.rotary_dim > 0, many = a->batch > 1;
    int n = 0;
#define STRIDE(name, matters) starts[n++] = (struct tessera_start){#name, (uint64_t)a->name, bits, false, matters}
#define START(x, used, blocks, heads, rows)                                                                            \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true, used};                             \
    STRIDE(batch_stride_##x, used && (blocks));                                                                        \
    STRIDE(nhead_stride_##x, used && (heads) > 1);                                                                     \
    STRIDE(stride_##x, used && (rows) > 1)
    START(knew, appends, many, a->nhead_k, a->seqlen_knew);
    START(vnew, appends, many, a->nhead_k, a->seqlen_knew);
    START(k, appends, a->cache_blocks > 1, a->nhead_k, a->max_seqlen_k);
    START(v, appends, a->cache_blocks > 1, a->nhead_k, a->max_seqlen_k);
    START(q, rotates, many, a->nhead_q, a->seqlen_q);
    START(q_rotated, rotates, many, a->nhead_q, a->seqlen_q);
#undef START
#undef STRIDE
    starts[n++] = (struct tessera_start){"rotary_cos_ptr", (uintptr_t)a->rotary_cos_ptr, 8, true, rotates};
    starts[n++] = (struct tessera_start){"rotary_sin_ptr", (uintptr_t)a->rotary_sin_ptr, 8, true, rotates};
    return n;
}

// What is read and written of a row, the angles left out.
static double bytes_of_rows(const call_t *call) {
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    const double bytes = tessera_type_bits((tessera_type)call->problem.type) / 8.0;
    const double keys = (double)a->seqlen_knew * a->nhead_k * (a->hdim_q + a->hdim_v);
    const double queries = call->problem.rotary_dim ? (double)a->seqlen_q * a->nhead_q * a->hdim_q : 0;
    return 2 * bytes * a->batch * (keys + queries);
}

static double cost(const tessera_instance *row, const struct tessera_request *r) {
    const call_t *const call = r->call;
    const double bytes = bytes_of_rows(call);
    const int64_t rows = call->args.batch * call->rows;
    return tessera_roofline(row, r,
                            (struct tessera_work){bytes, bytes, tessera_ceil_div(rows, ((instance_t)row)->tile.rows)});
}

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    tessera_text_add(out, "_b64x64x%ux%u", hdims[0], hdims[1]);
}

// The axis "pagedkv".
static uint32_t count_ck(const struct tessera_request *r, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    (void)hdims;
    return ((const call_t *)r->call)->args.block_table_ptr != NULL;
}

tessera_status tessera_fmha_fwd_appendkv_check_row(const call_t *call, const tessera_instance *row) {
    if (!row->symbol) return TESSERA_SUCCESS;
    GUARD(call->args.batch <= MOST_GRID_Y, "batch is %d: on a GPU at most %d", call->args.batch, MOST_GRID_Y);
    GUARD(call->rows <= (1 << 24), "a sequence has %lld rows, of all tokens and heads: on a GPU at most %d",
          (long long)call->rows, 1 << 24); // no axis of a grid has 2^32 threads
    return TESSERA_SUCCESS;
}

static tessera_status check_row(const void *call, const tessera_instance *row) {
    return tessera_fmha_fwd_appendkv_check_row(call, row);
}

// ---- what a call does

static void run_rows(void *of, int64_t task, void *scratch) {
    const call_t *const call = of;
    const int64_t begin = task * call->task_rows;
    (void)scratch;
    call->run(&call->problem, begin, tessera_min(begin + call->task_rows, call->rows * call->args.batch));
}

static tessera_status add_work(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    const struct tessera_row_tasks tasks =
        tessera_cut_rows(call->rows * call->args.batch, bytes_of_rows(call), plan->threads);
    call->task_rows = tasks.rows;
    call->run = ((instance_t)row)->run;
    return tessera_add_work(plan, run_rows, call, tasks.count, tasks.workers, NULL, 0);
}

tessera_status tessera_fmha_fwd_appendkv_steps(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    if (call->rows == 0 || call->args.batch == 0) return TESSERA_SUCCESS;
    if (!row->symbol) return add_work(call, row, plan);
    const int64_t blocks = tessera_ceil_div(call->rows, ((instance_t)row)->tile.rows);
    const uint32_t grid[] = {(uint32_t)blocks, (uint32_t)call->args.batch, 1};
    return tessera_add_launch(plan, row, grid, 0, &call->problem, sizeof call->problem);
}

static tessera_status add_steps(void *call, struct tessera_plan *plan) {
    return tessera_fmha_fwd_appendkv_steps(call, plan->row, plan);
}

static void add_problem(struct tessera_text *out, const void *of) {
    const call_t *const call = of;
    const tessera_fmha_fwd_appendkv_args *const a = &call->args;
    tessera_text_add(out, "-prec=%s -b=%d -h=%d -h_k=%d -s=%d -s_k=%d -s_knew=%d -d=%d -d_v=%d",
                     tessera_fmha_dtype_string(call->traits.data_type), a->batch, a->nhead_q, a->nhead_k, a->seqlen_q,
                     a->max_seqlen_k, a->seqlen_knew, a->hdim_q, a->hdim_v);
    if (call->problem.rotary_dim)
        tessera_text_add(out, " -rotary_dim=%d -rotary_interleaved=%d -causal=%d", a->rotary_dim,
                         call->traits.rope_type == TESSERA_ROPE_INTERLEAVED, a->has_mask);
    if (a->block_table_ptr) tessera_text_add(out, " -page_block_size=%d", a->page_block_size);
    if (a->cache_batch_idx) tessera_text_add(out, " -cache_batch_idx=1");
}

TESSERA_DEFINE_CALLS(fmha_fwd_appendkv)

const struct tessera_operation tessera_fmha_fwd_appendkv_operation = {
    TESSERA_CALL_OF(fmha_fwd_appendkv),
    .kernels = {.get_table = tessera_fmha_fwd_appendkv_get_table,
                .cost = cost,
                .list_starts = list_starts,
                .add_ck_tile = add_ck_tile,
                .count_ck = count_ck},
    .check_sizes = check_sizes,
    .check_memory = check_memory,
    .check_row = check_row,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
