// SPDX-License-Identifier: MIT
// Problems of tile_example_fmha_bwd, and one that a test may launch again and look into.
#ifndef TESSERA_TEST_FMHA_BWD_CASE_H
#define TESSERA_TEST_FMHA_BWD_CASE_H

#include "../common/case.h"
#include "fmha_bwd_runner.h"

// The program, with arguments for the fields of fmha_fwd_options that its command line lacks.
extern const Tested fmha_bwd;
extern const Place cpus; // where every problem must be valid
extern const Place gpus; // where it may also be refused with a reason

// "-prec=P -device=D" for each of the data types, and each device of the place that runs here and serves it.
Axis kinds(const Place &on, const Axis &precs);

class Problem {
  public:
    // Throws std::runtime_error with the runner's message where the problem cannot be built.
    explicit Problem(const std::string &arguments);
    ~Problem();
    Problem(const Problem &) = delete;
    Problem &operator=(const Problem &) = delete;

    // Runs once, into outputs that hold no number; verified if so asked. Any failure fails the test.
    void launch(bool verified = false);
    std::vector<uint8_t> outputs() const; // all of their bytes

    tessera_fmha_bwd_traits *traits = nullptr;
    tessera_fmha_bwd_args *args = nullptr;
    const tessera_device *device = nullptr;

    void poison(); // outputs hold no number again

  private:
    Case options;
    example_problem *problem = nullptr;
};

#endif
