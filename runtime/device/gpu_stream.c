// SPDX-License-Identifier: MIT
// Streams of a GPU: fills and copies, which are put into them beside launches, and waiting.
#include "device/device.h"
#include "device/gpu.h"
#include "guard.h"

tessera_status tessera_gpu_is_capturing(const tessera_device *device, void *stream, bool *out) {
    TESSERA_GPU_CALL(device->gpu, is_capturing(&device->gpu->chip, stream, out));
}

tessera_status tessera_gpu_zero(const tessera_device *device, void *to, size_t bytes, void *stream) {
    TESSERA_GPU_CALL(device->gpu, zero(&device->gpu->chip, to, bytes, stream));
}

// A copy in a graph would read host memory when the graph runs, so a capture gets fills, which hold their values.
tessera_status tessera_gpu_copy_small(const tessera_device *device, void *to, const uint32_t *from, size_t bytes,
                                      void *stream) {
    bool capturing;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (capturing) TESSERA_GPU_CALL(device->gpu, set_words(&device->gpu->chip, to, from, bytes / sizeof *from, stream));
    TESSERA_GPU_CALL(device->gpu, copy_small(&device->gpu->chip, to, from, bytes, stream));
}

tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited) {
    bool capturing;
    *waited = false;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (capturing) return TESSERA_SUCCESS;
    TESSERA_GPU_CALL(device->gpu, wait(&device->gpu->chip, stream, waited));
}
