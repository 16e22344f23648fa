// SPDX-License-Identifier: MIT
// tile_add_rmsnorm2d_rdquant_fwd: CK's example program of that name, over Tessera's C API.
#include "tessera/add_rmsnorm2d_rdquant.h"
#include "rows.h"

static const example_argument table[] = {
    ROWS_SIZES,
    ROWS_STRIDE("stride", x_stride, "every tensor"),
    ROWS_EPSILON,
    {"save_x", EXAMPLE_FLAG, ROWS_OPTION(save_x), "1", "1: x, the sum of a and b, is stored"},
    ROWS_VERIFY,
    EXAMPLE_KNAME("1"),
    ROWS_PREC_I("prec"),
    ROWS_QUANTIZED("quant"),
    ROWS_SEED,
    EXAMPLE_TIMING_AND_JSON("add_rmsnorm2d_rdquant_fwd.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    rows_options *o = values;
    o->fadd = o->save_x ? 1 : 2;
    o->fquant = 2;
    o->xr_stride = o->y_stride = o->yr_stride = o->x_stride;
    return rows_settle_arguments(values, message, size);
}
ROWS_ARGUMENTS("Runs one sum, root mean square normalization and quantization of rows, times it and checks it.",
               settle_arguments)

#define TENSOR(name) #name, offsetof(tessera_add_rmsnorm2d_rdquant_args, name##_ptr)
static const example_tensor tensors[ROWS_TENSORS] = {
    [ROWS_X] = {TENSOR(a)},  [ROWS_RESIDUAL] = {TENSOR(b)},     [ROWS_GAMMA] = {TENSOR(gamma)},
    [ROWS_Y] = {TENSOR(qy)}, [ROWS_RESIDUAL_OUT] = {TENSOR(x)}, [ROWS_Y_SCALE] = {TENSOR(y_scale)},
};

typedef struct problem {
    rows_problem rows;
    tessera_add_rmsnorm2d_rdquant_traits traits;
    tessera_add_rmsnorm2d_rdquant_args args;
} problem;

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const rows_options *o = &p->rows.options;
    if (rows_settle(&p->rows, values, ROWS_SQUARE, &p->traits, &p->traits.prec_o, &p->args, result))
        return result->outcome;
    p->traits = (tessera_add_rmsnorm2d_rdquant_traits){
        .struct_size = sizeof p->traits, .n = o->n, .prec_i = p->rows.call.in, .save_x = o->save_x};
    p->args = (tessera_add_rmsnorm2d_rdquant_args){
        .struct_size = sizeof p->args,
        .epsilon = o->e,
        .m = o->m,
        .a_stride = o->x_stride,
        .b_stride = o->x_stride,
        .x_stride = o->x_stride,
        .y_stride = o->x_stride,
    };
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const rows_options *o = &((const rows_problem *)base)->options;
    fprintf(file, "[%s, %s] m:%d, n:%d, stride:%d", o->prec_i, o->prec_o, o->m, o->n, o->x_stride);
}

const char *const add_rmsnorm2d_rdquant_variants[] = {"-save_x=1", "-save_x=0", "-quant=fp8", NULL};

EXAMPLE_CALLS(add_rmsnorm2d_rdquant)
const example_program add_rmsnorm2d_rdquant_program = {
    .name = "tile_add_rmsnorm2d_rdquant_fwd", ROWS_PROGRAM(add_rmsnorm2d_rdquant), .settle = settle, .print = print};
