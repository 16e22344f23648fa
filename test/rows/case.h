// SPDX-License-Identifier: MIT
// Problems of the example programs of the row operations, with inputs and layouts that only tests have.
#ifndef TESSERA_TEST_ROWS_CASE_H
#define TESSERA_TEST_ROWS_CASE_H

#include <functional>
#include <memory>

#include "../common/case.h"

extern "C" {
#include "rows.h"
}

// The programs' arguments, and those of tests.
struct Options {
    rows_options rows;
    const char *fill; // what inputs are, see fill.cc
    int32_t misalign; // every buffer starts this many elements after a multiple of 64 bytes
    int32_t pad;      // columns between the rows of x; twice as many of x_residual, and so on
    int32_t inplace;  // 1: y is x and y_residual is x_residual; 2: the other way round; where their types allow it
    int32_t bad_ids;  // 1: some ids are none of an expert
};

struct Operation {
    std::string name; // of its suites
    Tested tested;
    rows_statistics statistics;

    const tessera_table *table() const { return tested.program->calls->get_table(); }
    // Sizes and types are spelled -m, -n, -prec_i and -prec_o here, as most programs have it.
    std::string spelled(const std::string &arguments) const;
};

const std::vector<Operation> &operations();

// Every problem must be valid on CPUs; on GPUs what has no instance must be refused by name.
Place cpus(const Operation &op);
Place gpus(const Operation &op);

// "-prec_i=P -device=D" of each type and each device that runs here; "-device=D" alone.
Axis kinds(const Place &on, const Operation &op);
Axis devices(const Place &on, const Operation &op);

// ---- for tests that look at single elements

class Problem {
  public:
    // Throws std::runtime_error where the problem cannot be built.
    Problem(const Operation &op, const std::string &arguments);
    ~Problem();
    Problem(const Problem &) = delete;
    Problem &operator=(const Problem &) = delete;

    rows_problem *rows() const;
    double at(rows_tensor tensor, int64_t row, int64_t column) const;
    void each(rows_tensor tensor, const std::function<double(int64_t row, int64_t column)> &value);

    void launch();        // any failure fails the test
    std::string verify(); // by the reference: what is wrong, or ""
    void expect_right() { EXPECT_EQ(verify(), ""); }
    std::vector<uint8_t> outputs() const; // all bytes

  private:
    struct Inside;
    std::unique_ptr<Inside> inside;
    example_result result;
};

#endif
