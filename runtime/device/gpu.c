// SPDX-License-Identifier: MIT
// Calls of the driver with the GPU as the thread's current device.
#include "device/gpu.h"

#include "device/device.h"

tessera_status tessera_gpu_enter(const struct tessera_gpu *gpu, intptr_t *previous) {
    return tessera_gpu_calls(gpu)->enter(&gpu->chip, previous);
}

tessera_status tessera_gpu_leave(const struct tessera_gpu *gpu, intptr_t previous, tessera_status status) {
    const tessera_status left = tessera_gpu_calls(gpu)->leave(&gpu->chip, previous);
    return left == TESSERA_SUCCESS ? status : left;
}

tessera_status tessera_device_enter(const tessera_device *device, intptr_t *previous) {
    return device->gpu ? tessera_gpu_enter(device->gpu, previous) : TESSERA_SUCCESS;
}

tessera_status tessera_device_leave(const tessera_device *device, intptr_t previous, tessera_status status) {
    return device->gpu ? tessera_gpu_leave(device->gpu, previous, status) : status;
}

tessera_status tessera_gpu_malloc(const struct tessera_gpu *gpu, size_t bytes, void **out) {
    TESSERA_GPU_CALL(gpu, malloc(&gpu->chip, bytes, out));
}

tessera_status tessera_gpu_free(const struct tessera_gpu *gpu, void *memory) {
    TESSERA_GPU_CALL(gpu, free(&gpu->chip, memory));
}

tessera_status tessera_gpu_copy_to(const struct tessera_gpu *gpu, void *to, const void *host_from, size_t bytes) {
    TESSERA_GPU_CALL(gpu, copy_to(&gpu->chip, to, host_from, bytes));
}

tessera_status tessera_gpu_copy_from(const struct tessera_gpu *gpu, void *host_to, const void *from, size_t bytes) {
    TESSERA_GPU_CALL(gpu, copy_from(&gpu->chip, host_to, from, bytes));
}

tessera_status tessera_gpu_set(const struct tessera_gpu *gpu, void *to, int byte, size_t bytes) {
    TESSERA_GPU_CALL(gpu, set(&gpu->chip, to, byte, bytes));
}

tessera_status tessera_gpu_synchronize(const struct tessera_gpu *gpu) {
    TESSERA_GPU_CALL(gpu, synchronize(&gpu->chip));
}

tessera_status tessera_gpu_set_clock(const struct tessera_gpu *gpu, tessera_sim_clock clock) {
    if (!tessera_gpu_calls(gpu)->set_clock) return tessera_driver_no_clock(&gpu->chip);
    TESSERA_GPU_CALL(gpu, set_clock(&gpu->chip, clock));
}

tessera_status tessera_gpu_set_output(const struct tessera_gpu *gpu, tessera_sim_output output, const char *path) {
    if (!tessera_gpu_calls(gpu)->set_output) return tessera_driver_no_clock(&gpu->chip);
    TESSERA_GPU_CALL(gpu, set_output(&gpu->chip, output, path));
}

tessera_status tessera_gpu_take_timing(const struct tessera_gpu *gpu, tessera_sim_timing *out) {
    if (!tessera_gpu_calls(gpu)->take_timing) return tessera_driver_no_clock(&gpu->chip);
    TESSERA_GPU_CALL(gpu, take_timing(&gpu->chip, out));
}

tessera_status tessera_gpu_make_tensor_map(const tessera_device *device, const struct tessera_tensor_map_shape *shape,
                                           struct tessera_tensor_map *out) {
    const struct tessera_gpu *const gpu = device->gpu;
    if (!tessera_gpu_calls(gpu)->make_tensor_map)
        return tessera_fail(TESSERA_ERROR_DEVICE, "%s: devices of its kind have no tensor maps", device->name);
    return tessera_gpu_calls(gpu)->make_tensor_map(&gpu->chip, shape, out);
}

bool tessera_gpu_has_clusters(const tessera_device *device) {
    const struct tessera_gpu *const gpu = device->gpu;
    return tessera_gpu_calls(gpu)->has_clusters && tessera_gpu_calls(gpu)->has_clusters(&gpu->chip);
}
