// SPDX-License-Identifier: MIT
// A call on an NVIDIA GPU: checks, and one launch of workgroups that stay and take tasks in turns; where keys are cut
// into parts, another one combines their results.
#include "guard.h"
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"
#include "tessera/kernel/fmha_fwd_cuda.h"

typedef struct tessera_fmha_fwd_cuda_args kernel_args;
typedef const tessera_fmha_fwd_instance instance_t;
typedef const struct tessera_fmha_fwd_call call_t;
typedef const struct tessera_fmha_fwd_shape shape_t;

// ---- caches

// Rows of a box: all of it lies in one block, and is a whole part of a tile.
static int32_t box_rows(const struct tessera_attention_cache *cache, int32_t bn0) {
    if (cache->pages.piece_v) return 1;
    if (!cache->is_paged) return bn0; // a block has a sequence
    int32_t rows = bn0;
    while (rows > 1 && (bn0 % rows || cache->pages.page_size % rows)) rows--;
    return rows;
}

// Whether all rows of a quantised cache begin at multiples of 16 bytes, as pieces do.
static bool is_aligned(const struct tessera_attention_pages *p) {
    const struct tessera_attention_page_strides *const k = &p->of_k, *const v = &p->of_v;
    const uint64_t strides = (uint64_t)(k->page | k->head | k->row | v->page | v->head | v->row);
    if (p->piece_v) return true;
    return (strides | (uintptr_t)p->k | (uintptr_t)p->v) % 16 == 0;
}

// Whether rows of 4 bits are in step, as device/attention/cuda_pages/in_step.h has them: each as far behind a multiple
// of 16 bytes as the others of its head, with its norm behind its last number, and as long as the instance's.
static bool is_in_step(const struct tessera_attention_pages *p, instance_t *instance) {
    const struct tessera_attention_page_strides *const k = &p->of_k, *const v = &p->of_v;
    const uint64_t rows = (uint64_t)(k->page | k->row | v->page | v->row);
    const uint64_t heads = (uint64_t)(k->head | v->head) | (uintptr_t)p->k | (uintptr_t)p->v;
    const int32_t whole = instance->tile.bk0max;
    return rows % 16 == 0 && heads % 2 == 0 && p->hdim_q == whole && p->hdim_v == whole &&
           p->k_scale.base == (const char *)p->k + whole / 2 && p->v_scale.base == (const char *)p->v + whole / 2;
}

static void set_pages(call_t *call, instance_t *instance, kernel_args *out) {
    const struct tessera_attention_cache *const cache = call->cache;
    if (!tessera_fmha_fwd_looks_up(instance)) return;
    if (cache->scale_k) out->call.k_descale = cache->scale_k;
    if (cache->scale_v) out->call.v_descale = cache->scale_v;
    out->pages = (struct tessera_fmha_fwd_cuda_pages){
        .table = cache->pages.table,
        .begin = cache->pages.begin,
        .offset = cache->pages.offset,
        .last = cache->last,
        .table_stride = cache->pages.table_stride,
        .stride_k = cache->pages.of_k.page,
        .stride_v = cache->pages.of_v.page,
        .page_size = cache->pages.page_size,
        .box_rows = box_rows(cache, instance->tile.bn0),
        .aligned = instance->kv == TESSERA_KV_TURBO4 ? is_in_step(&cache->pages, instance) : is_aligned(&cache->pages),
        .piece_v = cache->pages.piece_v,
        .k_scale = cache->pages.k_scale,
        .v_scale = cache->pages.v_scale,
        .centroids = cache->pages.centroids};
}

// ---- tensor maps

enum { BOTH = TESSERA_CUDA_MAP_K | TESSERA_CUDA_MAP_V };
enum { ALL = TESSERA_CUDA_MAP_Q | BOTH };
enum { LEAST_BOX = 2 }; // rows: boxes of one are slower than lanes

// Whether lanes copy rows one by one, as those do that find keys in pages of either kind.
static bool copies_rows(instance_t *instance) {
    const uint32_t both = TESSERA_KEYS_IN_PAGES | TESSERA_KEYS_IN_PIECES;
    return (instance->keys_in & both) == both || instance->kv != TESSERA_KV_AUTO;
}

