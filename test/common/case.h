// SPDX-License-Identifier: MIT
// Problems spelled as on the command line of an example program, and the devices that they run on. The harness of the
// programs (example/common/problem.h) builds, launches and verifies them: guard zones around every buffer, inputs that
// stay as they were, copies on devices that read no host memory, and results against the reference. On a real GPU they
// are launched several times, into poisoned outputs, and must give the same bytes.
#ifndef TESSERA_TEST_CASE_H
#define TESSERA_TEST_CASE_H

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "problem.h"
#include "suite.h"
#include "tessera/operation.h"

// Builds, launches and verifies a problem, as example_run() does, and launches it again on a real GPU.
example_outcome run_case(const example_program *program, const void *values, example_result *result);

// Launches a problem that was found right again, each time into poisoned outputs; other bytes make the result wrong.
// `launch` is how the problem was launched.
using Launch = std::function<void(example_result *result)>;
example_outcome repeat(example_problem *problem, const Launch &launch, example_result *result);
bool is_on_real_gpu(const example_problem *problem); // where orders differ from launch to launch

// Whether a tool such as compute-sanitizer watches (TESSERA_TEST_BARE=1): copies on a GPU have no guard zones then.
bool is_bare();

// A program under test, and arguments that only tests have.
struct Tested {
    const example_program *program;
    std::vector<example_argument> beyond; // arguments that only tests have
    size_t bytes = 0;            // of a struct that begins with the program's and has theirs; 0: they are in it
    std::string always = "-v=3"; // verify everything
    example_outcome (*run)(const example_program *program, const void *values, example_result *result) = run_case;
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

// Prints how many problems of this process were refused, where that was right.
void print_refused();

// "cpu:TARGET" or "sim:TARGET", or what TESSERA_TEST_DEVICE names.
struct Device {
    std::string name;
    tessera_target target;
    std::string argument() const { return "-device=" + name; }
};

// The real GPU that TESSERA_TEST_DEVICE names, opened as long as the process runs; NULL where it names none. Ends the
// process where it cannot be opened.
const Device *real_gpu();

// The devices of the place that run here, and for whose targets the table has instances.
std::vector<Device> devices(const Place &on, const tessera_table *table);

// The target of the device that a problem names.
tessera_target target_of(const Case &one);

// Registers a skipped test for each CPU target that is built and does not run here.
void register_absent_targets(const Place &on, const tessera_table *table);

#endif
