// SPDX-License-Identifier: MIT
// The operation rmsnorm2d_fwd.
#include "tessera/kernel/rmsnorm2d_fwd.h"
#include "guard.h"
#include "ops/rows.h"

struct tessera_rmsnorm2d_fwd_call {
    struct tessera_rows_call rows;
    tessera_rmsnorm2d_fwd_traits traits;
    tessera_rmsnorm2d_fwd_args args;
};

static tessera_status check_traits(const tessera_rmsnorm2d_fwd_traits *t) {
    TRY(tessera_rows_check_fused(t->prec_i, t->prec_o, t->fused_add, t->fused_quant));
    TRY(tessera_rows_check_flag("save_rms", t->save_rms));
    TRY(tessera_rows_check_flag("save_unquant", t->save_unquant));
    TRY(tessera_rows_check_flag("use_model_sensitive_rmsnorm", t->use_model_sensitive_rmsnorm));
    GUARD(!t->save_unquant || t->fused_quant, "save_unquant is 1 and fused_quant 0: without fused_quant y is it");
    return TESSERA_SUCCESS;
}

static tessera_status check_sizes(void *of) {
    struct tessera_rmsnorm2d_fwd_call *const call = of;
    const tessera_rmsnorm2d_fwd_traits *const t = &call->traits;
    const tessera_rmsnorm2d_fwd_args *const a = &call->args;
    struct tessera_rows_call *const rows = &call->rows;
    struct tessera_rows_problem *const p = &rows->problem;
    TRY(tessera_rows_begin(rows, "m", a->m, "n", t->n, t->prec_i, t->prec_o));
    TRY(check_traits(t));
    TRY(tessera_rows_set_epsilon(rows, a->epsilon));
    rows->fused_quant = t->fused_quant;
    p->rounds_twice = t->use_model_sensitive_rmsnorm;
    ROWS_READ(x, x_ptr, x_stride);
    ROWS_COLUMNS(gamma, gamma_ptr, t->prec_i);
    if (t->fused_add) ROWS_READ(residual, x_residual_ptr, xr_stride);
    if (t->fused_quant == TESSERA_FUSED_QUANT_SMOOTH) ROWS_COLUMNS(smooth, sm_scale_ptr, TESSERA_TYPE_FP32);
    ROWS_WRITTEN(y, y_ptr, y_stride, t->prec_o);
    if (t->fused_add == TESSERA_FUSED_ADD_STORE) ROWS_WRITTEN(residual_out, y_residual_ptr, yr_stride, t->prec_i);
    if (t->save_unquant)
        ROWS_TENSOR(unquantized, t->prec_i, true, "y_unquant_ptr", "y_stride", a->y_unquant_ptr, a->y_stride, p->m,
                    p->n);
    if (t->fused_quant) ROWS_NUMBERS(y_scale, y_scale_ptr);
    if (t->save_rms) ROWS_NUMBERS(inv, inv_rms_ptr);
    return TESSERA_SUCCESS;
}

static void add_problem(struct tessera_text *out, const void *of) {
    const tessera_rmsnorm2d_fwd_traits *const t = &((const struct tessera_rmsnorm2d_fwd_call *)of)->traits;
    const tessera_rmsnorm2d_fwd_args *const a = &((const struct tessera_rmsnorm2d_fwd_call *)of)->args;
    tessera_text_add(out, "-prec_i=%s -prec_o=%s -m=%d -n=%d", tessera_type_string(t->prec_i),
                     tessera_type_string(t->prec_o), a->m, t->n);
    if (t->fused_add) tessera_text_add(out, " -fadd=%d", (int)t->fused_add);
    if (t->fused_quant) tessera_text_add(out, " -fquant=%d", (int)t->fused_quant);
    if (t->save_rms) tessera_text_add(out, " -save_rms=1");
    if (t->save_unquant) tessera_text_add(out, " -save_unquant=1");
    if (t->use_model_sensitive_rmsnorm) tessera_text_add(out, " -s=1");
}

TESSERA_DEFINE_CALLS(rmsnorm2d_fwd)

const struct tessera_operation tessera_rmsnorm2d_fwd_operation = {
    TESSERA_ROWS_OPERATION(rmsnorm2d_fwd), .check_sizes = check_sizes, .add_problem = add_problem};
