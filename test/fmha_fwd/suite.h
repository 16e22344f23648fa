// SPDX-License-Identifier: MIT
// Suites of problems as GoogleTest's tests. An axis is a list of arguments of the program; of an argument that occurs
// twice the later one counts. A suite runs a pairwise cover of its axes, and with TESSERA_TEST_ALL=1 the whole product
// of its first axes too, with the others taking turns.
//
// TESSERA_TEST_DAYS=N: one in N problems is due, others the day after, so that N days have them all. TESSERA_TEST_SEED,
// a number, says which day it is. TESSERA_TEST_ALL=1 runs all the same.
#ifndef TESSERA_TEST_SUITE_H
#define TESSERA_TEST_SUITE_H

#include <string>
#include <vector>

#include "case.h"
#include "tessera/kernel/fmha_fwd.h"

using Axis = std::vector<std::string>;

struct Suite {
    const char *name;
    std::vector<Axis> ck;   // CK's axes, or what takes their place
    std::vector<Axis> more; // applied before them
    void (*run)(const std::string &arguments) = expect_valid;
};

// One with an axis that is empty in this build has no tests.
void register_suite(const Suite &suite);

// "-s=..." becomes a name of letters, digits and underscores, as GoogleTest's filters want them.
std::string test_name(const std::string &arguments);

// Lengths at the edges of every tile of the build's instances for CPUs or GPUs: `tile` picks its rows or its keys.
std::vector<int> edges(bool gpu, uint16_t tessera_fmha_fwd_tile::*tile);

// Axes that are the same everywhere.
extern const Axis perms, modes, lse, inits, ratios, masks;

// Problems of CK's tests of group mode with padding, and of effective lengths in batch mode.
extern const Axis group_paddings, effective_lengths;

#endif
