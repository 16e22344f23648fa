// SPDX-License-Identifier: MIT
// tile_example_fmha_bwd as a problem of the harness (example/common/problem.h), which the program, its smoke matrix and
// the tests build, launch and verify. Its inputs are those of a forward problem, which is run first for o and lse.
#ifndef FMHA_BWD_RUNNER_H
#define FMHA_BWD_RUNNER_H

#include "fmha_fwd_arguments.h"
#include "tessera/fmha_bwd.h"

#ifdef __cplusplus
extern "C" {
#endif

// The command line: what the forward pass takes (scale_s by the name of scale, init_sink by that of sink_grad), and
// what it does not.
typedef struct fmha_bwd_arguments {
    fmha_fwd_arguments forward;
    int32_t dbias, deterministic;
    const char *dkv_heads; // "q", "k"
} fmha_bwd_arguments;

// The program, whose problems are made from fmha_bwd_arguments.
extern const example_program fmha_bwd_program;
extern const example_arguments fmha_bwd_arguments_table;

#ifdef __cplusplus
}
#endif
#endif
