// SPDX-License-Identifier: MIT
// The operation moe_smoothquant. Its problem has a row for each slot of each token.
#include "tessera/kernel/moe_smoothquant.h"
#include "guard.h"
#include "ops/rows.h"

struct tessera_moe_smoothquant_call {
    struct tessera_rows_call rows;
    tessera_moe_smoothquant_traits traits;
    tessera_moe_smoothquant_args args;
};

static tessera_status check_numbers(const tessera_moe_smoothquant_args *a) {
    const int64_t m = (int64_t)a->tokens * a->topk;
    GUARD(a->tokens >= 0, "tokens is %d: 0 or more", a->tokens);
    GUARD(a->topk >= 0, "topk is %d: 0 or more", a->topk);
    GUARD(a->experts >= 0, "experts is %d: 0 or more", a->experts);
    GUARD(m <= INT32_MAX, "topk * tokens is %lld: at most %d", (long long)m, INT32_MAX);
    return TESSERA_SUCCESS;
}

static tessera_status check_sizes(void *of) {
    struct tessera_moe_smoothquant_call *const call = of;
    const tessera_moe_smoothquant_traits *const t = &call->traits;
    const tessera_moe_smoothquant_args *const a = &call->args;
    struct tessera_rows_call *const rows = &call->rows;
    struct tessera_rows_problem *const p = &rows->problem;
    TRY(check_numbers(a));
    TRY(tessera_rows_begin(rows, "topk * tokens", a->tokens * a->topk, "hidden_size", t->hidden_size, t->prec_i,
                           t->prec_o));
    TRY(tessera_rows_check_quantized(t->prec_o));
    if (p->m > 0) p->slots = a->topk;
    p->experts = a->experts;
    p->x_stride = a->x_stride;
    ROWS_TENSOR(x, t->prec_i, false, "x_ptr", "x_stride", a->x_ptr, a->x_stride, p->m / p->slots, p->n);
    ROWS_TENSOR(smooth, TESSERA_TYPE_FP32, false, "sm_scale_ptr", NULL, a->sm_scale_ptr, p->n, a->experts, p->n);
    ROWS_TENSOR(expert, TESSERA_TYPE_INT32, false, "topk_ids_ptr", NULL, a->topk_ids_ptr, 1, p->m, 1);
    ROWS_WRITTEN(y, qy_ptr, y_stride, t->prec_o);
    ROWS_NUMBERS(y_scale, y_scale_ptr);
    return TESSERA_SUCCESS;
}

static void add_problem(struct tessera_text *out, const void *of) {
    const struct tessera_moe_smoothquant_call *const call = of;
    tessera_text_add(out, "-prec_i=%s -prec_o=%s -t=%d -h=%d -e=%d -k=%d", tessera_type_string(call->traits.prec_i),
                     tessera_type_string(call->traits.prec_o), call->args.tokens, call->traits.hidden_size,
                     call->args.experts, call->args.topk);
}

TESSERA_DEFINE_CALLS(moe_smoothquant)

const struct tessera_operation tessera_moe_smoothquant_operation = {
    TESSERA_ROWS_OPERATION(moe_smoothquant), .check_sizes = check_sizes, .add_problem = add_problem};
