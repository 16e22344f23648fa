// SPDX-License-Identifier: MIT
// The first program of every book, with a size that is no multiple of the block.
#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main() {
    const int n = 12345;
    std::vector<float> a(n), b(n);
    for (int i = 0; i < n; i++) {
        a[i] = 0.5f * i;
        b[i] = 1000.0f - i;
    }
    Buffer<float> da(a), db(b), dc(n);
    add<<<(n + 255) / 256, 256>>>(da.data(), db.data(), dc.data(), n);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
    const std::vector<float> c = dc.fetch();
    for (int i = 0; i < n; i++) EXPECT(c[i] == a[i] + b[i]);
    std::puts("ok");
}
