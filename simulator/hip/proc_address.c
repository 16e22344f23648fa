// SPDX-License-Identifier: MIT
// Entry points by name.
#include <string.h>

#include "state.h"

enum query_result { FOUND = 0, NOT_FOUND = 1 };

// What headers of version 6 and later make of two names.
static const char *name_in_version(const char *name, int version) {
    enum { R0600 = 600 };
    if (version < R0600) return name;
    if (strcmp(name, "hipGetDeviceProperties") == 0) return "hipGetDevicePropertiesR0600";
    if (strcmp(name, "hipChooseDevice") == 0) return "hipChooseDeviceR0600";
    return name;
}

// `version`: 100 times the major number plus the minor one.
HIP_API hipError_t hipGetProcAddress(const char *name, void **address, int version, uint64_t flags, int *result) {
    enum { MOST_FLAGS = 2 };
    HIP_REQUIRE(name && *name && address && flags <= MOST_FLAGS, hipErrorInvalidValue);
    const char *wanted = name_in_version(name, version);
    for (size_t i = 0; i < tessera_hip_entry_count; i++)
        if (strcmp(tessera_hip_entries[i].name, wanted) == 0) {
            memcpy(address, &tessera_hip_entries[i].address, sizeof *address);
            if (result) *result = FOUND;
            return tessera_hip_result(hipSuccess);
        }
    *address = NULL;
    if (result) *result = NOT_FOUND;
    return tessera_hip_result(hipErrorInvalidValue);
}
