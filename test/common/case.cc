// SPDX-License-Identifier: MIT
#include "case.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// ---- running

namespace {

enum { REPETITIONS = 2 };

uint8_t *bytes_of(const example_problem *p, int tensor) { return static_cast<uint8_t *>(example_pointer(p, tensor)); }

void poison_outputs(const example_problem *p) {
    for (int n = p->program->first_output; n < p->program->tensor_count; n++)
        if (p->buffers[n].used)
            std::memset(bytes_of(p, n), p->buffers[n].unwritten, static_cast<size_t>(p->buffers[n].bytes));
}

std::vector<uint8_t> outputs_of(const example_problem *p) {
    std::vector<uint8_t> all;
    for (int n = p->program->first_output; n < p->program->tensor_count; n++)
        if (p->buffers[n].used) all.insert(all.end(), bytes_of(p, n), bytes_of(p, n) + p->buffers[n].bytes);
    return all;
}

} // namespace

bool is_on_real_gpu(const example_problem *p) { return !example_on_cpu(p) && !example_is_simulated(p); }

example_outcome repeat(example_problem *p, const Launch &launch, example_result *result) {
    const std::vector<uint8_t> want = outputs_of(p);
    for (int n = 0; n < REPETITIONS; n++) {
        example_result again;
        poison_outputs(p);
        launch(&again);
        if (again.outcome != EXAMPLE_OK || example_check_guards(p, &again) != EXAMPLE_OK) {
            *result = again;
            return again.outcome;
        }
        const std::vector<uint8_t> got = outputs_of(p);
        const auto differ = std::mismatch(want.begin(), want.end(), got.begin());
        if (differ.first != want.end())
            return example_fail(result, EXAMPLE_WRONG_RESULT, "launched again it gives other bytes, from %zu of %zu on",
                                static_cast<size_t>(differ.first - want.begin()), want.size());
    }
    return EXAMPLE_OK;
}

bool is_bare() {
    const char *const value = std::getenv("TESSERA_TEST_BARE");
    return value && std::string(value) == "1";
}

example_outcome run_case(const example_program *program, const void *values, example_result *result) {
    example_problem *problem;
    if (example_build(program, values, &problem, result) != EXAMPLE_OK) return result->outcome;
    problem->bare = is_bare();
    const auto launch = [=](example_result *into) { example_launch(problem, into); };
    launch(result);
    if (result->outcome == EXAMPLE_OK && example_verify(problem, result) == EXAMPLE_OK && is_on_real_gpu(problem))
        repeat(problem, launch, result);
    example_destroy(problem);
    return result->outcome;
}

// ---- what is expected

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

void print_refused() {
    int count = 0;
    const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
    for (int s = 0; s < tests.total_test_suite_count(); s++)
        for (int n = 0; n < tests.GetTestSuite(s)->total_test_count(); n++) {
            const testing::TestResult &result = *tests.GetTestSuite(s)->GetTestInfo(n)->result();
            for (int i = 0; i < result.test_property_count(); i++)
                count += std::string(result.GetTestProperty(i).key()) == "refused";
        }
    std::printf("%d problems of the covers have no instance in this build and were refused by name\n", count);
}

// ---- devices

static Device opened_real_gpu(const char *name) {
    const std::string text = name;
    tessera_device *device = nullptr; // stays open, so that no problem has to set up the driver anew
    if (text.rfind("cpu", 0) == 0 || text.rfind("sim:", 0) == 0 || text == "auto" ||
        tessera_device_open(name, &device) != TESSERA_SUCCESS) {
        std::fprintf(stderr, "TESSERA_TEST_DEVICE=%s: no GPU: %s\n", name, tessera_last_error());
        std::exit(1);
    }
    uint32_t targets = tessera_device_get_facts(device)->targets;
    int target = 0;
    while (!(targets >> target & 1)) target++;
    return {text, static_cast<tessera_target>(target)};
}

const Device *real_gpu() {
    const char *const name = std::getenv("TESSERA_TEST_DEVICE");
    if (!name || !*name) return nullptr;
    static const Device device = opened_real_gpu(name);
    return &device;
}

// The targets that the table has instances for.
static std::set<tessera_target> built_targets(const Place &on, const tessera_table *table) {
    std::set<tessera_target> targets;
    for (uint32_t i = 0; i < table->row_count; i++)
        if ((tessera_row(table, i)->symbol != nullptr) == on.gpu) targets.insert(tessera_row(table, i)->target);
    return targets;
}

static Device device_of(const Place &on, tessera_target target) {
    return {(on.gpu ? "sim:" : "cpu:") + std::string(tessera_target_string(target)), target};
}

static bool is_usable(const Device &one) {
    tessera_device *device = nullptr;
    const tessera_status status = tessera_device_open(one.name.c_str(), &device);
    tessera_device_close(device);
    return status == TESSERA_SUCCESS;
}

std::vector<Device> devices(const Place &on, const tessera_table *table) {
    std::vector<Device> all;
    for (tessera_target target : built_targets(on, table)) {
        const Device one = device_of(on, target);
        if (on.gpu && real_gpu()) {
            if (real_gpu()->target == target) all.push_back(*real_gpu());
        } else if (is_usable(one)) {
            all.push_back(one);
        }
    }
    return all;
}

tessera_target target_of(const Case &one) {
    const std::string device = one.options().device;
    tessera_target target;
    if (real_gpu() && device == real_gpu()->name) return real_gpu()->target;
    if (tessera_target_from_string(device.substr(device.find(':') + 1).c_str(), &target) != TESSERA_SUCCESS)
        throw std::invalid_argument(device);
    return target;
}

namespace {

class Absent : public testing::Test {
  public:
    void TestBody() override { GTEST_SKIP() << "this machine does not run it"; }
};

} // namespace

void register_absent_targets(const Place &on, const tessera_table *table) {
    for (tessera_target target : built_targets(on, table))
        if (!is_usable(device_of(on, target)))
            testing::RegisterTest((on.prefix + "Target").c_str(), test_name(tessera_target_string(target)).c_str(),
                                  nullptr, nullptr, __FILE__, __LINE__, []() -> Absent * { return new Absent; });
}
