// SPDX-License-Identifier: MIT
// A GPU behind a driver: its memory and loaded code.
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

    // Loaded kernels by their symbols. Lists only grow, at their heads and under the lock, so readers need no lock.
    _Atomic(struct tessera_gpu_function *) functions[TESSERA_GPU_BUCKETS];
    pthread_mutex_t lock;
};

// ---- opening (gpu_open.c)

// Opens the GPU named "hip:REST", `rest` being what follows the kind and colon, and fills in its facts.
tessera_status tessera_gpu_open(const struct tessera_driver_kind *kind, const char *rest, struct tessera_gpu **out,
                                tessera_device_facts *facts);
// Opens the first GPU of whose target `accepts` returns true. Sets *out to NULL where there is none, without error.
void tessera_gpu_open_first(bool accepts(tessera_target target), struct tessera_gpu **out, tessera_device_facts *facts);
void tessera_gpu_close(struct tessera_gpu *gpu);

// ---- calling the driver (gpu.c)

static inline const struct tessera_driver_calls *tessera_gpu_calls(const struct tessera_gpu *gpu) {
    return gpu->chip.driver->calls;
}

// Between these two the GPU is the calling thread's current one. tessera_gpu_leave() takes the `status` of the call in
// between, and returns it unless it fails itself.
tessera_status tessera_gpu_enter(const struct tessera_gpu *gpu, intptr_t *previous);
tessera_status tessera_gpu_leave(const struct tessera_gpu *gpu, intptr_t previous, tessera_status status);

// Calls the driver between the two and returns the status: TESSERA_GPU_CALL(gpu, free(&gpu->chip, memory)).
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

// ---- the clock of simulated devices (gpu.c)

tessera_status tessera_gpu_set_clock(const struct tessera_gpu *gpu, tessera_sim_clock clock);
tessera_status tessera_gpu_set_output(const struct tessera_gpu *gpu, tessera_sim_output output, const char *path);
tessera_status tessera_gpu_take_timing(const struct tessera_gpu *gpu, tessera_sim_timing *out);

// ---- code (gpu_code.c); device.h declares the functions that load and launch

void tessera_gpu_unload_all(struct tessera_gpu *gpu);

#endif
