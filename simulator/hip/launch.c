// SPDX-License-Identifier: MIT
// Launches of kernels: checks sizes as AMD's runtime does, and gathers arguments into a kernarg segment.
#include <stdlib.h>
#include <string.h>

#include "state.h"

static hipError_t check_sizes(const struct hip_function *function, const struct hip_launch *launch) {
    enum { MOST_ITEMS = 1024 };
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->block[i] == 0) return hipErrorInvalidConfiguration;
        if (launch->grid[i] == 0) return tessera_hip_major >= 7 ? hipErrorInvalidValue : hipErrorInvalidConfiguration;
        if (launch->grid[i] > UINT32_MAX) return hipErrorInvalidConfiguration;
        items = items > MOST_ITEMS ? items : items * launch->block[i];
    }
    if (items > MOST_ITEMS) return tessera_hip_major >= 7 ? hipErrorInvalidConfiguration : hipErrorInvalidValue;
    if (items > function->info->max_workgroup_size) return hipErrorLaunchFailure; // more than its launch bounds allow
    const int64_t lds = function->module->device->facts->lds_bytes;
    if (function->info->lds_bytes + (int64_t)launch->lds_bytes > lds) return hipErrorInvalidValue;
    return hipSuccess;
}

static hipError_t take_packed(const struct hip_function *function, void **extra, char *kernarg) {
    const char *from = NULL;
    size_t bytes = 0;
    for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
            from = extra[i + 1];
        else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
            memcpy(&bytes, extra[i + 1], sizeof bytes);
        else
            return hipErrorInvalidValue;
    }
    const tessera_sim_kernel_info *info = function->info;
    const bool described = info->argument_count > 0; // else the number of bytes is unknown
    if (described && bytes < info->explicit_kernarg_bytes) return hipErrorInvalidValue;
    if (bytes && !from) return hipErrorInvalidValue;
    if (bytes > info->explicit_kernarg_bytes) bytes = info->explicit_kernarg_bytes;
    if (bytes) memcpy(kernarg, from, bytes);
    return hipSuccess;
}

static hipError_t take_params(const struct hip_function *function, void **params, char *kernarg) {
    const tessera_sim_kernel_info *info = function->info;
    size_t next = 0;
    for (size_t i = 0; i < info->argument_count; i++) {
        const tessera_sim_argument *argument = &info->arguments[i];
        if (strncmp(argument->value_kind, "hidden_", 7) == 0) continue;
        if (!params || !params[next]) return hipErrorInvalidValue;
        memcpy(kernarg + argument->offset, params[next++], argument->size);
    }
    return hipSuccess;
}

hipError_t tessera_hip_make_kernel_work(struct hip_function *function, const struct hip_launch *launch,
                                        struct hip_work *work) {
    hipError_t error = launch->params && launch->extra ? hipErrorInvalidValue : check_sizes(function, launch);
    if (error != hipSuccess) return error;
    const size_t bytes = function->info->explicit_kernarg_bytes;
    char *kernarg = calloc(1, bytes + 1);
    if (!kernarg) return hipErrorOutOfMemory;
    error =
        launch->extra ? take_packed(function, launch->extra, kernarg) : take_params(function, launch->params, kernarg);
    if (error != hipSuccess) {
        free(kernarg);
        return error;
    }
    *work = (struct hip_work){
        .kind = HIP_KERNEL,
        .kernel = {.function = function,
                   .grid = {(uint32_t)launch->grid[0], (uint32_t)launch->grid[1], (uint32_t)launch->grid[2]},
                   .block = {launch->block[0], launch->block[1], launch->block[2]},
                   .lds_bytes = launch->lds_bytes,
                   .kernarg = kernarg,
                   .kernarg_bytes = bytes}};
    return hipSuccess;
}

hipError_t tessera_hip_launch(struct hip_function *function, const struct hip_launch *launch, hipStream_t handle) {
    const struct hip_stream *stream = tessera_hip_stream(handle);
    if (!stream) return tessera_hip_major >= 7 ? hipErrorContextIsDestroyed : hipErrorInvalidValue;
    if (stream->device != function->module->device) return hipErrorInvalidHandle;
    struct hip_work work;
    const hipError_t error = tessera_hip_make_kernel_work(function, launch, &work);
    return error == hipSuccess ? tessera_hip_submit(handle, &work) : error;
}

// ---- kernels of modules

