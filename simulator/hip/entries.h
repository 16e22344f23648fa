// SPDX-License-Identifier: MIT
// All entry points by name. generate_entries.py makes their table, and the functions that refuse, from symbols.txt.
#pragma once

#include <stdint.h>

#define HIP_API __attribute__((visibility("default")))

struct hip_entry {
    const char *name;
    void (*address)(void);
};

HIP_API int hipGetProcAddress(const char *name, void **address, int version, uint64_t flags, int *result);
// Its implementation, for a table that ends with an entry without a name (proc_address.c).
int tessera_hip_proc_address(const struct hip_entry *entries, const char *name, void **address, int version,
                             uint64_t flags, int *result);

// Says that the stand-in lacks the entry point, and returns hipErrorNotSupported (error.c).
int tessera_hip_refuse(const char *name);
