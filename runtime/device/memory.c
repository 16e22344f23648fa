// SPDX-License-Identifier: MIT
// Memory of a device, for callers without its SDK.
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/gpu.h"
#include "guard.h"

enum { CPU_ALIGNMENT = 64 }; // which workspaces need

#define CHECK_DEVICE(device) GUARD(device, "device is NULL: tessera_device_open() opens one")

tessera_status tessera_device_malloc(const tessera_device *device, size_t bytes, void **out) {
    CHECK_DEVICE(device);
    GUARD(out, "out is NULL");
    if (bytes == 0) {
        *out = NULL;
        return TESSERA_SUCCESS;
    }
    if (device->gpu) return tessera_gpu_malloc(device->gpu, bytes, out);
    void *const memory = bytes <= SIZE_MAX - CPU_ALIGNMENT
                             ? aligned_alloc(CPU_ALIGNMENT, (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT)
                             : NULL;
    if (!memory) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    *out = memory;
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_free(const tessera_device *device, void *memory) {
    CHECK_DEVICE(device);
    if (memory && device->gpu) return tessera_gpu_free(device->gpu, memory);
    free(memory);
    return TESSERA_SUCCESS;
}

static tessera_status check_copy(const tessera_device *device, const void *to, const void *from, size_t bytes) {
    CHECK_DEVICE(device);
    GUARD(to || !bytes, "the memory to copy %zu bytes to is NULL", bytes);
    GUARD(from || !bytes, "the memory to copy %zu bytes from is NULL", bytes);
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_copy_to(const tessera_device *device, void *to, const void *host_from, size_t bytes) {
    TRY(check_copy(device, to, host_from, bytes));
    if (bytes && device->gpu) return tessera_gpu_copy_to(device->gpu, to, host_from, bytes);
    if (bytes) memmove(to, host_from, bytes);
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_copy_from(const tessera_device *device, void *host_to, const void *from, size_t bytes) {
    TRY(check_copy(device, host_to, from, bytes));
    if (bytes && device->gpu) return tessera_gpu_copy_from(device->gpu, host_to, from, bytes);
    if (bytes) memmove(host_to, from, bytes);
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_set(const tessera_device *device, void *to, int byte, size_t bytes) {
    CHECK_DEVICE(device);
    if (bytes == 0) return TESSERA_SUCCESS;
    GUARD(to, "the memory to set %zu bytes of is NULL", bytes);
    if (device->gpu) return tessera_gpu_set(device->gpu, to, byte, bytes);
    memset(to, byte, bytes);
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_synchronize(const tessera_device *device) {
    CHECK_DEVICE(device);
    return device->gpu ? tessera_gpu_synchronize(device->gpu) : TESSERA_SUCCESS;
}

// ---- the clock of simulated devices

static tessera_status check_clock(const tessera_device *device) {
    CHECK_DEVICE(device);
    if (!device->gpu) return tessera_fail(TESSERA_ERROR_DEVICE, "the CPU has no clock: only simulated devices do");
    return TESSERA_SUCCESS;
}

tessera_status tessera_device_set_clock(const tessera_device *device, tessera_sim_clock clock) {
    TRY(check_clock(device));
    GUARD((unsigned)clock < TESSERA_SIM_CLOCK_COUNT, "clock=%d: accepted are 0 to %d", (int)clock,
          TESSERA_SIM_CLOCK_COUNT - 1);
    return tessera_gpu_set_clock(device->gpu, clock);
}

tessera_status tessera_device_set_output(const tessera_device *device, tessera_sim_output output, const char *path) {
    TRY(check_clock(device));
    GUARD((unsigned)output < TESSERA_SIM_OUTPUT_COUNT, "output=%d: accepted are 0 to %d", (int)output,
          TESSERA_SIM_OUTPUT_COUNT - 1);
    return tessera_gpu_set_output(device->gpu, output, path);
}

tessera_status tessera_device_take_timing(const tessera_device *device, tessera_sim_timing *out) {
    TRY(check_clock(device));
    GUARD(out, "out is NULL: where the timing goes");
    return tessera_gpu_take_timing(device->gpu, out);
}
