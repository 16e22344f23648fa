// SPDX-License-Identifier: MIT
// The arguments that the launcher passes to emitted CPU kernels of fmha_bwd's sub-kernels. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_BWD_CPU_H
#define TESSERA_KERNEL_FMHA_BWD_CPU_H

#include "tessera/fmha_bwd.h"
#include "tessera/types.h"

// What all tasks of a call share. Everything was checked; in `args` the pointers that the traits do not ask for are
// NULL and the batch strides of group mode are 0.
struct tessera_fmha_bwd_cpu_problem {
    const tessera_fmha_bwd_traits *traits;
    const tessera_fmha_bwd_args *args;
    tessera_type storage; // of q, k, v, o, do, and of gradients
    tessera_type bias_storage;
    int32_t group; // nhead_q / nhead_k
    uint64_t drop_seed, drop_offset;
    uint32_t keep_below; // a byte of dropout <= keep_below keeps its element
    float keep_scale;    // 1 / (1 - p_drop)
};

// One task: keys of a block against all queries of some heads; or rows of one head.
struct tessera_fmha_bwd_cpu_task {
    int32_t batch;
    int32_t head, heads;            // query heads; all that share a key head where dk and dv are reduced, else 1
    int32_t seqlen_q, seqlen_k;     // logical lengths
    int64_t token_q, token_k;       // group mode: the sequence's first token; batch mode: 0
    int32_t begin, end;             // dq_dk_dv: keys; other sub-kernels: queries
    int32_t query_begin, query_end; // dq_dk_dv: queries that may see one of the keys; with dbias or rand_val all
    int32_t mask_y, mask_x;         // query i sees i - mask_y < j < i + mask_x; no mask: INT32_MAX / 2 each
    int32_t sink;                   // query i < seqlen_k sees j < min(sink, i + mask_x) too; 0 where there is none
    int32_t alibi_shift;            // alibi zero point of query i: i + alibi_shift, or 0 with alibi_vertical
    int32_t alibi_vertical;
    float *dq_acc;       // dq_dk_dv: the part of the first head; convert_dq: the first part of the head
    int64_t dq_stride;   // floats to the next head's, or part's
    int32_t dq_parts;    // convert_dq
    int32_t dq_is_first; // dq_dk_dv: the part holds nothing yet, so that it is written; else added to
};

// dq_dk_dv: computes dk and dv of the task's keys, and what they add to dq. `scratch` has
// tessera_fmha_bwd_instance.scratch_bytes(hdim_q, hdim_v) bytes, 64-byte aligned, and need not be initialized.
typedef void tessera_fmha_bwd_cpu_run(const struct tessera_fmha_bwd_cpu_problem *problem,
                                      const struct tessera_fmha_bwd_cpu_task *task, void *scratch);
typedef size_t tessera_fmha_bwd_cpu_scratch(int32_t hdim_q, int32_t hdim_v);

// dot_do_o: d of the task's queries.
typedef void tessera_fmha_bwd_dot_do_o_cpu_run(const struct tessera_fmha_bwd_cpu_problem *problem,
                                               const struct tessera_fmha_bwd_cpu_task *task);
// What one sequence's queries, all from the task's begin to end, add to d_sink of a head.
typedef double tessera_fmha_bwd_dot_do_o_cpu_d_sink(const struct tessera_fmha_bwd_cpu_problem *problem,
                                                    const struct tessera_fmha_bwd_cpu_task *task);

// convert_dq: dq of the task's queries.
typedef void tessera_fmha_bwd_convert_dq_cpu_run(const struct tessera_fmha_bwd_cpu_problem *problem,
                                                 const struct tessera_fmha_bwd_cpu_task *task);

#endif
