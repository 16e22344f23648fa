// SPDX-License-Identifier: MIT
// Finds the instance that serves a call best, and says why others do not, in the same way for every operation. What an
// operation adds of its own is in its tessera_kernels.
#ifndef TESSERA_RUNTIME_OP_SELECT_H
#define TESSERA_RUNTIME_OP_SELECT_H

#include <stddef.h>
#include <string.h>

#include "internal.h"
#include "tessera/operation.h"

struct tessera_request;

// A pointer or a stride, which decides where rows in memory begin.
struct tessera_start {
    const char *name;
    uint64_t value;
    int bits; // of the unit that the value counts: an element's, or 8 of a pointer
    bool is_pointer, matters;
};
enum { TESSERA_MAX_STARTS = 32 };

// The work of a call with an instance, in tasks that take about the same time.
struct tessera_work {
    double macs;  // multiply-adds, or other operations that the instance's macs_per_cycle counts
    double bytes; // read and written, each counted once
    int64_t tasks;
};

// How an instance cuts the work of a call where it may do so in several ways, by numbers of its own.
struct tessera_cut {
    int64_t parts, length;
    int64_t rest; // of what a call consists of: how many become a launch of their own, by `other`; 0: none
    const tessera_instance *other;
};

// What is chosen for a call.
struct tessera_choice {
    const tessera_instance *row;
    struct tessera_cut cut;
};

enum { TESSERA_SHAPE_WORDS = 16 }; // of 64 bits

// A set of kernels that one schema describes: those of a call, or those of one step of it.
struct tessera_kernels {
    const tessera_table *(*get_table)(void); // the table that was generated into this library
    // Writes a struct without padding: all that cost, keeps_out and cut read of a call beside its traits, sizes and
    // starts. They find it in r->shape, and choices are remembered (choose.c). Returns its bytes, a multiple of 8.
    // NULL: they read r->call, and choices are made anew.
    uint32_t (*describe)(const void *call, void *shape);
    // Estimated cycles of a call that the instance serves: by a formula of their own, or tessera_roofline().
    double (*cost)(const tessera_instance *row, const struct tessera_request *r);
    // Lists the starts of a call and returns their number. NULL: instances take any alignment.
    int (*list_starts)(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]);
    // For CK's names. add_ck_tile adds the tile and what follows it up to the next axis. count_ck returns the number of
    // the token of an axis that is neither a trait nor has limits; NULL where there is no such axis. `limits` are the
    // sizes that the name states, or NULL.
    void (*add_ck_tile)(struct tessera_text *out, const tessera_instance *row, const uint32_t *limits);
    uint32_t (*count_ck)(const struct tessera_request *r, const tessera_instance *row, const uint32_t *limits);
    // Whether an instance that serves the traits, sizes and alignment of a call does not take it for another reason,
    // which is added, unless `why` is NULL. NULL: there are none.
    bool (*keeps_out)(const tessera_instance *row, const struct tessera_request *r, struct tessera_text *why);
    struct tessera_cut (*cut)(const tessera_instance *row, const struct tessera_request *r); // NULL: there are no ways
};

struct tessera_request {
    const struct tessera_kernels *kernels;
    const void *traits, *call; // `traits` as the schema describes them; `call` for the kernels' functions
    uint32_t shape_bytes;      // 0: the kernels do not describe calls
    // What follows decides the choice; there is no padding.
    const tessera_table *table;
    const tessera_instance *wanted; // the caller's choice; NULL: that of least cost
    uint32_t targets;
    int32_t units;
    uint64_t sets[TESSERA_SET_WORDS]; // for each trait the one bit of its value
    uint32_t sizes[TESSERA_MAX_SIZES];
    uint64_t alignment;                  // the greatest power of two that divides all starts that matter; 0: they are 0
    uint64_t shape[TESSERA_SHAPE_WORDS]; // the kernels' own struct
};

// Copies a caller's device facts and validates them and the table.
tessera_status tessera_read_facts(const tessera_table *table, const tessera_device_facts *caller,
                                  tessera_device_facts *facts);

// Completes a request whose kernels, table, traits, call and wanted are set. The traits must be valid: each has a value
// of the schema, and no size is below 0.
void tessera_ask(struct tessera_request *r, const tessera_device_facts *facts);

tessera_status tessera_choose(const struct tessera_request *r, struct tessera_choice *out);

// How an instance that was chosen otherwise cuts the call's work.
struct tessera_cut tessera_cut_by(const tessera_instance *row, const struct tessera_request *r);

// The instance's multiply-adds a cycle on a device.
static inline double tessera_rate(const tessera_instance *row, uint32_t targets) {
    const bool has_fp16 = targets >> TESSERA_TARGET_X86_64_V4_FP16 & 1 && row->macs_per_cycle_fp16 > 0;
    return (double)(has_fp16 ? row->macs_per_cycle_fp16 : row->macs_per_cycle);
}

// Estimated cycles of the work, from the rates of the instance and its target (cost.c).
double tessera_roofline(const tessera_instance *row, const struct tessera_request *r, struct tessera_work work);

// What tessera_<operation>_explain() and tessera_<operation>_ck_name() write.
void tessera_add_explanation(struct tessera_text *out, const struct tessera_request *r, bool all);
void tessera_tell_reasons(const struct tessera_request *r); // prints the explanation for TESSERA_VERBOSE
void tessera_add_ck_name(struct tessera_text *out, const struct tessera_request *r, const tessera_instance *row);

// ---- what select.c, explain.c and ck_name.c share

// The non-negative member of a traits struct at an offset.
static inline uint32_t tessera_member(const void *traits, uint16_t offset) {
    uint32_t value;
    memcpy(&value, (const char *)traits + offset, sizeof value);
    return value;
}

// The instance that the caller wants, or else the best. NULL: it does not serve the call, or none does.
const tessera_instance *tessera_best(const struct tessera_request *r);

// Whether an instance serves the call, whatever the device.
bool tessera_serves(const tessera_instance *row, const struct tessera_request *r);
bool tessera_is_aligned(const tessera_instance *row, const struct tessera_request *r);
bool tessera_keeps_out(const tessera_instance *row, const struct tessera_request *r, struct tessera_text *why);
bool tessera_precedes(const tessera_instance *a, double cost_a, const tessera_instance *b, double cost_b);

// The failure of a call that no instance serves, or not the one that the caller wants.
tessera_status tessera_no_instance(const struct tessera_request *r);

#endif
