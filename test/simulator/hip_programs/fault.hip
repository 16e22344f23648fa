// SPDX-License-Identifier: MIT
// A kernel that writes behind its buffer: the launch succeeds, what follows does not, and the error stays.
#include "check.h"

__global__ void write(int *x, int at) { x[at] = 1; }

int main() {
    Buffer<int> x(64);
    write<<<1, 1>>>(x.data(), 63);
    HIP(hipDeviceSynchronize());
    write<<<1, 1>>>(x.data(), 64);
    EXPECT(hipDeviceSynchronize() == hipErrorIllegalAddress);
    int value;
    EXPECT(hipMemcpy(&value, x.data(), sizeof value, hipMemcpyDeviceToHost) == hipErrorIllegalAddress);
    write<<<1, 1>>>(x.data(), 0);
    EXPECT(hipGetLastError() == hipErrorIllegalAddress);
    void *more;
    EXPECT(hipMalloc(&more, 4) == hipErrorIllegalAddress);
    EXPECT(hipSetDevice(0) == hipSuccess);
    std::puts("ok");
}
