// SPDX-License-Identifier: MIT
// What samples of problems are taken by, and whether any are.
#ifndef TESSERA_TEST_SAMPLING_H
#define TESSERA_TEST_SAMPLING_H

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

#endif
