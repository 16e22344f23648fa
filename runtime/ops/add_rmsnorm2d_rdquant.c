// SPDX-License-Identifier: MIT
// The operation add_rmsnorm2d_rdquant.
#include "tessera/kernel/add_rmsnorm2d_rdquant.h"
#include "guard.h"
#include "ops/rows.h"

struct tessera_add_rmsnorm2d_rdquant_call {
    struct tessera_rows_call rows;
    tessera_add_rmsnorm2d_rdquant_traits traits;
    tessera_add_rmsnorm2d_rdquant_args args;
};

static tessera_status check_sizes(void *of) {
    struct tessera_add_rmsnorm2d_rdquant_call *const call = of;
    const tessera_add_rmsnorm2d_rdquant_traits *const t = &call->traits;
    const tessera_add_rmsnorm2d_rdquant_args *const a = &call->args;
    struct tessera_rows_call *const rows = &call->rows;
    struct tessera_rows_problem *const p = &rows->problem;
    TRY(tessera_rows_begin(rows, "m", a->m, "n", t->n, t->prec_i, t->prec_o));
    TRY(tessera_rows_check_quantized(t->prec_o));
    TRY(tessera_rows_check_flag("save_x", t->save_x));
    TRY(tessera_rows_set_epsilon(rows, a->epsilon));
    ROWS_READ(x, a_ptr, a_stride);
    ROWS_READ(residual, b_ptr, b_stride);
    ROWS_COLUMNS(gamma, gamma_ptr, t->prec_i);
    if (t->save_x) ROWS_WRITTEN(residual_out, x_ptr, x_stride, t->prec_i);
    ROWS_WRITTEN(y, qy_ptr, y_stride, t->prec_o);
    ROWS_NUMBERS(y_scale, y_scale_ptr);
    return TESSERA_SUCCESS;
}

static void add_problem(struct tessera_text *out, const void *of) {
    const struct tessera_add_rmsnorm2d_rdquant_call *const call = of;
    tessera_text_add(out, "-prec=%s -quant=%s -m=%d -n=%d -save_x=%d", tessera_type_string(call->traits.prec_i),
                     tessera_type_string(call->traits.prec_o), call->args.m, call->traits.n, call->traits.save_x);
}

TESSERA_DEFINE_CALLS(add_rmsnorm2d_rdquant)

const struct tessera_operation tessera_add_rmsnorm2d_rdquant_operation = {
    TESSERA_ROWS_OPERATION(add_rmsnorm2d_rdquant), .check_sizes = check_sizes, .add_problem = add_problem};
