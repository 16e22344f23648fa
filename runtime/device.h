// SPDX-License-Identifier: MIT
// What operations use of a device.
#ifndef TESSERA_RUNTIME_DEVICE_H
#define TESSERA_RUNTIME_DEVICE_H

#include "internal.h"

struct tessera_gpu;

struct tessera_device {
    char name[32];
    tessera_device_facts facts;
    struct tessera_gpu *gpu; // NULL: the CPU
};

// ---- kernels of a GPU (gpu_code.c)

// A kernel of an operation's packs. Two kernels have different symbols, and a symbol's text stays where it is.
struct tessera_gpu_kernel {
    const char *op, *symbol;
    uint32_t threads; // of a workgroup
};

// Loads the kernel unless that was done before.
tessera_status tessera_gpu_load(const tessera_device *device, const struct tessera_gpu_kernel *kernel);

// Puts the kernel's launch into the stream: `grid` workgroups, the kernel's one argument by value. Loads the kernel
// first where that was not done, unless the stream captures.
tessera_status tessera_gpu_launch(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                  const uint32_t grid[3], const void *argument, size_t bytes, void *stream);

// Waits for what the stream holds. Not *waited, and no error: the stream captures, or the driver lacks the function.
tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited);

#endif
