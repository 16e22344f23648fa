// SPDX-License-Identifier: MIT
// Selections from a product of axes: all combinations, or a few in which every pair of values of two different axes
// occurs.
#ifndef TESSERA_TEST_COVER_H
#define TESSERA_TEST_COVER_H

#include <cstddef>
#include <vector>

using Combination = std::vector<size_t>; // the number of a value for each axis

inline std::vector<Combination> product(const std::vector<size_t> &sizes) {
    std::vector<Combination> all{{}};
    for (size_t size : sizes) {
        std::vector<Combination> longer;
        for (const Combination &one : all)
            for (size_t value = 0; value < size; value++) {
                longer.push_back(one);
                longer.back().push_back(value);
            }
        all.swap(longer);
    }
    return all;
}

// A greedy algorithm: each combination starts from the first missing pair, and every other axis then gets the value
// that adds most new pairs; of several such values the one used least. The same sizes always give the same cover.
class PairwiseCover {
  public:
    explicit PairwiseCover(const std::vector<size_t> &sizes) : sizes(sizes), used(sizes.size()) {
        for (size_t axis = 0; axis < sizes.size(); axis++) {
            first.push_back(values);
            values += sizes[axis];
            used[axis].resize(sizes[axis]);
        }
        covered.resize(values * values);
    }

    std::vector<Combination> combinations() {
        if (sizes.size() < 2) return product(sizes);
        std::vector<Combination> cover;
        for (size_t a = 0; a < sizes.size(); a++)
            for (size_t b = a + 1; b < sizes.size(); b++)
                for (size_t va = 0; va < sizes[a]; va++)
                    for (size_t vb = 0; vb < sizes[b]; vb++)
                        if (!has(a, va, b, vb)) cover.push_back(complete(a, va, b, vb));
        return cover;
    }

  private:
    static constexpr size_t open = static_cast<size_t>(-1); // an axis without a value yet

    Combination complete(size_t a, size_t va, size_t b, size_t vb) {
        Combination one(sizes.size(), open);
        one[a] = va;
        one[b] = vb;
        for (size_t axis = 0; axis < sizes.size(); axis++)
            if (one[axis] == open) one[axis] = best_value(one, axis);
        for (size_t i = 0; i < one.size(); i++) {
            used[i][one[i]]++;
            for (size_t j = i + 1; j < one.size(); j++) covered[at(i, one[i], j, one[j])] = true;
        }
        return one;
    }

    size_t best_value(const Combination &one, size_t axis) const {
        size_t best = 0, best_gain = 0;
        for (size_t value = 0; value < sizes[axis]; value++) {
            size_t gain = 0;
            for (size_t other = 0; other < one.size(); other++)
                gain += other != axis && one[other] != open && !has(axis, value, other, one[other]);
            if (value == 0 || gain > best_gain || (gain == best_gain && used[axis][value] < used[axis][best])) {
                best = value;
                best_gain = gain;
            }
        }
        return best;
    }

    size_t at(size_t a, size_t va, size_t b, size_t vb) const {
        return a < b ? (first[a] + va) * values + first[b] + vb : at(b, vb, a, va);
    }
    bool has(size_t a, size_t va, size_t b, size_t vb) const { return covered[at(a, va, b, vb)]; }

    std::vector<size_t> sizes;
    std::vector<std::vector<size_t>> used; // [axis][value]: combinations that have it
    std::vector<size_t> first;             // number of an axis's first value when all are numbered
    size_t values = 0;
    std::vector<bool> covered; // [value][value] of the lower axis and the higher
};

#endif
