// SPDX-License-Identifier: MIT
// Root mean square normalization of rows (Zhang and Sennrich, 2019), with what is fused to it. Fields are CK's
// (example/ck_tile/10_rmsnorm2d) by CK's names. What holds for all operations on rows stands in tessera/rows.h.
//
// For every row i of m, with sums over the n columns j:
//
//   s[i,j]     = x[i,j] + x_residual[i,j]                with fused_add, else x[i,j]
//   inv_rms[i] = 1 / sqrt(sum_j s[i,j]^2 / n + epsilon)
//   z[i,j]     = s[i,j] * inv_rms[i] * gamma[j]
//   z[i,j]     = round(round(s[i,j] * inv_rms[i]) * gamma[j])
//                                                        with use_model_sensitive_rmsnorm: to prec_i, as T5 has it
//   y_unquant[i,j] = z[i,j], rounded to prec_i           with save_unquant
//   z[i,j]     = z[i,j] * sm_scale[j]                    with fused_quant SMOOTH
//   y[i,j]     = z[i,j], rounded to prec_o               without fused_quant; else quantized as in tessera/rows.h
//
// With fused_add STORE y_residual[i,j] = s[i,j], rounded to prec_i; what follows takes s as it was before.
#ifndef TESSERA_RMSNORM2D_FWD_H
#define TESSERA_RMSNORM2D_FWD_H

#include "tessera/call.h"
#include "tessera/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request. Zero a trait to go without it.
typedef struct tessera_rmsnorm2d_fwd_traits {
    size_t struct_size;  // sizeof(tessera_rmsnorm2d_fwd_traits)
    int32_t n;           // columns, 1 or more
    tessera_type prec_i; // fp32, fp16, bf16
    tessera_type prec_o; // prec_i; with fused_quant int8 or the device's fp8: e4m3, on gfx942 e4m3fnuz
    tessera_fused_add fused_add;
    tessera_fused_quant fused_quant;
    int32_t save_rms;                    // 1: inv_rms is written
    int32_t save_unquant;                // 1: y_unquant is written; only with fused_quant
    int32_t use_model_sensitive_rmsnorm; // 1: T5's rounding
} tessera_rmsnorm2d_fwd_traits;

typedef struct tessera_rmsnorm2d_fwd_args {
    size_t struct_size; // sizeof(tessera_rmsnorm2d_fwd_args)

    const void *x_ptr, *x_residual_ptr; // [m, n] prec_i, strides x_stride, xr_stride
    const void *gamma_ptr;              // [n] prec_i
    const void *sm_scale_ptr;           // [n] fp32
    void *y_ptr;                        // [m, n] prec_o, stride y_stride
    void *y_residual_ptr;               // [m, n] prec_i, stride yr_stride
    void *y_unquant_ptr;                // [m, n] prec_i, stride y_stride
    void *y_scale_ptr, *inv_rms_ptr;    // [m] fp32

    float epsilon; // 0 or more, finite
    int32_t m;     // rows, 0 or more
    int64_t x_stride, xr_stride, y_stride, yr_stride;

    void *workspace_ptr; // tessera_rmsnorm2d_fwd_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const tessera_rows_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_rmsnorm2d_fwd_args;

typedef tessera_rows_instance tessera_rmsnorm2d_fwd_instance;

TESSERA_INIT(tessera_rmsnorm2d_fwd_traits)
TESSERA_INIT(tessera_rmsnorm2d_fwd_args)
TESSERA_CALLS(rmsnorm2d_fwd)

#ifdef __cplusplus
}
#endif
#endif
