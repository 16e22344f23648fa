// SPDX-License-Identifier: MIT
// Streams of a GPU: fills and copies, which are put into them beside launches, and waiting.
#include "device/device.h"
#include "device/gpu.h"
#include "guard.h"

tessera_status tessera_gpu_is_capturing(const tessera_device *device, void *stream, bool *out) {
    return tessera_gpu_calls(device->gpu)->is_capturing(&device->gpu->chip, stream, out);
}

tessera_status tessera_gpu_zero(const tessera_device *device, void *to, size_t bytes, void *stream) {
    return tessera_gpu_calls(device->gpu)->zero(&device->gpu->chip, to, bytes, stream);
}

// A copy in a graph would read host memory when the graph runs, so a capture gets fills, which hold their values.
tessera_status tessera_gpu_copy_small(const tessera_device *device, void *to, const uint32_t *from, size_t bytes,
                                      void *stream) {
    const struct tessera_gpu *const gpu = device->gpu;
    bool capturing;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (capturing) return tessera_gpu_calls(gpu)->set_words(&gpu->chip, to, from, bytes / sizeof *from, stream);
    return tessera_gpu_calls(gpu)->copy_small(&gpu->chip, to, from, bytes, stream);
}

static tessera_status wait_unless_capturing(const tessera_device *device, void *stream, bool *waited) {
    bool capturing;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    return capturing ? TESSERA_SUCCESS : tessera_gpu_calls(device->gpu)->wait(&device->gpu->chip, stream, waited);
}

tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited) {
    intptr_t previous = 0;
    *waited = false;
    TRY(tessera_device_enter(device, &previous));
    return tessera_device_leave(device, previous, wait_unless_capturing(device, stream, waited));
}
