// SPDX-License-Identifier: MIT
// Atomics on global and shared memory, of several types.
#include "check.h"

__global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

struct Results {
    int sum, least, greatest, bits_or, bits_and, bits_xor;
    unsigned long long wide;
    float real;
    double real_wide;
    unsigned counter;
    int swapped;
};

__global__ void all(Results *r, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&r->sum, i);
    atomicMin(&r->least, i - 7);
    atomicMax(&r->greatest, i);
    atomicOr(&r->bits_or, 1 << i % 20);
    atomicAnd(&r->bits_and, ~(1 << i % 10));
    atomicXor(&r->bits_xor, i);
    atomicAdd(&r->wide, 1ull << 33);
    atomicAdd(&r->real, 0.5f);
    atomicAdd(&r->real_wide, 0.25);
    atomicInc(&r->counter, 99);
    int before = r->swapped, seen;
    while ((seen = atomicCAS(&r->swapped, before, before + 2)) != before) before = seen;
}

int main() {
    const int n = 5000;
    std::vector<unsigned char> in(n);
    std::vector<unsigned> expected(256);
    for (int i = 0; i < n; i++) expected[in[i] = (unsigned char)(i * i % 251)]++;
    Buffer<unsigned char> din(in);
    Buffer<unsigned> bins(std::vector<unsigned>(256, 0));
    histogram<<<7, 256>>>(din.data(), bins.data(), n);
    EXPECT(bins.fetch() == expected);

    Results start = {};
    start.bits_and = -1;
    Buffer<Results> results(std::vector<Results>{start});
    const int items = 1000;
    all<<<4, 256>>>(results.data(), items);
    const Results r = results.fetch()[0];
    int bits_xor = 0;
    for (int i = 0; i < items; i++) bits_xor ^= i;
    EXPECT(r.sum == items * (items - 1) / 2);
    EXPECT(r.least == -7 && r.greatest == items - 1);
    EXPECT(r.bits_or == (1 << 20) - 1 && r.bits_and == ~((1 << 10) - 1) && r.bits_xor == bits_xor);
    EXPECT(r.wide == (unsigned long long)items << 33);
    EXPECT(r.real == 0.5f * items && r.real_wide == 0.25 * items);
    EXPECT(r.counter == items % 100);
    EXPECT(r.swapped == 2 * items);
    std::puts("ok");
}