// Rows of all key heads: slices of theirs take the place of heads.
static tessera_status add_maps_of_rows(call_t *call, const struct tessera_plan *plan, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const int32_t bytes = TESSERA_ATTENTION_SLICE_BYTES, slices = a->nhead_k * a->hdim_q / bytes;
    const bool is_slice = a->hdim_q == bytes; // else heads lie beside one another
    struct tessera_attention_tensor rows = {.base = a->k_ptr,
                                            .bits = 8,
                                            .columns = bytes,
                                            .rows = call->cache->rows,
                                            .heads = slices,
                                            .sequences = call->cache->blocks,
                                            .stride = a->stride_k,
                                            .nhead_stride = is_slice ? a->nhead_stride_k : bytes,
                                            .batch_stride = a->batch_stride_k,
                                            .box_rows = TESSERA_CUDA_BOX_ROWS,
                                            .box_heads = slices};
    TRY(tessera_attention_add_map(plan->device, &rows, TESSERA_CUDA_MAP_K, &out->map_k, &out->maps));
    rows.base = a->v_ptr, rows.stride = a->stride_v, rows.batch_stride = a->batch_stride_v;
    if (is_slice) rows.nhead_stride = a->nhead_stride_v;
    return tessera_attention_add_map(plan->device, &rows, TESSERA_CUDA_MAP_V, &out->map_v, &out->maps);
}

// Rows of a box of k or v: of paired workgroups each copies a half.
static int32_t box_of_tiles(instance_t *instance, const kernel_args *out, bool is_paired) {
    if (tessera_fmha_fwd_looks_up(instance)) return out->pages.box_rows;
    return is_paired ? instance->tile.bn0 / 2 : instance->tile.bn0;
}

// In group mode maps have all tokens in one sequence, as many as there may be; in a cache they have its blocks.
static tessera_status add_maps(call_t *call, instance_t *instance, const struct tessera_plan *plan, kernel_args *out) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const tessera_fmha_fwd_tile *const tile = &instance->tile;
    const bool group = call->traits.is_group_mode;
    const int bits = tessera_type_bits(tessera_attention_storages[call->traits.data_type].qkv);
    const int64_t rows_q = group ? INT32_MAX : a->seqlen_q, sequences = group ? 1 : a->batch;
    const int64_t rows_k = call->cache ? call->cache->rows : group ? INT32_MAX : a->seqlen_k;
    const int64_t blocks = call->cache ? call->cache->blocks : sequences;
    const int32_t box_k = box_of_tiles(instance, out, out->paired);
    const int32_t box_v = box_of_tiles(instance, out, out->paired && out->v == TESSERA_CUDA_V_ROWS);
    const bool by_columns = !call->traits.is_v_rowmajor; // rows of v are columns of o
    const struct tessera_attention_tensor q = {a->q_ptr,          bits,      a->hdim_q,   rows_q,
                                               a->nhead_q,        sequences, a->stride_q, a->nhead_stride_q,
                                               a->batch_stride_q, tile->bm0, 1,           false};
    const struct tessera_attention_tensor k = {a->k_ptr,          bits,   a->hdim_q,   rows_k,
                                               a->nhead_k,        blocks, a->stride_k, a->nhead_stride_k,
                                               a->batch_stride_k, box_k,  1,           by_columns && bits == 8};
    struct tessera_attention_tensor v = {a->v_ptr,          bits,   a->hdim_v,   rows_k,
                                         a->nhead_k,        blocks, a->stride_v, a->nhead_stride_v,
                                         a->batch_stride_v, box_v,  1,           false};
    if (by_columns) v.columns = rows_k, v.rows = a->hdim_v, v.box_rows = tile->bn1;
    if (!instance->merged)
        TRY(tessera_attention_add_map(plan->device, &q, TESSERA_CUDA_MAP_Q, &out->map_q, &out->maps));
    if (instance->heads > 1 && instance->kv != TESSERA_KV_TURBO4) return add_maps_of_rows(call, plan, out);
    if (box_k < LEAST_BOX || copies_rows(instance)) return TESSERA_SUCCESS;
    TRY(tessera_attention_add_map(plan->device, &k, TESSERA_CUDA_MAP_K, &out->map_k, &out->maps));
    TRY(tessera_attention_add_map(plan->device, &v, TESSERA_CUDA_MAP_V, &out->map_v, &out->maps));
    if (tessera_fmha_fwd_looks_up(instance) && (out->maps & BOTH) != BOTH)
        out->maps &= ~(uint32_t)BOTH; // one lookup is for both
    if (out->paired && out->maps != ALL) {
        out->paired = 0; // lanes copy for their own workgroup alone
        out->maps &= ~(uint32_t)BOTH;
    }
    return TESSERA_SUCCESS;
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

enum { MOST_TASKS = INT32_MAX / 4 }; // which may be three times as many strips

