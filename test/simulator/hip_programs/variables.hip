// SPDX-License-Identifier: MIT
// Variables of the device: __device__, __constant__ and __managed__, from both sides.
#include "check.h"

__device__ int counters[4] = {1, 2, 3, 4};
__constant__ float factors[3];
__managed__ int shared_total = 5;
__managed__ double shared_table[8];

__global__ void work(float *out) {
    const int t = threadIdx.x;
    atomicAdd(&counters[t % 4], t);
    out[t] = factors[t % 3] * t;
    if (t == 0) shared_total += 37;
    if (t < 8) shared_table[t] = t * 0.125;
}

int main() {
    const float host[3] = {0.5f, 2.0f, -1.0f};
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(factors), host, sizeof host));
    const int third = 100;
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(counters), &third, sizeof third, 2 * sizeof(int)));
    EXPECT(shared_total == 5);
    shared_total = 6;
    shared_table[7] = 99;

    Buffer<float> out(64);
    work<<<1, 64>>>(out.data());
    HIP(hipDeviceSynchronize());
    const std::vector<float> got = out.fetch();
    for (int t = 0; t < 64; t++) EXPECT(got[t] == host[t % 3] * t);

    int sums[4];
    HIP(hipMemcpyFromSymbol(sums, HIP_SYMBOL(counters), sizeof sums));
    const int starts[4] = {1, 2, third, 4};
    for (int i = 0; i < 4; i++) {
        int expected = starts[i];
        for (int t = i; t < 64; t += 4) expected += t;
        EXPECT(sums[i] == expected);
    }
    EXPECT(shared_total == 43);
    for (int i = 0; i < 8; i++) EXPECT(shared_table[i] == i * 0.125);

    void *address = nullptr;
    size_t bytes = 0;
    HIP(hipGetSymbolAddress(&address, HIP_SYMBOL(counters)));
    HIP(hipGetSymbolSize(&bytes, HIP_SYMBOL(counters)));
    EXPECT(bytes == sizeof sums);
    HIP(hipMemset(address, 0, bytes));
    HIP(hipMemcpyFromSymbol(sums, HIP_SYMBOL(counters), sizeof sums));
    for (const int sum : sums) EXPECT(sum == 0);
    EXPECT(hipMemcpyFromSymbol(sums, HIP_SYMBOL(counters), 2 * sizeof sums) != hipSuccess);

    int *managed = nullptr;
    HIP(hipMallocManaged((void **)&managed, 64 * sizeof(float)));
    work<<<1, 64>>>((float *)managed);
    HIP(hipDeviceSynchronize());
    EXPECT(((float *)managed)[4] == 8.0f); // read by the host where it lies
    HIP(hipFree(managed));
    std::puts("ok");
}
