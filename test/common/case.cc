// SPDX-License-Identifier: MIT
#include "case.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

Case::Case(const Tested &tested, const std::string &text)
    : words{tested.program->name, tested.always, "-warmup=0", "-repeat=1"}, all(*tested.program->arguments) {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    table.assign(all.table, all.table + all.count);
    table.insert(table.end(), tested.beyond.begin(), tested.beyond.end());
    all.table = table.data();
    all.count = static_cast<int>(table.size());
    if (tested.bytes) all.bytes = tested.bytes;
    storage.resize(all.bytes / sizeof(std::max_align_t) + 1);

    std::vector<char *> argv;
    for (std::string &word : words) argv.push_back(word.data());
    char message[512];
    if (example_read_arguments(&all, static_cast<int>(argv.size()), argv.data(), storage.data(), message,
                               sizeof message) != 0) {
        example_free_arguments(&all, storage.data());
        throw std::invalid_argument(message);
    }
}

Case::~Case() { example_free_arguments(&all, storage.data()); }

std::string command(const Tested &tested, const std::string &arguments) {
    return tested.program->name + (" " + arguments);
}

static void expect_verified(const example_result &result) {
    ASSERT_EQ(result.outcome, EXAMPLE_OK) << result.message;
    EXPECT_EQ(result.verification, EXAMPLE_VALID) << result.message;
    EXPECT_EQ(result.rows_checked, result.rows);
}

static void expect_no_instance(const Tested &tested, const example_result &result) {
    EXPECT_EQ(result.outcome, EXAMPLE_NO_INSTANCE) << result.message;
    EXPECT_NE(std::string(result.message).find(tested.program->calls->operation), std::string::npos) << result.message;
}

std::string expect_valid(const Tested &tested, const std::string &arguments) {
    SCOPED_TRACE(command(tested, arguments));
    example_result result;
    tested.run(tested.program, Case(tested, arguments).values(), &result);
    expect_verified(result);
    return result.short_name;
}

std::string expect_valid_or_refused(const Tested &tested, const std::string &arguments) {
    SCOPED_TRACE(command(tested, arguments));
    example_result result;
    tested.run(tested.program, Case(tested, arguments).values(), &result);
    if (result.status == TESSERA_ERROR_NO_INSTANCE) {
        expect_no_instance(tested, result);
        testing::Test::RecordProperty("refused", result.message);
        return "";
    }
    expect_verified(result);
    return result.short_name;
}

void expect_refused(const Tested &tested, const std::string &arguments) {
    SCOPED_TRACE(command(tested, arguments));
    example_result result;
    tested.run(tested.program, Case(tested, arguments).values(), &result);
    expect_no_instance(tested, result);
}

int count_refused() {
    int count = 0;
    const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
    for (int s = 0; s < tests.total_test_suite_count(); s++)
        for (int n = 0; n < tests.GetTestSuite(s)->total_test_count(); n++)
            count += tests.GetTestSuite(s)->GetTestInfo(n)->result()->test_property_count() > 0;
    return count;
}

std::vector<tessera_target> built_targets(const Place &on, const tessera_table *table) {
    std::set<tessera_target> targets;
    for (uint32_t i = 0; i < table->row_count; i++)
        if ((tessera_row(table, i)->symbol != nullptr) == on.gpu) targets.insert(tessera_row(table, i)->target);
    return {targets.begin(), targets.end()};
}

static std::string device_of(const Place &on, tessera_target target) {
    return (on.gpu ? "sim:" : "cpu:") + std::string(tessera_target_string(target));
}

std::vector<tessera_target> usable_targets(const Place &on, const tessera_table *table) {
    std::vector<tessera_target> usable;
    for (tessera_target target : built_targets(on, table)) {
        tessera_device *device = nullptr;
        if (tessera_device_open(device_of(on, target).c_str(), &device) == TESSERA_SUCCESS) usable.push_back(target);
        tessera_device_close(device);
    }
    return usable;
}

std::string device_argument(const Place &on, tessera_target target) { return "-device=" + device_of(on, target); }

namespace {

class Absent : public testing::Test {
  public:
    void TestBody() override { GTEST_SKIP() << "this machine does not run it"; }
};

} // namespace

void register_absent_targets(const Place &on, const tessera_table *table) {
    const std::vector<tessera_target> usable = usable_targets(on, table);
    for (tessera_target target : built_targets(on, table))
        if (std::find(usable.begin(), usable.end(), target) == usable.end())
            testing::RegisterTest((on.prefix + "Target").c_str(), test_name(tessera_target_string(target)).c_str(),
                                  nullptr, nullptr, __FILE__, __LINE__, []() -> Absent * { return new Absent; });
}
