// SPDX-License-Identifier: MIT
// GPUs: opening, the current device, memory.
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "integers.h"

// ---- the current device

tessera_status tessera_gpu_enter(const struct tessera_gpu *gpu, int *previous) {
    int error = gpu->driver->hipGetDevice(previous);
    if (error) return tessera_driver_fail(gpu->driver, gpu->name, "hipGetDevice", error);
    if (*previous == gpu->ordinal) return TESSERA_SUCCESS;
    error = gpu->driver->hipSetDevice(gpu->ordinal);
    return error ? tessera_driver_fail(gpu->driver, gpu->name, "hipSetDevice", error) : TESSERA_SUCCESS;
}

tessera_status tessera_gpu_leave(const struct tessera_gpu *gpu, int previous, const char *call, int error) {
    tessera_status status = TESSERA_SUCCESS;
    if (error) status = tessera_driver_fail(gpu->driver, gpu->name, call, error);
    if (previous == gpu->ordinal) return status;
    error = gpu->driver->hipSetDevice(previous);
    return error ? tessera_driver_fail(gpu->driver, gpu->name, "hipSetDevice", error) : status;
}

// ---- opening

// Up to the features: "gfx942" of "gfx942:sramecc+:xnack-". Code is built for any of them.
static size_t base_length(const char *arch) { return strcspn(arch, ":"); }

// "gfx942", and after it any of ":sramecc+", ":sramecc-", ":xnack+" and ":xnack-".
static bool is_arch(const char *text) {
    static const char *const features[] = {":sramecc", ":xnack"};
    text += base_length(text);
    while (*text) {
        size_t length = 0;
        for (int i = 0; i < 2; i++)
            if (strncmp(text, features[i], strlen(features[i])) == 0) length = strlen(features[i]);
        if (!length || (text[length] != '+' && text[length] != '-')) return false;
        text += length + 1;
    }
    return true;
}

static bool same_base(const char *a, const char *b) {
    return base_length(a) == base_length(b) && strncmp(a, b, base_length(a)) == 0;
}

static tessera_status target_of(const char *name, const char *arch, tessera_target *out) {
    for (tessera_target target = TESSERA_TARGET_GFX90A; target <= TESSERA_TARGET_GFX950; target++)
        if (same_base(arch, tessera_target_string(target))) {
            *out = target;
            return TESSERA_SUCCESS;
        }
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s is of architecture %s: gfx90a, gfx942 or gfx950", name, arch);
}

static tessera_status read_facts(const struct tessera_gpu *gpu, tessera_device_facts *facts) {
    int units = 0, l2 = 0, lds = 0;
    const struct {
        int attribute, *value;
    } asked[] = {{HIP_ATTRIBUTE_COMPUTE_UNITS, &units}, {HIP_ATTRIBUTE_L2_BYTES, &l2}, {HIP_ATTRIBUTE_LDS_BYTES, &lds}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const int error = gpu->driver->hipDeviceGetAttribute(asked[i].value, asked[i].attribute, gpu->ordinal);
        if (error) return tessera_driver_fail(gpu->driver, gpu->name, "hipDeviceGetAttribute", error);
    }
    if (units < 1) return tessera_fail(TESSERA_ERROR_DEVICE, "%s has %d compute units", gpu->name, units);
    *facts = (tessera_device_facts){.struct_size = sizeof *facts,
                                    .targets = 1u << gpu->target,
                                    .compute_units = units,
                                    .l2_bytes = l2,
                                    .lds_bytes = lds};
    return TESSERA_SUCCESS;
}

// Takes the driver over, whatever comes of it.
static tessera_status open_gpu(struct tessera_driver *driver, const char *name, int ordinal, tessera_target target,
                               struct tessera_gpu **out, tessera_device_facts *facts) {
    struct tessera_gpu *const gpu = calloc(1, sizeof *gpu);
    if (!gpu) {
        tessera_driver_close(driver);
        return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a device of %zu bytes", sizeof *gpu);
    }
    gpu->driver = driver;
    gpu->ordinal = ordinal;
    gpu->target = target;
    snprintf(gpu->name, sizeof gpu->name, "%s", name);
    pthread_mutex_init(&gpu->lock, NULL);
    const tessera_status status = read_facts(gpu, facts);
    if (status != TESSERA_SUCCESS) {
        tessera_gpu_close(gpu);
        return status;
    }
    *out = gpu;
    return TESSERA_SUCCESS;
}

static tessera_status count_devices(const struct tessera_driver *d, const char *name, int *count) {
    const int error = d->hipGetDeviceCount(count);
    return error ? tessera_driver_fail(d, name, "hipGetDeviceCount", error) : TESSERA_SUCCESS;
}

