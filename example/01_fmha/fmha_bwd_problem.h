// SPDX-License-Identifier: MIT
// The members of a problem, for the files of this folder only.
#ifndef FMHA_BWD_PROBLEM_H
#define FMHA_BWD_PROBLEM_H

#include "fmha_bwd_reference.h"
#include "fmha_bwd_runner.h"
#include "fmha_fwd_problem.h"

typedef enum fmha_bwd_buffer_id {
    BWD_Q,
    BWD_K,
    BWD_V,
    BWD_BIAS,
    BWD_SEQSTART_Q,
    BWD_SEQSTART_K,
    BWD_SEQLEN_Q,
    BWD_SEQLEN_K,
    BWD_CU_SEQLEN_Q,
    BWD_CU_SEQLEN_K,
    BWD_SINK,
    BWD_DROP_SEED,
    BWD_DROP_OFFSET,
    BWD_O,
    BWD_LSE,
    BWD_DO,
    BWD_D, // the first output
    BWD_DQ,
    BWD_DK,
    BWD_DV,
    BWD_DBIAS,
    BWD_RANDVAL,
    BWD_D_SINK,
    BWD_COUNT
} fmha_bwd_buffer_id;

typedef struct fmha_bwd_problem {
    example_problem base;
    fmha_bwd_arguments arguments;
    fmha_fwd_problem *forward; // its inputs and outputs are copied from here
    tessera_fmha_bwd_traits traits;
    tessera_fmha_bwd_args args;
    double max_error[FMHA_BWD_TENSORS]; // greatest |gradient - reference|
    double max_error_ratio;             // greatest error over its bound; valid if <= 1
} fmha_bwd_problem;

// Functions of the example_program.
example_outcome fmha_bwd_lay_out(example_problem *problem, example_result *result);
void fmha_bwd_put_lengths(example_problem *problem);
void fmha_bwd_fill_inputs(example_problem *problem);
void fmha_bwd_count(const example_problem *problem, example_result *result);
example_outcome fmha_bwd_verify(example_problem *problem, example_result *result);
void fmha_bwd_print(const example_problem *problem, FILE *file);
void fmha_bwd_print_kernels(const example_problem *problem, FILE *file);
void fmha_bwd_put_json(const example_problem *problem, FILE *file);
void fmha_bwd_put_error(const example_problem *problem, FILE *file);

#endif
