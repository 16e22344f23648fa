// SPDX-License-Identifier: MIT
// Data that the generator emits about targets and about this build's operations (templates/dispatch/library.c.j2).
#ifndef TESSERA_RUNTIME_LIBRARY_H
#define TESSERA_RUNTIME_LIBRARY_H

#include "tessera/operation.h"

// Facts from the targets' pages in codegen/targets.py, indexed by tessera_target.
extern const char *const tessera_target_words[];
extern const char *const tessera_target_kinds[]; // "cpu", "cdna", "cuda"
extern const tessera_fp8_format tessera_target_fp8[];

// Memory bandwidth in bytes per cycle, of one compute unit and of the whole device; the bytes of a GPU's last cache
// before memory; and its dies, each with an L2.
typedef struct tessera_rates {
    double unit_bytes, device_bytes, cache_bytes;
    int32_t dies; // to which workgroups go in turns
} tessera_rates;
extern const tessera_rates tessera_target_rates[];

// The tables of all operations.
typedef const tessera_table *tessera_get_table(void);
extern tessera_get_table *const tessera_tables[];
extern const size_t tessera_table_count;

// A hash of what is passed to kernels (codegen/pack.py), which packs have, too.
extern const uint64_t tessera_kernel_interface;

#endif
