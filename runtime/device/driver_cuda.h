// SPDX-License-Identifier: MIT
// The functions of NVIDIA's driver that the library calls, declared here so that no toolkit is needed.
#ifndef TESSERA_RUNTIME_DRIVER_CUDA_H
#define TESSERA_RUNTIME_DRIVER_CUDA_H

#include "device/driver.h"

// libcuda, or a host's table in its place.
extern const struct tessera_driver_kind tessera_driver_cuda;

// As cuda.h of CUDA 12.0 and 13.0 declares them, by the names that libcuda exports: there cuMemAlloc() is a macro for
// cuMemAlloc_v2(). Each returns a CUresult; contexts, modules, functions and streams are opaque.
typedef unsigned long long tessera_cuda_address; // CUdeviceptr
#define CUDA_FUNCTIONS(F)                                                                                              \
    F(cuInit, (unsigned flags))                                                                                        \
    F(cuDriverGetVersion, (int *version))                                                                              \
    F(cuGetErrorName, (int error, const char **name))                                                                  \
    F(cuGetErrorString, (int error, const char **text))                                                                \
    F(cuDeviceGetCount, (int *count))                                                                                  \
    F(cuDeviceGet, (int *device, int ordinal))                                                                         \
    F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                   \
    F(cuDevicePrimaryCtxRetain, (void **context, int device))                                                          \
    F(cuDevicePrimaryCtxRelease_v2, (int device))                                                                      \
    F(cuCtxGetCurrent, (void **context))                                                                               \
    F(cuCtxGetDevice, (int *device))                                                                                   \
    F(cuCtxPushCurrent_v2, (void *context))                                                                            \
    F(cuCtxPopCurrent_v2, (void **context))                                                                            \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuMemAlloc_v2, (tessera_cuda_address * out, size_t bytes))                                                       \
    F(cuMemFree_v2, (tessera_cuda_address memory))                                                                     \
    F(cuMemcpyHtoD_v2, (tessera_cuda_address to, const void *from, size_t bytes))                                      \
    F(cuMemcpyDtoH_v2, (void *to, tessera_cuda_address from, size_t bytes))                                            \
    F(cuMemsetD8Async, (tessera_cuda_address to, unsigned char byte, size_t count, void *stream))                      \
    F(cuStreamSynchronize, (void *stream))                                                                             \
    F(cuStreamIsCapturing, (void *stream, int *status))                                                                \
    F(cuThreadExchangeStreamCaptureMode, (int *mode))                                                                  \
    F(cuModuleLoadDataEx, (void **module, const void *image, unsigned count, int *options, void **values))             \
    F(cuModuleUnload, (void *module))                                                                                  \
    F(cuModuleGetFunction, (void **function, void *module, const char *name))                                          \
    F(cuFuncGetAttribute, (int *value, int attribute, void *function))                                                 \
    F(cuFuncSetAttribute, (void *function, int attribute, int value))                                                  \
    F(cuLaunchKernel,                                                                                                  \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,          \
       unsigned block_z, unsigned shared_bytes, void *stream, void **params, void **extra))

// CUlaunchConfig and CUlaunchAttribute.
struct tessera_cuda_launch_attribute {
    int id; // CUDA_LAUNCH_*
    int pad;
    uint32_t value[16];
};
struct tessera_cuda_launch {
    uint32_t grid[3], block[3], shared_bytes;
    void *stream;
    struct tessera_cuda_launch_attribute *attributes;
    uint32_t attribute_count;
};

// These are NULL where a host's table or an older driver lacks them, since not every call needs them. cuFuncLoad came
// with CUDA 12.4, cuLaunchKernelEx with 11.8.
#define CUDA_OPTIONAL_FUNCTIONS(F)                                                                                     \
    F(cuFuncLoad, (void *function))                                                                                    \
    F(cuLaunchKernelEx, (const struct tessera_cuda_launch *how, void *function, void **params, void **extra))          \
    F(cuMemsetD32Async, (tessera_cuda_address to, unsigned word, size_t count, void *stream))                          \
    F(cuMemcpyHtoDAsync_v2, (tessera_cuda_address to, const void *from, size_t bytes, void *stream))                   \
    F(cuTensorMapEncodeTiled,                                                                                          \
      (struct tessera_tensor_map * out, int element, uint32_t rank, void *base, const uint64_t *sizes,                 \
       const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle,     \
       int l2_promotion, int fill))

// Values of cuda.h, the same in CUDA 12 and 13.
enum {
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906, // asked of the default stream while another one captures
    CUDA_ATTRIBUTE_COMPUTE_UNITS = 16,        // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    CUDA_ATTRIBUTE_L2_BYTES = 38,
    CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76,
    CUDA_ATTRIBUTE_SHARED_BYTES = 97,       // of a workgroup, where its kernel asks for more than 48 KB: _OPTIN
    CUDA_FUNCTION_SHARED_BYTES = 1,         // that the kernel declares
    CUDA_FUNCTION_DYNAMIC_SHARED_BYTES = 8, // that a launch may add
    CUDA_LAUNCH_CLUSTER = 4,                // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    CUDA_LAUNCH_OVERLAPS = 6,               // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    CUDA_OVERLAPS_IN_GRAPHS = 12030,        // from this version on such launches can be captured
    CUDA_CAPTURE_MODE_RELAXED = 2
};

struct tessera_cuda {
    struct tessera_driver base;
    bool overlaps; // launches can
#define F(name, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(F)
    CUDA_OPTIONAL_FUNCTIONS(F)
#undef F
};

static inline const struct tessera_cuda *tessera_cuda_of(const struct tessera_chip *chip) {
    return (const struct tessera_cuda *)chip->driver;
}

// ---- driver_cuda.c

// Fails with the driver's text of `error`, which `call` on device `name` returned, and `more`, which may be empty.
tessera_status tessera_cuda_fail(const struct tessera_cuda *cuda, const char *name, const char *call, int error,
                                 const char *more);

static inline tessera_status tessera_cuda_told(const struct tessera_chip *chip, const char *call, int error) {
    return error ? tessera_cuda_fail(tessera_cuda_of(chip), chip->name, call, error, "") : TESSERA_SUCCESS;
}

#define CUDA_CALL(chip, function, ...) tessera_cuda_told(chip, #function, tessera_cuda_of(chip)->function(__VA_ARGS__))

#define CUDA_NEED(chip, function)                                                                                      \
    if (!tessera_cuda_of(chip)->function)                                                                              \
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function " #function, (chip)->name,                    \
                        (chip)->driver->origin)

// ---- driver_cuda_calls.c

extern const struct tessera_driver_calls tessera_cuda_calls;

// ---- driver_cuda_code.c

tessera_status tessera_cuda_load(const struct tessera_chip *chip, const void *image, size_t bytes, const char *symbol,
                                 struct tessera_module *out);

// ---- driver_cuda_context.c

tessera_status tessera_cuda_attach(struct tessera_chip *chip);
void tessera_cuda_detach(const struct tessera_chip *chip);
tessera_status tessera_cuda_enter(const struct tessera_chip *chip, intptr_t *previous);
tessera_status tessera_cuda_leave(const struct tessera_chip *chip, intptr_t previous);

// ---- driver_cuda_tensor_map.c

tessera_status tessera_cuda_make_tensor_map(const struct tessera_chip *chip,
                                            const struct tessera_tensor_map_shape *shape,
                                            struct tessera_tensor_map *out);

#endif