static tessera_status find_hip(const struct tessera_driver *d, const char *name, int ordinal, tessera_target *target) {
    int count = 0;
    char arch[TESSERA_ARCH_BYTES];
    TRY(count_devices(d, name, &count));
    if (ordinal >= count) return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s shows %d devices", name, d->origin, count);
    TRY(tessera_driver_arch(d, name, ordinal, arch));
    return target_of(name, arch, target);
}

tessera_status tessera_gpu_open_hip(int ordinal, struct tessera_gpu **out, tessera_device_facts *facts) {
    char name[32];
    tessera_target target = TESSERA_TARGET_COUNT;
    struct tessera_driver *driver;
    snprintf(name, sizeof name, "hip:%d", ordinal);
    TRY(tessera_driver_open(TESSERA_DRIVER_HIP, name, &driver));
    const tessera_status status = find_hip(driver, name, ordinal, &target);
    if (status == TESSERA_SUCCESS) return open_gpu(driver, name, ordinal, target, out, facts);
    tessera_driver_close(driver);
    return status;
}

static tessera_status find_sim(const struct tessera_driver *d, const char *name, const char *wanted, int *ordinal) {
    int count = 0;
    char arch[TESSERA_ARCH_BYTES];
    TRY(count_devices(d, name, &count));
    for (*ordinal = 0; *ordinal < count; ++*ordinal) {
        TRY(tessera_driver_arch(d, name, *ordinal, arch));
        if (same_base(arch, wanted)) return TESSERA_SUCCESS;
    }
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: none of the %d devices of %s is of that architecture", name, count,
                        d->origin);
}

tessera_status tessera_gpu_open_sim(const char *arch, struct tessera_gpu **out, tessera_device_facts *facts) {
    char name[32];
    int ordinal;
    tessera_target target = TESSERA_TARGET_COUNT;
    struct tessera_driver *driver;
    snprintf(name, sizeof name, "sim:%.*s", (int)tessera_min(base_length(arch), 16), arch);
    GUARD(is_arch(arch), "device \"sim:%s\": sim:ARCH, where ARCH is such as gfx942 or gfx942:sramecc+:xnack-", arch);
    TRY(target_of(name, arch, &target));
    TRY(tessera_driver_open(TESSERA_DRIVER_SIM, name, &driver));
    const tessera_status status = find_sim(driver, name, arch, &ordinal);
    if (status == TESSERA_SUCCESS) return open_gpu(driver, name, ordinal, target, out, facts);
    tessera_driver_close(driver);
    return status;
}

void tessera_gpu_open_first(bool accepts(tessera_target target), struct tessera_gpu **out,
                            tessera_device_facts *facts) {
    struct tessera_driver *driver;
    int count = 0;
    *out = NULL;
    if (tessera_driver_open(TESSERA_DRIVER_HIP, "auto", &driver) != TESSERA_SUCCESS) return;
    if (count_devices(driver, "auto", &count) != TESSERA_SUCCESS) count = 0;
    tessera_driver_close(driver);
    for (int ordinal = 0; ordinal < count; ordinal++) {
        if (tessera_gpu_open_hip(ordinal, out, facts) == TESSERA_SUCCESS && accepts((*out)->target)) return;
        tessera_gpu_close(*out);
        *out = NULL;
    }
}

void tessera_gpu_close(struct tessera_gpu *gpu) {
    if (!gpu) return;
    tessera_gpu_unload_all(gpu);
    pthread_mutex_destroy(&gpu->lock);
    tessera_driver_close(gpu->driver);
    free(gpu);
}

// ---- memory

tessera_status tessera_gpu_malloc(const struct tessera_gpu *gpu, size_t bytes, void **out) {
    int previous;
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipMalloc", gpu->driver->hipMalloc(out, bytes));
}

tessera_status tessera_gpu_free(const struct tessera_gpu *gpu, void *memory) {
    int previous;
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipFree", gpu->driver->hipFree(memory));
}

tessera_status tessera_gpu_copy(const struct tessera_gpu *gpu, void *to, const void *from, size_t bytes, int kind) {
    int previous;
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipMemcpy", gpu->driver->hipMemcpy(to, from, bytes, kind));
}

// hipMemset may return before the device has done it.
tessera_status tessera_gpu_set(const struct tessera_gpu *gpu, void *to, int byte, size_t bytes) {
    int previous;
    TRY(tessera_gpu_enter(gpu, &previous));
    const int error = gpu->driver->hipMemset(to, byte, bytes);
    if (error) return tessera_gpu_leave(gpu, previous, "hipMemset", error);
    return tessera_gpu_leave(gpu, previous, "hipDeviceSynchronize", gpu->driver->hipDeviceSynchronize());
}

tessera_status tessera_gpu_synchronize(const struct tessera_gpu *gpu) {
    int previous;
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipDeviceSynchronize", gpu->driver->hipDeviceSynchronize());
}
