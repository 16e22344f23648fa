// SPDX-License-Identifier: MIT
// Kernels of a GPU: each is loaded under a lock when first needed, and found without a lock after that.
#include <stdlib.h>

#include "device/device.h"
#include "device/gpu.h"
#include "device/pack.h"
#include "guard.h"

struct tessera_gpu_function {
    struct tessera_gpu_function *next;
    const char *symbol; // compared by address: it is that of the table
    struct tessera_module module;
    void *image; // kept as long as the module, which may refer to it
    size_t bytes;
};

typedef struct tessera_gpu_function function_t;

static _Atomic(function_t *) *bucket_of(struct tessera_gpu *gpu, const char *symbol) {
    const uint64_t hash = (uint64_t)(uintptr_t)symbol * UINT64_C(0x9E3779B97F4A7C15);
    return &gpu->functions[hash >> 32 & (TESSERA_GPU_BUCKETS - 1)];
}

static function_t *find(struct tessera_gpu *gpu, const char *symbol) {
    function_t *function = atomic_load_explicit(bucket_of(gpu, symbol), memory_order_acquire);
    while (function && function->symbol != symbol) function = function->next;
    return function;
}

// ---- loading

static tessera_status load_image(const struct tessera_gpu *gpu, const char *symbol, function_t *out) {
    TESSERA_GPU_CALL(gpu, load(&gpu->chip, out->image, out->bytes, symbol, &out->module));
}

static void free_function(function_t *function) {
    free(function->image);
    free(function);
}

static tessera_status load(struct tessera_gpu *gpu, const struct tessera_gpu_kernel *kernel) {
    function_t *const function = calloc(1, sizeof *function);
    if (!function)
        return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a function of %zu bytes", sizeof *function);
    tessera_status status = tessera_pack_unpack(kernel->op, tessera_target_string(gpu->target), kernel->symbol,
                                                &function->image, &function->bytes);
    if (status == TESSERA_SUCCESS) status = load_image(gpu, kernel->symbol, function);
    if (status != TESSERA_SUCCESS) {
        free_function(function);
        return status;
    }
    _Atomic(function_t *) *const bucket = bucket_of(gpu, kernel->symbol);
    function->symbol = kernel->symbol;
    function->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, function, memory_order_release);
    tessera_log(TESSERA_LOG_INFO, "%s: loaded %s", gpu->chip.name, kernel->symbol);
    return TESSERA_SUCCESS;
}

tessera_status tessera_gpu_load(const tessera_device *device, const struct tessera_gpu_kernel *kernel) {
    struct tessera_gpu *const gpu = device->gpu;
    if (find(gpu, kernel->symbol)) return TESSERA_SUCCESS;
    pthread_mutex_lock(&gpu->lock);
    const tessera_status status = find(gpu, kernel->symbol) ? TESSERA_SUCCESS : load(gpu, kernel);
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

void tessera_gpu_unload_all(struct tessera_gpu *gpu) {
    intptr_t previous = 0;
    const bool current = tessera_gpu_enter(gpu, &previous) == TESSERA_SUCCESS;
    for (int i = 0; i < TESSERA_GPU_BUCKETS; i++)
        for (function_t *function = atomic_load(&gpu->functions[i]), *next; function; function = next) {
            next = function->next;
            if (current) tessera_gpu_calls(gpu)->unload(&gpu->chip, &function->module);
            free_function(function);
        }
    if (current) tessera_gpu_leave(gpu, previous, TESSERA_SUCCESS);
}

// ---- launching

static tessera_status refuse_in_capture(const tessera_device *device, const char *symbol, void *stream) {
    bool capturing;
    TRY(tessera_gpu_is_capturing(device, stream, &capturing));
    if (!capturing) return TESSERA_SUCCESS;
    return tessera_fail(TESSERA_ERROR_NOT_PREPARED,
                        "%s: the stream captures, and %s is not loaded: prepare the call or preload the device before",
                        device->name, symbol);
}

tessera_status tessera_gpu_make_ready(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                      void *stream) {
    if (find(device->gpu, kernel->symbol)) return TESSERA_SUCCESS;
    TRY(refuse_in_capture(device, kernel->symbol, stream));
    return tessera_gpu_load(device, kernel);
}

tessera_status tessera_gpu_launch(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                  const struct tessera_launch *launch, const void *argument, size_t bytes,
                                  void *stream) {
    struct tessera_gpu *const gpu = device->gpu;
    TRY(tessera_gpu_make_ready(device, kernel, stream));
    const function_t *const function = find(gpu, kernel->symbol);
    return tessera_gpu_calls(gpu)->launch(&gpu->chip, &function->module, launch, argument, bytes, stream);
}
