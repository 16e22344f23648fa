// SPDX-License-Identifier: MIT
#include "tessera/smoothquant.h"

#include "calls.h"

static void smoothquant_fill(const problem *p, tessera_smoothquant_traits *traits, tessera_smoothquant_args *args) {
    traits->n = p->n;
    traits->prec_i = p->prec_i;
    traits->prec_o = p->prec_o;
    args->m = p->m;
    args->x_stride = args->y_stride = p->n;
    args->x_ptr = input_of(p->prec_i, p->m, p->n);
    args->sm_scale_ptr = input_of(TESSERA_TYPE_FP32, 1, p->n);
    args->qy_ptr = output_of(p->prec_o, p->m, p->n);
    args->y_scale_ptr = output_of(TESSERA_TYPE_FP32, p->m, 1);
}

CALL_OF(smoothquant)
