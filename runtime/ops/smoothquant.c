// SPDX-License-Identifier: MIT
// The operation smoothquant.
#include "tessera/kernel/smoothquant.h"
#include "guard.h"
#include "ops/rows.h"

struct tessera_smoothquant_call {
    struct tessera_rows_call rows;
    tessera_smoothquant_traits traits;
    tessera_smoothquant_args args;
};

static tessera_status check_sizes(void *of) {
    struct tessera_smoothquant_call *const call = of;
    const tessera_smoothquant_traits *const t = &call->traits;
    const tessera_smoothquant_args *const a = &call->args;
    struct tessera_rows_call *const rows = &call->rows;
    struct tessera_rows_problem *const p = &rows->problem;
    TRY(tessera_rows_begin(rows, "m", a->m, "n", t->n, t->prec_i, t->prec_o));
    TRY(tessera_rows_check_quantized(t->prec_o));
    ROWS_READ(x, x_ptr, x_stride);
    ROWS_COLUMNS(smooth, sm_scale_ptr, TESSERA_TYPE_FP32);
    ROWS_WRITTEN(y, qy_ptr, y_stride, t->prec_o);
    ROWS_NUMBERS(y_scale, y_scale_ptr);
    return TESSERA_SUCCESS;
}

static void add_problem(struct tessera_text *out, const void *of) {
    const struct tessera_smoothquant_call *const call = of;
    tessera_text_add(out, "-prec=%s -prec_o=%s -m=%d -n=%d", tessera_type_string(call->traits.prec_i),
                     tessera_type_string(call->traits.prec_o), call->args.m, call->traits.n);
}

TESSERA_DEFINE_CALLS(smoothquant)

const struct tessera_operation tessera_smoothquant_operation = {TESSERA_ROWS_OPERATION(smoothquant),
                                                                .check_sizes = check_sizes, .add_problem = add_problem};
