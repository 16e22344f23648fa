// SPDX-License-Identifier: MIT
// The HIP runtime's functions that the library calls, declared here so that no SDK is needed.
#ifndef TESSERA_RUNTIME_DRIVER_HIP_H
#define TESSERA_RUNTIME_DRIVER_HIP_H

#include "device/driver.h"

// tessera_driver_hip is libamdhip64, or a host's table in its place; tessera_driver_sim is libtessera_sim, which has
// the same functions.
extern const struct tessera_driver_kind tessera_driver_hip, tessera_driver_sim;

// Each returns a hipError_t; modules, functions and streams are opaque.
#define HIP_FUNCTIONS(F)                                                                                               \
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

// These are NULL where a host's table lacks them, since not every call needs them.
#define HIP_OPTIONAL_FUNCTIONS(F)                                                                                      \
    F(hipStreamSynchronize, (void *stream))                                                                            \
    F(hipMemsetAsync, (void *to, int byte, size_t bytes, void *stream))                                                \
    F(hipMemsetD32Async, (void *to, int word, size_t count, void *stream))                                             \
    F(hipMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream))

// Values of hip_runtime_api.h, the same from ROCm 5 to 7.
enum {
    HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    HIP_ERROR_STREAM_CAPTURE_IMPLICIT = 906, // asked of the default stream while another one captures
    HIP_ATTRIBUTE_L2_BYTES = 19,
    HIP_ATTRIBUTE_COMPUTE_UNITS = 63,
    HIP_ATTRIBUTE_LDS_BYTES = 74, // of a workgroup
    HIP_COPY_TO_DEVICE = 1,
    HIP_COPY_FROM_DEVICE = 2
};

struct tessera_hip {
    struct tessera_driver base;
#define F(name, parameters) int(*name) parameters;
    HIP_FUNCTIONS(F)
    HIP_OPTIONAL_FUNCTIONS(F)
#undef F
    const char *(*hipGetErrorName)(int error);
    const char *(*hipGetErrorString)(int error);
    // Fill in a hipDeviceProp_t: since ROCm 6 the first, whose struct is longer; before that the second.
    int (*hipGetDevicePropertiesR0600)(void *properties, int device);
    int (*hipGetDeviceProperties)(void *properties, int device);
    // Only the simulator has these. The first passes `listener` lines that say more than error names do.
    void (*tessera_hip_listen)(void (*listener)(const char *line));
    int (*tessera_hip_set_clock)(int device, int clock);
    int (*tessera_hip_set_output)(int device, int output, const char *path);
    int (*tessera_hip_take_timing)(int device, tessera_sim_timing *out);
};

// ---- driver_hip_calls.c

extern const struct tessera_driver_calls tessera_hip_calls;

// ---- driver_hip_error.c

// Fails with the driver's text of `error`, which `call` on device `name` returned. The driver's own last error is
// cleared, as a host might take it for one of its own calls.
tessera_status tessera_hip_fail(const struct tessera_hip *hip, const char *name, const char *call, int error);

// From now on error lines include what the simulator reports beside its errors.
void tessera_hip_hear(const struct tessera_hip *hip);

#endif
