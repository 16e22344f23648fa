// SPDX-License-Identifier: MIT
// tile_example_moe_smoothquant: CK's example program of that name, over Tessera's C API.
#include "tessera/moe_smoothquant.h"
#include "rows.h"

static const example_argument table[] = {
    {"t", EXAMPLE_INTEGER, ROWS_OPTION(m), "3328", "tokens"},
    {"h", EXAMPLE_INTEGER, ROWS_OPTION(n), "4096", "hidden size, the columns"},
    {"e", EXAMPLE_INTEGER, ROWS_OPTION(experts), "32", "experts"},
    {"k", EXAMPLE_INTEGER, ROWS_OPTION(topk), "5", "experts that each token goes to, all different"},
    ROWS_STRIDE("stride", x_stride, "x and of qy"),
    ROWS_VERIFY,
    EXAMPLE_KNAME("1"),
    ROWS_PREC_I("prec_i"),
    ROWS_QUANTIZED("prec_o"),
    ROWS_SEED,
    EXAMPLE_TIMING_AND_JSON("moe_smoothquant.json"),
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle_arguments(void *values, char *message, size_t size) {
    rows_options *o = values;
    o->fquant = 1;
    o->y_stride = o->x_stride;
    if (o->m < 0) return example_refuse(message, size, "-t=%d: 0 or more tokens", o->m);
    if (o->n < 1) return example_refuse(message, size, "-h=%d: at least 1 column", o->n);
    if (o->experts < 1) return example_refuse(message, size, "-e=%d: at least 1 expert", o->experts);
    if (o->topk < 1 || o->topk > o->experts)
        return example_refuse(message, size, "-k=%d: 1 to -e=%d, since a token's experts are different ones", o->topk,
                              o->experts);
    if ((int64_t)o->topk * o->m > INT32_MAX)
        return example_refuse(message, size, "-k=%d times -t=%d: at most %d", o->topk, o->m, INT32_MAX);
    return rows_settle_arguments(values, message, size);
}
ROWS_ARGUMENTS("Runs one smoothing and quantization of tokens for their experts, times it and checks it.",
               settle_arguments)

#define TENSOR(name) #name, offsetof(tessera_moe_smoothquant_args, name##_ptr)
static const example_tensor tensors[ROWS_TENSORS] = {
    [ROWS_X] = {TENSOR(x)},  [ROWS_SMOOTH] = {TENSOR(sm_scale)}, [ROWS_IDS] = {TENSOR(topk_ids)},
    [ROWS_Y] = {TENSOR(qy)}, [ROWS_Y_SCALE] = {TENSOR(y_scale)},
};

typedef struct problem {
    rows_problem rows;
    tessera_moe_smoothquant_traits traits;
    tessera_moe_smoothquant_args args;
} problem;

static example_outcome settle(example_problem *base, const void *values, example_result *result) {
    problem *p = (problem *)base;
    const rows_options *o = &p->rows.options;
    if (rows_settle(&p->rows, values, ROWS_NONE, &p->traits, &p->traits.prec_o, &p->args, result))
        return result->outcome;
    p->traits = (tessera_moe_smoothquant_traits){
        .struct_size = sizeof p->traits, .hidden_size = o->n, .prec_i = p->rows.call.in};
    p->args = (tessera_moe_smoothquant_args){
        .struct_size = sizeof p->args,
        .tokens = o->m,
        .experts = o->experts,
        .topk = o->topk,
        .x_stride = o->x_stride,
        .y_stride = o->y_stride,
    };
    return EXAMPLE_OK;
}

static void print(const example_problem *base, FILE *file) {
    const rows_options *o = &((const rows_problem *)base)->options;
    fprintf(file, "[%s-%s] tokens:%d, hidden_size:%d, stride:%d, experts:%d, topk:%d", o->prec_i, o->prec_o, o->m, o->n,
            o->x_stride, o->experts, o->topk);
}

const char *const moe_smoothquant_variants[] = {"-e=32 -k=5 -prec_o=int8", "-e=3 -k=1 -prec_o=fp8", NULL};

EXAMPLE_CALLS(moe_smoothquant)
const example_program moe_smoothquant_program = {
    .name = "tile_example_moe_smoothquant", ROWS_PROGRAM(moe_smoothquant), .settle = settle, .print = print};
