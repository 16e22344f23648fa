// SPDX-License-Identifier: MIT
// Cooperative groups within a block: tiles of a wave, and the block.
#include "check.h"

#include <hip/hip_cooperative_groups.h> // after the runtime's header, which it needs

namespace groups = cooperative_groups;

__global__ void run(const int *in, int *tiles, int *blocks) {
    __shared__ int part[256];
    groups::thread_block block = groups::this_thread_block();
    const int t = block.thread_rank();
    auto tile = groups::tiled_partition<16>(block);
    int sum = in[blockIdx.x * blockDim.x + t];
    for (int step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
    if (tile.thread_rank() == 0) tiles[(blockIdx.x * blockDim.x + t) / 16] = sum;
    part[t] = tile.thread_rank() == 0 ? sum : 0;
    block.sync();
    if (t == 0) {
        int all = 0;
        for (int i = 0; i < (int)block.size(); i++) all += part[i];
        blocks[blockIdx.x] = all;
    }
}

int main() {
    const int blocks = 3, size = 256, n = blocks * size;
    std::vector<int> in(n);
    for (int i = 0; i < n; i++) in[i] = i * i % 101;
    Buffer<int> din(in), tiles(n / 16), sums(blocks);
    run<<<blocks, size>>>(din.data(), tiles.data(), sums.data());
    HIP(hipDeviceSynchronize());
    const std::vector<int> of_tile = tiles.fetch(), of_block = sums.fetch();
    for (int b = 0; b < blocks; b++) {
        int all = 0;
        for (int t = 0; t < size / 16; t++) {
            int expected = 0;
            for (int i = 0; i < 16; i++) expected += in[b * size + 16 * t + i];
            EXPECT(of_tile[(b * size) / 16 + t] == expected);
            all += expected;
        }
        EXPECT(of_block[b] == all);
    }
    std::puts("ok");
}
