// SPDX-License-Identifier: MIT
// A call of fmha_fwd_appendkv, by itself or as the first step of an operation on caches. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_FMHA_FWD_APPENDKV_INTERNAL_H
#define TESSERA_RUNTIME_OPS_FMHA_FWD_APPENDKV_INTERNAL_H

#include "ops/fmha_fwd_over_cache.h"
#include "tessera/kernel/fmha_fwd_appendkv.h"

struct tessera_fmha_fwd_appendkv_call {
    tessera_fmha_fwd_appendkv_traits traits;
    tessera_fmha_fwd_appendkv_args args;
    struct tessera_fmha_fwd_appendkv_problem problem;
    int64_t rows; // of a sequence
    bool is_step; // q_rotated is the workspace's
    tessera_fmha_fwd_appendkv_cpu_run *run;
    int64_t task_rows;
};

extern const struct tessera_operation tessera_fmha_fwd_appendkv_operation;

tessera_status tessera_fmha_fwd_appendkv_check_row(const struct tessera_fmha_fwd_appendkv_call *call,
                                                   const tessera_instance *row);
tessera_status tessera_fmha_fwd_appendkv_steps(struct tessera_fmha_fwd_appendkv_call *call, const tessera_instance *row,
                                               struct tessera_plan *plan);

// ---- the first step of an operation on caches, which attends afterwards (fmha_fwd_appendkv_first.c)

struct tessera_append_first {
    bool is_needed;
    struct tessera_fmha_fwd_appendkv_call call;
    const tessera_instance *row;
};

// Copies the fields that args of an operation on caches share with those of fmha_fwd_appendkv.
#define TESSERA_APPEND_COPY(to, from)                                                                                  \
    ((to)->traits.rope_type = (from)->rope_type, (to)->args.knew_ptr = (from)->knew_ptr,                               \
     (to)->args.vnew_ptr = (from)->vnew_ptr, (to)->args.rotary_cos_ptr = (from)->rotary_cos_ptr,                       \
     (to)->args.rotary_sin_ptr = (from)->rotary_sin_ptr, (to)->args.seqlen_knew = (from)->seqlen_knew,                 \
     (to)->args.rotary_dim = (from)->rotary_dim, (to)->args.rotary_rows = (from)->rotary_rows,                         \
     (to)->args.stride_knew = (from)->stride_knew, (to)->args.stride_vnew = (from)->stride_vnew,                       \
     (to)->args.nhead_stride_knew = (from)->nhead_stride_knew,                                                         \
     (to)->args.nhead_stride_vnew = (from)->nhead_stride_vnew,                                                         \
     (to)->args.batch_stride_knew = (from)->batch_stride_knew,                                                         \
     (to)->args.batch_stride_vnew = (from)->batch_stride_vnew)

// Begins the step, whose fields TESSERA_APPEND_COPY then fills in.
void tessera_append_first_begin(struct tessera_append_first *x);

// For struct tessera_operation, but for the types of their arguments; they do nothing where nothing is appended or
// rotated. `over` is the operation's call, whose sizes were checked. Each but the last comes after its namesake of
// `over`, or before it where it changes `over`: regions and steps.
tessera_status tessera_append_first_check_sizes(struct tessera_append_first *x, const struct tessera_over_cache *over,
                                                const struct tessera_cache_place *place);
tessera_status tessera_append_first_check_memory(const struct tessera_append_first *x, bool on_gpu,
                                                 struct tessera_tensors *all);
tessera_status tessera_append_first_check_row(const struct tessera_append_first *x);
tessera_status tessera_append_first_regions(struct tessera_append_first *x, struct tessera_over_cache *over,
                                            struct tessera_plan *plan);
tessera_status tessera_append_first_steps(struct tessera_append_first *x, struct tessera_over_cache *over,
                                          struct tessera_plan *plan);
void tessera_append_first_add_problem(struct tessera_text *out, const struct tessera_append_first *x);

#endif
