// SPDX-License-Identifier: MIT
// fmha_fwd_appendkv as the first step of an operation on caches. The step leaves two things to attention, both in the
// workspace: rotated queries, for the caller's stay as they are, and the lengths with the new keys.
#include "guard.h"
#include "ops/fmha_fwd_appendkv_internal.h"

static const char q_region[] = "rotated q", lengths_region[] = "lengths with new keys";

void tessera_append_first_begin(struct tessera_append_first *x) {
    x->is_needed = false;
    x->call.traits = tessera_fmha_fwd_appendkv_traits_init();
    x->call.args = tessera_fmha_fwd_appendkv_args_init();
    x->row = NULL;
}

// ---- checks

#define COPY_STRIDES(to, from, x)                                                                                      \
    ((to)->stride_##x = (from)->stride_##x, (to)->nhead_stride_##x = (from)->nhead_stride_##x,                         \
     (to)->batch_stride_##x = (from)->batch_stride_##x)

// Rotated queries lie token by token.
static void set_rotated(tessera_fmha_fwd_appendkv_args *a) {
    a->nhead_stride_q_rotated = a->hdim_q;
    a->stride_q_rotated = a->nhead_q * a->nhead_stride_q_rotated;
    a->batch_stride_q_rotated = a->seqlen_q * a->stride_q_rotated;
}

static void fill_in(struct tessera_fmha_fwd_appendkv_call *call, const struct tessera_fmha_fwd_call *attention,
                    const struct tessera_cache_place *at) {
    const tessera_fmha_fwd_args *const from = &attention->args;
    tessera_fmha_fwd_appendkv_args *const a = &call->args;
    call->traits.hdim_q = a->hdim_q = from->hdim_q;
    call->traits.hdim_v = a->hdim_v = from->hdim_v;
    call->traits.data_type = attention->traits.data_type;
    call->traits.is_v_rowmajor = attention->traits.is_v_rowmajor;
    a->q_ptr = from->q_ptr;
    a->k_ptr = (void *)from->k_ptr; // const for attention alone
    a->v_ptr = (void *)from->v_ptr;
    a->seqlen_k_ptr = at->seqlen_k_ptr;
    a->block_table_ptr = at->block_table_ptr;
    a->cache_batch_idx = at->cache_batch_idx;
    a->seqlen_q = from->seqlen_q;
    a->batch = from->batch;
    a->nhead_q = from->nhead_q;
    a->nhead_k = from->nhead_k;
    a->has_mask = from->mask_type != TESSERA_MASK_NONE;
    a->max_seqlen_k = at->seqlen_k;
    a->cache_blocks = at->cache_blocks;
    a->page_block_size = at->page_block_size;
    a->batch_stride_block_table = at->batch_stride_block_table;
    COPY_STRIDES(a, from, q);
    COPY_STRIDES(a, from, k);
    COPY_STRIDES(a, from, v);
    set_rotated(a);
}

tessera_status tessera_append_first_check_sizes(struct tessera_append_first *x, const struct tessera_over_cache *over,
                                                const struct tessera_cache_place *at) {
    const int32_t added = x->call.args.seqlen_knew;
    x->is_needed = added != 0 || x->call.traits.rope_type != TESSERA_ROPE_NONE;
    if (!x->is_needed) return TESSERA_SUCCESS;
    GUARD(!over->attention.traits.is_group_mode,
          "seqlen_knew is %d, rope_type %d: both 0 in group mode, to whose caches nothing is appended", added,
          (int)x->call.traits.rope_type);
    fill_in(&x->call, &over->attention, at);
    TRY(tessera_fmha_fwd_appendkv_operation.check_sizes(&x->call));
    x->call.is_step = true;
    return TESSERA_SUCCESS;
}

// What both steps use is as this one says: it writes keys and values, and has the caller's q.
static void join(struct tessera_tensors *all, const struct tessera_tensors *more) {
    for (int i = 0; i < more->count; i++) {
        int at = 0;
        while (at < all->count && strcmp(all->list[at].name, more->list[i].name) != 0) at++;
        all->list[at] = more->list[i];
        if (at == all->count) all->count++;
    }
}

tessera_status tessera_append_first_check_memory(const struct tessera_append_first *x, bool on_gpu,
                                                 struct tessera_tensors *all) {
    struct tessera_tensors own;
    own.count = 0;
    if (!x->is_needed) return TESSERA_SUCCESS;
    TRY(tessera_fmha_fwd_appendkv_operation.check_memory(&x->call, on_gpu, &own));
    join(all, &own);
    return TESSERA_SUCCESS;
}

tessera_status tessera_append_first_check_row(const struct tessera_append_first *x) {
    return x->is_needed ? tessera_fmha_fwd_appendkv_check_row(&x->call, x->row) : TESSERA_SUCCESS;
}

// ---- the workspace and the step

static bool rotates(const struct tessera_append_first *x) { return x->call.problem.rotary_dim > 0; }

// Attention reads q where it will be rotated. The workspace begins at a multiple of more than any row needs.
static void read_rotated(const tessera_fmha_fwd_appendkv_args *a, void *memory, tessera_fmha_fwd_args *attention) {
    attention->q_ptr = memory;
    attention->stride_q = a->stride_q_rotated;
    attention->nhead_stride_q = a->nhead_stride_q_rotated;
    attention->batch_stride_q = a->batch_stride_q_rotated;
}

tessera_status tessera_append_first_regions(struct tessera_append_first *x, struct tessera_over_cache *over,
                                            struct tessera_plan *plan) {
    const tessera_fmha_fwd_appendkv_args *const a = &x->call.args;
    const size_t element = (size_t)tessera_type_bits((tessera_type)x->call.problem.type) / 8;
    if (!x->is_needed) return TESSERA_SUCCESS;
    TRY(tessera_plan_choose(plan, &tessera_fmha_fwd_appendkv_operation.kernels, &x->call.traits, &x->call, NULL,
                            &x->row));
    TRY(tessera_add_region(plan, lengths_region, (size_t)a->batch * sizeof(int32_t), false));
    if (!rotates(x)) return TESSERA_SUCCESS;
    read_rotated(a, NULL, &over->attention.args);
    return tessera_add_region(plan, q_region, (size_t)a->batch * (size_t)a->batch_stride_q_rotated * element, false);
}

// A GPU's kernel adds the new keys to the lengths; on the CPU attention's plan needs them at once.
static void add_to_lengths(const struct tessera_append_first *x, int32_t *after) {
    const int32_t *const before = x->call.args.seqlen_k_ptr;
    for (int32_t b = 0; b < x->call.args.batch; b++) after[b] = before[b] + x->call.args.seqlen_knew;
}

tessera_status tessera_append_first_steps(struct tessera_append_first *x, struct tessera_over_cache *over,
                                          struct tessera_plan *plan) {
    if (!x->is_needed) return TESSERA_SUCCESS;
    if (x->call.args.seqlen_knew > 0) {
        int32_t *const after = tessera_region_memory(plan, lengths_region);
        if (x->row->symbol)
            x->call.problem.seqlen_k_after = after;
        else
            add_to_lengths(x, after);
        over->cache.seqlen_k = after;
    }
    if (rotates(x)) {
        x->call.problem.q_rotated = tessera_region_memory(plan, q_region);
        read_rotated(&x->call.args, x->call.problem.q_rotated, &over->attention.args);
    }
    return tessera_fmha_fwd_appendkv_steps(&x->call, x->row, plan);
}

void tessera_append_first_add_problem(struct tessera_text *out, const struct tessera_append_first *x) {
    const tessera_fmha_fwd_appendkv_args *const a = &x->call.args;
    if (!x->is_needed) return;
    tessera_text_add(out, " -s_knew=%d", a->seqlen_knew);
    if (rotates(x))
        tessera_text_add(out, " -rotary_dim=%d -rotary_interleaved=%d", a->rotary_dim,
                         x->call.traits.rope_type == TESSERA_ROPE_INTERLEAVED);
}
