// SPDX-License-Identifier: MIT
// Declarations that the files of fmha_fwd share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_FMHA_FWD_INTERNAL_H
#define TESSERA_RUNTIME_FMHA_FWD_INTERNAL_H

#include "integers.h"
#include "op/operation.h"
#include "ops/attention_cache.h"
#include "tessera/kernel/fmha_fwd.h"
#include "tessera/kernel/fmha_fwd_combine.h"
#include "tessera/kernel/fmha_fwd_gpu.h"

// A call, and the sizes that costs are computed from; lengths are those of the longest sequence.
struct tessera_fmha_fwd_call {
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    int64_t heads, rows, keys; // batch * nhead_k; folded rows and keys of one sequence and key head
    int64_t queries;           // of one sequence
    double hdims;              // hdim_q + hdim_v
    // Calls of operations on caches: where keys lie, and how many splits they are cut into (0: the launcher's choice).
    const struct tessera_attention_cache *cache; // NULL: as args says
    int32_t splits;
    bool leaves_longer; // sequences of more than max_seqlen_q queries are left alone, not refused
    int32_t hdim_rope;  // last elements of keys that lie in a tensor of their own, which that operation checks; or 0
};

extern const struct tessera_operation tessera_fmha_fwd_operation; // fmha_fwd.c

// All that selection and parts of keys read of a call (fmha_fwd_shape.c), without padding.
struct tessera_fmha_fwd_shape {
    int64_t heads, rows, keys, queries; // as the call has them
    int64_t apart; // sequences, or key heads of the only one, of which some may be a call by themselves; 1: none
    double hdims;
    int32_t batch, nhead_q, nhead_k, hdim_v, seqlen_q, seqlen_k;
    int32_t window_left, window_right;
    int32_t splits, num_splits;   // of operations on caches, and of fmha_fwd
    int32_t page_size, hdim_rows; // hdim_rows: of rows of all key heads, copied together (fmha_fwd_shape.c), or 0
    float negative_scale;         // scale_s, if it is below 0, or 0
    tessera_fmha_dtype data_type;
    tessera_mask mask_type;
    tessera_kv_cache_dtype kv;
    bool is_group_mode, is_cached, in_pages, in_pieces;
    bool is_ragged, has_lengths; // sequences have keys of their own; tensors have lengths in memory
    bool has_left, has_right;    // edges of the mask
};
uint32_t tessera_fmha_fwd_describe(const void *call, void *shape); // for struct tessera_kernels

// ---- validation (fmha_fwd_check.c)

tessera_status tessera_fmha_fwd_check_traits(const tessera_fmha_fwd_traits *traits);
tessera_status tessera_fmha_fwd_check_sizes(void *call);                        // traits, sizes, numbers
tessera_status tessera_fmha_fwd_check_call(struct tessera_fmha_fwd_call *call); // the same with `cache` and `splits`
tessera_status tessera_fmha_fwd_check_memory(const void *call, bool on_gpu, struct tessera_tensors *all);

// ---- selection

// Estimated cycles (fmha_fwd_cost_*.c).
double tessera_fmha_fwd_cpu_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                 double rate, int64_t units);
double tessera_fmha_fwd_cdna_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                  int64_t units);

// A little more than the longer of two times that go on beside one another; and of a time and that of memory for keys
// and values.
double tessera_fmha_fwd_longer_of(double a, double b);
double tessera_fmha_fwd_cdna_beside(const tessera_fmha_fwd_instance *row, double time, double memory);

// How an instance for AMD GPUs that takes keys whole goes through key heads of all sequences, and blocks of queries.
struct tessera_fmha_fwd_order {
    int64_t turns;    // blocks of a workgroup
    int64_t together; // key heads whose workgroups take turns: a divisor of all
    double cycles;    // estimated, of the call, with those of memory
    double memory;    // what keys and values take of memory's time
};
struct tessera_fmha_fwd_order tessera_fmha_fwd_find_order(const tessera_fmha_fwd_instance *row,
                                                          const struct tessera_fmha_fwd_shape *s, int64_t units);

// How many of the last sequences, or of the last key heads of the only one, become a launch of their own, since units
// would be idle, and by which instance; `parts` and `length` are 0 (fmha_fwd_rest.c). Writes the cost of the call.
struct tessera_cut tessera_fmha_fwd_find_rest(const tessera_fmha_fwd_instance *row, const struct tessera_request *r,
                                              double *cost);
