// SPDX-License-Identifier: MIT
// Streams and events: work in several streams, one that waits for another, host memory that kernels use, callbacks.
#include "check.h"

__global__ void scale(float *x, float by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

static void count_call(hipStream_t, hipError_t status, void *user) {
    if (status == hipSuccess) ++*(int *)user;
}

int main() {
    const int n = 4096, streams = 3;
    const size_t bytes = n * sizeof(float);
    float *host[streams], *device[streams];
    hipStream_t stream[streams];
    int least, greatest, calls = 0;
    HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    for (int s = 0; s < streams; s++) {
        HIP(hipHostMalloc((void **)&host[s], bytes, hipHostMallocDefault));
        HIP(hipMalloc((void **)&device[s], bytes));
        if (s == 0)
            HIP(hipStreamCreate(&stream[s]));
        else
            HIP(hipStreamCreateWithPriority(&stream[s], hipStreamNonBlocking, s == 1 ? least : greatest));
        for (int i = 0; i < n; i++) host[s][i] = float(i + s);
    }
    hipEvent_t start, stop;
    HIP(hipEventCreate(&start));
    HIP(hipEventCreate(&stop));
    HIP(hipEventRecord(start, stream[0]));
    for (int s = 0; s < streams; s++) {
        HIP(hipMemcpyAsync(device[s], host[s], bytes, hipMemcpyHostToDevice, stream[s]));
        scale<<<n / 128, 128, 0, stream[s]>>>(device[s], s + 2.0f, n);
        HIP(hipMemcpyAsync(host[s], device[s], bytes, hipMemcpyDeviceToHost, stream[s]));
        HIP(hipStreamAddCallback(stream[s], count_call, &calls, 0));
    }
    HIP(hipEventRecord(stop, stream[0]));
    HIP(hipStreamWaitEvent(stream[1], stop, 0));
    scale<<<n / 128, 128, 0, stream[1]>>>(host[0], 10.0f, n); // memory of the host
    for (int s = 0; s < streams; s++) HIP(hipStreamSynchronize(stream[s]));
    HIP(hipEventSynchronize(stop));
    EXPECT(hipEventQuery(stop) == hipSuccess && hipStreamQuery(stream[2]) == hipSuccess);
    float milliseconds = -1;
    HIP(hipEventElapsedTime(&milliseconds, start, stop));
    EXPECT(milliseconds >= 0);
    EXPECT(calls == streams);
    for (int s = 0; s < streams; s++)
        for (int i = 0; i < n; i++) EXPECT(host[s][i] == float(i + s) * (s + 2.0f) * (s == 0 ? 10.0f : 1.0f));
    for (int s = 0; s < streams; s++) {
        HIP(hipStreamDestroy(stream[s]));
        HIP(hipHostFree(host[s]));
        HIP(hipFree(device[s]));
    }
    HIP(hipEventDestroy(start));
    HIP(hipEventDestroy(stop));
    std::puts("ok");
}
