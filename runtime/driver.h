// SPDX-License-Identifier: MIT
// The HIP runtime's functions that the library calls, declared here so that no SDK is needed, and where they come from:
// a table of the host's, libamdhip64, or libtessera_sim, which has the same.
#ifndef TESSERA_RUNTIME_DRIVER_H
#define TESSERA_RUNTIME_DRIVER_H

#include <stdatomic.h>

#include "internal.h"

// Each returns a hipError_t; modules, functions and streams are opaque.
#define TESSERA_DRIVER_FUNCTIONS(F)                                                                                    \
    F(hipInit, (unsigned flags))                                                                                       \
    F(hipRuntimeGetVersion, (int *version))                                                                            \
    F(hipGetDeviceCount, (int *count))                                                                                 \
    F(hipGetDevice, (int *device))                                                                                     \
    F(hipSetDevice, (int device))                                                                                      \
    F(hipDeviceGetAttribute, (int *value, int attribute, int device))                                                  \
    F(hipDeviceSynchronize, (void))                                                                                    \
    F(hipMalloc, (void **out, size_t bytes))                                                                           \
    F(hipFree, (void *memory))                                                                                         \
    F(hipMemcpy, (void *to, const void *from, size_t bytes, int kind))                                                 \
    F(hipMemset, (void *to, int byte, size_t bytes))                                                                   \
    F(hipModuleLoadData, (void **module, const void *image))                                                           \
    F(hipModuleUnload, (void *module))                                                                                 \
    F(hipModuleGetFunction, (void **function, void *module, const char *name))                                         \
    F(hipModuleLaunchKernel,                                                                                           \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared_bytes, void *stream, void **params, void **extra))                            \
    F(hipStreamIsCapturing, (void *stream, int *status))                                                               \
    F(hipGetLastError, (void))

// Values of the HIP runtime that have been the same from ROCm 5 to 7 (hip_runtime_api.h).
enum {
    HIP_ERROR_NO_DEVICE = 100,
    HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    HIP_ERROR_STREAM_CAPTURE_IMPLICIT = 906, // asked of the default stream while another one captures
    HIP_ATTRIBUTE_L2_BYTES = 19,
    HIP_ATTRIBUTE_COMPUTE_UNITS = 63,
    HIP_ATTRIBUTE_LDS_BYTES = 74, // of a workgroup
    HIP_COPY_TO_DEVICE = 1,
    HIP_COPY_FROM_DEVICE = 2
};

struct tessera_driver {
#define F(name, parameters) int(*name) parameters;
    TESSERA_DRIVER_FUNCTIONS(F)
#undef F
    const char *(*hipGetErrorName)(int error);
    const char *(*hipGetErrorString)(int error);
    // Fills in a hipDeviceProp_t: since ROCm 6 by the first and longer; before by the second.
    int (*hipGetDevicePropertiesR0600)(void *properties, int device);
    int (*hipGetDeviceProperties)(void *properties, int device);
    // NULL where a host's table lacks them: not every call needs them.
    int (*hipStreamSynchronize)(void *stream);
    int (*hipMemsetAsync)(void *to, int byte, size_t bytes, void *stream);
    int (*hipMemsetD32Async)(void *to, int word, size_t count, void *stream);
    int (*hipMemcpyAsync)(void *to, const void *from, size_t bytes, int kind, void *stream);
    // The simulator's alone: lines that say more than its errors' names go to `listener`.
    void (*tessera_hip_listen)(void (*listener)(const char *line));

    char origin[256]; // for messages: the library's file
    atomic_int users;
};

enum tessera_driver_kind { TESSERA_DRIVER_HIP, TESSERA_DRIVER_SIM, TESSERA_DRIVER_KINDS };

// The driver of a kind, initialized, for device `name` of error lines. Each one that is opened is to be closed.
tessera_status tessera_driver_open(enum tessera_driver_kind kind, const char *name, struct tessera_driver **out);
void tessera_driver_close(struct tessera_driver *driver);

// Fails with what the driver says of `error`, which `call` on device `name` returned; the driver's own last error, that
// a host might take for its own, is taken back.
tessera_status tessera_driver_fail(const struct tessera_driver *driver, const char *name, const char *call, int error);

enum { TESSERA_ARCH_BYTES = 256 }; // of hipDeviceProp_t.gcnArchName
// The full name of a GPU's architecture, such as "gfx942:sramecc+:xnack-".
tessera_status tessera_driver_arch(const struct tessera_driver *driver, const char *name, int ordinal,
                                   char arch[TESSERA_ARCH_BYTES]);

// ---- finding a library (driver_library.c)

// The opened library of a kind, and its file or name for messages. Libraries stay open: they have threads of their own.
tessera_status tessera_driver_library(enum tessera_driver_kind kind, const char *name, void **out, char *origin,
                                      size_t origin_size);

#endif
