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

// A program under test, and arguments that only tests have.
struct Tested {
    const example_program *program;
    std::vector<example_argument> beyond; // arguments that only tests have
    size_t bytes = 0;            // of a struct that begins with the program's and has theirs; 0: they are in it
    std::string always = "-v=3"; // verify everything
    example_outcome (*run)(const example_program *program, const void *values, example_result *result) = example_run;
};

// A problem from "-m=3 -n=100 ...", where the later of two equal arguments counts. It is run once without warm-up, and
// everything is verified. Throws std::invalid_argument where the program would refuse the arguments.
class Case {
  public:
    Case(const Tested &tested, const std::string &arguments);
    ~Case();
    Case(const Case &) = delete;
    Case &operator=(const Case &) = delete;

    const void *values() const { return storage.data(); } // the program's struct of arguments
    const example_options &options() const { return *static_cast<const example_options *>(values()); }

  private:
    std::vector<std::string> words; // texts that the values point to
    std::vector<example_argument> table;
    example_arguments all;
    std::vector<std::max_align_t> storage;
};

// The line that reproduces a failure, for SCOPED_TRACE and messages.
std::string command(const Tested &tested, const std::string &arguments);

// Runs and verifies; returns the short name of the instance.
std::string expect_valid(const Tested &tested, const std::string &arguments);

// Does the same if this build has an instance for the problem on its device; else the call must be refused with a
// reason.
std::string expect_valid_or_refused(const Tested &tested, const std::string &arguments);

// Expects that this build has no instance for the problem and refuses it with a reason.
void expect_refused(const Tested &tested, const std::string &arguments);

// The number of problems in this process that expect_valid_or_refused() saw refused.
int count_refused();

// The targets of the place for which the table has instances, and those of them that run here.
std::vector<tessera_target> built_targets(const Place &on, const tessera_table *table);
std::vector<tessera_target> usable_targets(const Place &on, const tessera_table *table);

// Returns "-device=cpu:TARGET" or "-device=sim:TARGET"; and reads the target of arguments that end in one.
std::string device_argument(const Place &on, tessera_target target);

// Registers a skipped test for each target that is built and does not run here.
void register_absent_targets(const Place &on, const tessera_table *table);

#endif
