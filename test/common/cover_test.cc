// SPDX-License-Identifier: MIT
#include "cover.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

using Sizes = std::vector<size_t>;

static size_t pairs_of(const std::vector<Combination> &combinations) {
    std::set<std::tuple<size_t, size_t, size_t, size_t>> pairs;
    for (const Combination &one : combinations)
        for (size_t a = 0; a < one.size(); a++)
            for (size_t b = a + 1; b < one.size(); b++) pairs.insert({a, one[a], b, one[b]});
    return pairs.size();
}

TEST(Cover, HasEveryPairInFewCombinations) {
    for (const Sizes &sizes : {Sizes{7, 7, 2, 2, 7}, Sizes{2, 2, 2, 2, 2, 2, 2}, Sizes{30, 8, 5}, Sizes{1, 3}}) {
        const auto all = product(sizes), cover = PairwiseCover(sizes).combinations();
        EXPECT_EQ(pairs_of(cover), pairs_of(all));
        size_t greatest = 1, second = 1;
        for (size_t size : sizes) {
            if (size > greatest) std::swap(greatest, size);
            if (size > second) second = size;
        }
        EXPECT_LE(cover.size(), 2 * greatest * second);
        EXPECT_EQ(cover, PairwiseCover(sizes).combinations());
    }
}

TEST(Cover, OneAxisGivesAllItsValues) { EXPECT_EQ(PairwiseCover({5}).combinations().size(), 5u); }
