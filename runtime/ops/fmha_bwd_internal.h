// SPDX-License-Identifier: MIT
// Declarations that the files of fmha_bwd share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_FMHA_BWD_INTERNAL_H
#define TESSERA_RUNTIME_FMHA_BWD_INTERNAL_H

#include "integers.h"
#include "op/operation.h"
#include "ops/attention.h"
#include "tessera/kernel/fmha_bwd.h"
#include "tessera/kernel/fmha_bwd_convert_dq.h"
#include "tessera/kernel/fmha_bwd_dot_do_o.h"
#include "tessera/kernel/fmha_bwd_gpu.h"

struct tessera_fmha_bwd_call {
    tessera_fmha_bwd_traits traits;
    tessera_fmha_bwd_args args;
    // Sub-kernels beside that of the call, which add_regions chooses.
    const tessera_fmha_bwd_dot_do_o_instance *dot_do_o;
    const tessera_fmha_bwd_convert_dq_instance *convert_dq;
};

extern const struct tessera_operation tessera_fmha_bwd_operation; // fmha_bwd.c

// All that selection reads of a call (fmha_bwd.c), without padding.
struct tessera_fmha_bwd_shape {
    int32_t batch, nhead_q, dkv_heads, queries, keys, hdim_q, hdim_v;
    int32_t seqlen_q; // of args: in group mode all tokens
    int32_t is_masked;
};

// ---- validation (fmha_bwd_check.c)

tessera_status tessera_fmha_bwd_check_traits(const tessera_fmha_bwd_traits *traits);
tessera_status tessera_fmha_bwd_check_sizes(void *call); // traits, sizes, numbers
tessera_status tessera_fmha_bwd_check_memory(const void *call, bool on_gpu, struct tessera_tensors *all);

struct tessera_attention_sequence tessera_fmha_bwd_get_sequence(const tessera_fmha_bwd_traits *traits,
                                                                const tessera_fmha_bwd_args *args, int32_t batch);

// ---- the workspace (fmha_bwd_workspace.c); tessera/fmha_bwd.h describes it

// Of sections; workers of each compute unit of a CPU and of a GPU.
enum { TESSERA_FMHA_BWD_ALIGNMENT = 16, TESSERA_FMHA_BWD_CPU_WORKERS = 4, TESSERA_FMHA_BWD_GPU_WORKERS = 1 };

struct tessera_fmha_bwd_layout {
    bool is_direct;  // the instance writes dq itself: there is nothing else here
    bool is_parted;  // deterministic: nobody but a task adds to a part of dq
    bool is_ordered; // deterministic: all add to the one part by turns
    int64_t heads;   // that dq_dk_dv takes one by one: of dk
    int64_t blocks;  // batch mode: of keys of a head
    int64_t workers; // batch mode with parts: each takes a row of `share` blocks
    int64_t share;
    int32_t bn0;
    bool is_by_sequence; // deterministic group mode: each has a number of parts
    bool is_stored;      // that of its blocks of keys, which store them
    int32_t nsplits;     // else, of each head
    int64_t nsplits_count;
    size_t offsets_offset, host_bytes, device_bytes;
    bool is_zeroed; // dq_acc, before the first step
};

tessera_status tessera_fmha_bwd_lay_out(const tessera_fmha_bwd_traits *traits, const tessera_instance *row,
                                        int64_t units, struct tessera_fmha_bwd_layout *out);

// Writes nsplits and offsets to `workspace`, whose dq_acc must have room for what they need. In group mode the arrays
// are cumulative physical lengths.
tessera_status tessera_fmha_bwd_write_head(const tessera_fmha_bwd_traits *traits,
                                           const struct tessera_fmha_bwd_layout *layout, const int32_t *seqstart_q,
                                           const int32_t *seqstart_k, void *workspace);
// Whether a workspace's head is what tessera_fmha_bwd_write_head() writes.
tessera_status tessera_fmha_bwd_check_head(const tessera_fmha_bwd_traits *traits,
                                           const struct tessera_fmha_bwd_layout *layout, const int32_t *seqstart_q,
                                           const int32_t *seqstart_k, const void *workspace);

// The regions of a call, in their order: after the first one those of CPUs, and that of NVIDIA's GPUs.
enum { TESSERA_FMHA_BWD_UNIFIED, TESSERA_FMHA_BWD_SEQUENCES, TESSERA_FMHA_BWD_SCRATCH };
enum { TESSERA_FMHA_BWD_COUNTERS = 1 };

// The step that zeroes dq_acc, in as many pieces as keep threads busy.
tessera_status tessera_fmha_bwd_add_zeroing(struct tessera_plan *plan, void *memory, size_t bytes);

// ---- instances (fmha_bwd_rows.c)

// Whether a call has more queries than the instance takes.
bool tessera_fmha_bwd_keeps_out(const tessera_instance *row, const struct tessera_request *r, struct tessera_text *why);
int tessera_fmha_bwd_list_starts(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]);
// Chooses the instances of the sub-kernels beside that of the call: no convert_dq where dq is written without it.
tessera_status tessera_fmha_bwd_choose_rows(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan);

// ---- launches (fmha_bwd_launch_cpu.c, fmha_bwd_launch_gpu.c, fmha_bwd_fill_gpu.c)

tessera_status tessera_fmha_bwd_cpu_regions(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan);
tessera_status tessera_fmha_bwd_cpu_steps(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan);

tessera_status tessera_fmha_bwd_gpu_check(const struct tessera_fmha_bwd_call *call, const tessera_instance *row);
tessera_status tessera_fmha_bwd_gpu_regions(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan);
tessera_status tessera_fmha_bwd_gpu_steps(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan);
// Adds the step that writes the workspace's head by lengths in memory of the device.
tessera_status tessera_fmha_bwd_gpu_prepare(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan,
                                            const void *seqstart_q, const void *seqstart_k);

// Launches of dq_dk_dv on NVIDIA's GPUs (fmha_bwd_launch_cuda.c).
// Numbers in the region of counters, which begin as 0.
int64_t tessera_fmha_bwd_cuda_counters(const struct tessera_fmha_bwd_call *call, const struct tessera_plan *plan,
                                       const struct tessera_fmha_bwd_layout *layout);
tessera_status tessera_fmha_bwd_cuda_add(const struct tessera_fmha_bwd_call *call, struct tessera_plan *plan,
                                         const struct tessera_fmha_bwd_layout *layout,
                                         const struct tessera_fmha_bwd_gpu_args *filled);

// The argument of kernels: all of it, or what belongs to the workspace.
void tessera_fmha_bwd_fill(const struct tessera_fmha_bwd_call *call, const struct tessera_fmha_bwd_layout *layout,
                           void *workspace, struct tessera_fmha_bwd_gpu_args *out);
void tessera_fmha_bwd_fill_workspace(const tessera_fmha_bwd_traits *traits,
                                     const struct tessera_fmha_bwd_layout *layout, void *workspace,
                                     struct tessera_fmha_bwd_gpu_args *out);

#endif
