// SPDX-License-Identifier: MIT
// The arguments that the launcher passes to an emitted CPU kernel of fmha_fwd. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_CPU_H
#define TESSERA_KERNEL_FMHA_FWD_CPU_H

#include "tessera/fmha_fwd.h"
#include "tessera/kernel/attention_pages.h"
#include "tessera/types.h"

// What all tasks of a call share. Everything was checked; in `args` the pointers that the traits do not ask for are
// NULL and the batch strides of group mode are 0.
struct tessera_fmha_fwd_cpu_problem {
    const tessera_fmha_fwd_traits *traits;
    const tessera_fmha_fwd_args *args;
    tessera_type qkv_storage, o_storage, bias_storage;
    int32_t group; // nhead_q / nhead_k
    float scale_s; // args->scale_s times the per-tensor descales of q and k
    float scale_o; // the per-tensor descale of v, else 1
    // Scales of queries, [token][nhead_q], where rows of k have scales too (find_rows); NULL: 1.
    const float *q_scales;
    uint64_t drop_seed, drop_offset;
    uint32_t keep_below; // a byte of dropout <= keep_below keeps its element
    float keep_scale;    // 1 / (1 - p_drop)
    // Where rows of K and V lie that have no fixed distance: the function finds those of a block of keys in `pages`.
    // NULL: they lie where `args` says.
    tessera_attention_pages_cpu_run *find_rows;
    const struct tessera_attention_pages *pages;
    size_t copy_bytes; // of a block of keys, where rows must be copied
};

// One task: some rows of one sequence and of some key heads against some of its keys. The rows of a group's query heads
// are folded: row r is query r / group of head head_k * group + r % group. The rows of the key heads follow one
// another.
struct tessera_fmha_fwd_cpu_task {
    int32_t batch, head_k, heads; // key heads head_k .. head_k + heads
    int64_t row_begin, row_end;   // folded rows of each; at most the tile's bm0
    int32_t seqlen_q, seqlen_k;   // logical lengths
    int64_t token_q, token_k;     // group mode: the sequence's first token; batch mode: 0
    int32_t kv_begin, kv_end;     // keys of this task; all keys that any row sees lie in its tasks' (with rand_val: all
                                  // keys do); with dropout or mx types kv_begin is a multiple of 32
    int32_t mask_y, mask_x;       // query i sees i - mask_y < j < i + mask_x; no mask: INT32_MAX / 2 each
    int32_t sink;                 // query i < seqlen_k sees j < min(sink, i + mask_x) too; 0 where there is none
    int32_t alibi_shift;          // alibi zero point of query i: i + alibi_shift, or 0 with alibi_vertical
    int32_t alibi_vertical;
    uint8_t *copies; // room for those of two blocks
    float *partial;  // NULL: write o and lse. Else write (rows)x(hdim_v + 2) fp32: sums of exp * v, max (log2), sum
};

// Runs one task. `scratch` has tessera_fmha_fwd_instance.scratch_bytes(hdim_q, hdim_v) bytes, 64-byte aligned, and need
// not be initialized.
typedef void tessera_fmha_fwd_cpu_run(const struct tessera_fmha_fwd_cpu_problem *problem,
                                      const struct tessera_fmha_fwd_cpu_task *task, void *scratch);

// Merges the `splits` partials of a task's rows (one after the other, `split_stride` floats apart) into o and lse.
typedef void tessera_fmha_fwd_cpu_combine(const struct tessera_fmha_fwd_cpu_problem *problem,
                                          const struct tessera_fmha_fwd_cpu_task *task, int32_t splits,
                                          int64_t split_stride);

typedef size_t tessera_fmha_fwd_cpu_scratch(int32_t hdim_q, int32_t hdim_v);

#endif
