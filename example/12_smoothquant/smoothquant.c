// SPDX-License-Identifier: MIT
// tile_smoothquant: CK's example program of that name, over Tessera's C API.
#include "tessera/smoothquant.h"
#include "rows.h"

static const example_argument table[] = {
    ROWS_SIZES,
    ROWS_STRIDE("x_stride", x_stride, "x"),
    ROWS_STRIDE("y_stride", y_stride, "qy"),
    ROWS_VERIFY,
    EXAMPLE_KNAME("1"),
    ROWS_PREC_I("prec"),
    ROWS_QUANTIZED("prec_o"),
    ROWS_SEED,
    EXAMPLE_TIMING_AND_JSON("smoothquant.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    ((rows_options *)values)->fquant = 1;
    return rows_settle_arguments(values, message, size);
}
ROWS_ARGUMENTS("Runs one smoothing of columns and quantization of rows, times it and checks it.", settle_arguments)

#define TENSOR(name) #name, offsetof(tessera_smoothquant_args, name##_ptr)
static const example_tensor tensors[ROWS_TENSORS] = {
    [ROWS_X] = {TENSOR(x)},
    [ROWS_SMOOTH] = {TENSOR(sm_scale)},
    [ROWS_Y] = {TENSOR(qy)},
    [ROWS_Y_SCALE] = {TENSOR(y_scale)},
};

typedef struct problem {
    rows_problem rows;
    tessera_smoothquant_traits traits;
    tessera_smoothquant_args args;
} problem;

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const rows_options *o = &p->rows.options;
    if (rows_settle(&p->rows, values, ROWS_NONE, &p->traits, &p->traits.prec_o, &p->args, result))
        return result->outcome;
    p->traits = (tessera_smoothquant_traits){.struct_size = sizeof p->traits, .n = o->n, .prec_i = p->rows.call.in};
    p->args = (tessera_smoothquant_args){
        .struct_size = sizeof p->args, .m = o->m, .x_stride = o->x_stride, .y_stride = o->y_stride};
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const rows_options *o = &((const rows_problem *)base)->options;
    const int int8 = ((const rows_problem *)base)->call.out == TESSERA_TYPE_INT8; // CK has no other
    fprintf(file, "[%s%s%s] m:%d, n:%d, x_stride:%d, y_stride:%d", o->prec_i, int8 ? "" : "|", int8 ? "" : o->prec_o,
            o->m, o->n, o->x_stride, o->y_stride);
}

const char *const smoothquant_variants[] = {"-prec_o=int8", "-prec_o=fp8", NULL};

EXAMPLE_CALLS(smoothquant)
const example_program smoothquant_program = {
    .name = "tile_smoothquant", ROWS_PROGRAM(smoothquant), .settle = settle, .print = print};
