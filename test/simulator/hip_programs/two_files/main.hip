// SPDX-License-Identifier: MIT
// Two translation units, each with its own bundle of code: kernels and variables of the same names do not meet.
#include "../check.h"

static __device__ int offset = 10;

static __global__ void add_offset(int *x) { x[threadIdx.x] += offset; }

void other_unit(int *x, int offset_there);

int main() {
    Buffer<int> x(std::vector<int>(64, 1));
    add_offset<<<1, 64>>>(x.data());
    other_unit(x.data(), 2000);
    add_offset<<<1, 64>>>(x.data());
    for (const int value : x.fetch()) EXPECT(value == 1 + 10 + 2000 + 10);
    std::puts("ok");
}
