// SPDX-License-Identifier: MIT
// The form of the generated dispatch tables: a schema of an operation's traits, rows with what each instance serves of
// them, and an index of the rows that may serve a call. No operation is named here; tessera/kernel/<operation>.h
// defines the rows of an operation's table.
#ifndef TESSERA_OPERATION_H
#define TESSERA_OPERATION_H

#include <stdbool.h>

#include "tessera/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- the schema of an operation

enum { TESSERA_SET_WORDS = 2, TESSERA_MAX_SIZES = 6 };
enum { TESSERA_MAX_ALIGNMENT = 128 }; // of an instance: what the common alignment of a call's starts is known up to

// The offset of a member of a traits struct. A member that is neither an int32_t nor an enumeration does not compile.
#define TESSERA_MEMBER(type, member)                                                                                   \
    (offsetof(type, member) + 0 * sizeof(char[sizeof(((type *)0)->member) == sizeof(int32_t) ? 1 : -1]))

// A trait with few values. The values served are a set: bit `bit + v` of word `word` is set when value v is served.
typedef struct tessera_trait {
    const char *name; // the member of the operation's traits struct
    uint16_t offset;  // of the member
    uint8_t word, bit, count;
    const char *const *words; // of its values
} tessera_trait;

// A trait that is a number, of which ranges are served.
typedef struct tessera_size {
    const char *name;
    uint16_t offset;
    bool fills; // smaller data may be padded with zeros to a greater size
} tessera_size;

// An axis of CK's names. A name has one token of each axis, unless that is empty: the token of the trait's value, of
// the first limits that hold the call's sizes, or of the number that the operation's count_ck() returns.
typedef struct tessera_ck_axis {
    const char *name;
    const char *const *tokens;
    uint32_t count;
    int32_t trait;          // number of the trait, or -1
    const uint32_t *limits; // greatest sizes of the first token, then those of the next; or NULL
} tessera_ck_axis;

typedef struct tessera_schema {
    const char *operation;
    const tessera_trait
        *traits; // the index is split by the first, which also counts most in finding a nearest instance
    uint32_t trait_count;
    const tessera_size *sizes;
    uint32_t size_count;
    const tessera_ck_axis *axes; // in the order of CK's names; the tile follows the first head_axes of them
    uint32_t axis_count, head_axes;
} tessera_schema;

// ---- the table of an operation

typedef struct tessera_range {
    uint32_t min, max, multiple; // min <= n <= max and n % multiple == 0
} tessera_range;

// A product of sets of trait values and ranges of sizes.
typedef struct tessera_served {
    uint64_t sets[TESSERA_SET_WORDS];
    tessera_range ranges[TESSERA_MAX_SIZES];
} tessera_served;

// The first member of every operation's rows.
typedef struct tessera_instance {
    const char *name; // short name
    tessera_target target;
    const tessera_served *served; // disjoint products whose union is what this instance serves
    uint32_t served_count;
    const char *pipeline, *epilogue; // "qr", "store"
    const char *symbol;        // GPU instances: the kernel, by which its pack lists its code object; NULL for CPUs,
                               // and where instances of another operation do the work
    uint32_t threads;          // GPU instances: of a workgroup
    uint32_t alignment;        // in bytes, of every row of a tensor, a power of two; 0: that of the element
    float macs_per_cycle;      // estimated rate of one compute unit in the main loop
    float macs_per_cycle_fp16; // the same on a CPU that runs TESSERA_TARGET_X86_64_V4_FP16, too; 0: no other
    float tile_cycles;         // estimated overhead of one tile
} tessera_instance;

// Rows that may serve a target, value of the first trait and bucket: their numbers are order[first .. first + count).
typedef struct tessera_slice {
    uint32_t first, count;
} tessera_slice;

typedef struct tessera_table {
    const tessera_schema *schema;
    const void *rows; // each has row_bytes and begins with a tessera_instance
    uint32_t row_bytes, row_count;
    const uint32_t *buckets; // ascending; a call belongs to the first that is not below its greatest size
    uint32_t bucket_count;
    const tessera_slice *slices; // [target][value of the first trait][bucket]
    const uint32_t *order;
    uint64_t ck_combinations; // number of CK's names that the rows cover
} tessera_table;

static inline const tessera_instance *tessera_row(const tessera_table *table, uint32_t number) {
    return (const tessera_instance *)(const void *)((const char *)table->rows + (size_t)number * table->row_bytes);
}

// The values of a trait in a product: bit v is set when value v is served.
static inline uint64_t tessera_set_of(const tessera_served *served, const tessera_trait *trait) {
    return served->sets[trait->word] >> trait->bit & ((UINT64_C(1) << trait->count) - 1);
}

static inline bool tessera_range_holds(const tessera_range *range, uint32_t size) {
    return size >= range->min && size <= range->max && size % range->multiple == 0;
}

// Declares an operation's functions for tests and tools, beside those of tessera/call.h: the table that was generated
// into this library, and selection over any table.
#define TESSERA_TABLE_CALLS(op)                                                                                        \
    TESSERA_API const tessera_table *tessera_##op##_get_table(void);                                                   \
    TESSERA_API tessera_status tessera_##op##_table_select(                                                            \
        const tessera_table *table, const tessera_device_facts *facts, const tessera_##op##_traits *traits,            \
        const tessera_##op##_args *args, const tessera_##op##_instance **out);                                         \
    TESSERA_API size_t tessera_##op##_table_explain(                                                                   \
        const tessera_table *table, const tessera_device_facts *facts, const tessera_##op##_traits *traits,            \
        const tessera_##op##_args *args, tessera_explain how, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
