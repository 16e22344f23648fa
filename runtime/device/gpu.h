// SPDX-License-Identifier: MIT
// A GPU behind a driver: memory, loaded code.
#ifndef TESSERA_RUNTIME_GPU_H
#define TESSERA_RUNTIME_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/driver.h"

struct tessera_gpu_function; // a loaded kernel

enum { TESSERA_GPU_BUCKETS = 64 };
struct tessera_gpu {
    struct tessera_chip chip;
    tessera_target target;

    // Loaded kernels by their symbols. Lists only grow, at their heads and under the lock, so that readers need none.
    _Atomic(struct tessera_gpu_function *) functions[TESSERA_GPU_BUCKETS];
    pthread_mutex_t lock;
};

// ---- opening (gpu_open.c)

// `rest` is what stands behind the kind in the device's name: "hip:REST". Fills in name, targets and what else the
// driver tells.
tessera_status tessera_gpu_open(const struct tessera_driver_kind *kind, const char *rest, struct tessera_gpu **out,
                                tessera_device_facts *facts);
// The first GPU whose target `accepts` it; *out is NULL, and nothing failed, where there is none.
void tessera_gpu_open_first(bool accepts(tessera_target target), struct tessera_gpu **out, tessera_device_facts *facts);
void tessera_gpu_close(struct tessera_gpu *gpu);

// ---- calling the driver (gpu.c)

static inline const struct tessera_driver_calls *tessera_gpu_calls(const struct tessera_gpu *gpu) {
    return gpu->chip.driver->calls;
}

// Between the two the GPU is the calling thread's current one. `leave` returns `status`, which is that of what was
// called in between, unless it fails itself.
tessera_status tessera_gpu_enter(const struct tessera_gpu *gpu, intptr_t *previous);
tessera_status tessera_gpu_leave(const struct tessera_gpu *gpu, intptr_t previous, tessera_status status);

// Returns what a call of the driver that is made in between returns: TESSERA_GPU_CALL(gpu, free(&gpu->chip, memory)).
#define TESSERA_GPU_CALL(gpu, call)                                                                                    \
    do {                                                                                                               \
        intptr_t previous_;                                                                                            \
        const tessera_status entered_ = tessera_gpu_enter(gpu, &previous_);                                            \
        if (entered_ != TESSERA_SUCCESS) return entered_;                                                              \
        return tessera_gpu_leave(gpu, previous_, tessera_gpu_calls(gpu)->call);                                        \
    } while (0)

// ---- memory (gpu.c)

tessera_status tessera_gpu_malloc(const struct tessera_gpu *gpu, size_t bytes, void **out);
tessera_status tessera_gpu_free(const struct tessera_gpu *gpu, void *memory);
tessera_status tessera_gpu_copy_to(const struct tessera_gpu *gpu, void *to, const void *host_from, size_t bytes);
tessera_status tessera_gpu_copy_from(const struct tessera_gpu *gpu, void *host_to, const void *from, size_t bytes);
tessera_status tessera_gpu_set(const struct tessera_gpu *gpu, void *to, int byte, size_t bytes);
tessera_status tessera_gpu_synchronize(const struct tessera_gpu *gpu);

// ---- code (gpu_code.c): loading and launching stand in device.h

void tessera_gpu_unload_all(struct tessera_gpu *gpu);

#endif
