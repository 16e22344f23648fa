// SPDX-License-Identifier: MIT
// Suites of problems as GoogleTest's tests, the same ones on CPUs and on simulated GPUs. An axis is a list of arguments
// of the operation's example program; of an argument that occurs twice the later one counts. A suite runs a pairwise
// cover of its axes, and with TESSERA_TEST_ALL=1 the whole product of its first axes too, with the others taking turns.
//
// A simulated GPU is some thousand times slower than a CPU: "-s=900|60" is 900 on CPUs and 60 there.
//
// TESSERA_TEST_DAYS=N: one in N problems is due, others the day after, so that N days have them all. TESSERA_TEST_SEED,
// a number, says which day it is. TESSERA_TEST_ALL=1 runs all the same.
#ifndef TESSERA_TEST_SUITE_H
#define TESSERA_TEST_SUITE_H

#include <functional>
#include <string>
#include <vector>

using Axis = std::vector<std::string>;

struct Suite {
    std::string name;
    std::vector<Axis> first; // CK's axes, or what takes their place
    std::vector<Axis> more;  // applied before them
};

// Which kind of devices a list of suites is for.
struct Place {
    bool gpu;
    std::string prefix; // of the suites' names
    std::function<void(const std::string &arguments)> run;

    // For the few axes that have nothing to do with each other.
    const Axis &pick(const Axis &on_cpus, const Axis &on_gpus) const { return gpu ? on_gpus : on_cpus; }
};

// A suite with an axis that is empty in this build has no tests.
void register_suite(const Place &place, const Suite &suite);

// Registers one problem, whose name the suite's other ones do not have, if it is due.
void register_problem(const Place &place, const std::string &suite, const std::string &arguments);

// "a=1|2 b" becomes "a=1 b" or "a=2 b".
std::string said_at(const Place &place, const std::string &arguments);

// Every combination of the values of two axes.
Axis times(const Axis &first, const Axis &second);

// "-s=..." becomes a name of letters, digits and underscores, as GoogleTest's filters want them.
std::string test_name(const std::string &arguments);

// TESSERA_TEST_ALL is set to 1: run whole products instead of pairwise covers.
bool test_all();

#endif
