// SPDX-License-Identifier: MIT
#include "tessera/layernorm2d_fwd.h"

#include "calls.h"

static void layernorm2d_fwd_fill(const problem *p, tessera_layernorm2d_fwd_traits *traits,
                                 tessera_layernorm2d_fwd_args *args) {
    traits->n = p->n;
    traits->prec_i = p->prec_i;
    traits->prec_o = p->prec_o;
    traits->fused_add = p->fused_add;
    traits->fused_quant = p->fused_quant;
    args->m = p->m;
    args->epsilon = 1e-5f;
    args->x_stride = args->xr_stride = args->y_stride = args->yr_stride = p->n;
    args->x_ptr = input_of(p->prec_i, p->m, p->n);
    args->gamma_ptr = input_of(p->prec_i, 1, p->n);
    args->beta_ptr = input_of(p->prec_i, 1, p->n);
    args->y_ptr = output_of(p->prec_o, p->m, p->n);
    if (p->fused_add) args->x_residual_ptr = input_of(p->prec_i, p->m, p->n);
    if (p->fused_add == TESSERA_FUSED_ADD_STORE) args->y_residual_ptr = output_of(p->prec_i, p->m, p->n);
    if (p->fused_quant) args->y_scale_ptr = output_of(TESSERA_TYPE_FP32, p->m, 1);
    if (p->fused_quant == TESSERA_FUSED_QUANT_SMOOTH) args->sm_scale_ptr = input_of(TESSERA_TYPE_FP32, 1, p->n);
}

CALL_OF(layernorm2d_fwd)
