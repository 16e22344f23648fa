// SPDX-License-Identifier: MIT
// What emitted kernels of the row operations receive, and the rows of their tables. Not for callers.
//
// One problem describes them all; `row` here is one of the m outputs, and everything was checked:
//
//   s = x (+ bias) (+ residual)                      residual_out = s
//   z = s | (s - mean) * inv * gamma + beta | s * inv * gamma       by the kernel's statistics: none, mean, square
//   unquantized = z;  z = z * smooth
//   y = z, or with y_scale quantized
//
// A pointer that is NULL is a thing not asked for.
#ifndef TESSERA_KERNEL_ROWS_H
#define TESSERA_KERNEL_ROWS_H

#include "tessera/operation.h"
#include "tessera/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// A CPU kernel reads it through a pointer; of a GPU kernel it is the one argument.
struct tessera_rows_problem {
    const void *x, *residual, *bias, *gamma, *beta;
    const float *smooth;   // [n], or [experts][n] with expert
    const int32_t *expert; // [m / slots][slots]: row r is token r % (m / slots) in slot r / (m / slots). NULL: row r is
                           // row r of x, and smooth is the same for all
    void *y, *residual_out, *unquantized;
    float *y_scale, *mean, *inv; // [m]
    int64_t x_stride, residual_stride, y_stride, residual_out_stride;
    int32_t m, n, slots, experts;
    float epsilon;
    int32_t in, out; // tessera_type: of x, residual, bias, gamma, beta, residual_out, unquantized; and of y
    int32_t past;    // CPU: tensors are more than caches hold: inputs are asked for early, outputs written past them
    int32_t rounds_twice; // z of `square`: s * inv is rounded to `in` before gamma, and after it
};

// Computes rows begin .. end - 1; with `expert` row number i is slot i % slots of token i / slots, so that the token is
// read once.
typedef void tessera_rows_cpu_run(const struct tessera_rows_problem *problem, int64_t begin, int64_t end);

// Blocks of a GPU kernel's grid lie along x; past so many they go on along y, since no axis has 2^32 threads.
enum { TESSERA_ROWS_GRID_X = 1 << 20 };

// CK's tile: a block has rm * tm rows and rn * tn * vn columns.
typedef struct tessera_rows_tile {
    uint16_t rm, rn; // repetitions of a thread
    uint16_t tm, tn; // threads (CPU: 1)
    uint16_t wn;     // threads of a wave
    uint16_t vn;     // columns that a thread loads at once
} tessera_rows_tile;

struct tessera_rows_instance {
    tessera_instance base;
    tessera_rows_tile tile;
    tessera_rows_cpu_run *run; // CPU instances
};

#ifdef __cplusplus
}
#endif
#endif