// Tasks of one part each, of a block of queries or fewer.
static int64_t count_tasks(instance_t *instance, call_t *call) {
    const int64_t heads =
        instance->merged ? call->args.nhead_k / tessera_fmha_fwd_heads_of(instance) : call->args.nhead_q;
    return tessera_fmha_fwd_blocks(instance, call) * heads * call->args.batch;
}

// The tasks of one part of the keys.
static struct tessera_fmha_fwd_deal deal_out(instance_t *instance, call_t *call, shape_t *shape, int64_t units) {
    if (instance->merged)
        return (struct tessera_fmha_fwd_deal){.blocks = tessera_fmha_fwd_blocks(instance, call),
                                              .whole = count_tasks(instance, call)};
    return tessera_fmha_fwd_find_deal(instance, shape, units);
}

// Whether workgroups take tasks from a counter, so that one that had short tasks takes more. Where all tasks take as
// long they are dealt out, which spares zeroing the counter.
static bool is_counted(shape_t *shape, int64_t tasks, int64_t workgroups) {
    return !tessera_fmha_fwd_is_even(shape) && tasks > workgroups;
}

// ---- transposed v

struct tiles {
    int64_t of_head, all; // of v; 0: they are transposed on their way to each task
    size_t bytes;         // of all, as they lie in shared memory (device/attention/cuda/sizes.h)
};

// How many tasks read a tile of v, on average. Only a window makes tiles begin elsewhere than at the first key.
static double count_readers(instance_t *instance, shape_t *s) {
    const int64_t blocks = tessera_ceil_div(s->queries, instance->tile.bm0) * (s->nhead_q / s->nhead_k);
    const bool unknown = s->is_group_mode || s->is_cached || s->has_lengths || s->has_left;
    return unknown ? 0.0 : s->has_right ? (double)blocks / 2 : (double)blocks;
}

static struct tiles find_tiles(instance_t *instance, shape_t *s) {
    if (!instance->v_first || count_readers(instance, s) < instance->v_first) return (struct tiles){0};
    const int64_t of_head = tessera_ceil_div(s->keys, instance->tile.bn0), all = of_head * s->nhead_k * s->batch;
    return (struct tiles){of_head, all, (size_t)(all * instance->tile.bn0 * instance->tile.bn1)};
}

// ---- regions and checks

static const char counter_region[] = "counter of tasks", transposed_region[] = "transposed v";

tessera_status tessera_fmha_fwd_cuda_regions(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    instance_t *const instance = (instance_t *)row;
    const int64_t units = plan->facts->compute_units, parts = tessera_plan_cut(plan, row).parts;
    struct tessera_fmha_fwd_shape shape;
    tessera_fmha_fwd_describe(call, &shape);
    const struct tiles tiles = find_tiles(instance, &shape);
    if (parts > 1) TRY(tessera_fmha_fwd_add_partial(call, parts, plan));
    if (tiles.all > 0) TRY(tessera_add_region(plan, transposed_region, tiles.bytes, false));
    if (!is_counted(&shape, count_tasks(instance, call) * parts, units * instance->workgroups)) return TESSERA_SUCCESS;
    return tessera_add_region(plan, counter_region, sizeof(uint32_t), true);
}

// A run of keys that lanes copy of a column of v in pieces: 16 bytes, or of quantised caches also 8.
enum { LEAST_PAGE = 8 };

static tessera_status check_pieces(call_t *call) {
    const struct tessera_attention_pages *const pages = &call->cache->pages;
    GUARD(pages->page_size >= LEAST_PAGE, "page_block_size is %d: at least %d on a GPU, where pages are not linear",
          pages->page_size, LEAST_PAGE);
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct {
        const char *name;
        uint64_t value;
    } starts[] = {{"k_ptr", (uintptr_t)a->k_ptr},
                  {"v_ptr", (uintptr_t)a->v_ptr},
                  {"nhead_stride_k", a->nhead_k > 1 ? (uint64_t)a->nhead_stride_k : 0},
                  {"nhead_stride_v", a->nhead_k > 1 ? (uint64_t)a->nhead_stride_v : 0},
                  {"batch_stride_k", (uint64_t)a->batch_stride_k},
                  {"batch_stride_v", (uint64_t)a->batch_stride_v}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts && pages->dtype != TESSERA_KV_AUTO; i++)
        GUARD(starts[i].value % 16 == 0, "%s is %#llx: a multiple of 16 bytes on a GPU, where pages are not linear",
              starts[i].name, (unsigned long long)starts[i].value);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd_cuda_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call) {
    const int64_t tasks = count_tasks(instance, call) * tessera_max(1, call->args.num_splits);
    TRY(tessera_fmha_fwd_check_parts(instance, call));
    if (tessera_fmha_fwd_in_pieces(call)) TRY(check_pieces(call));
    GUARD(tasks <= MOST_TASKS, "batch * nhead_q * blocks of %d queries are %lld: at most %d on a GPU",
          instance->tile.bm0, (long long)tasks, MOST_TASKS);
    return tessera_fmha_fwd_check_cap(call);
}

