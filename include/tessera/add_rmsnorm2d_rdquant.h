// SPDX-License-Identifier: MIT
// Sum of two tensors, root mean square normalization of its rows, and their quantization. Fields are CK's
// (example/ck_tile/11_add_rmsnorm2d_rdquant) by CK's names. What holds for all operations on rows stands in
// tessera/rows.h.
//
// For every row i of m, with sums over the n columns j:
//
//   s[i,j] = a[i,j] + b[i,j]
//   x[i,j] = s[i,j], rounded to prec_i                   with save_x
//   z[i,j] = s[i,j] / sqrt(sum_j s[i,j]^2 / n + epsilon) * gamma[j]
//   qy[i,:], y_scale[i]: z[i,:] quantized as in tessera/rows.h
#ifndef TESSERA_ADD_RMSNORM2D_RDQUANT_H
#define TESSERA_ADD_RMSNORM2D_RDQUANT_H

#include "tessera/call.h"
#include "tessera/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_add_rmsnorm2d_rdquant_traits {
    size_t struct_size;  // sizeof(tessera_add_rmsnorm2d_rdquant_traits)
    int32_t n;           // columns, 1 or more
    tessera_type prec_i; // fp32, fp16, bf16
    tessera_type prec_o; // int8 or the device's fp8: e4m3, on gfx942 e4m3fnuz
    int32_t save_x;      // 1: x is written
} tessera_add_rmsnorm2d_rdquant_traits;

typedef struct tessera_add_rmsnorm2d_rdquant_args {
    size_t struct_size; // sizeof(tessera_add_rmsnorm2d_rdquant_args)

    const void *a_ptr, *b_ptr; // [m, n] prec_i
    const void *gamma_ptr;     // [n] prec_i
    void *x_ptr;               // [m, n] prec_i
    void *qy_ptr;              // [m, n] prec_o
    void *y_scale_ptr;         // [m] fp32

    float epsilon;                                  // 0 or more, finite
    int32_t m;                                      // rows, 0 or more
    int64_t a_stride, b_stride, x_stride, y_stride; // CK has one for all

    void *workspace_ptr; // tessera_add_rmsnorm2d_rdquant_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const tessera_rows_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_add_rmsnorm2d_rdquant_args;

typedef tessera_rows_instance tessera_add_rmsnorm2d_rdquant_instance;

TESSERA_INIT(tessera_add_rmsnorm2d_rdquant_traits)
TESSERA_INIT(tessera_add_rmsnorm2d_rdquant_args)
TESSERA_CALLS(add_rmsnorm2d_rdquant)

#ifdef __cplusplus
}
#endif
#endif
