// SPDX-License-Identifier: MIT
// What samples of problems are taken by, and whether any are.
#ifndef TESSERA_TEST_SAMPLING_H
#define TESSERA_TEST_SAMPLING_H

#include <algorithm>
#include <cstdlib>
#include <string>

// Whether TESSERA_TEST_ALL is 1: run whole products, not only pairwise covers and samples.
inline bool test_all() {
    const char *const value = std::getenv("TESSERA_TEST_ALL");
    return value && std::string(value) == "1";
}

// A number in an environment variable.
inline unsigned test_number(const char *variable, unsigned otherwise) {
    const char *const text = std::getenv(variable);
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

// TESSERA_TEST_SEED: what samples are taken by.
inline unsigned test_seed() { return test_number("TESSERA_TEST_SEED", 0); }

// TESSERA_TEST_DAYS: in how many days all problems are run, one in so many each day.
inline unsigned test_days() { return test_all() ? 1 : std::max(1U, test_number("TESSERA_TEST_DAYS", 1)); }

// Whether the next problem is due today; called once for each, in order.
inline bool is_due() {
    static unsigned next = test_seed();
    return next++ % test_days() == 0;
}

#endif
