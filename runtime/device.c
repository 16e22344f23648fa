// SPDX-License-Identifier: MIT
// Devices by name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct tessera_device {
    char name[32];
    tessera_device_facts facts;
};

static tessera_status open_cpu(const char *target_name, tessera_device **out) {
    uint32_t targets = tessera_cpu_targets();
    tessera_target target;
    if (target_name) {
        const tessera_status status = tessera_target_from_string(target_name, &target);
        if (status != TESSERA_SUCCESS) return status;
        if (!(targets >> target & 1))
            return tessera_fail(TESSERA_ERROR_DEVICE, "device \"cpu:%s\": this machine cannot run %s", target_name,
                                target_name);
        targets = 1u << target;
    }
    tessera_device *const device = calloc(1, sizeof *device);
    if (!device)
        return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a device of %zu bytes", sizeof *device);
    snprintf(device->name, sizeof device->name, "cpu%s%s", target_name ? ":" : "", target_name ? target_name : "");
    device->facts.struct_size = sizeof device->facts;
    device->facts.targets = targets;
    device->facts.compute_units = tessera_cpu_count(); // not the threads that were asked for: results would follow them
    tessera_cpu_caches(&device->facts.l1_bytes, &device->facts.l2_bytes, &device->facts.l3_bytes);
    *out = device;
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_open(const char *name, tessera_device **out) {
    if (!name) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "the name of a device is NULL");
    if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out of device \"%s\" is NULL", name);
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0) return open_cpu(NULL, out);
    if (strncmp(name, "cpu:", 4) == 0) return open_cpu(name + 4, out);
    static const char *const others[] = {"hip:", "sim:", "cuda:"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return tessera_fail(TESSERA_ERROR_DEVICE, "device \"%s\": this build has only CPU instances", name);
    return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT,
                        "device \"%s\" is unknown: auto, cpu, cpu:TARGET, hip:N, sim:ARCH, cuda:N", name);
}

void tessera_device_close(tessera_device *device) { free(device); }

const char *tessera_device_name(const tessera_device *device) { return device ? device->name : NULL; }

const tessera_device_facts *tessera_device_get_facts(const tessera_device *device) {
    return device ? &device->facts : NULL;
}
