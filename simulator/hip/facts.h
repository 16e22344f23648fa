// SPDX-License-Identifier: MIT
// What a simulated board says of itself, and where each fact stands in the structures and enums of the HIP runtime.
#pragma once

#include <stdint.h>

struct hip_facts {
    const char *arch;      // as tessera_sim_open() takes it
    const char *arch_name; // gcnArchName
    const char *name;
    int64_t memory_bytes, compute_units, clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes, lds_bytes;
    int64_t major, minor, gcn_arch;
};

// NULL where no board has that architecture.
const struct hip_facts *tessera_hip_find_facts(const char *arch);

// The value of a hipDeviceAttribute_t; false where the stand-in has no such attribute.
_Bool tessera_hip_attribute(const struct hip_facts *facts, int device, int attribute, int64_t *value);

// Fill hipDeviceProp_t as version 5 lays it out (792 bytes), and as versions 6 and 7 do (1472 bytes).
void tessera_hip_fill_properties_old(const struct hip_facts *facts, int device, void *properties);
void tessera_hip_fill_properties_r0600(const struct hip_facts *facts, int device, void *properties);
