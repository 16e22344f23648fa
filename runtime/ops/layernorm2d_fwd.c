// SPDX-License-Identifier: MIT
// The operation layernorm2d_fwd.
#include "tessera/kernel/layernorm2d_fwd.h"
#include "guard.h"
#include "ops/rows.h"

struct tessera_layernorm2d_fwd_call {
    struct tessera_rows_call rows;
    tessera_layernorm2d_fwd_traits traits;
    tessera_layernorm2d_fwd_args args;
};

static tessera_status check_sizes(void *of) {
    struct tessera_layernorm2d_fwd_call *const call = of;
    const tessera_layernorm2d_fwd_traits *const t = &call->traits;
    const tessera_layernorm2d_fwd_args *const a = &call->args;
    struct tessera_rows_call *const rows = &call->rows;
    struct tessera_rows_problem *const p = &rows->problem;
    TRY(tessera_rows_begin(rows, "m", a->m, "n", t->n, t->prec_i, t->prec_o));
    TRY(tessera_rows_check_fused(t->prec_i, t->prec_o, t->fused_add, t->fused_quant));
    TRY(tessera_rows_check_flag("xbias", t->xbias));
    TRY(tessera_rows_check_flag("save_mean_var", t->save_mean_var));
    TRY(tessera_rows_set_epsilon(rows, a->epsilon));
    rows->fused_quant = t->fused_quant;
    ROWS_READ(x, x_ptr, x_stride);
    ROWS_COLUMNS(gamma, gamma_ptr, t->prec_i);
    ROWS_COLUMNS(beta, beta_ptr, t->prec_i);
    if (t->xbias) ROWS_COLUMNS(bias, x_bias_ptr, t->prec_i);
    if (t->fused_add) ROWS_READ(residual, x_residual_ptr, xr_stride);
    if (t->fused_quant == TESSERA_FUSED_QUANT_SMOOTH) ROWS_COLUMNS(smooth, sm_scale_ptr, TESSERA_TYPE_FP32);
    ROWS_WRITTEN(y, y_ptr, y_stride, t->prec_o);
    if (t->fused_add == TESSERA_FUSED_ADD_STORE) ROWS_WRITTEN(residual_out, y_residual_ptr, yr_stride, t->prec_i);
    if (t->fused_quant) ROWS_NUMBERS(y_scale, y_scale_ptr);
    if (t->save_mean_var) ROWS_NUMBERS(mean, mean_ptr);
    if (t->save_mean_var) ROWS_NUMBERS(inv, invstd_ptr);
    return TESSERA_SUCCESS;
}

static void add_problem(struct tessera_text *out, const void *of) {
    const tessera_layernorm2d_fwd_traits *const t = &((const struct tessera_layernorm2d_fwd_call *)of)->traits;
    const tessera_layernorm2d_fwd_args *const a = &((const struct tessera_layernorm2d_fwd_call *)of)->args;
    tessera_text_add(out, "-prec_i=%s -prec_o=%s -m=%d -n=%d", tessera_type_string(t->prec_i),
                     tessera_type_string(t->prec_o), a->m, t->n);
    if (t->xbias) tessera_text_add(out, " -xbias=1");
    if (t->fused_add) tessera_text_add(out, " -fadd=%d", (int)t->fused_add);
    if (t->fused_quant) tessera_text_add(out, " -fquant=%d", (int)t->fused_quant);
    if (t->save_mean_var) tessera_text_add(out, " -save_mv=1");
}

TESSERA_DEFINE_CALLS(layernorm2d_fwd)

const struct tessera_operation tessera_layernorm2d_fwd_operation = {
    TESSERA_ROWS_OPERATION(layernorm2d_fwd), .check_sizes = check_sizes, .add_problem = add_problem};
