// SPDX-License-Identifier: MIT
// Builds one fmha_fwd problem in host memory, copies it to the device where that reads none, runs it through the public
// C API and checks the result against the fp64 reference. The program, its smoke matrix and the tests all call this.
// Re-entrant: it keeps nothing between calls.
#ifndef FMHA_FWD_RUNNER_H
#define FMHA_FWD_RUNNER_H

#include <stdint.h>
#include <stdio.h>

#include "tessera/fmha_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the program was asked for. Fields are its arguments by their names; texts are spelled as on the command line.
// Start from fmha_fwd_options_default().
typedef struct fmha_fwd_options {
    int32_t v;    // 0: no verification; 1, 2: sampled above 2^37 FLOP; 3: every row
    int32_t mode; // 0: batch, 1: group
    int32_t b, h, h_k;
    int32_t s, s_k, s_qpad, s_kpad; // for every sequence; group mode: s and s_k are means, lengths are drawn
    int32_t d, d_v;
    float scale_s; // 0: 1 / sqrt(d)
    const char *qscale;
    float logits_soft_cap; // 0: none
    int32_t iperm, operm;
    const char *bias, *prec, *mask, *vlayout, *init;
    int32_t lse;
    uint32_t seed; // 0: another one every time
    float p_drop;
    uint64_t drop_seed, drop_offset;
    int32_t drop_prefs;
    int32_t init_sink;
    int32_t warmup, repeat;
    const char *device, *instance; // an instance's short name; NULL: that of least estimated cost
    int32_t threads;               // of the reference; 0: tessera_num_threads()

    // Lists of b values, or NULL. The first four take the place of the numbers of the same name.
    const int32_t *s_list, *s_k_list, *s_qpad_list, *s_kpad_list;
    const int32_t *q_eff_lens, *kv_eff_lens; // batch mode

    // Beyond the command line.
    int32_t min_seqlen_q;        // > 0: sequences with seqlen_q <= min_seqlen_q must be left untouched
    int32_t cu_seqlen;           // 1: group mode with pads gives logical lengths by cu_seqlen_*_ptr, not seqlen_*_ptr
    int32_t misalign;            // every buffer starts this many elements after a multiple of 64 bytes
    int32_t block_scale_size_q;  // -qscale=bs: tokens of a block; 0: 128
    int32_t block_scale_size_kv; // the same for k and v
    int32_t odd_descales;        // 1: descales are also 0, negative, tiny and huge
    int32_t pad_columns;         // 1: -vlayout=c: a row of v takes a multiple of 64 bytes
    double time_limit_s;         // timing stops after this; 0: warmup and repeat are met
    double rtol, atol, lse_atol; // < 0: as README.md says
} fmha_fwd_options;

// The program's defaults: CK's, but for timing, which stops after 3 s.
fmha_fwd_options fmha_fwd_options_default(void);

// Values are the program's exit codes.
typedef enum fmha_fwd_outcome {
    FMHA_FWD_OK = 0,
    FMHA_FWD_WRONG_ARGUMENT = 1, // message names argument, value and what is accepted
    FMHA_FWD_NO_INSTANCE = 2,
    FMHA_FWD_WRONG_RESULT = 3, // also: a guard zone, an input or a row that must be left alone was written
    FMHA_FWD_DEVICE_ERROR = 4  // also: no memory, or stdout cannot be written
} fmha_fwd_outcome;

typedef enum fmha_fwd_verification {
    FMHA_FWD_NOT_VERIFIED = 0,
    FMHA_FWD_VALID = 1,
    FMHA_FWD_INVALID = 2
} fmha_fwd_verification;

typedef struct fmha_fwd_result {
    fmha_fwd_outcome outcome;
    tessera_status status; // of the library call that failed, else TESSERA_SUCCESS
    char message[768];     // "" when all is well
    char short_name[128];  // of the instance that ran
    char ck_name[384];     // CK's name of this call
    double flop, bytes;    // as CK counts them: visible (query, key) pairs; every tensor once
    double time_ms;        // mean of the timed runs
    int32_t runs;          // timed runs
    int32_t simulated;     // 1: the time is what the simulation took this machine, and says nothing of a GPU
    double tflops, gbps;   // 0 where simulated
    fmha_fwd_verification verification;
    int64_t rows, rows_checked; // (sequence, head, query) triples
    double max_error;           // greatest |o - reference|
    double max_error_ratio;     // greatest |o - reference| over what is allowed: valid is <= 1
    double max_lse_error;
} fmha_fwd_result;

// Builds, runs, verifies. Returns result->outcome.
fmha_fwd_outcome fmha_fwd_run(const fmha_fwd_options *options, fmha_fwd_result *result);

// The same in steps. A problem owns its buffers; its args point into those in host memory, whatever the device, and a
// test may change the args between build and launch. `build` leaves *problem NULL when it fails.
typedef struct fmha_fwd_problem fmha_fwd_problem;
fmha_fwd_outcome fmha_fwd_build(const fmha_fwd_options *options, fmha_fwd_problem **problem, fmha_fwd_result *result);
fmha_fwd_outcome fmha_fwd_launch(fmha_fwd_problem *problem, fmha_fwd_result *result); // warm-up, timing
fmha_fwd_outcome fmha_fwd_verify(fmha_fwd_problem *problem, fmha_fwd_result *result); // nothing with v = 0
void fmha_fwd_destroy(fmha_fwd_problem *problem);                                     // NULL is allowed

tessera_fmha_fwd_traits *fmha_fwd_problem_traits(fmha_fwd_problem *problem);
tessera_fmha_fwd_args *fmha_fwd_problem_args(fmha_fwd_problem *problem);
const tessera_device *fmha_fwd_problem_device(const fmha_fwd_problem *problem);

// CK's line up to the kernel's name: "[fp16|batch|bhsd] b:2, h:8/8, ... , v:r", without a newline.
void fmha_fwd_print_problem(const fmha_fwd_problem *problem, FILE *file);

// The exit code of a program that is done: `outcome`, unless that is 0 and what it printed did not arrive.
int fmha_fwd_exit_code(const char *program, int outcome);

// CK's fields and ours. Returns 0, or -1 with errno set.
int fmha_fwd_write_json(const fmha_fwd_problem *problem, const fmha_fwd_result *result, const char *path);

#ifdef __cplusplus
}
#endif
#endif
