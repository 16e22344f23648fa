// SPDX-License-Identifier: MIT
// Finds entry points by their names.
#include <string.h>

#include "state.h"

enum query_result { FOUND = 0, NOT_FOUND = 1 };

// Two names that headers of version 6 and later redefine.
static const char *name_in_version(const char *name, int version) {
    enum { R0600 = 600 };
    if (version < R0600) return name;
    if (strcmp(name, "hipGetDeviceProperties") == 0) return "hipGetDevicePropertiesR0600";
    if (strcmp(name, "hipChooseDevice") == 0) return "hipChooseDeviceR0600";
    return name;
}

// `version`: 100 times the major number plus the minor one.
int tessera_hip_proc_address(const struct hip_entry *entries, const char *name, void **address, int version,
                             uint64_t flags, int *result) {
    enum { MOST_FLAGS = 2 };
    HIP_REQUIRE(name && *name && address && flags <= MOST_FLAGS, hipErrorInvalidValue);
    const char *wanted = name_in_version(name, version);
    for (const struct hip_entry *entry = entries; entry->name; entry++)
        if (strcmp(entry->name, wanted) == 0) {
            memcpy(address, &entry->address, sizeof *address);
            if (result) *result = FOUND;
            return tessera_hip_result(hipSuccess);
        }
    *address = NULL;
    if (result) *result = NOT_FOUND;
    return tessera_hip_result(hipErrorInvalidValue);
}
