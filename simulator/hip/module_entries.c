// SPDX-License-Identifier: MIT
// Entry points of modules: loading, kernels and their attributes, variables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

// ---- loading

HIP_API hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
    HIP_ENTER();
    HIP_REQUIRE(out && image, hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_module_open(tessera_hip_current(), image, SIZE_MAX, out));
}

HIP_API hipError_t hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned count, void *options,
                                       void **values) {
    (void)count, (void)options, (void)values; // options of a compiler, which the stand-in lacks
    return hipModuleLoadData(out, image);
}

HIP_API hipError_t hipModuleLoadFatBinary(hipModule_t *out, const void *image) { return hipModuleLoadData(out, image); }

static hipError_t read_file(const char *name, void **out, size_t *bytes) {
    FILE *file = fopen(name, "rb");
    if (!file) return hipErrorFileNotFound;
    hipError_t error = hipErrorInvalidValue;
    void *content = NULL;
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0 &&
        (content = malloc((size_t)size)) && fread(content, 1, (size_t)size, file) == (size_t)size)
        error = hipSuccess;
    else if (size == 0)
        error = tessera_hip_major >= 7 ? hipErrorInvalidImage : hipErrorInvalidValue;
    fclose(file);
    if (error != hipSuccess) {
        free(content);
        return error;
    }
    *out = content;
    *bytes = (size_t)size;
    return hipSuccess;
}

HIP_API hipError_t hipModuleLoad(hipModule_t *out, const char *name) {
    HIP_ENTER();
    HIP_REQUIRE(out && name && *name, hipErrorInvalidValue);
    void *image;
    size_t bytes;
    HIP_TRY(read_file(name, &image, &bytes));
    const hipError_t error = tessera_hip_module_open(tessera_hip_current(), image, bytes, out);
    free(image); // the simulator has its copy
    return tessera_hip_result(error);
}

HIP_API hipError_t hipModuleUnload(hipModule_t module) {
    HIP_ENTER();
    HIP_REQUIRE(module, hipErrorInvalidHandle);
    HIP_REQUIRE(tessera_hip_handle_is(module, HIP_MODULE), hipErrorNotFound);
    struct hip_device *device = module->device;
    pthread_mutex_lock(&device->run);
    tessera_hip_module_close(module);
    pthread_mutex_unlock(&device->run);
    return tessera_hip_result(hipSuccess);
}

// ---- kernels and variables

HIP_API hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
    HIP_ENTER();
    HIP_REQUIRE(out && name && *name, hipErrorInvalidValue);
    HIP_REQUIRE(module, hipErrorInvalidHandle);
    HIP_REQUIRE(tessera_hip_handle_is(module, HIP_MODULE), hipErrorNotFound);
    return tessera_hip_result(tessera_hip_module_function(module, name, out));
}

HIP_API hipError_t hipModuleGetFunctionCount(unsigned *count, hipModule_t module) {
    HIP_ENTER();
    HIP_REQUIRE(count, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_handle_is(module, HIP_MODULE), hipErrorInvalidHandle);
    *count = (unsigned)tessera_sim_kernel_count(module->code);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipModuleGetGlobal(hipDeviceptr_t *address, size_t *bytes, hipModule_t module, const char *name) {
    HIP_ENTER();
    HIP_REQUIRE((address || bytes) && name && *name, hipErrorInvalidValue);
    HIP_REQUIRE(module, hipErrorInvalidHandle);
    HIP_REQUIRE(tessera_hip_handle_is(module, HIP_MODULE), hipErrorNotFound);
    void *at;
    size_t size;
    HIP_REQUIRE(tessera_sim_global(module->code, name, &at, &size) == TESSERA_SUCCESS, hipErrorNotFound);
    if (address) *address = at;
    if (bytes) *bytes = size;
    return tessera_hip_result(hipSuccess);
}

// ---- attributes of kernels

static int dynamic_lds_left(const struct hip_function *function) {
    return (int)(function->module->device->facts->lds_bytes - function->info->lds_bytes);
}

// gfx90a is 90, gfx942 is 94.
static int binary_version(const struct hip_function *function) {
    const struct hip_facts *facts = function->module->device->facts;
    return (int)(facts->major * 10 + facts->minor);
}

HIP_API hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute, hipFunction_t function) {
    HIP_ENTER();
    HIP_REQUIRE(value, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_handle_is(function, HIP_FUNCTION), hipErrorInvalidHandle);
    const tessera_sim_kernel_info *info = function->info;
    switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)info->max_workgroup_size;
        break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)info->lds_bytes;
        break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)info->private_bytes;
        break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)info->vgprs;
        break;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = binary_version(function);
        break;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = 0;
        break;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = dynamic_lds_left(function);
        break;
    default:
        return tessera_hip_result(hipErrorInvalidValue);
    }
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipFuncGetAttributes(hipFuncAttributes *out, const void *host) {
    HIP_ENTER();
    HIP_REQUIRE(out, hipErrorInvalidValue);
    struct hip_function *function;
    HIP_TRY(tessera_hip_symbol_function(host, &function));
    *out = (hipFuncAttributes){
        .binaryVersion = binary_version(function),
        .localSizeBytes = function->info->private_bytes,
        .maxDynamicSharedSizeBytes = dynamic_lds_left(function),
        .maxThreadsPerBlock = (int)function->info->max_workgroup_size,
        .numRegs = (int)function->info->vgprs,
        .ptxVersion = binary_version(function),
        .sharedSizeBytes = function->info->lds_bytes,
    };
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipFuncSetAttribute(const void *host, int attribute, int value) {
    enum { DYNAMIC_LDS = 8, CARVEOUT = 9, LAST = 10 };
    HIP_ENTER();
    HIP_REQUIRE(host, hipErrorInvalidDeviceFunction);
    HIP_REQUIRE(attribute >= 0 && attribute <= LAST, hipErrorInvalidValue);
    struct hip_function *function;
    HIP_TRY(tessera_hip_symbol_function(host, &function));
    HIP_REQUIRE(attribute != DYNAMIC_LDS || (value >= 0 && value <= dynamic_lds_left(function)), hipErrorInvalidValue);
    HIP_REQUIRE(attribute != CARVEOUT || (value >= -1 && value <= 100), hipErrorInvalidValue);
    return tessera_hip_result(hipSuccess); // kernels may always use all of LDS
}

HIP_API hipError_t hipFuncSetCacheConfig(const void *host, int config) {
    HIP_ENTER();
    HIP_REQUIRE(host, hipErrorInvalidDeviceFunction);
    return tessera_hip_result(config >= 0 && config <= 3 ? hipSuccess : hipErrorInvalidValue);
}

HIP_API hipError_t hipFuncSetSharedMemConfig(const void *host, int config) {
    HIP_ENTER();
    HIP_REQUIRE(host, hipErrorInvalidDeviceFunction);
    return tessera_hip_result(config >= 0 && config <= 2 ? hipSuccess : hipErrorInvalidValue);
}
