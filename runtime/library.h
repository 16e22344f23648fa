// SPDX-License-Identifier: MIT
// What the generator says of targets, and of the operations that this build has (templates/dispatch/library.c.j2).
#ifndef TESSERA_RUNTIME_LIBRARY_H
#define TESSERA_RUNTIME_LIBRARY_H

#include "tessera/operation.h"

// As the pages of codegen/targets.py have it, by tessera_target.
extern const char *const tessera_target_words[];
extern const char *const tessera_target_kinds[]; // "cpu", "cdna"; NULL: of a target that has no page yet
extern const tessera_fp8_format tessera_target_fp8[];

// Bytes a cycle that memory gives to one compute unit, and to all of the device; 0: of a target that has no page yet.
typedef struct tessera_rates {
    double unit_bytes, device_bytes;
} tessera_rates;
extern const tessera_rates tessera_target_rates[];

// The tables of all operations.
typedef const tessera_table *tessera_get_table(void);
extern tessera_get_table *const tessera_tables[];
extern const size_t tessera_table_count;

#endif
