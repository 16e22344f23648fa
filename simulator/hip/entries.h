// SPDX-License-Identifier: MIT
// All entry points by name. The table, and what refuses, is generated from symbols.txt by generate_entries.py.
#pragma once

#include <stddef.h>

#define HIP_API __attribute__((visibility("default")))

struct hip_entry {
    const char *name;
    void (*address)(void);
};

extern const struct hip_entry tessera_hip_entries[];
extern const size_t tessera_hip_entry_count;

// Says that the entry point is not there, and returns hipErrorNotSupported (error.c).
int tessera_hip_refuse(const char *name);
