// SPDX-License-Identifier: MIT
// A call on an AMD GPU: checks, and one launch with its argument; where keys are cut into parts, another one combines
// their results, and where the last workgroups would leave units idle, another instance does their work.
#include "guard.h"
#include "library.h"
#include "ops/fmha_fwd_internal.h"
#include "tessera/kernel/fmha_fwd_cdna.h"

typedef struct tessera_fmha_fwd_gpu_args kernel_args;
typedef tessera_fmha_fwd_instance instance_t;
typedef const struct tessera_fmha_fwd_call call_t;

// Kernels address the rows of a block by 32-bit byte offsets from its first row.
tessera_status tessera_fmha_fwd_cdna_check_strides(const struct tessera_fmha_fwd_call *call, int64_t q_rows,
                                                   int64_t k_rows) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct tessera_attention_storages *const storages = &tessera_attention_storages[t->data_type];
    const int in = tessera_type_bits(storages->qkv), out = tessera_type_bits(storages->o);
    const bool bias = t->bias_type == TESSERA_BIAS_ELEMENTWISE, randval = t->has_dropout && a->s_randval;
    const bool mx = t->qscale_type == TESSERA_QSCALE_MX;
    const bool pieces = tessera_fmha_fwd_in_pieces(call); // whose rows have no strides
    const struct {
        const char *name;
        int64_t stride, rows;
        int bits;
    } tensors[] = {{"stride_q", a->stride_q, q_rows, in},
                   {"stride_k", pieces ? 0 : a->stride_k, k_rows, in},
                   {"stride_v", pieces ? 0 : a->stride_v, t->is_v_rowmajor ? k_rows : a->hdim_v, in},
                   {"stride_o", a->stride_o, q_rows, out},
                   {"stride_bias", bias ? a->stride_bias : 0, q_rows, tessera_type_bits(storages->bias)},
                   {"stride_randval", randval ? a->stride_randval : 0, q_rows, 8},
                   {"stride_q_descale", mx ? a->stride_q_descale : 0, q_rows, 8},
                   {"stride_k_descale", mx ? a->stride_k_descale : 0, k_rows, 8},
                   {"stride_v_descale", mx ? a->stride_v_descale : 0, a->hdim_v, 8}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const int64_t end = (int64_t)INT32_MAX * 8 / tensors[i].bits / tensors[i].rows;
        GUARD(tensors[i].stride >= 0 && tensors[i].stride < end, "%s is %lld: 0 to less than %lld on a GPU",
              tensors[i].name, (long long)tensors[i].stride, (long long)end);
    }
    return TESSERA_SUCCESS;
}

// ---- parts of keys

// Where keys lie, as tables say, or one sequence after another.
static void set_pages(call_t *call, struct tessera_fmha_fwd_cdna_args *args) {
    const struct tessera_fmha_fwd_gpu_args *const k = &args->call; // whose batch strides are 0 in group mode
    args->pages = (struct tessera_attention_pages){.offset = k->seqstart_k,
                                                   .page_size = INT32_MAX,
                                                   .of_k = {k->batch_stride_k, k->nhead_stride_k, k->stride_k},
                                                   .of_v = {k->batch_stride_v, k->nhead_stride_v, k->stride_v}};
    if (!call->cache) return;
    args->pages = call->cache->pages;
    if (args->pages.piece_v) { // a run of a row of k, and so many keys of all columns of v, lead to the next
        args->pages.of_k.row = TESSERA_PIECE_BYTES / args->pages.element_bytes;
        args->pages.of_v.row = (int64_t)args->pages.piece_v * args->pages.row_v;
    }
    args->last = call->cache->last;
    // A tensor's only scale is that of each row.
    if (call->cache->scale_k) args->pages.k_scale.base = call->cache->scale_k;
    if (call->cache->scale_v) args->pages.v_scale.base = call->cache->scale_v;
}

// Logarithms of how many sequences, or parts, have their number in x beside the key head, so that all key heads come to
// one die. Fewer parts than dies leave no place in x empty, which would be a die without work: key heads have more.
static void spread_over_dies(const tessera_instance *row, struct tessera_fmha_fwd_cdna_args *args) {
    const int32_t dies = tessera_target_rates[row->target].dies;
    const bool by_parts = args->sequences < dies;
    int32_t *const log = by_parts ? &args->log_parts : &args->log_sequences;
    while (1 << *log < dies && (!by_parts || args->parts >= dies || args->parts % (2 << *log) == 0)) ++*log;
}

// A launch of workgroups that merge heads and have a part of the keys each.
static tessera_status add_split(call_t *call, const instance_t *instance, int64_t blocks, struct tessera_plan *plan) {
    const tessera_instance *const row = &instance->base;
    const struct tessera_cut cut = tessera_plan_cut(plan, row);
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct tessera_fmha_fwd_cdna_args), &room));
    struct tessera_fmha_fwd_cdna_args *const args = room;
    tessera_fmha_fwd_fill(call, (int32_t)blocks, &args->call);
    args->parts = (int32_t)cut.parts;
    args->part_tiles = (int32_t)cut.length;
    args->queries = (int32_t)call->queries;
    args->sequences = call->args.batch;
    spread_over_dies(row, args);
    const int64_t parts = tessera_ceil_div(cut.parts, 1 << args->log_parts);
    const uint32_t grid[3] = {(uint32_t)call->args.nhead_k << (args->log_sequences + args->log_parts),
                              (uint32_t)(blocks * parts),
                              (uint32_t)tessera_ceil_div(args->sequences, 1 << args->log_sequences)};
    if (tessera_fmha_fwd_looks_up(instance)) set_pages(call, args);
    if (cut.parts == 1) return tessera_add_launch(plan, row, grid, 0, args, sizeof *args);
    const struct tessera_fmha_fwd_gpu_args whole = args->call;
    const struct tessera_fmha_fwd_partial partial = tessera_fmha_fwd_get_partial(plan, cut.parts);
    args->o_acc = partial.o_acc;
    args->lse_acc = partial.lse_acc;
    args->call.sink = NULL; // it is no part's: the combination counts it
    TRY(tessera_add_launch(plan, row, grid, 0, args, sizeof *args));
    return tessera_fmha_fwd_add_combine(call, &partial, &whole, plan);
}

