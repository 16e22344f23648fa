// SPDX-License-Identifier: MIT
// A kernel's assertion that does not hold: it says so, and the device fails.
#undef NDEBUG
#include "check.h"

#include <cassert>

__global__ void count(int *x, int limit) {
    assert((int)threadIdx.x < limit);
    x[threadIdx.x] = 1;
}

int main() {
    Buffer<int> x(64);
    count<<<1, 64>>>(x.data(), 64);
    HIP(hipDeviceSynchronize());
    count<<<1, 64>>>(x.data(), 63);
    EXPECT(hipDeviceSynchronize() == hipErrorLaunchFailure);
    std::puts("ok");
}
