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
};

struct tessera_launch {
    uint32_t grid[3];   // workgroups along x, y and z
    uint32_t block[3];  // threads of one
    uint32_t lds_bytes; // that one has beside those that the kernel declares
};

// Loads the kernel unless that was done before.
tessera_status tessera_gpu_load(const tessera_device *device, const struct tessera_gpu_kernel *kernel);
// The same for a launch into the stream, which fails where the kernel is not loaded and the stream captures.
tessera_status tessera_gpu_make_ready(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                      void *stream);

// Puts the launch of a kernel into the stream, with its one argument by value, and makes the kernel ready before.
tessera_status tessera_gpu_launch(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                  const struct tessera_launch *launch, const void *argument, size_t bytes,
                                  void *stream);

// ---- streams of a GPU (gpu_stream.c)

// Whether what is put into the stream becomes a part of a graph.
tessera_status tessera_gpu_is_capturing(const tessera_device *device, void *stream, bool *out);

// Puts the zeroing of memory into the stream.
tessera_status tessera_gpu_zero(const tessera_device *device, void *to, size_t bytes, void *stream);

// Puts a copy of a few bytes, whole words of four, into the stream. They are the host's again when it returns, also
// where the stream captures: there each word becomes a node of the graph.
tessera_status tessera_gpu_copy_small(const tessera_device *device, void *to, const uint32_t *from, size_t bytes,
                                      void *stream);

// Waits for what the stream holds. Not *waited, and no error: the stream captures, or the driver lacks the function.
tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited);

#endif
