// SPDX-License-Identifier: MIT
// What the programs of the row operations share: their arguments, tensors and verification. A program's own file has
// its table of arguments, says which tensor is which pointer, and fills traits and args.
#ifndef EXAMPLE_ROWS_H
#define EXAMPLE_ROWS_H

#include "problem.h"
#include "rows_reference.h"
#include "tessera/rows.h"

// Arguments of all of them; a program's table has those that it takes, and its settle() says the others.
typedef struct rows_options {
    example_options common;
    int32_t m, n;          // rows of x, columns
    int32_t experts, topk; // topk 0: no experts
    int32_t x_stride, xr_stride, y_stride, yr_stride;
    float e; // epsilon
    const char *prec_i, *prec_o, *prec_sm, *prec_sy;
    int32_t xbias, fadd, fquant, save, save_unquant, save_x, s; // save: mean and deviation, or RMS
} rows_options;

// Rows of the tables.
#define ROWS_OPTION(member) offsetof(rows_options, member), 0
#define ROWS_VERIFY                                                                                                    \
    { "v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1", "verification against the fp64 reference: 0 none, 1 all outputs" }
#define ROWS_SEED                                                                                                      \
    { "seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939", "seed of inputs; 0: another every time" }
#define ROWS_SIZES                                                                                                     \
    {"m", EXAMPLE_INTEGER, ROWS_OPTION(m), "3328", "rows"}, { "n", EXAMPLE_INTEGER, ROWS_OPTION(n), "4096", "columns" }
#define ROWS_STRIDE(name, member, of)                                                                                  \
    { name, EXAMPLE_INTEGER, ROWS_OPTION(member), "-1", "elements from one row of " of " to the next; -1: the columns" }
#define ROWS_EPSILON                                                                                                   \
    { "e", EXAMPLE_REAL, ROWS_OPTION(e), "1e-5", "epsilon" }
#define ROWS_PREC_I(name)                                                                                              \
    { name, EXAMPLE_TEXT, ROWS_OPTION(prec_i), "fp16", "type of the inputs: fp32, fp16, bf16" }
#define ROWS_QUANTIZED(name)                                                                                           \
    { name, EXAMPLE_TEXT, ROWS_OPTION(prec_o), "int8", "type of the quantized output: int8, or fp8, the device's e4m3" }
// What layernorm2d and rmsnorm2d fuse.
#define ROWS_FUSED                                                                                                     \
    {"prec_o", EXAMPLE_TEXT, ROWS_OPTION(prec_o), "auto",                                                              \
     "type of the output: auto, that of the inputs; with -fquant int8, or fp8, the device's e4m3"},                    \
        {"prec_sm", EXAMPLE_TEXT, ROWS_OPTION(prec_sm), "auto", "type of sm_scale: auto or fp32, which are the same"}, \
    {                                                                                                                  \
        "prec_sy", EXAMPLE_TEXT, ROWS_OPTION(prec_sy), "auto", "type of y_scale: auto or fp32, which are the same"     \
    }
#define ROWS_FADD                                                                                                      \
    {                                                                                                                  \
        "fadd", EXAMPLE_INTEGER, ROWS_OPTION(fadd), "0",                                                               \
            "fused add: 0 none, 1 of x_residual, with the sum stored, 2 of it"                                         \
    }
#define ROWS_FQUANT                                                                                                    \
    {                                                                                                                  \
        "fquant", EXAMPLE_INTEGER, ROWS_OPTION(fquant), "0",                                                           \
            "fused quantization: 0 none, 1 of the smoothed rows (by sm_scale), 2 of the rows"                          \
    }

// Refuses what is out of range, and settles strides of -1.
int rows_settle_arguments(void *values, char *message, size_t size);

// Tensors of all of them; a program has names and pointers for those that it takes.
typedef enum rows_tensor {
    ROWS_X,
    ROWS_RESIDUAL,
    ROWS_BIAS,
    ROWS_GAMMA,
    ROWS_BETA,
    ROWS_SMOOTH,
    ROWS_IDS,
    ROWS_Y, // the first output
    ROWS_RESIDUAL_OUT,
    ROWS_UNQUANTIZED,
    ROWS_Y_SCALE,
    ROWS_SAVED_MEAN,
    ROWS_SAVED_INV,
    ROWS_TENSORS
} rows_tensor;

// rows x columns elements.
typedef struct rows_shape {
    tessera_type type;
    int64_t rows, columns, stride;
} rows_shape;

// What the struct of a program's problem begins with.
typedef struct rows_problem {
    example_problem base;
    rows_options options;
    rows_call call; // what the reference checks
    rows_shape shapes[ROWS_TENSORS];
    rows_verdict verdict;
    tessera_type *prec_o; // in the traits: fp8 is known when the device is open
} rows_problem;

// The types are read and the reference's call is filled in; the program fills traits (but for prec_o) and args.
example_outcome rows_settle(rows_problem *problem, const void *arguments, rows_statistics statistics, void *traits,
                            tessera_type *prec_o, void *args, example_result *result);

// Steps of example_program.
example_outcome rows_lay_out(example_problem *problem, example_result *result);
void rows_put(example_problem *problem);
void rows_fill(example_problem *problem);
void rows_count(const example_problem *problem, example_result *result);
example_outcome rows_verify(example_problem *problem, example_result *result);
void rows_put_error(const example_problem *problem, FILE *file);

// "[fp16|int8(fp32)]", as layernorm2d and rmsnorm2d say it.
void rows_print_types(const rows_options *options, FILE *file);

// Defines `arguments`, of the program's `table`.
#define ROWS_ARGUMENTS(says, settles)                                                                                  \
    static const example_arguments arguments = {.does = says,                                                          \
                                                .table = table,                                                        \
                                                .count = sizeof table / sizeof *table,                                 \
                                                .bytes = sizeof(rows_options),                                         \
                                                .settle = settles};

// Members of the example_program that all have.
#define ROWS_PROGRAM(op)                                                                                               \
    .arguments = &arguments, .calls = &op##_calls, .tensors = tensors, .tensor_count = ROWS_TENSORS,                   \
    .first_output = ROWS_Y, .problem_bytes = sizeof(problem), .not_supported = " not supported!",                      \
    .in_microseconds = 1, .lay_out = rows_lay_out, .put = rows_put, .fill = rows_fill, .count = rows_count,            \
    .verify = rows_verify, .put_error = rows_put_error

#endif
