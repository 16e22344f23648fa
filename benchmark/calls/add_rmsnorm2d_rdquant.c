// SPDX-License-Identifier: MIT
#include "tessera/add_rmsnorm2d_rdquant.h"

#include "calls.h"

static void add_rmsnorm2d_rdquant_fill(const problem *p, tessera_add_rmsnorm2d_rdquant_traits *traits,
                                       tessera_add_rmsnorm2d_rdquant_args *args) {
    traits->n = p->n;
    traits->prec_i = p->prec_i;
    traits->prec_o = p->prec_o;
    traits->save_x = p->save_x;
    args->m = p->m;
    args->epsilon = 1e-5f;
    args->a_stride = args->b_stride = args->x_stride = args->y_stride = p->n;
    args->a_ptr = input_of(p->prec_i, p->m, p->n);
    args->b_ptr = input_of(p->prec_i, p->m, p->n);
    args->gamma_ptr = input_of(p->prec_i, 1, p->n);
    args->x_ptr = output_of(p->prec_i, p->m, p->n);
    args->qy_ptr = output_of(p->prec_o, p->m, p->n);
    args->y_scale_ptr = output_of(TESSERA_TYPE_FP32, p->m, 1);
}

CALL_OF(add_rmsnorm2d_rdquant)
