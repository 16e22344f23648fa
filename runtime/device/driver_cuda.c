// SPDX-License-Identifier: MIT
// The kind of drivers with NVIDIA's functions: finding libcuda and making the driver.
#include "device/driver_cuda.h"

#include <dlfcn.h>

#include "guard.h"

// ---- making

static tessera_status fill(struct tessera_cuda *cuda, const char *name, const struct tessera_driver_source *source) {
    // clang-format off
    static const struct tessera_driver_member members[] = {
#define F(f, parameters) TESSERA_DRIVER_MEMBER(struct tessera_cuda, f, true),
        CUDA_FUNCTIONS(F)
#undef F
#define F(f, parameters) TESSERA_DRIVER_MEMBER(struct tessera_cuda, f, false),
        CUDA_OPTIONAL_FUNCTIONS(F)
#undef F
    };
    // clang-format on
    return tessera_driver_fill(source, name, members, sizeof members / sizeof *members, &cuda->base);
}

static tessera_status initialize(struct tessera_cuda *cuda, const char *name) {
    int version = 0, error = cuda->cuInit(0);
    if (error) return tessera_cuda_fail(cuda, name, "cuInit", error, "");
    error = cuda->cuDriverGetVersion(&version);
    if (error) return tessera_cuda_fail(cuda, name, "cuDriverGetVersion", error, "");
    tessera_log(TESSERA_LOG_INFO, "driver: %s, CUDA %d.%d", cuda->base.origin, version / 1000, version % 1000 / 10);
    cuda->overlaps = cuda->cuLaunchKernelEx && version >= CUDA_OVERLAPS_IN_GRAPHS;
    return TESSERA_SUCCESS;
}

static tessera_status start(const char *name, const struct tessera_driver_source *source,
                            struct tessera_driver *driver) {
    struct tessera_cuda *const cuda = (struct tessera_cuda *)driver;
    TRY(fill(cuda, name, source));
    return initialize(cuda, name);
}

// ---- libcuda

static tessera_status find(const char *device, struct tessera_driver_source *out) {
    bool named;
    TRY(tessera_driver_try_variable(out, device, "TESSERA_CUDA_LIBRARY", &named));
    if (named) return TESSERA_SUCCESS;
    if (tessera_driver_try(out, "libcuda.so.1", RTLD_NOLOAD) || tessera_driver_try_loaded(out, "libcuda") ||
        tessera_driver_try(out, "libcuda.so.1", 0))
        return TESSERA_SUCCESS;
    return tessera_fail(
        TESSERA_ERROR_DEVICE,
        "%s: NVIDIA's driver is not there: libcuda.so.1 cannot be opened, and TESSERA_CUDA_LIBRARY names no file",
        device);
}

const struct tessera_driver_kind tessera_driver_cuda = {
    .word = "cuda",
    .targets = "cuda",
    .form = "cuda:N",
    .find = find,
    .bytes = sizeof(struct tessera_cuda),
    .calls = &tessera_cuda_calls,
    .start = start,
};
