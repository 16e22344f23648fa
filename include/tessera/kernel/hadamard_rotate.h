// SPDX-License-Identifier: MIT
// What emitted kernels of hadamard_rotate receive, and the rows of its table. Not for callers.
#ifndef TESSERA_KERNEL_HADAMARD_ROTATE_H
#define TESSERA_KERNEL_HADAMARD_ROTATE_H

#include "tessera/hadamard_rotate.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

// A CPU kernel reads it through a pointer; of a GPU kernel it is the one argument. Everything that can be checked was.
// Strides count elements.
struct tessera_hadamard_rotate_problem {
    const void *x;
    void *y;
    int64_t stride_x, nhead_stride_x, stride_y, nhead_stride_y;
    int32_t nhead, hdim;
    int32_t rows; // of all tokens and heads; GPUs
    int32_t type; // tessera_type
};

// Rotates rows begin .. end - 1; row t * nhead + h is that of token t and head h.
typedef void tessera_hadamard_rotate_cpu_run(const struct tessera_hadamard_rotate_problem *problem, int64_t begin,
                                             int64_t end);

typedef struct tessera_hadamard_rotate_tile {
    uint16_t rows; // of a workgroup; CPU: 1
} tessera_hadamard_rotate_tile;

struct tessera_hadamard_rotate_instance {
    tessera_instance base;
    tessera_hadamard_rotate_tile tile;
    tessera_hadamard_rotate_cpu_run *run; // CPU instances
};

TESSERA_TABLE_CALLS(hadamard_rotate)

#ifdef __cplusplus
}
#endif
#endif
