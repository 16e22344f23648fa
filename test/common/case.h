// SPDX-License-Identifier: MIT
// Problems spelled as on the command line of an example program, and the devices that they run on. The harness of the
// programs (example/common/problem.h) builds, launches and verifies them: guard zones around every buffer, inputs that
// stay as they were, copies on devices that read no host memory, and results against the reference.
#ifndef TESSERA_TEST_CASE_H
#define TESSERA_TEST_CASE_H

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "problem.h"
#include "suite.h"
#include "tessera/operation.h"

// A program, and what tests add to it.
struct Tested {
    const example_program *program;
    std::vector<example_argument> beyond; // arguments that only tests have
    size_t bytes = 0;            // of a struct that begins with the program's and has theirs; 0: they are in it
    std::string always = "-v=3"; // verify everything
    example_outcome (*run)(const example_program *program, const void *values, example_result *result) = example_run;
};

// "-m=3 -n=100 ...": of an argument that occurs twice the later one counts. One run without warm-up, everything
// verified. Throws std::invalid_argument where the program would refuse.
class Case {
  public:
    Case(const Tested &tested, const std::string &arguments);
    ~Case();
    Case(const Case &) = delete;
    Case &operator=(const Case &) = delete;

    const void *values() const { return storage.data(); } // the program's struct of arguments
    const example_options &options() const { return *static_cast<const example_options *>(values()); }

  private:
    std::vector<std::string> words; // what the values borrow
    std::vector<example_argument> table;
    example_arguments all;
    std::vector<std::max_align_t> storage;
};

// The line that reproduces a failure, for SCOPED_TRACE and messages.
std::string command(const Tested &tested, const std::string &arguments);

// Runs and verifies; returns the short name of the instance.
std::string expect_valid(const Tested &tested, const std::string &arguments);

// The same where this build has an instance for it on the device of the arguments; else it must be refused by name.
std::string expect_valid_or_refused(const Tested &tested, const std::string &arguments);

// It must be refused so.
void expect_refused(const Tested &tested, const std::string &arguments);

// Problems of this program that expect_valid_or_refused saw refused.
int count_refused();

// Targets of those devices that the table has instances for, and those of them that run here.
std::vector<tessera_target> built_targets(const Place &on, const tessera_table *table);
std::vector<tessera_target> usable_targets(const Place &on, const tessera_table *table);

// "-device=cpu:TARGET" or "-device=sim:TARGET"; and the target of arguments that end in one.
std::string device_argument(const Place &on, tessera_target target);

// A test that is skipped for each target that is built and does not run here.
void register_absent_targets(const Place &on, const tessera_table *table);

#endif
