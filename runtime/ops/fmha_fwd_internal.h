// SPDX-License-Identifier: MIT
// What the files of fmha_fwd share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_FMHA_FWD_INTERNAL_H
#define TESSERA_RUNTIME_FMHA_FWD_INTERNAL_H

#include "integers.h"
#include "internal.h"
#include "tessera/kernel/fmha_fwd.h"

// A caller's request, whole whatever header the caller was compiled with.
struct tessera_fmha_fwd_call {
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
};

// ---- validation (fmha_fwd_check.c), in the order in which it is done

tessera_status tessera_fmha_fwd_read(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                     struct tessera_fmha_fwd_call *call);
tessera_status tessera_fmha_fwd_check_traits(const tessera_fmha_fwd_traits *traits);
tessera_status tessera_fmha_fwd_check_sizes(const struct tessera_fmha_fwd_call *call);
// With `on_gpu` no memory is read: what arrays of lengths in it may hold is not checked.
tessera_status tessera_fmha_fwd_check_memory(const struct tessera_fmha_fwd_call *call, bool with_workspace,
                                             bool on_gpu);

// The first three of them: all that functions need that look only at traits and sizes.
tessera_status tessera_fmha_fwd_read_sizes(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                           struct tessera_fmha_fwd_call *call);

enum { TESSERA_FMHA_FWD_MAX_SEQLEN = INT32_MAX / 2 }; // mask arithmetic of kernels stays within int32

struct tessera_fmha_fwd_storages {
    tessera_type qkv, o, bias;
};
extern const struct tessera_fmha_fwd_storages tessera_fmha_fwd_storages[TESSERA_FMHA_DTYPE_COUNT];

// ---- selection (fmha_fwd_dispatch.c)

tessera_status tessera_fmha_fwd_choose(const tessera_table *table, const tessera_device_facts *facts,
                                       const struct tessera_fmha_fwd_call *call, const tessera_fmha_fwd_instance **out);

// Prints why that instance was chosen, or none, for TESSERA_VERBOSE.
void tessera_fmha_fwd_tell_reasons(const tessera_device_facts *facts, const struct tessera_fmha_fwd_call *call);

// The sizes that costs are made of; lengths are those of the longest sequence.
struct tessera_fmha_fwd_asked {
    const struct tessera_fmha_fwd_call *call;
    int64_t heads, rows, keys; // batch * nhead_k; of one sequence and key head
    int64_t queries;           // of one sequence
    double hdims;              // the sum of both
};
// Estimated cycles (fmha_fwd_cost_*.c).
double tessera_fmha_fwd_cpu_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_asked *asked,
                                 int64_t units);
double tessera_fmha_fwd_cdna_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_asked *asked,
                                  int64_t units);

// ---- sequences (fmha_fwd_sequence.c)

struct tessera_fmha_fwd_sequence {
    int32_t batch;
    int32_t seqlen_q, seqlen_k;     // logical
    int32_t physical_q, physical_k; // room
    int64_t token_q, token_k;       // group mode: the first token; batch mode: 0
};
struct tessera_fmha_fwd_sequence tessera_fmha_fwd_get_sequence(const struct tessera_fmha_fwd_call *call, int32_t batch);

// ---- cuts, which selection and launch agree on

// Keys are cut into parts where a tile's keys are a large share of the keys of all tiles, so that each of the device's
// compute units (not of the threads asked for: results would follow them) finds about 8 tasks. A part never has fewer
// than 512 keys, and there are no more than 64: what a part costs beside its keys is a packing of q and a combination.
enum { TESSERA_FMHA_FWD_PARTS = 64, TESSERA_FMHA_FWD_PART_KEYS = 512 };
static inline int64_t tessera_fmha_fwd_most_parts(int64_t units) {
    const int64_t most = TESSERA_FMHA_FWD_PARTS;
    return units < most / 8 ? 8 * units : most;
}
static inline int64_t tessera_fmha_fwd_parts(int64_t keys, double keys_of_all_tiles, int64_t units) {
    const double least = TESSERA_FMHA_FWD_PART_KEYS;
    const double share = keys_of_all_tiles / (double)tessera_fmha_fwd_most_parts(units);
    const int64_t parts = (int64_t)((double)keys / (share > least ? share : least));
    return parts > 1 ? parts : 1;
}

// ---- launching (fmha_fwd.c)

// Runs a call that was checked, on at most `threads` threads of the CPU.
tessera_status tessera_fmha_fwd_launch(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                                       const struct tessera_fmha_fwd_call *call, int threads, void *stream);

// ---- for TESSERA_VERBOSE (fmha_fwd_verbose.c)

// The same, and a line about it; on a GPU the call is waited for, unless the stream captures.
tessera_status tessera_fmha_fwd_launch_told(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                                            const struct tessera_fmha_fwd_call *call, int threads, void *stream);

// ---- launching on a GPU (fmha_fwd_launch_cdna.c)

static inline bool tessera_fmha_fwd_is_gpu(const tessera_fmha_fwd_instance *instance) { return instance->base.symbol; }
// What kernels need beyond what every device does.
tessera_status tessera_fmha_fwd_cdna_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call);
// Loads its code object unless that was done before.
tessera_status tessera_fmha_fwd_cdna_load(const tessera_device *device, const tessera_fmha_fwd_instance *instance);
// Puts a call that was checked into the stream.
tessera_status tessera_fmha_fwd_cdna_launch(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                                            const struct tessera_fmha_fwd_call *call, void *stream);

// ---- launching on the CPU (fmha_fwd_launch_cpu.c)

// Reads only traits and sizes of a call that was checked.
size_t tessera_fmha_fwd_cpu_workspace(const tessera_fmha_fwd_instance *instance,
                                      const struct tessera_fmha_fwd_call *call, int32_t units, int threads);
// Runs a call that was checked, cut for a device of `units` compute units, on at most `threads` threads; the workspace
// is large enough for both.
void tessera_fmha_fwd_cpu_launch(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call,
                                 int32_t units, int threads);

#endif
