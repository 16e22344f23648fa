// SPDX-License-Identifier: MIT
#include "suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "cover.h"

Axis times(const Axis &first, const Axis &second) {
    Axis all;
    for (const std::string &one : first)
        for (const std::string &other : second) all.push_back(one + " " + other);
    return all;
}

std::string test_name(const std::string &arguments) {
    std::string name;
    for (char c : arguments) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            name += c;
        else if (c == '-' && (name.empty() || name.back() == ' '))
            continue;
        else
            name += c == ' ' ? ' ' : '_';
    }
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

std::string said_at(const Place &place, const std::string &arguments) {
    std::istringstream words(arguments);
    std::string said;
    for (std::string word; words >> word;) {
        const size_t bar = word.find('|');
        if (bar != std::string::npos)
            word = place.gpu ? word.substr(0, word.find('=') + 1) + word.substr(bar + 1) : word.substr(0, bar);
        said += (said.empty() ? "" : " ") + word;
    }
    return said;
}

namespace {

class Matrix : public testing::Test {
  public:
    Matrix(std::string arguments, std::function<void(const std::string &)> run)
        : arguments(std::move(arguments)), run(std::move(run)) {}
    void TestBody() override { run(arguments); }

  private:
    const std::string arguments;
    const std::function<void(const std::string &)> run;
};

std::string spell(const std::vector<Axis> &axes, const Combination &one) {
    std::string arguments;
    for (size_t axis = 0; axis < axes.size(); axis++)
        arguments += (arguments.empty() ? "" : " ") + axes[axis][one[axis]];
    return arguments;
}

std::vector<size_t> sizes_of(const std::vector<Axis> &axes) {
    std::vector<size_t> sizes;
    for (const Axis &axis : axes) sizes.push_back(axis.size());
    return sizes;
}

std::vector<std::string> combinations(const Suite &suite) {
    std::vector<Axis> axes = suite.more;
    axes.insert(axes.end(), suite.first.begin(), suite.first.end());
    std::vector<std::string> all;
    if (std::any_of(axes.begin(), axes.end(), [](const Axis &axis) { return axis.empty(); })) return all;
    for (const Combination &one : PairwiseCover(sizes_of(axes)).combinations()) all.push_back(spell(axes, one));
    if (!test_all()) return all;
    const auto turns = PairwiseCover(sizes_of(suite.more)).combinations();
    size_t turn = 0;
    for (const Combination &one : product(sizes_of(suite.first)))
        all.push_back(spell(suite.more, turns[turn++ % turns.size()]) + " " + spell(suite.first, one));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// The problem's name must be unique in the suite.
void register_problem(const Place &place, const std::string &suite, const std::string &arguments) {
    const std::string said = said_at(place, arguments);
    const auto run = place.run;
    testing::RegisterTest((place.prefix + suite).c_str(), test_name(said).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> Matrix * { return new Matrix(said, run); });
}

} // namespace

void register_suite(const Place &place, const Suite &suite) {
    const std::vector<std::string> all = combinations(suite);
    const size_t days = std::min<size_t>(test_days(), all.size()); // some each day, however few there are
    for (size_t n = 0; n < all.size(); n++)
        if ((test_seed() + n) % days == 0) register_problem(place, suite.name, all[n]);
}
