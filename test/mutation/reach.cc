// SPDX-License-Identifier: MIT
// Linked into test programs with mutants: says which mutants each test reaches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

extern "C" unsigned char mutants_reached[MUTANTS];
unsigned char mutants_reached[MUTANTS];

namespace {

// Adds a line to the file TESSERA_MUTANT_REACH for each test that ends: its name and the mutants' numbers.
class Reach : public testing::EmptyTestEventListener {
    void OnTestEnd(const testing::TestInfo &test) override {
        std::ofstream file(path, std::ios::app);
        file << test.test_suite_name() << "." << test.name();
        for (int number = 0; number < MUTANTS; number++)
            if (mutants_reached[number]) file << " " << number;
        file << "\n";
        std::fill_n(mutants_reached, MUTANTS, 0);
    }

  public:
    const char *const path = std::getenv("TESSERA_MUTANT_REACH");
    Reach() {
        if (path) testing::UnitTest::GetInstance()->listeners().Append(this);
    }
};

Reach *const reach = new Reach; // listeners belong to GoogleTest

} // namespace
