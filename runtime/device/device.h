// SPDX-License-Identifier: MIT
// The functions of a device that operations call.
#ifndef TESSERA_RUNTIME_DEVICE_H
#define TESSERA_RUNTIME_DEVICE_H

#include "internal.h"
#include "tessera/kernel/tensor_map.h"

struct tessera_gpu;

struct tessera_device {
    char name[32];
    tessera_device_facts facts;
    struct tessera_gpu *gpu; // NULL: the CPU
};

// ---- several calls at once (gpu.c)

// Between these two the GPU is the calling thread's current one, which all functions below require that do not say
// otherwise. tessera_device_leave() takes the status of what was done in between, and returns it unless it fails
// itself. On the CPU they do nothing.
tessera_status tessera_device_enter(const tessera_device *device, intptr_t *previous);
tessera_status tessera_device_leave(const tessera_device *device, intptr_t previous, tessera_status status);

// ---- kernels of a GPU (gpu_code.c)

// A kernel of an operation's packs. Symbols are compared by address: each kernel has its own, which never moves.
struct tessera_gpu_kernel {
    const char *op, *symbol;
};

struct tessera_launch {
    uint32_t grid[3];   // workgroups along x, y and z
    uint32_t block[3];  // threads of a workgroup
    uint32_t lds_bytes; // of a workgroup, beside those that the kernel declares
    uint32_t cluster;   // workgroups along x that run side by side and reach each other's LDS; 0: they do not
    bool overlaps;      // it may begin before the launch right before it has ended, for which its kernel waits
};

// Loads the kernel unless that was done before. Makes the GPU current by itself.
tessera_status tessera_gpu_load(const tessera_device *device, const struct tessera_gpu_kernel *kernel);
// Loads the kernel for a launch into the stream; fails where it is not loaded yet and the stream captures.
tessera_status tessera_gpu_make_ready(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                      void *stream);

// Makes the kernel ready and puts its launch into the stream. Its one argument is passed by value.
tessera_status tessera_gpu_launch(const tessera_device *device, const struct tessera_gpu_kernel *kernel,
                                  const struct tessera_launch *launch, const void *argument, size_t bytes,
                                  void *stream);

// Whether launches may be of clusters, which an older driver, or a host's table, does not know (gpu.c).
bool tessera_gpu_has_clusters(const tessera_device *device);

// ---- tensor maps of a GPU (gpu.c)

// A block of a tensor that the GPU copies to LDS, or from there, by one instruction. It may begin anywhere, also
// outside of the tensor, but at a multiple of 16 bytes of the first dimension.
struct tessera_tensor_map_shape {
    const void *base;
    uint32_t element_bytes; // 1, 2 or 4
    uint32_t rank;          // 1 to 5
    uint64_t sizes[5];      // of the tensor, in elements; the first dimension is contiguous
    uint64_t strides[4];    // bytes, of the second and further dimensions
    uint32_t box[5];        // of the block, in elements; those that are outside of the tensor are zeros
    uint32_t swizzle;       // bytes of LDS within which 16 bytes change places: 0, 32, 64 or 128
    uint32_t l2_bytes;      // that L2 fetches at least: 0, 64, 128 or 256
};

// Makes a tensor map, which becomes a part of a kernel's argument. Allocates nothing and puts nothing into a stream.
tessera_status tessera_gpu_make_tensor_map(const tessera_device *device, const struct tessera_tensor_map_shape *shape,
                                           struct tessera_tensor_map *out);

// ---- streams of a GPU (gpu_stream.c)

// Whether the stream captures: what is put into it becomes a node of a graph.
tessera_status tessera_gpu_is_capturing(const tessera_device *device, void *stream, bool *out);

// Puts the zeroing of memory into the stream.
tessera_status tessera_gpu_zero(const tessera_device *device, void *to, size_t bytes, void *stream);

// Puts a copy of a few bytes, a multiple of four, into the stream. The host may reuse `from` as soon as this returns,
// also where the stream captures: there each word of four bytes becomes a node of the graph.
tessera_status tessera_gpu_copy_small(const tessera_device *device, void *to, const uint32_t *from, size_t bytes,
                                      void *stream);

// Waits until the stream is empty. Leaves *waited false, without error, where the stream captures or the driver lacks
// the function. Makes the GPU current by itself.
tessera_status tessera_gpu_wait(const tessera_device *device, void *stream, bool *waited);

#endif
