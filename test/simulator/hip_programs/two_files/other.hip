// SPDX-License-Identifier: MIT
#include "../check.h"

static __device__ int offset = 100;

static __global__ void add_offset(int *x) { x[threadIdx.x] += offset; }

void other_unit(int *x, int offset_there) {
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(offset), &offset_there, sizeof offset_there));
    add_offset<<<1, 64>>>(x);
}
