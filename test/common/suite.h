// SPDX-License-Identifier: MIT
// Suites of problems as tests of GoogleTest, the same on CPUs and on GPUs. An axis is a list of arguments of
// the operation's example program; the later of two equal arguments counts. A suite runs a pairwise cover of its axes,
// and with TESSERA_TEST_ALL=1 also the whole product of its first axes, with the values of the others in turn.
//
// GPUs are simulated, some thousand times slower than a CPU: "-s=900|60" means 900 on CPUs and 60 on GPUs. Where
// TESSERA_TEST_DEVICE names a real one, such as cuda:0 or hip:0, GPU suites run on that instead.
//
// With TESSERA_TEST_DAYS=N one in N problems of a suite runs each day, or one where there are fewer, other ones the
// next day, so that N days run them all.
// TESSERA_TEST_SEED, a number, says which day it is. TESSERA_TEST_ALL=1 runs all problems nevertheless.
#ifndef TESSERA_TEST_SUITE_H
#define TESSERA_TEST_SUITE_H

#include <functional>
#include <string>
#include <vector>

#include "sampling.h"

using Axis = std::vector<std::string>;

struct Suite {
    std::string name;
    std::vector<Axis> first; // CK's axes, or others in their place
    std::vector<Axis> more;  // further axes; their arguments come first
};

// Which kind of devices a list of suites is for.
struct Place {
    bool gpu;
    std::string prefix; // of the suites' names
    std::function<void(const std::string &arguments)> run;

    // For the few axes that differ wholly between the two.
    const Axis &pick(const Axis &on_cpus, const Axis &on_gpus) const { return gpu ? on_gpus : on_cpus; }
};

// Registers the suite's problems that are due today. If an axis is empty in this build there are none.
void register_suite(const Place &place, const Suite &suite);

// Turns "a=1|2 b" into "a=1 b" on CPUs and "a=2 b" on GPUs.
std::string said_at(const Place &place, const std::string &arguments);

// Every combination of the values of two axes.
Axis times(const Axis &first, const Axis &second);

// "-s=..." becomes a name of letters, digits and underscores, as GoogleTest's filters want them.
std::string test_name(const std::string &arguments);

#endif
