// SPDX-License-Identifier: MIT
// Problems spelled as on the command line of tile_example_fmha_fwd, and the instances that can run them here.
#ifndef TESSERA_TEST_CASE_H
#define TESSERA_TEST_CASE_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmha_fwd_arguments.h"
#include "tessera/device.h"

// "-b=2 -h=4 -s=100,200 ...": the program's arguments, and those of fmha_fwd_options beyond the command line, such as
// min_seqlen_q. Of an argument that occurs twice the later one counts. One run without warm-up, every row verified.
// Throws std::invalid_argument where the program would refuse.
class Case {
  public:
    explicit Case(const std::string &arguments);
    ~Case();
    Case(const Case &) = delete;
    Case &operator=(const Case &) = delete;

    const fmha_fwd_options &options() const { return arguments.options; }

  private:
    std::vector<std::string> words; // what arguments borrows
    fmha_fwd_arguments arguments;
};

// Runs and verifies: every row against the reference, guard zones, inputs and rows that must stay as they were.
void expect_valid(const std::string &arguments);

// The same where this build has an instance for it on the device of the arguments; else it must be refused by name.
void expect_valid_or_refused(const std::string &arguments);

// The same, and each of the instances of its head dims has its turn, however small the problem is.
void expect_valid_or_refused_by_any(const std::string &arguments);

// The line that reproduces a failure, for SCOPED_TRACE and messages.
std::string command(const std::string &arguments);

// CPU targets that this build has instances for, and those of them that this machine runs.
std::vector<tessera_target> built_targets();
std::vector<tessera_target> usable_targets();

// "-prec=P -device=cpu:T" for each of the dtypes and each usable target that serves it. A dtype may bring arguments, as
// "mxfp8 -qscale=mx" does.
std::vector<std::string> kinds(const std::vector<std::string> &precs);

// "-prec=P MORE -device=sim:ARCH" for each of the dtypes and arguments, and each GPU target that can be simulated and
// serves that data type with those head dims, order of v and scales.
std::vector<std::string> simulated_kinds(const std::vector<std::string> &precs,
                                         const std::vector<std::string> &more = {""});

// The same with "-instance=NAME" behind, for each instance that serves one of them.
std::vector<std::string> simulated_instances(const std::vector<std::string> &precs,
                                             const std::vector<std::string> &more);

// TESSERA_TEST_ALL is set to 1: run whole products instead of pairwise covers.
bool test_all();

#endif
