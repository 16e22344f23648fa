// SPDX-License-Identifier: MIT
// What the choice of an instance (fmha_fwd_select.c) and its explanation (fmha_fwd_explain.c) share.
#ifndef TESSERA_RUNTIME_FMHA_FWD_SELECT_H
#define TESSERA_RUNTIME_FMHA_FWD_SELECT_H

#include "fmha_fwd_internal.h"

// The sets of traits are the first bytes of tessera_fmha_fwd_served, so that two words hold them all.
enum { TESSERA_FMHA_FWD_SET_BYTES = 15 };

struct tessera_fmha_fwd_request {
    tessera_fmha_fwd_served one; // each set with one bit: that of the call's trait; hdim_*_max hold the head dims
    uint64_t sets[2];            // those bits as words
    uint32_t targets;
    int32_t units;
    int64_t heads, rows, keys; // batch * nhead_k; of one sequence and key head
    int64_t queries;           // of one sequence
    double hdims;
    const struct tessera_fmha_fwd_call *call;
};
struct tessera_fmha_fwd_request tessera_fmha_fwd_ask(const tessera_device_facts *facts,
                                                     const struct tessera_fmha_fwd_call *call);

// Validates what selection over a table gets, and copies it.
tessera_status tessera_fmha_fwd_read_request(const tessera_fmha_fwd_table *table, const tessera_device_facts *caller,
                                             const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                             tessera_device_facts *facts, struct tessera_fmha_fwd_call *call);

// What decides where rows of q, k, v and o begin: of each tensor the pointer, then three strides.
struct tessera_fmha_fwd_start {
    const char *name;
    uint64_t value; // of a stride: elements
    int bits;       // of what the value counts
    bool matters;
};
enum { TESSERA_FMHA_FWD_STARTS = 16 };
void tessera_fmha_fwd_list_starts(const struct tessera_fmha_fwd_call *call,
                                  struct tessera_fmha_fwd_start starts[TESSERA_FMHA_FWD_STARTS]);
bool tessera_fmha_fwd_is_aligned(const struct tessera_fmha_fwd_call *call, uint32_t alignment);

static inline bool tessera_fmha_fwd_hdim_fits(uint16_t hdim, uint16_t min, uint16_t max, uint16_t multiple) {
    return hdim >= min && hdim <= max && hdim % multiple == 0;
}

// Whatever the device: traits, head dims and alignment.
bool tessera_fmha_fwd_serves(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_request *r);
double tessera_fmha_fwd_cost(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_request *r);
bool tessera_fmha_fwd_precedes(const tessera_fmha_fwd_instance *a, double cost_a, const tessera_fmha_fwd_instance *b,
                               double cost_b);

// The instance that the caller wants, and the failure where none serves.
tessera_status tessera_fmha_fwd_take(const tessera_fmha_fwd_instance *row, const struct tessera_fmha_fwd_request *r,
                                     const tessera_fmha_fwd_instance **out);
tessera_status tessera_fmha_fwd_no_instance(const tessera_fmha_fwd_table *table,
                                            const struct tessera_fmha_fwd_request *r);

#endif
