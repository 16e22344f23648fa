// SPDX-License-Identifier: MIT
// tile_example_layernorm2d_fwd: CK's example program of that name, over Tessera's C API.
#include "tessera/layernorm2d_fwd.h"
#include "rows.h"

static const example_argument table[] = {
    ROWS_SIZES,
    ROWS_STRIDE("x_stride", x_stride, "x"),
    ROWS_STRIDE("xr_stride", xr_stride, "x_residual"),
    ROWS_STRIDE("y_stride", y_stride, "y"),
    ROWS_STRIDE("yr_stride", yr_stride, "y_residual"),
    ROWS_EPSILON,
    {"save_mv", EXAMPLE_FLAG, ROWS_OPTION(save), "0", "1: mean and 1 / deviation of each row are stored"},
    ROWS_VERIFY,
    EXAMPLE_KNAME("1"),
    ROWS_PREC_I("prec_i"),
    ROWS_FUSED,
    {"xbias", EXAMPLE_FLAG, ROWS_OPTION(xbias), "0", "1: x_bias is added to the rows of x"},
    ROWS_FADD,
    ROWS_FQUANT,
    ROWS_SEED,
    EXAMPLE_TIMING_AND_JSON("layernorm2d_fwd.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};
ROWS_ARGUMENTS("Runs one layer normalization of rows, times it and checks it.", rows_settle_arguments)

#define TENSOR(name) #name, offsetof(tessera_layernorm2d_fwd_args, name##_ptr)
static const example_tensor tensors[ROWS_TENSORS] = {
    [ROWS_X] = {TENSOR(x)},
    [ROWS_RESIDUAL] = {TENSOR(x_residual)},
    [ROWS_BIAS] = {TENSOR(x_bias)},
    [ROWS_GAMMA] = {TENSOR(gamma)},
    [ROWS_BETA] = {TENSOR(beta)},
    [ROWS_SMOOTH] = {TENSOR(sm_scale)},
    [ROWS_Y] = {TENSOR(y)},
    [ROWS_RESIDUAL_OUT] = {TENSOR(y_residual)},
    [ROWS_Y_SCALE] = {TENSOR(y_scale)},
    [ROWS_SAVED_MEAN] = {TENSOR(mean)},
    [ROWS_SAVED_INV] = {TENSOR(invstd)},
};

typedef struct problem {
    rows_problem rows;
    tessera_layernorm2d_fwd_traits traits;
    tessera_layernorm2d_fwd_args args;
} problem;

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const rows_options *o = &p->rows.options;
    if (rows_settle(&p->rows, values, ROWS_MEAN, &p->traits, &p->traits.prec_o, &p->args, result))
        return result->outcome;
    p->traits = (tessera_layernorm2d_fwd_traits){
        .struct_size = sizeof p->traits,
        .n = o->n,
        .prec_i = p->rows.call.in,
        .xbias = o->xbias,
        .fused_add = (tessera_fused_add)o->fadd,
        .fused_quant = (tessera_fused_quant)o->fquant,
        .save_mean_var = o->save,
    };
    p->args = (tessera_layernorm2d_fwd_args){
        .struct_size = sizeof p->args,
        .epsilon = o->e,
        .m = o->m,
        .x_stride = o->x_stride,
        .xr_stride = o->xr_stride,
        .y_stride = o->y_stride,
        .yr_stride = o->yr_stride,
    };
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const rows_options *o = &((const rows_problem *)base)->options;
    rows_print_types(o, file);
    fprintf(file, " m:%d, n:%d, x_stride:%d, xr_stride:%d, y_stride:%d, yr_stride:%d", o->m, o->n, o->x_stride,
            o->xr_stride, o->y_stride, o->yr_stride);
}

const char *const layernorm2d_fwd_variants[] = {
    "-fadd=0",
    "-fadd=1",
    "-xbias=1 -save_mv=1",
    "-xbias=1 -fadd=2",
    "-fquant=1 -prec_o=int8 -fadd=0",
    "-fquant=1 -prec_o=int8 -fadd=1",
    "-fquant=1 -prec_o=fp8 -fadd=0",
    "-fquant=1 -prec_o=fp8 -fadd=1",
    "-fquant=2 -prec_o=int8 -fadd=2 -save_mv=1",
    "-fquant=2 -prec_o=fp8 -xbias=1 -fadd=1",
    NULL,
};

EXAMPLE_CALLS(layernorm2d_fwd)
const example_program layernorm2d_fwd_program = {
    .name = "tile_example_layernorm2d_fwd", ROWS_PROGRAM(layernorm2d_fwd), .settle = settle, .print = print};
