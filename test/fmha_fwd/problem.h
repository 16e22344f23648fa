// SPDX-License-Identifier: MIT
// A built problem whose inputs and args a test may change before it launches, and whose outputs it can read.
#ifndef TESSERA_TEST_PROBLEM_H
#define TESSERA_TEST_PROBLEM_H

#include <cstring>
#include <functional>

#include "case.h"
#include "fmha_fwd_reference.h"

class Problem {
  public:
    // Throws std::runtime_error with the runner's message where the problem cannot be built.
    explicit Problem(const std::string &arguments);
    ~Problem();
    Problem(const Problem &) = delete;
    Problem &operator=(const Problem &) = delete;

    // Checks args, makes the workspace, runs once. Any failure fails the test.
    void launch();
    tessera_status try_launch(); // the same, but returns the status of the first call that fails

    // Reads and writes one element of q ('q'), k or v of a problem in batch mode, for the floating-point dtypes.
    float at(char tensor, int b, int h, int token, int d) const;
    float q(int b, int h, int i, int d) const { return at('q', b, h, i, d); }
    float k(int b, int h, int j, int d) const { return at('k', b, h, j, d); }
    float v(int b, int h, int j, int d) const { return at('v', b, h, j, d); }
    void each(char tensor, const std::function<float(int b, int h, int token, int d)> &value);
    void each_bias(const std::function<float(int i, int j)> &value); // -bias=e
    float *slopes() { return static_cast<float *>(const_cast<void *>(args->bias_ptr)); }
    float *sinks() { return static_cast<float *>(const_cast<void *>(args->sink_ptr)); }

    // Every n-th row below its sequence's logical length.
    std::vector<fmha_fwd_row> rows(int64_t every = 1) const;
    double o(const fmha_fwd_row &row, int32_t d) const;
    double lse(const fmha_fwd_row &row) const { return *fmha_fwd_lse_of(traits, args, row); }

    struct Answer {
        std::vector<double> all_o, all_lse;
        int32_t hdim;
        double o(size_t row, int32_t d) const {
            return all_o[row * static_cast<size_t>(hdim) + static_cast<size_t>(d)];
        }
        double lse(size_t row) const { return all_lse[row]; }
    };
    Answer reference(const std::vector<fmha_fwd_row> &rows) const;

    // Compares o and lse with the reference, by its tolerances.
    void expect_rows_match(const std::vector<fmha_fwd_row> &rows) const;
    void expect_rows_match() const { expect_rows_match(rows()); }

    // The value after rounding to o's type.
    double rounded_output(double value) const;

    // All bytes of o, lse and rand_val as far as their rows reach.
    std::vector<uint8_t> outputs() const;

    tessera_fmha_fwd_traits *traits = nullptr;
    tessera_fmha_fwd_args *args = nullptr;
    const tessera_device *device = nullptr;
    tessera_fp8_format fp8 = TESSERA_FP8_NONE; // the device's

  private:
    tessera_type input() const { return fmha_fwd_input_element(traits->data_type, fp8); }
    tessera_type output() const { return fmha_fwd_output_element(traits->data_type, fp8); }
    int64_t index(char tensor, int b, int h, int token, int d) const;

    Case options;
    example_problem *problem = nullptr;
    std::vector<uint8_t> workspace;
};

#endif