// The shape of so many of these, and the calls of what the first launch keeps and of the rest.
struct tessera_fmha_fwd_shape tessera_fmha_fwd_narrow(const struct tessera_fmha_fwd_shape *s, int64_t count);
struct tessera_fmha_fwd_call tessera_fmha_fwd_kept(const struct tessera_fmha_fwd_call *call, int64_t rest);
struct tessera_fmha_fwd_call tessera_fmha_fwd_rest(const struct tessera_fmha_fwd_call *call, int64_t rest);

// Bytes of a key and its value, as they lie in memory.
double tessera_fmha_fwd_key_bytes(const struct tessera_fmha_fwd_shape *s);

// Cycles that so many blocks of keys in all workgroups together take of memory on an AMD GPU, where workgroups of so
// many query heads and blocks of queries, if there are as many, read the same keys at once.
double tessera_fmha_fwd_cdna_memory(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                    double blocks, double at_once);
double tessera_fmha_fwd_cuda_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_shape *s,
                                  int64_t units);

// Whether all tasks of a call that does not merge heads take as long, so that NVIDIA's workgroups have them dealt out.
bool tessera_fmha_fwd_is_even(const struct tessera_fmha_fwd_shape *s);

// The tasks of such a call: `whole` ones, then `strips`, of a warpgroup's rows each, of the blocks that are left and of
// the rows behind each head's last block.
struct tessera_fmha_fwd_deal {
    int64_t blocks, behind; // of a head: blocks of bm0 rows, and strips behind them
    int64_t whole, strips;
    double rounds;         // the time of so many tasks one after the other
    int64_t paired;        // so many of the tasks are of workgroups that share tiles of keys and values in pairs
    int64_t blocks_behind; // of a head: 1 where its first block has no neighbour, and comes behind those that have
};
struct tessera_fmha_fwd_deal tessera_fmha_fwd_find_deal(const tessera_fmha_fwd_instance *row,
                                                        const struct tessera_fmha_fwd_shape *s, int64_t units);

// Adds why an instance that takes whole tiles alone does not serve the call, if it does not (fmha_fwd_whole.c).
bool tessera_fmha_fwd_keeps_out(const tessera_instance *row, const struct tessera_request *r, struct tessera_text *why);

// ---- sequences (fmha_fwd_sequence.c)

struct tessera_attention_lengths tessera_fmha_fwd_get_lengths(const struct tessera_fmha_fwd_call *call);
struct tessera_attention_sequence tessera_fmha_fwd_get_sequence(const struct tessera_fmha_fwd_call *call,
                                                                int32_t batch);

static inline bool tessera_fmha_fwd_is_left_alone(const struct tessera_fmha_fwd_call *call,
                                                  const struct tessera_attention_sequence *s) {
    return call->leaves_longer && s->seqlen_q > call->args.max_seqlen_q;
}

// ---- parts of keys, by rules that selection and launch share

// A tile's keys are cut into parts where they are a large share of the keys of all tiles, so that each of the device's
// compute units finds about 8 tasks. (The number of threads asked for does not count: results would depend on it.) A
// part has at least 512 keys, and there are at most 64 parts: each costs a packing of q and a combination more.
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

// On GPUs an instance that merges heads cuts a task's tiles of keys (fmha_fwd_parts.c); others take them whole.
enum { TESSERA_FMHA_FWD_MOST_SPLITS = 128 };
struct tessera_fmha_fwd_parts {
    int64_t parts, tiles; // tiles: of a part, more where a sequence is longer than the host knows
    double cycles;        // estimated, of the call
};
struct tessera_fmha_fwd_parts tessera_fmha_fwd_find_parts(const tessera_fmha_fwd_instance *row,
                                                          const struct tessera_fmha_fwd_shape *s, int64_t units);

// The splits that CK's example would choose on a device of so many compute units (fmha_fwd_ck_splits.c).
int32_t tessera_fmha_fwd_ck_splits(const struct tessera_fmha_fwd_call *call, int32_t units);

// Where parts leave their results (tessera/kernel/fmha_fwd_combine_gpu.h), and the launch that combines them to what
// `whole` says (fmha_fwd_combine.c).
struct tessera_fmha_fwd_partial {
    float *o_acc, *lse_acc;
    int64_t parts;
};
tessera_status tessera_fmha_fwd_check_parts(const tessera_fmha_fwd_instance *instance,
                                            const struct tessera_fmha_fwd_call *call);
