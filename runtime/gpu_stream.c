// SPDX-License-Identifier: MIT
// Streams of a GPU: what is put into them beside launches, and waiting for them.
#include "device.h"
#include "gpu.h"
#include "guard.h"

tessera_status tessera_gpu_is_capturing(const tessera_device *device, void *stream, bool *out) {
    const struct tessera_gpu *const gpu = device->gpu;
    int previous, capturing = 0;
    TRY(tessera_gpu_enter(gpu, &previous));
    int error = gpu->driver->hipStreamIsCapturing(stream, &capturing);
    if (error == HIP_ERROR_STREAM_CAPTURE_IMPLICIT) {
        gpu->driver->hipGetLastError();
        capturing = 1;
        error = 0;
    }
    *out = capturing;
    return tessera_gpu_leave(gpu, previous, "hipStreamIsCapturing", error);
}

// A host's table may lack them: not every call zeroes or copies.
static tessera_status lacks(const struct tessera_gpu *gpu, const char *function) {
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function %s", gpu->name, gpu->driver->origin, function);
}

tessera_status tessera_gpu_zero(const tessera_device *device, void *to, size_t bytes, void *stream) {
    const struct tessera_gpu *const gpu = device->gpu;
    int previous;
    if (!gpu->driver->hipMemsetAsync) return lacks(gpu, "hipMemsetAsync");
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipMemsetAsync", gpu->driver->hipMemsetAsync(to, 0, bytes, stream));
}

// A graph would read host memory when it runs; its fills have their values in them.
static tessera_status fill_words(const struct tessera_gpu *gpu, uint32_t *to, const uint32_t *from, size_t words,
                                 void *stream) {
    int previous, error = 0;
    if (!gpu->driver->hipMemsetD32Async) return lacks(gpu, "hipMemsetD32Async");
    TRY(tessera_gpu_enter(gpu, &previous));
    for (size_t i = 0; i < words && !error; i++)
        error = gpu->driver->hipMemsetD32Async(&to[i], (int)from[i], 1, stream);
    return tessera_gpu_leave(gpu, previous, "hipMemsetD32Async", error);
}

tessera_status tessera_gpu_copy_small(const tessera_device *device, void *to, const uint32_t *from, size_t bytes,
                                      void *stream) {
    const struct tessera_gpu *const gpu = device->gpu;
    int previous;
    bool capturing;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (capturing) return fill_words(gpu, to, from, bytes / sizeof *from, stream);
    if (!gpu->driver->hipMemcpyAsync) return lacks(gpu, "hipMemcpyAsync");
    TRY(tessera_gpu_enter(gpu, &previous));
    return tessera_gpu_leave(gpu, previous, "hipMemcpyAsync",
                             gpu->driver->hipMemcpyAsync(to, from, bytes, HIP_COPY_TO_DEVICE, stream));
}

tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited) {
    const struct tessera_gpu *const gpu = device->gpu;
    const struct tessera_driver *const d = gpu->driver;
    int previous;
    bool capturing = true;
    *waited = false;
    if (d->hipStreamSynchronize) TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (capturing) return TESSERA_SUCCESS;
    TRY(tessera_gpu_enter(gpu, &previous));
    int error = d->hipStreamSynchronize(stream);
    *waited = error != HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED; // which it may be because of another stream
    if (!*waited) {
        d->hipGetLastError();
        error = 0;
    }
    return tessera_gpu_leave(gpu, previous, "hipStreamSynchronize", error);
}
