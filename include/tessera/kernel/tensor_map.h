// SPDX-License-Identifier: MIT
// A tensor map of NVIDIA's GPUs, from sm_90 on: a part of a kernel's argument. Not for callers.
#ifndef TESSERA_KERNEL_TENSOR_MAP_H
#define TESSERA_KERNEL_TENSOR_MAP_H

#include <stdint.h>

// What it contains is known to the driver alone, which makes it, and to the GPU.
struct tessera_tensor_map {
    uint64_t words[16];
} __attribute__((aligned(64)));

#endif
