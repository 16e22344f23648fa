// SPDX-License-Identifier: MIT
// What samples of problems are taken by, and whether any are; and which instances other days' builds have.
#ifndef TESSERA_TEST_SAMPLING_H
#define TESSERA_TEST_SAMPLING_H

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
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

// Whether a call failed since its kernel is one of those that this build leaves out by TESSERA_CODE_PARTS, which
// another day's has. TESSERA_LEFT_OUT is the file of their names.
inline bool is_of_another_day(const std::string &message) {
    static const std::set<std::string> symbols = [] {
        std::set<std::string> all;
        std::ifstream names(TESSERA_LEFT_OUT);
        for (std::string name; std::getline(names, name);)
            if (!name.empty()) all.insert("tessera_k_" + name.replace(name.find("__"), 2, "_"));
        return all;
    }();
    const size_t pack = message.find("no pack of "), has = message.find(" has ", pack);
    if (pack == std::string::npos || has == std::string::npos) return false;
    return symbols.count(message.substr(has + 5, message.find(':', has) - has - 5)) > 0;
}

#endif