tessera_status tessera_fmha_fwd_cdna_regions(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    const int64_t parts = ((const instance_t *)row)->merged ? tessera_plan_cut(plan, row).parts : 1;
    return parts > 1 ? tessera_fmha_fwd_add_partial(call, parts, plan) : TESSERA_SUCCESS;
}

// ---- checks and the launch

enum { GRID_MAX = TESSERA_FMHA_FWD_GRID_MAX }; // of heads, too
// The keys that a lane takes of a column of v in pieces (cdna/paged.h), which are at least so many bytes.
enum { BYTES_OF_COLUMN = 16 };
static int32_t keys_of_column(const struct tessera_fmha_fwd_call *call) {
    const struct tessera_attention_pages *const pages = &call->cache->pages;
    return pages->dtype == TESSERA_KV_AUTO ? BYTES_OF_COLUMN / pages->element_bytes : 8;
}

tessera_status tessera_fmha_fwd_cdna_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    const int64_t blocks = tessera_fmha_fwd_blocks(instance, call) * tessera_max(1, a->num_splits);
    TRY(tessera_fmha_fwd_check_cap(call));
    TRY(tessera_fmha_fwd_check_parts(instance, call));
    GUARD(a->nhead_q <= GRID_MAX, "nhead_q is %d: at most %d on a GPU", a->nhead_q, GRID_MAX);
    GUARD(a->batch <= GRID_MAX, "batch is %d: at most %d on a GPU", a->batch, GRID_MAX);
    GUARD((int64_t)a->batch * a->nhead_k <= INT32_MAX, "batch is %d: at most %d on a GPU with nhead_k %d", a->batch,
          INT32_MAX / a->nhead_k, a->nhead_k);
    GUARD(instance->merged || blocks <= GRID_MAX, "%s is %d: at most %d on a GPU with blocks of %d queries",
          group ? "max_seqlen_q" : "seqlen_q", group ? a->max_seqlen_q : a->seqlen_q, GRID_MAX * instance->tile.bm0,
          instance->tile.bm0);
    GUARD(blocks <= GRID_MAX, "%s gives %lld workgroups of %d queries of a key head and a part of its keys: at most %d",
          group ? "max_seqlen_q" : "seqlen_q", (long long)blocks, instance->tile.bm0, GRID_MAX);
    GUARD(!tessera_fmha_fwd_in_pieces(call) || call->cache->pages.page_size >= keys_of_column(call),
          "page_block_size is %d: at least %d on a GPU, where pages are not linear", call->cache->pages.page_size,
          keys_of_column(call));
    return tessera_fmha_fwd_cdna_check_strides(call, instance->tile.bm0, instance->tile.bn0);
}

// A launch of workgroups that see all keys.
static tessera_status add_whole(call_t *call, const instance_t *instance, const struct tessera_cut *cut,
                                struct tessera_plan *plan) {
    const struct tessera_fmha_fwd_order order = {.turns = cut->parts, .together = cut->length};
    const int64_t group = call->args.nhead_q / call->args.nhead_k;
    void *args;
    TRY(tessera_plan_room(plan, sizeof(kernel_args), &args));
    tessera_fmha_fwd_fill(call, (int32_t)tessera_fmha_fwd_blocks(instance, call), args);
    tessera_fmha_fwd_set_order(&order, args);
    const uint32_t grid[3] = {(uint32_t)(order.together * group), (uint32_t)((kernel_args *)args)->rows,
                              (uint32_t)(call->args.batch * (int64_t)call->args.nhead_k / order.together)};
    return tessera_add_launch(plan, &instance->base, grid, 0, args, sizeof(kernel_args));
}

tessera_status tessera_fmha_fwd_cdna_steps(call_t *call, const tessera_instance *row, struct tessera_plan *plan) {
    const instance_t *const instance = (const instance_t *)row;
    const int64_t blocks = tessera_fmha_fwd_blocks(instance, call);
    if (blocks == 0) return TESSERA_SUCCESS;
    if (instance->merged) return add_split(call, instance, blocks, plan);
    const struct tessera_cut cut = tessera_plan_cut(plan, row);
    if (cut.rest == 0) return add_whole(call, instance, &cut, plan);
    const struct tessera_fmha_fwd_call first = tessera_fmha_fwd_kept(call, cut.rest);
    const struct tessera_fmha_fwd_call rest = tessera_fmha_fwd_rest(call, cut.rest);
    const struct tessera_cut of_other = tessera_plan_cut(plan, cut.other);
    TRY(add_whole(&first, instance, &cut, plan));
    return add_whole(&rest, (const instance_t *)cut.other, &of_other, plan);
}
