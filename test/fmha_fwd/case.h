// SPDX-License-Identifier: MIT
// Problems of tile_example_fmha_fwd, and the instances that can run them here.
#ifndef TESSERA_TEST_FMHA_FWD_CASE_H
#define TESSERA_TEST_FMHA_FWD_CASE_H

#include "../common/case.h"
#include "fmha_fwd_arguments.h"

// The program, with arguments for the fields of fmha_fwd_options that its command line lacks.
extern const Tested fmha_fwd;

// On CPUs every problem must be valid. On GPUs the instances for its head dims take turns, however small the problem
// is, and a problem without any must be refused with a reason.
extern const Place cpus, gpus;

const fmha_fwd_options &options_of(const Case &one);
std::string command(const std::string &arguments);
void expect_valid(const std::string &arguments);

// "-prec=P MORE -device=D" for each of the dtypes and arguments, and each device that runs here and serves that data
// type with those head dims, order of v and scales. A dtype may include arguments, as "mxfp8 -qscale=mx" does.
Axis kinds(const Place &on, const Axis &precs, const Axis &more = {""});

// The same followed by "-instance=NAME", for each instance that serves one of them.
Axis instances(const Place &on, const Axis &precs, const Axis &more);

#endif
