// SPDX-License-Identifier: MIT
// Facts about a simulated board, and functions that put them into the structures and enums of the HIP runtime.
#pragma once

#include <stdint.h>

struct hip_facts {
    const char *arch;      // as tessera_sim_open() takes it
    const char *arch_name; // gcnArchName
    const char *name;
    int64_t memory_bytes, compute_units, clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes, lds_bytes;
    int64_t major, minor, gcn_arch;
};

// The board of an architecture; NULL where there is none.
const struct hip_facts *tessera_hip_find_facts(const char *arch);

// The value of a hipDeviceAttribute_t; false where the stand-in has no such attribute.
_Bool tessera_hip_attribute(const struct hip_facts *facts, int device, int attribute, int64_t *value);

// Fill hipDeviceProp_t in the layout of version 5 (792 bytes), and in that of versions 6 and 7 (1472 bytes).
void tessera_hip_fill_properties_old(const struct hip_facts *facts, int device, void *properties);
void tessera_hip_fill_properties_r0600(const struct hip_facts *facts, int device, void *properties);
