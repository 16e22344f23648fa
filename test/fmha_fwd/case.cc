// SPDX-License-Identifier: MIT
#include "case.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tessera/kernel/fmha_fwd.h"

// Takes "-name=N" out of the words; `otherwise` where there is none.
static int32_t take(std::vector<std::string> &words, const std::string &name, int32_t otherwise) {
    const std::string start = "-" + name + "=";
    for (size_t n = words.size(); n-- > 0;)
        if (words[n].rfind(start, 0) == 0) {
            otherwise = std::stoi(words[n].substr(start.size()));
            words.erase(words.begin() + static_cast<std::ptrdiff_t>(n));
        }
    return otherwise;
}

Case::Case(const std::string &text) : words{"tile_example_fmha_fwd", "-v=3", "-warmup=0", "-repeat=1"} {
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    struct {
        const char *name;
        int32_t fmha_fwd_options::*field;
        int32_t value = 0;
    } beyond[] = {{"min_seqlen_q", &fmha_fwd_options::min_seqlen_q},
                  {"cu_seqlen", &fmha_fwd_options::cu_seqlen},
                  {"misalign", &fmha_fwd_options::misalign},
                  {"block_q", &fmha_fwd_options::block_scale_size_q},
                  {"block_kv", &fmha_fwd_options::block_scale_size_kv},
                  {"odd_descales", &fmha_fwd_options::odd_descales},
                  {"pad_columns", &fmha_fwd_options::pad_columns}};
    for (auto &one : beyond) one.value = take(words, one.name, 0);

    std::vector<char *> argv;
    for (std::string &word : words) argv.push_back(word.data());
    char message[512];
    if (example_read_arguments(&fmha_fwd_arguments_table, static_cast<int>(argv.size()), argv.data(), &arguments,
                               message, sizeof message) != 0) {
        example_free_arguments(&fmha_fwd_arguments_table, &arguments);
        throw std::invalid_argument(message);
    }
    for (const auto &one : beyond) arguments.options.*one.field = one.value;
}

Case::~Case() { example_free_arguments(&fmha_fwd_arguments_table, &arguments); }

std::string command(const std::string &arguments) { return "tile_example_fmha_fwd " + arguments; }

void expect_valid(const std::string &arguments) {
    SCOPED_TRACE(command(arguments));
    const Case one(arguments);
    example_result result;
    example_run(&fmha_fwd_program, &one.options(), &result);
    ASSERT_EQ(result.outcome, EXAMPLE_OK) << result.message;
    EXPECT_EQ(result.verification, EXAMPLE_VALID) << result.message;
    EXPECT_EQ(result.rows_checked, result.rows);
}

void expect_valid_or_refused(const std::string &arguments) {
    SCOPED_TRACE(command(arguments));
    const Case one(arguments);
    example_result result;
    example_run(&fmha_fwd_program, &one.options(), &result);
    if (result.status == TESSERA_ERROR_NO_INSTANCE) {
        EXPECT_EQ(result.outcome, EXAMPLE_NO_INSTANCE);
        EXPECT_NE(std::string(result.message).find("fmha_fwd"), std::string::npos) << result.message;
        testing::Test::RecordProperty("refused", result.message);
        return;
    }
    ASSERT_EQ(result.outcome, EXAMPLE_OK) << result.message;
    EXPECT_EQ(result.verification, EXAMPLE_VALID) << result.message;
    EXPECT_EQ(result.rows_checked, result.rows);
}

static std::vector<tessera_target> targets_of(bool gpu) {
    const tessera_table *table = tessera_fmha_fwd_get_table();
    std::set<tessera_target> targets;
    for (uint32_t i = 0; i < table->row_count; i++)
        if ((tessera_row(table, i)->symbol != nullptr) == gpu) targets.insert(tessera_row(table, i)->target);
    return {targets.begin(), targets.end()};
}

static std::vector<tessera_target> that_open(const std::string &kind, const std::vector<tessera_target> &targets) {
    std::vector<tessera_target> usable;
    for (tessera_target target : targets) {
        tessera_device *device = nullptr;
        if (tessera_device_open((kind + tessera_target_string(target)).c_str(), &device) == TESSERA_SUCCESS)
            usable.push_back(target);
        tessera_device_close(device);
    }
    return usable;
}

