// SPDX-License-Identifier: MIT
// What a device says of itself, in the structure of the headers that this is compiled with and by attributes.
#include "check.h"

#include <algorithm>
#include <cstring>

static int attribute(hipDeviceAttribute_t which) {
    int value = -1;
    HIP(hipDeviceGetAttribute(&value, which, 0));
    return value;
}

__global__ void __launch_bounds__(128) limited(int *x) { x[threadIdx.x] = 1; }

int main() {
    hipDeviceProp_t p;
    std::memset(&p, 0xff, sizeof p);
    HIP(hipGetDeviceProperties(&p, 0));
    EXPECT(std::strstr(p.name, "Instinct") != nullptr);
    EXPECT(std::strncmp(p.gcnArchName, "gfx90a", 6) == 0);
    size_t total = 0;
    HIP(hipDeviceTotalMem(&total, 0));
    EXPECT(p.totalGlobalMem == total && total > 1u << 30);
    EXPECT((int)p.sharedMemPerBlock == attribute(hipDeviceAttributeMaxSharedMemoryPerBlock));
    EXPECT(p.sharedMemPerBlock == 65536 && p.maxSharedMemoryPerMultiProcessor == 65536);
    EXPECT(p.regsPerBlock == attribute(hipDeviceAttributeMaxRegistersPerBlock));
    EXPECT(p.warpSize == 64 && attribute(hipDeviceAttributeWarpSize) == 64);
    EXPECT(p.maxThreadsPerBlock == 1024 && attribute(hipDeviceAttributeMaxThreadsPerBlock) == 1024);
    EXPECT(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[1] == 1024 && p.maxThreadsDim[2] == 1024);
    EXPECT(p.maxGridSize[0] == attribute(hipDeviceAttributeMaxGridDimX));
    EXPECT(p.maxGridSize[1] == attribute(hipDeviceAttributeMaxGridDimY));
    EXPECT(p.maxGridSize[2] == attribute(hipDeviceAttributeMaxGridDimZ));
    EXPECT(p.clockRate == attribute(hipDeviceAttributeClockRate) && p.clockRate > 0);
    EXPECT(p.memoryClockRate == attribute(hipDeviceAttributeMemoryClockRate) && p.memoryClockRate > 0);
    EXPECT(p.memoryBusWidth == attribute(hipDeviceAttributeMemoryBusWidth) && p.memoryBusWidth > 0);
    EXPECT(p.major == 9 && attribute(hipDeviceAttributeComputeCapabilityMajor) == 9);
    EXPECT(p.minor == attribute(hipDeviceAttributeComputeCapabilityMinor));
    EXPECT(p.multiProcessorCount == attribute(hipDeviceAttributeMultiprocessorCount) && p.multiProcessorCount > 0);
    EXPECT(p.l2CacheSize == attribute(hipDeviceAttributeL2CacheSize) && p.l2CacheSize > 0);
    EXPECT(p.maxThreadsPerMultiProcessor == attribute(hipDeviceAttributeMaxThreadsPerMultiProcessor));
    EXPECT(p.clockInstructionRate == attribute(hipDeviceAttributeClockInstructionRate));
    EXPECT(p.concurrentKernels == 1 && p.canMapHostMemory == 1 && p.isLargeBar == 1 && p.ECCEnabled == 1);
    EXPECT(p.arch.hasDoubles && p.arch.hasWarpBallot && p.arch.has3dGrid && p.arch.hasSharedInt64Atomics);
    EXPECT(!p.arch.hasSurfaceFuncs && !p.arch.hasDynamicParallelism && !p.arch.hasFunnelShift);
    EXPECT(p.managedMemory == attribute(hipDeviceAttributeManagedMemory));
    EXPECT(p.concurrentManagedAccess == attribute(hipDeviceAttributeConcurrentManagedAccess));
    EXPECT(p.directManagedMemAccessFromHost == attribute(hipDeviceAttributeDirectManagedMemAccessFromHost));
    EXPECT(p.pageableMemoryAccess == attribute(hipDeviceAttributePageableMemoryAccess));
    EXPECT(p.cooperativeLaunch == attribute(hipDeviceAttributeCooperativeLaunch));
    EXPECT(p.integrated == 0 && p.tccDriver == 0 && p.kernelExecTimeoutEnabled == 0);
    EXPECT((int)p.textureAlignment == attribute(hipDeviceAttributeTextureAlignment));
    EXPECT((int)p.memPitch == attribute(hipDeviceAttributeMaxPitch));

    char bus[32];
    int device = -1;
    HIP(hipDeviceGetPCIBusId(bus, sizeof bus, 0));
    HIP(hipDeviceGetByPCIBusId(&device, bus));
    EXPECT(device == 0);

    hipFuncAttributes function = {};
    HIP(hipFuncGetAttributes(&function, reinterpret_cast<const void *>(limited)));
    EXPECT(function.maxThreadsPerBlock == 128 && function.sharedSizeBytes == 0 && function.numRegs > 0);
    EXPECT(function.binaryVersion == 90);
    int blocks = 0, grid = 0, size = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, limited, 128, 0));
    // Two waves a block; four SIMDs hold eight waves each, as far as their 512 registers, handed out by eights, go.
    const int by_registers = 512 / ((function.numRegs + 7) / 8 * 8), expected = 4 * std::min(8, by_registers) / 2;
    EXPECT(blocks == expected);
    HIP(hipOccupancyMaxPotentialBlockSize(&grid, &size, limited, 0, 0));
    EXPECT(size == 128 && grid == expected * p.multiProcessorCount);

    int version = 0;
    HIP(hipRuntimeGetVersion(&version));
    EXPECT(version / 100000 == HIP_VERSION / 100000);
    EXPECT(std::strcmp(hipGetErrorName(hipErrorStreamCaptureIsolation), "hipErrorStreamCaptureIsolation") == 0);
    std::puts("ok");
}