// Sizes of the grid in work-items.
static hipError_t launch_module(hipFunction_t function, const uint64_t grid[3], const uint32_t block[3],
                                uint32_t lds_bytes, hipStream_t stream, void **params, void **extra) {
    if (!tessera_hip_handle_is(function, HIP_FUNCTION)) return hipErrorInvalidHandle;
    const struct hip_launch launch = {.grid = {grid[0], grid[1], grid[2]},
                                      .block = {block[0], block[1], block[2]},
                                      .lds_bytes = lds_bytes,
                                      .params = params,
                                      .extra = extra};
    return tessera_hip_launch(function, &launch, stream);
}

HIP_API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds_bytes,
                                         hipStream_t stream, void **params, void **extra) {
    HIP_ENTER();
    const uint64_t grid[3] = {(uint64_t)grid_x * block_x, (uint64_t)grid_y * block_y, (uint64_t)grid_z * block_z};
    const uint32_t block[3] = {block_x, block_y, block_z};
    return tessera_hip_result(launch_module(function, grid, block, lds_bytes, stream, params, extra));
}

// AMD's own entry point: sizes are in work-items, and events are recorded before and after the kernel.
HIP_API hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                            uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t lds_bytes,
                                            hipStream_t stream, void **params, void **extra, hipEvent_t start,
                                            hipEvent_t stop, uint32_t flags) {
    HIP_ENTER();
    (void)flags; // work runs in order
    const uint64_t grid[3] = {grid_x, grid_y, grid_z};
    const uint32_t block[3] = {block_x, block_y, block_z};
    if (start) HIP_TRY(hipEventRecord(start, stream));
    HIP_TRY(launch_module(function, grid, block, (uint32_t)lds_bytes, stream, params, extra));
    return stop ? hipEventRecord(stop, stream) : tessera_hip_result(hipSuccess);
}

// The two mangled names that C++ programs call it by.
#define KERNEL_ARGUMENTS                                                                                               \
    hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, size_t lds,         \
        hipStream_t stream, void **params, void **extra, hipEvent_t start, hipEvent_t stop

HIP_API hipError_t ext_launch(KERNEL_ARGUMENTS, uint32_t flags) __asm__(
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
HIP_API hipError_t hcc_launch(KERNEL_ARGUMENTS) __asm__(
    "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_");

hipError_t ext_launch(KERNEL_ARGUMENTS, uint32_t flags) {
    return hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, lds, stream, params, extra, start, stop, flags);
}

hipError_t hcc_launch(KERNEL_ARGUMENTS) {
    return hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, lds, stream, params, extra, start, stop, 0);
}

// ---- kernels of the program

// The ABI passes the two dim3 in registers, as C does for structures of 12 bytes.
HIP_API hipError_t hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **params, size_t lds_bytes,
                                   hipStream_t stream) {
    HIP_ENTER();
    struct hip_function *function;
    HIP_TRY(tessera_hip_symbol_function(host, &function));
    const struct hip_launch launch = {
        .grid = {(uint64_t)grid.x * block.x, (uint64_t)grid.y * block.y, (uint64_t)grid.z * block.z},
        .block = {block.x, block.y, block.z},
        .lds_bytes = (uint32_t)lds_bytes,
        .params = params};
    HIP_REQUIRE(lds_bytes <= UINT32_MAX, hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_launch(function, &launch, stream));
}

HIP_API hipError_t hipExtLaunchKernel(const void *host, dim3 grid, dim3 block, void **params, size_t lds_bytes,
                                      hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
    HIP_ENTER();
    (void)flags;
    if (start) HIP_TRY(hipEventRecord(start, stream));
    HIP_TRY(hipLaunchKernel(host, grid, block, params, lds_bytes, stream));
    return stop ? hipEventRecord(stop, stream) : tessera_hip_result(hipSuccess);
}

// ---- the configuration that `kernel<<<grid, block, lds, stream>>>()` pushes, for hipcc's stub of the kernel to pop

struct configuration {
    dim3 grid, block;
    size_t lds_bytes;
    hipStream_t stream;
};

enum { DEEPEST = 16 };
static _Thread_local struct configuration pushed[DEEPEST];
static _Thread_local int depth;

HIP_API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream) {
    HIP_REQUIRE(depth < DEEPEST, hipErrorOutOfMemory);
    pushed[depth++] = (struct configuration){grid, block, lds_bytes, stream};
    return hipSuccess;
}

HIP_API hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *lds_bytes, hipStream_t *stream) {
    HIP_REQUIRE(depth, hipErrorMissingConfiguration);
    const struct configuration *top = &pushed[--depth];
    *grid = top->grid;
    *block = top->block;
    *lds_bytes = top->lds_bytes;
    *stream = top->stream;
    return hipSuccess;
}