std::vector<tessera_target> built_targets() { return targets_of(false); }

std::vector<tessera_target> usable_targets() { return that_open("cpu:", built_targets()); }

// Instances of a target that serve the data type, head dims, order of v and scales of the arguments, those that pad the
// head dims least.
static std::vector<std::string> instances_for(tessera_target target, const std::string &arguments) {
    const Case one(arguments);
    const fmha_fwd_options &o = one.options();
    const int32_t hdim_v = o.d_v == -1 ? o.d : o.d_v;
    tessera_fmha_dtype dtype;
    tessera_qscale qscale = TESSERA_QSCALE_NONE;
    if (tessera_fmha_dtype_from_string(o.prec, &dtype) != TESSERA_SUCCESS) throw std::invalid_argument(arguments);
    if (std::string(o.qscale) != "n" && tessera_qscale_from_string(o.qscale, &qscale) != TESSERA_SUCCESS)
        throw std::invalid_argument(arguments);
    const std::map<std::string, int> asked{
        {"data_type", dtype}, {"is_v_rowmajor", o.vlayout[0] == 'r'}, {"qscale_type", qscale}};
    const tessera_table *table = tessera_fmha_fwd_get_table();
    const tessera_schema *schema = table->schema;
    const auto holds = [&](const tessera_served &s) {
        return std::all_of(schema->traits, schema->traits + schema->trait_count,
                           [&](const tessera_trait &trait) {
                               const auto found = asked.find(trait.name);
                               return found == asked.end() || (tessera_set_of(&s, &trait) >> found->second & 1);
                           }) &&
               tessera_range_holds(&s.ranges[0], static_cast<uint32_t>(o.d)) &&
               tessera_range_holds(&s.ranges[1], static_cast<uint32_t>(hdim_v));
    };
    std::map<uint32_t, std::vector<std::string>> names; // by the sum of the head dims
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *row = tessera_row(table, i);
        if (row->target == target && std::any_of(row->served, row->served + row->served_count, holds))
            names[row->served->ranges[0].max + row->served->ranges[1].max].push_back(row->name);
    }
    return names.empty() ? std::vector<std::string>() : names.begin()->second;
}

static std::vector<std::string> instances_of(const std::string &arguments) {
    const std::string device = Case(arguments).options().common.device;
    tessera_target target;
    if (tessera_target_from_string(device.substr(device.find(':') + 1).c_str(), &target) != TESSERA_SUCCESS)
        throw std::invalid_argument(arguments);
    return instances_for(target, arguments);
}

void expect_valid_or_refused_by_any(const std::string &arguments) {
    const std::vector<std::string> instances = instances_of(arguments);
    uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : arguments) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    expect_valid_or_refused(arguments +
                            (instances.empty() ? "" : " -instance=" + instances[hash / 65536 % instances.size()]));
}

static std::vector<std::string> kinds_on(const std::string &kind, const std::vector<tessera_target> &targets,
                                         const std::vector<std::string> &precs, const std::vector<std::string> &more) {
    std::vector<std::string> all;
    for (const std::string &prec : precs)
        for (tessera_target target : targets)
            for (const std::string &arguments : more) {
                const std::string one = "-prec=" + prec + (arguments.empty() ? "" : " ") + arguments;
                if (!instances_for(target, one).empty())
                    all.push_back(one + " -device=" + kind + tessera_target_string(target));
            }
    return all;
}

std::vector<std::string> kinds(const std::vector<std::string> &precs) {
    return kinds_on("cpu:", usable_targets(), precs, {""});
}

std::vector<std::string> simulated_kinds(const std::vector<std::string> &precs, const std::vector<std::string> &more) {
    return kinds_on("sim:", that_open("sim:", targets_of(true)), precs, more);
}

std::vector<std::string> simulated_instances(const std::vector<std::string> &precs,
                                             const std::vector<std::string> &more) {
    std::vector<std::string> all;
    std::set<std::string> seen; // a kernel may serve several of them
    for (const std::string &kind : simulated_kinds(precs, more))
        for (const std::string &instance : instances_of(kind))
            if (seen.insert(instance).second) all.push_back(kind + " -instance=" + instance);
    return all;
}

bool test_all() {
    const char *value = std::getenv("TESSERA_TEST_ALL");
    return value && std::string(value) == "1";
}
