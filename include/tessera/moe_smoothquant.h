// SPDX-License-Identifier: MIT
// Smoothing and quantization of tokens for each of the experts that they go to. Fields are CK's
// (example/ck_tile/14_moe_smoothquant) by CK's names. What holds for all operations on rows stands in tessera/rows.h.
//
// For every token t of `tokens`, slot k of `topk` and column j of hidden_size, with e = topk_ids[t,k]:
//
//   z[j] = x[t,j] * sm_scale[e,j]
//   qy[k * tokens + t,:], y_scale[k * tokens + t]: z quantized as in tessera/rows.h
//
// Rows of a slot whose id is none of 0 .. experts - 1 are left untouched.
#ifndef TESSERA_MOE_SMOOTHQUANT_H
#define TESSERA_MOE_SMOOTHQUANT_H

#include "tessera/call.h"
#include "tessera/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_moe_smoothquant_traits {
    size_t struct_size;  // sizeof(tessera_moe_smoothquant_traits)
    int32_t hidden_size; // columns, 1 or more
    tessera_type prec_i; // fp32, fp16, bf16
    tessera_type prec_o; // int8 or the device's fp8: e4m3, on gfx942 e4m3fnuz
} tessera_moe_smoothquant_traits;

typedef struct tessera_moe_smoothquant_args {
    size_t struct_size; // sizeof(tessera_moe_smoothquant_args)

    const void *x_ptr;        // [tokens, hidden_size] prec_i, stride x_stride
    const void *sm_scale_ptr; // [experts, hidden_size] fp32, packed
    const void *topk_ids_ptr; // [tokens, topk] int32, packed
    void *qy_ptr;             // [topk * tokens, hidden_size] prec_o, stride y_stride
    void *y_scale_ptr;        // [topk * tokens] fp32

    int32_t tokens, experts, topk; // 0 or more; topk * tokens is at most 2^31 - 1
    int64_t x_stride, y_stride;

    void *workspace_ptr; // tessera_moe_smoothquant_workspace_size() bytes, 64-byte aligned, contents lost
    size_t workspace_size;
    const tessera_rows_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_moe_smoothquant_args;

typedef tessera_rows_instance tessera_moe_smoothquant_instance;

TESSERA_INIT(tessera_moe_smoothquant_traits)
TESSERA_INIT(tessera_moe_smoothquant_args)
TESSERA_CALLS(moe_smoothquant)

#ifdef __cplusplus
}
#endif
#endif
