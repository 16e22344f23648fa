// SPDX-License-Identifier: MIT
#include "case.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "tessera/kernel/fmha_fwd.h"

static example_argument beyond(const char *name, size_t offset) { return {name, EXAMPLE_INTEGER, offset, 0, "0", ""}; }

const Tested fmha_fwd{&fmha_fwd_program,
                      {beyond("min_seqlen_q", offsetof(fmha_fwd_options, min_seqlen_q)),
                       beyond("cu_seqlen", offsetof(fmha_fwd_options, cu_seqlen)),
                       beyond("misalign", offsetof(fmha_fwd_options, misalign)),
                       beyond("block_q", offsetof(fmha_fwd_options, block_scale_size_q)),
                       beyond("block_kv", offsetof(fmha_fwd_options, block_scale_size_kv)),
                       beyond("odd_descales", offsetof(fmha_fwd_options, odd_descales)),
                       beyond("pad_columns", offsetof(fmha_fwd_options, pad_columns))}};

const fmha_fwd_options &options_of(const Case &one) { return *static_cast<const fmha_fwd_options *>(one.values()); }

std::string command(const std::string &arguments) { return command(fmha_fwd, arguments); }

void expect_valid(const std::string &arguments) { expect_valid(fmha_fwd, arguments); }

// The instances of a target that serve the data type, head dims, order of v and scales of the arguments and pad the
// head dims least.
static std::vector<std::string> instances_for(tessera_target target, const std::string &arguments) {
    const Case one(fmha_fwd, arguments);
    const fmha_fwd_options &o = options_of(one);
    const int32_t hdim_v = o.d_v == -1 ? o.d : o.d_v;
    tessera_fmha_dtype dtype;
    tessera_qscale qscale = TESSERA_QSCALE_NONE;
    if (tessera_fmha_dtype_from_string(o.prec, &dtype) != TESSERA_SUCCESS) throw std::invalid_argument(arguments);
    if (std::string(o.qscale) != "n" && tessera_qscale_from_string(o.qscale, &qscale) != TESSERA_SUCCESS)
        throw std::invalid_argument(arguments);
    const std::map<std::string, int> asked{{"data_type", dtype},
                                           {"is_v_rowmajor", o.vlayout[0] == 'r'},
                                           {"qscale_type", qscale},
                                           {"has_dropout", o.p_drop > 0}};
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
        const auto *instance = reinterpret_cast<const tessera_fmha_fwd_instance *>(row);
        if (instance->whole_tiles || instance->kv != TESSERA_KV_AUTO ||
            !(instance->keys_in & TESSERA_KEYS_IN_ROWS || instance->run))
            continue; // the suite WholeTiles has them, and test/kv_cache those of quantised caches and NVIDIA's
        if (row->target == target && std::any_of(row->served, row->served + row->served_count, holds))
            names[row->served->ranges[0].max + row->served->ranges[1].max].push_back(row->name);
    }
    return names.empty() ? std::vector<std::string>() : names.begin()->second;
}

static std::vector<std::string> instances_of(const std::string &arguments) {
    return instances_for(target_of(Case(fmha_fwd, arguments)), arguments);
}

static void expect_valid_or_refused_by_any(const std::string &arguments) {
    const std::vector<std::string> instances = instances_of(arguments);
    uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : arguments) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    expect_valid_or_refused(
        fmha_fwd, arguments + (instances.empty() ? "" : " -instance=" + instances[hash / 65536 % instances.size()]));
}

const Place cpus{false, "", [](const std::string &arguments) { expect_valid(fmha_fwd, arguments); }},
    gpus{true, "Gpu", expect_valid_or_refused_by_any};

// Targets of CPUs that have instances for decoding alone, without dropout, are left out: test/kv_cache has those.
Axis kinds(const Place &on, const Axis &precs, const Axis &more) {
    Axis all;
    for (const std::string &prec : precs)
        for (const Device &device : devices(on, tessera_fmha_fwd_get_table()))
            for (const std::string &arguments : more) {
                const std::string one = "-prec=" + prec + (arguments.empty() ? "" : " ") + arguments;
                if (!instances_for(device.target, one + (on.gpu ? "" : " -p_drop=0.5")).empty())
                    all.push_back(one + " " + device.argument());
            }
    return all;
}

Axis instances(const Place &on, const Axis &precs, const Axis &more) {
    Axis all;
    std::set<std::string> seen; // a kernel may serve several of them
    for (const std::string &kind : kinds(on, precs, more))
        for (const std::string &instance : instances_of(kind))
            if (seen.insert(instance).second) all.push_back(kind + " -instance=" + instance);
    return all;
}
