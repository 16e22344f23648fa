// SPDX-License-Identifier: MIT
// Sums: a tree in shared memory, shuffles within a wave, and one atomic a block.
#include "check.h"

__global__ void tree(const int *in, int *out, int n) {
    __shared__ int part[256];
    const int t = threadIdx.x;
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    part[t] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

__global__ void shuffles(const int *in, int *out, int n) {
    __shared__ int of_wave[4];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int sum = i < n ? in[i] : 0;
    for (int step = warpSize / 2; step > 0; step /= 2) sum += __shfl_down(sum, step);
    if (t % warpSize == 0) of_wave[t / warpSize] = sum;
    __syncthreads();
    if (t == 0) atomicAdd(out, of_wave[0] + of_wave[1] + of_wave[2] + of_wave[3]);
}

int main() {
    const int n = 100000, blocks = 20;
    std::vector<int> in(n);
    long expected = 0;
    for (int i = 0; i < n; i++) expected += in[i] = i % 997 - 300;
    Buffer<int> din(in), parts(blocks), total(std::vector<int>{0});

    tree<<<blocks, 256>>>(din.data(), parts.data(), n);
    long sum = 0;
    for (const int part : parts.fetch()) sum += part;
    EXPECT(sum == expected);

    shuffles<<<(n + 255) / 256, 256>>>(din.data(), total.data(), n);
    EXPECT(total.fetch()[0] == expected);
    std::puts("ok");
}
