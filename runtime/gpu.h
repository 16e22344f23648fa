// SPDX-License-Identifier: MIT
// A GPU behind a driver: facts, memory, loaded code, launches.
#ifndef TESSERA_RUNTIME_GPU_H
#define TESSERA_RUNTIME_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"

struct tessera_gpu_function; // a loaded kernel

enum { TESSERA_GPU_BUCKETS = 64 };
struct tessera_gpu {
    struct tessera_driver *driver;
    int ordinal;
    tessera_target target;
    char name[32]; // the device's, for messages

    // Loaded kernels by their symbols. Lists only grow, at their heads and under the lock, so that readers need none.
    _Atomic(struct tessera_gpu_function *) functions[TESSERA_GPU_BUCKETS];
    pthread_mutex_t lock;
};

// ---- opening (gpu.c)

// "hip:N" by its number, "sim:ARCH" by its architecture. Fills in name, targets and what else the driver tells.
tessera_status tessera_gpu_open_hip(int ordinal, struct tessera_gpu **out, tessera_device_facts *facts);
tessera_status tessera_gpu_open_sim(const char *arch, struct tessera_gpu **out, tessera_device_facts *facts);
// The first GPU whose target `accepts` it; *out is NULL, and nothing failed, where there is none.
void tessera_gpu_open_first(bool accepts(tessera_target target), struct tessera_gpu **out, tessera_device_facts *facts);
void tessera_gpu_close(struct tessera_gpu *gpu);

// Between the two the GPU is the calling thread's current one. `leave` returns the status of `error`, which `call`
// returned in between.
tessera_status tessera_gpu_enter(const struct tessera_gpu *gpu, int *previous);
tessera_status tessera_gpu_leave(const struct tessera_gpu *gpu, int previous, const char *call, int error);

// ---- memory (gpu.c)

tessera_status tessera_gpu_malloc(const struct tessera_gpu *gpu, size_t bytes, void **out);
tessera_status tessera_gpu_free(const struct tessera_gpu *gpu, void *memory);
tessera_status tessera_gpu_copy(const struct tessera_gpu *gpu, void *to, const void *from, size_t bytes, int kind);
tessera_status tessera_gpu_set(const struct tessera_gpu *gpu, void *to, int byte, size_t bytes);
tessera_status tessera_gpu_synchronize(const struct tessera_gpu *gpu);

// ---- code (gpu_code.c): loading and launching stand in device.h

void tessera_gpu_unload_all(struct tessera_gpu *gpu);

#endif
