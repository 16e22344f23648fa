// SPDX-License-Identifier: MIT
// Loading images of NVIDIA GPUs. codegen/nvptx.py makes them: PTX, at least one zero byte up to a multiple of 64 bytes,
// and a cubin, which a build without ptxas leaves out.
#include <string.h>

#include "device/driver_cuda.h"
#include "guard.h"

enum { ALIGNMENT = 64, LOG_BYTES = 512, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };

// Has the driver compile PTX, of whose errors it tells more than a number.
static tessera_status compile(const struct tessera_chip *chip, const char *ptx, void **module) {
    char log[LOG_BYTES] = "";
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    const int error = tessera_cuda_of(chip)->cuModuleLoadDataEx(module, ptx, 2, options, values);
    if (!error) return TESSERA_SUCCESS;
    for (char *end = log; (end = strpbrk(end, "\r\n"));) *end = ' ';
    return tessera_cuda_fail(tessera_cuda_of(chip), chip->name, "cuModuleLoadDataEx of PTX", error, log);
}

// A driver that is older than the ptxas of the build does not load its cubins, but may know the PTX.
static tessera_status load_module(const struct tessera_chip *chip, const char *image, size_t bytes, const char *symbol,
                                  void **module) {
    const char *const end = memchr(image, 0, bytes);
    if (!end) return tessera_fail(TESSERA_ERROR_DEVICE, "%s: the PTX of %s has no end", chip->name, symbol);
    const size_t ptx = (size_t)(end - image), cubin = (ptx / ALIGNMENT + 1) * ALIGNMENT;
    if (cubin >= bytes) return compile(chip, image, module);
    const int error = tessera_cuda_of(chip)->cuModuleLoadDataEx(module, image + cubin, 0, NULL, NULL);
    if (!error || !ptx) return tessera_cuda_told(chip, "cuModuleLoadDataEx of a cubin", error);
    tessera_log(TESSERA_LOG_INFO, "%s: the cubin of %s does not load (error %d): the driver compiles its PTX",
                chip->name, symbol, error);
    return compile(chip, image, module);
}

// Lets launches have all LDS that the kernel does not declare itself: more than 48 KB must be asked for before.
static tessera_status allow_lds(const struct tessera_chip *chip, void *function) {
    int device, most, declared;
    TRY(CUDA_CALL(chip, cuDeviceGet, &device, chip->ordinal));
    TRY(CUDA_CALL(chip, cuDeviceGetAttribute, &most, CUDA_ATTRIBUTE_SHARED_BYTES, device));
    TRY(CUDA_CALL(chip, cuFuncGetAttribute, &declared, CUDA_FUNCTION_SHARED_BYTES, function));
    return CUDA_CALL(chip, cuFuncSetAttribute, function, CUDA_FUNCTION_DYNAMIC_SHARED_BYTES, most - declared);
}

// Modules may be loaded lazily: cuFuncLoad ends that, so that no launch has to.
static tessera_status find_function(const struct tessera_chip *chip, const char *symbol, struct tessera_module *out) {
    TRY(CUDA_CALL(chip, cuModuleGetFunction, &out->function, out->module, symbol));
    if (tessera_cuda_of(chip)->cuFuncLoad) TRY(CUDA_CALL(chip, cuFuncLoad, out->function));
    return allow_lds(chip, out->function);
}

static tessera_status load(const struct tessera_chip *chip, const void *image, size_t bytes, const char *symbol,
                           struct tessera_module *out) {
    TRY(load_module(chip, image, bytes, symbol, &out->module));
    const tessera_status status = find_function(chip, symbol, out);
    if (status != TESSERA_SUCCESS) tessera_cuda_of(chip)->cuModuleUnload(out->module);
    return status;
}

// While a stream of anybody captures, only a thread in relaxed mode may load code without ending the capture.
tessera_status tessera_cuda_load(const struct tessera_chip *chip, const void *image, size_t bytes, const char *symbol,
                                 struct tessera_module *out) {
    int mode = CUDA_CAPTURE_MODE_RELAXED;
    TRY(CUDA_CALL(chip, cuThreadExchangeStreamCaptureMode, &mode));
    const tessera_status status = load(chip, image, bytes, symbol, out);
    const int error = tessera_cuda_of(chip)->cuThreadExchangeStreamCaptureMode(&mode);
    return status != TESSERA_SUCCESS ? status : tessera_cuda_told(chip, "cuThreadExchangeStreamCaptureMode", error);
}
