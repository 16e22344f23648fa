// SPDX-License-Identifier: MIT
#include "tessera/moe_smoothquant.h"

#include "calls.h"

// A token's experts follow one another, as the tokens do: all experts have as many, and none twice of a token.
static const int32_t *make_ids(const problem *p) {
    int32_t *ids = output_of(TESSERA_TYPE_INT32, p->m, p->topk);
    for (int32_t t = 0; t < p->m; t++)
        for (int32_t k = 0; k < p->topk; k++)
            ids[(int64_t)t * p->topk + k] = (int32_t)(((int64_t)t * p->topk + k) % p->experts);
    return ids;
}

static void moe_smoothquant_fill(const problem *p, tessera_moe_smoothquant_traits *traits,
                                 tessera_moe_smoothquant_args *args) {
    traits->hidden_size = p->n;
    traits->prec_i = p->prec_i;
    traits->prec_o = p->prec_o;
    args->tokens = p->m;
    args->experts = p->experts;
    args->topk = p->topk;
    args->x_stride = args->y_stride = p->n;
    args->x_ptr = input_of(p->prec_i, p->m, p->n);
    args->sm_scale_ptr = input_of(TESSERA_TYPE_FP32, p->experts, p->n);
    args->topk_ids_ptr = make_ids(p);
    args->qy_ptr = output_of(p->prec_o, (int64_t)p->topk * p->m, p->n);
    args->y_scale_ptr = output_of(TESSERA_TYPE_FP32, (int64_t)p->topk * p->m, 1);
}

CALL_OF(moe_smoothquant)