tessera_status tessera_fmha_fwd_add_partial(const struct tessera_fmha_fwd_call *call, int64_t parts,
                                            struct tessera_plan *plan);
struct tessera_fmha_fwd_partial tessera_fmha_fwd_get_partial(const struct tessera_plan *plan, int64_t parts);
tessera_status tessera_fmha_fwd_add_combine(const struct tessera_fmha_fwd_call *call,
                                            const struct tessera_fmha_fwd_partial *partial,
                                            const struct tessera_fmha_fwd_gpu_args *whole, struct tessera_plan *plan);

// Whether a table says where keys lie.
static inline bool tessera_fmha_fwd_in_pages(const struct tessera_fmha_fwd_call *call) {
    return call->cache && call->cache->pages.table;
}

// Whether rows of k and v have no strides, but lie in pieces of pages.
static inline bool tessera_fmha_fwd_in_pieces(const struct tessera_fmha_fwd_call *call) {
    return call->cache && call->cache->pages.piece_v;
}

// Whether an instance looks rows up.
static inline bool tessera_fmha_fwd_looks_up(const tessera_fmha_fwd_instance *instance) {
    return instance->keys_in & (TESSERA_KEYS_IN_PAGES | TESSERA_KEYS_IN_PIECES);
}

// Key heads of a task of an instance that merges query heads.
static inline int64_t tessera_fmha_fwd_heads_of(const tessera_fmha_fwd_instance *instance) {
    return instance->heads > 1 ? instance->heads : 1;
}

// Blocks of queries of the longest sequence, where so many query heads have a key head.
static inline int64_t tessera_fmha_fwd_count_blocks(const tessera_fmha_fwd_instance *instance, int64_t queries,
                                                    int64_t group) {
    return tessera_ceil_div(instance->merged ? queries * group : queries, instance->tile.bm0);
}

// The keys of the longest sequence that any of so many queries beside one another sees, on average under a mask.
double tessera_fmha_fwd_seen_keys(const struct tessera_fmha_fwd_shape *s, int64_t queries);

// ---- launches (fmha_fwd_launch_*.c)

enum { TESSERA_FMHA_FWD_GRID_MAX = 65535 }; // the HIP runtime's limit of workgroups along y and z

// The call as GPUs' kernels get it, cut into so many blocks of queries. *out is all zeros before, padding as well:
// equal calls have equal bytes.
void tessera_fmha_fwd_fill(const struct tessera_fmha_fwd_call *call, int32_t blocks_q,
                           struct tessera_fmha_fwd_gpu_args *out);
// Says in which order AMD's kernels go through blocks of a call that fill() has written: it says sequence by sequence,
// a workgroup each.
void tessera_fmha_fwd_set_order(const struct tessera_fmha_fwd_order *order, struct tessera_fmha_fwd_gpu_args *out);
// Blocks of queries of the longest sequence.
int64_t tessera_fmha_fwd_blocks(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call);
tessera_status tessera_fmha_fwd_check_cap(const struct tessera_fmha_fwd_call *call);

// `row` is the instance. Checks are of limits that only GPUs' kernels have. Those without the name of a kind are for
// all of them (fmha_fwd.c).
tessera_status tessera_fmha_fwd_check_row(const struct tessera_fmha_fwd_call *call, const tessera_instance *row);
tessera_status tessera_fmha_fwd_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                        struct tessera_plan *plan);
tessera_status tessera_fmha_fwd_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                      struct tessera_plan *plan);

// Of tensors whose rows kernels take so many of together.
tessera_status tessera_fmha_fwd_cdna_check_strides(const struct tessera_fmha_fwd_call *call, int64_t q_rows,
                                                   int64_t k_rows);
tessera_status tessera_fmha_fwd_cdna_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call);
tessera_status tessera_fmha_fwd_cdna_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                             struct tessera_plan *plan);
tessera_status tessera_fmha_fwd_cdna_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                           struct tessera_plan *plan);

tessera_status tessera_fmha_fwd_cuda_check(const tessera_fmha_fwd_instance *instance,
                                           const struct tessera_fmha_fwd_call *call);
tessera_status tessera_fmha_fwd_cuda_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                             struct tessera_plan *plan);
tessera_status tessera_fmha_fwd_cuda_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                           struct tessera_plan *plan);

tessera_status tessera_fmha_fwd_cpu_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                            struct tessera_plan *plan);
tessera_status tessera_fmha_fwd_cpu_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                          struct tessera_plan *plan);

#endif
