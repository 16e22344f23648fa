// SPDX-License-Identifier: MIT
// Which instance of an operation serves a call best, and why the others do not: the same for every operation. What one
// adds of its own is in its tessera_kernels.
#ifndef TESSERA_RUNTIME_OP_SELECT_H
#define TESSERA_RUNTIME_OP_SELECT_H

#include <string.h>

#include "internal.h"
#include "tessera/operation.h"

struct tessera_request;

// What decides where rows in memory begin: a pointer or a stride.
struct tessera_start {
    const char *name;
    uint64_t value;
    int bits; // of what the value counts; of a pointer 8
    bool is_pointer, matters;
};
enum { TESSERA_MAX_STARTS = 32 };

// What a call does with an instance, in tasks (tiles) that take about the same time.
struct tessera_work {
    double macs;  // or operations that the instance's rate counts
    double bytes; // read and written, each once
    int64_t tasks;
};

// Kernels that serve the same traits: those of a call, or those of one step of it.
struct tessera_kernels {
    const tessera_table *(*get_table)(void); // that this library was generated with
    // Estimated cycles of a call that the instance serves: by a formula of their own, or tessera_roofline().
    double (*cost)(const tessera_instance *row, const struct tessera_request *r);
    // Returns how many there are. NULL: its instances take any.
    int (*list_starts)(const struct tessera_request *r, struct tessera_start starts[TESSERA_MAX_STARTS]);
    // For CK's names: the tile with what follows it up to the next axis; and the number of the token of an axis that is
    // neither a trait nor has limits, NULL where there is none. `limits` are the sizes that the name says, if it does.
    void (*add_ck_tile)(struct tessera_text *out, const tessera_instance *row, const uint32_t *limits);
    uint32_t (*count_ck)(const struct tessera_request *r, const tessera_instance *row, const uint32_t *limits);
};

struct tessera_request {
    const struct tessera_kernels *kernels;
    const tessera_table *table;
    const void *traits, *call;      // those of the kernels; `call` is what their functions read
    const tessera_instance *wanted; // the caller's choice; NULL: that of least cost
    uint32_t targets;
    int32_t units;
    uint64_t sets[TESSERA_SET_WORDS]; // one bit for each trait
    uint32_t sizes[TESSERA_MAX_SIZES];
    uint64_t starts; // bits that any row's place in memory may have
};

// Copies what a caller gives beside traits and sizes, and validates it.
tessera_status tessera_read_facts(const tessera_table *table, const tessera_device_facts *caller,
                                  tessera_device_facts *facts);

// Completes a request whose kernels, table, traits, call and wanted are set. The traits were checked: none has a value
// that the schema does not know, and no size is below 0.
void tessera_ask(struct tessera_request *r, const tessera_device_facts *facts);

tessera_status tessera_choose(const struct tessera_request *r, const tessera_instance **out);

// Cycles of the work, by the rates of the instance and its target (cost.c).
double tessera_roofline(const tessera_instance *row, const struct tessera_request *r, struct tessera_work work);

// What tessera_<operation>_explain() and tessera_<operation>_ck_name() write.
void tessera_add_explanation(struct tessera_text *out, const struct tessera_request *r, bool all);
void tessera_tell_reasons(const struct tessera_request *r); // prints it for TESSERA_VERBOSE, a line each
void tessera_add_ck_name(struct tessera_text *out, const struct tessera_request *r, const tessera_instance *row);

// ---- what the files here share

// The member of a traits struct, which is not below 0.
static inline uint32_t tessera_member(const void *traits, uint16_t offset) {
    uint32_t value;
    memcpy(&value, (const char *)traits + offset, sizeof value);
    return value;
}

const tessera_instance *tessera_best(const struct tessera_request *r); // NULL: none serves

// Whatever the device: traits, sizes and alignment.
bool tessera_serves(const tessera_instance *row, const struct tessera_request *r);
bool tessera_is_aligned(const tessera_instance *row, const struct tessera_request *r);
bool tessera_precedes(const tessera_instance *a, double cost_a, const tessera_instance *b, double cost_b);

// The instance that the caller wants, and the failure where none serves.
tessera_status tessera_take(const struct tessera_request *r, const tessera_instance **out);
tessera_status tessera_no_instance(const struct tessera_request *r);

#endif
