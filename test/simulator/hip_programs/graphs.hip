// SPDX-License-Identifier: MIT
// A graph captured from two streams that fork and join, launched twice; and one made node by node.
#include "check.h"

__global__ void add(int *x, int value) { x[threadIdx.x] += value; }
__global__ void combine(const int *a, const int *b, int *c) { c[threadIdx.x] = a[threadIdx.x] * 1000 + b[threadIdx.x]; }

static void captured(Buffer<int> &a, Buffer<int> &b, Buffer<int> &c) {
    hipStream_t main, side;
    hipEvent_t fork, join;
    HIP(hipStreamCreate(&main));
    HIP(hipStreamCreate(&side));
    HIP(hipEventCreate(&fork));
    HIP(hipEventCreate(&join));
    HIP(hipStreamBeginCapture(main, hipStreamCaptureModeGlobal));
    HIP(hipMemsetAsync(a.data(), 0, 64 * sizeof(int), main));
    HIP(hipEventRecord(fork, main));
    HIP(hipStreamWaitEvent(side, fork, 0));
    add<<<1, 64, 0, main>>>(a.data(), 7);
    add<<<1, 64, 0, side>>>(b.data(), 1);
    HIP(hipEventRecord(join, side));
    HIP(hipStreamWaitEvent(main, join, 0));
    combine<<<1, 64, 0, main>>>(a.data(), b.data(), c.data());
    hipGraph_t graph;
    HIP(hipStreamEndCapture(main, &graph));
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 4);
    for (const int value : b.fetch()) EXPECT(value == 5); // nothing has run
    hipGraphExec_t exec;
    HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    HIP(hipGraphDestroy(graph));
    HIP(hipGraphLaunch(exec, main));
    HIP(hipGraphLaunch(exec, side));
    HIP(hipDeviceSynchronize());
    for (const int value : c.fetch()) EXPECT(value == 7007);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipStreamDestroy(main));
    HIP(hipStreamDestroy(side));
}

static void by_hand(Buffer<int> &a) {
    hipGraph_t graph;
    HIP(hipGraphCreate(&graph, 0));
    int *data = a.data(), value = 30;
    void *arguments[] = {&data, &value};
    hipKernelNodeParams params = {};
    params.func = (void *)add;
    params.gridDim = dim3(1);
    params.blockDim = dim3(64);
    params.kernelParams = arguments;
    hipGraphNode_t first, second;
    HIP(hipGraphAddKernelNode(&first, graph, nullptr, 0, &params));
    HIP(hipGraphAddKernelNode(&second, graph, &first, 1, &params));
    value = 0; // the node has its own copy
    hipGraphExec_t exec;
    HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    HIP(hipGraphLaunch(exec, nullptr));
    for (const int got : a.fetch()) EXPECT(got == 7 + 60);
    value = 100; // for the second of the two, in what is launched only
    HIP(hipGraphExecKernelNodeSetParams(exec, second, &params));
    HIP(hipGraphLaunch(exec, nullptr));
    for (const int got : a.fetch()) EXPECT(got == 7 + 60 + 30 + 100);
    HIP(hipGraphExecDestroy(exec));
    HIP(hipGraphDestroy(graph));
}

int main() {
    Buffer<int> a(64), b(std::vector<int>(64, 5)), c(64);
    captured(a, b, c);
    by_hand(a);
    std::puts("ok");
}
