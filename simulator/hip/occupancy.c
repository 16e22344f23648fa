// SPDX-License-Identifier: MIT
// Occupancy: the workgroups of a kernel that a compute unit holds, as limited by registers, LDS and slots of waves.
#include "state.h"

enum {
    LANES = 64,
    SIMDS = 4,
    MOST_WAVES = 8,   // waves of a SIMD
    VGPRS = 512,      // VGPRs and AGPRs of a lane, for all waves of a SIMD
    VGPR_GRANULE = 8, // "amdgcn: AMDGPUUsage", VGPR allocation granularity of gfx90a and later
    MOST_WORKGROUPS = 32,
    LARGEST = 1024
};

static int minimum(int64_t a, int64_t b) { return (int)(a < b ? a : b); }

int tessera_hip_blocks_per_unit(const struct hip_device *device, const tessera_sim_kernel_info *info, uint32_t items,
                                size_t lds_bytes) {
    const int waves_of_block = (int)((items + LANES - 1) / LANES);
    // The metadata of these architectures count AGPRs among the VGPRs.
    const int vgprs = (int)((info->vgprs + VGPR_GRANULE - 1) / VGPR_GRANULE * VGPR_GRANULE);
    const int waves = SIMDS * minimum(MOST_WAVES, vgprs ? VGPRS / vgprs : MOST_WAVES);
    const uint64_t lds = info->lds_bytes + lds_bytes;
    int blocks = minimum(waves / waves_of_block, MOST_WORKGROUPS);
    if (lds) blocks = minimum(blocks, (int64_t)((uint64_t)device->facts->lds_bytes / lds));
    return items > info->max_workgroup_size ? 0 : blocks;
}

static hipError_t count_blocks(int *out, struct hip_function *function, int items, size_t lds_bytes) {
    if (!out) return hipErrorInvalidValue;
    if (items <= 0) return hipErrorInvalidValue;
    *out = tessera_hip_blocks_per_unit(function->module->device, function->info, (uint32_t)items, lds_bytes);
    return hipSuccess;
}

// Finds the largest block among those that fill a compute unit best, and the grid of such blocks that fills the device.
static hipError_t best_size(int *grid, int *items, struct hip_function *function, size_t lds_bytes, int limit) {
    if (!grid || !items || limit < 0) return hipErrorInvalidValue;
    const struct hip_device *device = function->module->device;
    const int most = minimum(limit ? limit : LARGEST, function->info->max_workgroup_size);
    int best = 0, best_blocks = 0;
    for (int size = most; size > 0; size = (size - 1) / LANES * LANES) {
        const int blocks = tessera_hip_blocks_per_unit(device, function->info, (uint32_t)size, lds_bytes);
        if (blocks * size <= best_blocks * best) continue;
        best = size;
        best_blocks = blocks;
    }
    *items = best;
    *grid = best_blocks * (int)device->facts->compute_units;
    return hipSuccess;
}

// ---- kernels of modules

HIP_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function, int items,
                                                                      size_t lds_bytes) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(function, HIP_FUNCTION), hipErrorInvalidValue);
    return tessera_hip_result(count_blocks(blocks, function, items, lds_bytes));
}

HIP_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, hipFunction_t function,
                                                                               int items, size_t lds_bytes,
                                                                               unsigned flags) {
    HIP_REQUIRE(flags <= 1, hipErrorInvalidValue);
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, items, lds_bytes);
}

HIP_API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *items, hipFunction_t function,
                                                           size_t lds_bytes, int limit) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(function, HIP_FUNCTION), hipErrorInvalidValue);
    return tessera_hip_result(best_size(grid, items, function, lds_bytes, limit));
}

HIP_API hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *items, hipFunction_t function,
                                                                    size_t lds_bytes, int limit, unsigned flags) {
    HIP_REQUIRE(flags <= 1, hipErrorInvalidValue);
    return hipModuleOccupancyMaxPotentialBlockSize(grid, items, function, lds_bytes, limit);
}

// ---- kernels of the program

HIP_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int items,
                                                                size_t lds_bytes) {
    HIP_ENTER();
    struct hip_function *function;
    HIP_TRY(tessera_hip_symbol_function(host, &function));
    return tessera_hip_result(count_blocks(blocks, function, items, lds_bytes));
}

HIP_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int items,
                                                                         size_t lds_bytes, unsigned flags) {
    HIP_REQUIRE(flags <= 1, hipErrorInvalidValue);
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, items, lds_bytes);
}

HIP_API hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *items, const void *host, size_t lds_bytes,
                                                     int limit) {
    HIP_ENTER();
    struct hip_function *function;
    HIP_TRY(tessera_hip_symbol_function(host, &function));
    return tessera_hip_result(best_size(grid, items, function, lds_bytes, limit));
}
