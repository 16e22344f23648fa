// SPDX-License-Identifier: MIT
// Smoothing of columns (Xiao et al., 2022) and quantization of rows. Fields are CK's (example/ck_tile/12_smoothquant)
// by CK's names. What holds for all operations on rows stands in tessera/rows.h.
//
// For every row i of m and column j of n:
//
//   z[i,j] = x[i,j] * sm_scale[j]
//   qy[i,:], y_scale[i]: z[i,:] quantized as in tessera/rows.h
#ifndef TESSERA_SMOOTHQUANT_H
#define TESSERA_SMOOTHQUANT_H

#include "tessera/call.h"
#include "tessera/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_smoothquant_traits {
    size_t struct_size;  // sizeof(tessera_smoothquant_traits)
    int32_t n;           // columns, 1 or more
    tessera_type prec_i; // fp32, fp16, bf16
    tessera_type prec_o; // int8 or the device's fp8: e4m3, on gfx942 e4m3fnuz
} tessera_smoothquant_traits;

typedef struct tessera_smoothquant_args {
    size_t struct_size; // sizeof(tessera_smoothquant_args)

    const void *x_ptr;        // [m, n] prec_i, stride x_stride
    const void *sm_scale_ptr; // [n] fp32
    void *qy_ptr;             // [m, n] prec_o, stride y_stride
    void *y_scale_ptr;        // [m] fp32

    int32_t m; // rows, 0 or more
    int64_t x_stride, y_stride;

    void *workspace_ptr; // tessera_smoothquant_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const tessera_rows_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_smoothquant_args;

typedef tessera_rows_instance tessera_smoothquant_instance;

TESSERA_INIT(tessera_smoothquant_traits)
TESSERA_INIT(tessera_smoothquant_args)
TESSERA_CALLS(smoothquant)

#ifdef __cplusplus
}
#endif
#endif