// Says whether a launch of its own transposes v first.
static void set_transposing(instance_t *instance, shape_t *shape, const struct tessera_plan *plan, kernel_args *args) {
    const struct tiles tiles = find_tiles(instance, shape);
    args->v = TESSERA_CUDA_V_ROWS;
    if (tiles.all == 0) return;
    args->v = TESSERA_CUDA_V_TRANSPOSED;
    args->transposed = tessera_region_memory(plan, transposed_region);
    args->all_tiles = (int32_t)tiles.all;
    args->head_tiles = (int32_t)tiles.of_head;
}

// Adds that launch, if there is to be one, with the arguments of that of tasks.
static tessera_status add_transposing(instance_t *instance, int64_t workgroups, struct tessera_plan *plan,
                                      const kernel_args *args) {
    const uint32_t grid[3] = {(uint32_t)tessera_min(args->all_tiles, workgroups), 1, 1};
    void *room;
    if (args->v != TESSERA_CUDA_V_TRANSPOSED) return TESSERA_SUCCESS;
    TRY(tessera_plan_room(plan, sizeof(kernel_args), &room));
    kernel_args *const first = room;
    *first = *args;
    first->v = TESSERA_CUDA_V_TRANSPOSING;
    first->paired = 0;
    return tessera_add_launch(plan, &instance->base, grid, instance->shared_bytes, first, sizeof *first);
}

tessera_status tessera_fmha_fwd_cuda_steps(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    instance_t *const instance = (instance_t *)row;
    const int64_t units = plan->facts->compute_units, workgroups = units * instance->workgroups;
    const struct tessera_cut cut = tessera_plan_cut(plan, row);
    struct tessera_fmha_fwd_shape shape;
    tessera_fmha_fwd_describe(call, &shape);
    const struct tessera_fmha_fwd_deal deal = deal_out(instance, call, &shape, units);
    const int64_t tasks = (deal.whole + deal.strips) * cut.parts;
    const uint32_t grid[3] = {(uint32_t)tessera_min(tasks, workgroups), 1, 1};
    void *room;
    if (tasks == 0) return TESSERA_SUCCESS;
    TRY(tessera_plan_room(plan, sizeof(kernel_args), &room));
    kernel_args *const args = room;
    tessera_fmha_fwd_fill(call, (int32_t)deal.blocks, &args->call);
    set_pages(call, instance, args);
    set_transposing(instance, &shape, plan, args);
    args->paired = tessera_gpu_has_clusters(plan->device) ? (int32_t)deal.paired : 0;
    TRY(add_maps(call, instance, plan, args));
    args->tasks = (int32_t)tasks;
    args->heads = call->args.nhead_q * call->args.batch;
    args->heads_together = heads_together(call);
    args->whole = (int32_t)deal.whole;
    args->strips_behind = (int32_t)deal.behind;
    args->blocks_behind = (int32_t)deal.blocks_behind;
    args->parts = (int32_t)cut.parts;
    args->part_tiles = (int32_t)cut.length;
    args->queries = (int32_t)call->queries;
    if (is_counted(&shape, tasks, workgroups)) args->counter = tessera_region_memory(plan, counter_region);
    TRY(add_transposing(instance, workgroups, plan, args));
    if (cut.parts == 1)
        return tessera_add_launch_of_clusters(plan, row, grid, instance->shared_bytes, args->paired ? 2 : 0, args,
                                              sizeof *args);
    const struct tessera_fmha_fwd_gpu_args whole = args->call;
    const struct tessera_fmha_fwd_partial partial = tessera_fmha_fwd_get_partial(plan, cut.parts);
    args->o_acc = partial.o_acc;
    args->lse_acc = partial.lse_acc;
    args->call.sink = NULL; // it is no part's: the combination counts it
    TRY(tessera_add_launch(plan, row, grid, instance->shared_bytes, args, sizeof *args));
    return tessera_fmha_fwd_add_combine(call, &partial, &whole, plan);
}
