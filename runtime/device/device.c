// SPDX-License-Identifier: MIT
// Opens devices by name.
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu.h"
#include "device/gpu.h"
#include "device/pack.h"
#include "guard.h"
#include "library.h"

static tessera_status open_cpu(const char *target_name, tessera_device *device) {
    uint32_t targets = tessera_cpu_targets();
    tessera_target target;
    if (target_name) {
        TRY(tessera_target_from_string(target_name, &target));
        if (!(targets >> target & 1))
            return tessera_fail(TESSERA_ERROR_DEVICE, "device \"cpu:%s\": this machine cannot run %s", target_name,
                                target_name);
        targets = 1u << target;
    }
    snprintf(device->name, sizeof device->name, "cpu%s%s", target_name ? ":" : "", target_name ? target_name : "");
    device->facts.struct_size = sizeof device->facts;
    device->facts.targets = targets;
    device->facts.compute_units = tessera_cpu_count(); // not the threads asked for: results must not depend on them
    tessera_cpu_caches(&device->facts.l1_bytes, &device->facts.l2_bytes, &device->facts.l3_bytes);
    return TESSERA_SUCCESS;
}

static bool has_instances(tessera_target target) {
    for (size_t t = 0; t < tessera_table_count; t++) {
        const tessera_table *const table = tessera_tables[t]();
        for (uint32_t i = 0; i < table->row_count; i++)
            if (tessera_row(table, i)->target == target && tessera_row(table, i)->symbol &&
                tessera_pack_exists(table->schema->operation, tessera_target_words[target]))
                return true;
    }
    return false;
}

static bool has_gpu_instances(void) {
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        if (has_instances((tessera_target)target)) return true;
    return false;
}

static tessera_status open_auto(tessera_device *device) {
    if (has_gpu_instances()) { // without them no driver is opened
        tessera_fail_quietly(true);
        tessera_gpu_open_first(has_instances, &device->gpu, &device->facts);
        tessera_fail_quietly(false);
    }
    return device->gpu ? TESSERA_SUCCESS : open_cpu(NULL, device);
}

static tessera_status refuse(const char *name) {
    char list[256];
    struct tessera_text forms = {list, sizeof list, 0};
    for (const struct tessera_driver_kind *const *kind = tessera_driver_kinds; *kind; kind++)
        tessera_text_add(&forms, "%s%s", kind[1] ? ", " : " or ", (*kind)->form);
    return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "device \"%s\" is unknown: auto, cpu, cpu:TARGET%s", name,
                        list);
}

static tessera_status open_named(const char *name, tessera_device *device) {
    if (strcmp(name, "auto") == 0) return open_auto(device);
    if (strcmp(name, "cpu") == 0) return open_cpu(NULL, device);
    if (strncmp(name, "cpu:", 4) == 0) return open_cpu(name + 4, device);
    for (const struct tessera_driver_kind *const *kind = tessera_driver_kinds; *kind; kind++) {
        const size_t length = strlen((*kind)->word);
        if (strncmp(name, (*kind)->word, length) == 0 && name[length] == ':')
            return tessera_gpu_open(*kind, name + length + 1, &device->gpu, &device->facts);
    }
    return refuse(name);
}

tessera_status tessera_device_open(const char *name, tessera_device **out) {
    if (!name) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "the name of a device is NULL");
    if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out of device \"%s\" is NULL", name);
    tessera_device *const device = calloc(1, sizeof *device);
    if (!device)
        return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a device of %zu bytes", sizeof *device);
    const tessera_status status = open_named(name, device);
    if (status != TESSERA_SUCCESS) {
        free(device);
        return status;
    }
    if (device->gpu) snprintf(device->name, sizeof device->name, "%s", device->gpu->chip.name);
    *out = device;
    return TESSERA_SUCCESS;
}

void tessera_device_close(tessera_device *device) {
    if (!device) return;
    tessera_gpu_close(device->gpu);
    free(device);
}

const char *tessera_device_name(const tessera_device *device) { return device ? device->name : NULL; }

const tessera_device_facts *tessera_device_get_facts(const tessera_device *device) {
    return device ? &device->facts : NULL;
}

tessera_fp8_format tessera_device_fp8_format(const tessera_device *device) {
    for (int target = 0; device && target < TESSERA_TARGET_COUNT; target++) // all of a device's agree
        if (device->facts.targets >> target & 1) return tessera_target_fp8[target];
    return TESSERA_FP8_NONE;
}

static tessera_status load_all(const tessera_device *device, const tessera_table *table) {
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *const row = tessera_row(table, i);
        const struct tessera_gpu_kernel kernel = {table->schema->operation, row->symbol};
        if (device->facts.targets >> row->target & 1 && row->symbol) TRY(tessera_gpu_load(device, &kernel));
    }
    return TESSERA_SUCCESS;
}

tessera_status tessera_preload(const tessera_device *device) {
    GUARD(device, "device is NULL: tessera_device_open() opens one");
    if (!device->gpu) {
        tessera_start_threads();
        return TESSERA_SUCCESS;
    }
    for (size_t t = 0; t < tessera_table_count; t++) TRY(load_all(device, tessera_tables[t]()));
    return TESSERA_SUCCESS;
}
