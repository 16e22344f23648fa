// SPDX-License-Identifier: MIT
#include "suites.h"

#include <algorithm>
#include <cstring>

#include "fill.h"
#include "tessera/kernel/rows.h"

namespace {

const Axis types{"-prec_i=fp32", "-prec_i=fp16", "-prec_i=bf16"};

// One line an axis, as far as they are short:
// clang-format off

// CK's, of its smoke scripts and tests, and some more. A GPU takes fewer rows, which are all alike.
const Axis shapes{"-m=99|9 -n=13", "-m=17|5 -n=16", "-m=1 -n=100", "-m=4 -n=128", "-m=80|6 -n=127", "-m=22|5 -n=255 -pad=1", "-m=7|5 -n=599",
                  "-m=19|5 -n=512", "-m=33|5 -n=313 -pad=687", "-m=11|3 -n=510", "-m=171|3 -n=676 -pad=142", "-m=91|3 -n=636",
                  "-m=12|3 -n=768 -pad=32", "-m=100|3 -n=766 -pad=46", "-m=31|3 -n=1024", "-m=64|3 -n=1000 -pad=4", "-m=8|3 -n=1501",
                  "-m=3 -n=1826", "-m=5|2 -n=2040", "-m=7|2 -n=2734", "-m=1 -n=3182", "-m=9|2 -n=4096", "-m=3|1 -n=8192", "-m=3|1 -n=9120",
                  "-m=1 -n=10547", "-m=3|1 -n=17134", "-m=0 -n=64", "-m=5 -n=1", "-m=257|65 -n=3 -pad=2", "-m=1 -n=33000"};

// Columns beside vectors, waves and tiles, and beside the limits of CK's tables.
const Axis edges{"-n=1", "-n=2", "-n=3", "-n=4", "-n=5", "-n=7", "-n=8", "-n=9", "-n=12", "-n=15", "-n=16", "-n=17", "-n=31", "-n=32", "-n=33",
                 "-n=63", "-n=64", "-n=65", "-n=127", "-n=128", "-n=129", "-n=255", "-n=256", "-n=257", "-n=504", "-n=508", "-n=511", "-n=512",
                 "-n=513", "-n=516", "-n=767", "-n=768", "-n=769", "-n=1023", "-n=1024", "-n=1025", "-n=1028", "-n=2044", "-n=2047", "-n=2048",
                 "-n=2049", "-n=2052", "-n=4095", "-n=4096", "-n=4097", "-n=8188", "-n=8191", "-n=8192", "-n=8193", "-n=8196"};

const Axis few_shapes{"-m=5 -n=64", "-m=9 -n=257", "-m=3 -n=1000", "-m=7|6 -n=520", "-m=6 -n=2052", "-m=6|2 -n=8200", "-m=13 -n=6"};

// clang-format on

bool fuses(const Operation &op) { return op.name == "Layernorm" || op.name == "Rmsnorm"; }

// What becomes of the result.
Axis outputs(const Operation &op, bool fp8 = true) {
    const Axis quantized = fp8 ? Axis{"-prec_o=int8", "-prec_o=fp8"} : Axis{"-prec_o=int8"};
    if (!fuses(op)) return quantized;
    Axis all{"-fquant=0"};
    for (const std::string &one : times({"-fquant=1", "-fquant=2"}, quantized)) all.push_back(one);
    if (op.name == "Rmsnorm")
        for (const std::string &one : times({"-fquant=1", "-fquant=2"}, quantized))
            all.push_back(one + " -save_unquant=1");
    return all;
}

// The axes of what is fused to it besides.
std::vector<Axis> fused(const Operation &op) {
    const Axis fadd{"-fadd=0", "-fadd=1", "-fadd=2"};
    if (op.name == "Layernorm") return {fadd, {"-xbias=0", "-xbias=1"}, {"-save_mv=0", "-save_mv=1"}};
    if (op.name == "Rmsnorm") return {fadd, {"-s=0", "-s=1"}, {"-save_rms=0", "-save_rms=1"}};
    if (op.name == "AddRmsnorm") return {{"-save_x=0", "-save_x=1"}};
    if (op.name == "MoeSmoothquant")
        return {{"-e=8|4 -k=3|2", "-e=1 -k=1", "-e=33|7 -k=5|3"}, {"-bad_ids=0", "-bad_ids=1"}};
    return {};
}

Axis epsilons(const Operation &op) {
    return op.statistics == ROWS_NONE ? Axis{""} : Axis{"-e=1e-5", "-e=0", "-e=1e-12", "-e=0.5"};
}

std::vector<Axis> with(std::vector<Axis> axes, const std::vector<Axis> &more) {
    axes.insert(axes.end(), more.begin(), more.end());
    return axes;
}

} // namespace

std::vector<Suite> suites(const Place &on, const Operation &op) {
    const Axis devices = ::devices(on, op), results = outputs(op);
    return {
        {"Shapes", {types, devices, shapes}, with({results, fills_of_numbers}, fused(op))},
        {"Edges", {types, devices, edges}, with({{"-m=3|2"}, results, fills_of_numbers}, fused(op))},
        {"Fused", with({types, devices, results}, fused(op)), {few_shapes, {"-pad=0", "-pad=3"}, fills_of_numbers}},
        {"Inputs", {types, devices, results, fills, epsilons(op)}, with({few_shapes}, fused(op))},
        {"Memory",
         {types,
          devices,
          few_shapes,
          {"-pad=0", "-pad=1", "-pad=4", "-pad=8"},
          {"-misalign=0", "-misalign=1", "-misalign=2", "-misalign=8"},
          {"-inplace=0", "-inplace=1", "-inplace=2"}},
         with({results}, fused(op))},
    };
}

Suite instances_suite(const Place &on, const Operation &op) {
    Axis all;
    const tessera_table *table = op.table();
    const std::vector<Device> usable = devices(on, table);
    const tessera_trait *prec_i =
        std::find_if(table->schema->traits, table->schema->traits + table->schema->trait_count,
                     [](const tessera_trait &trait) { return std::strcmp(trait.name, "prec_i") == 0; });
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *row = tessera_row(table, i);
        const auto device =
            std::find_if(usable.begin(), usable.end(), [=](const Device &one) { return one.target == row->target; });
        if (device == usable.end()) continue;
        const tessera_range &columns = row->served->ranges[0];
        // On sm_90a 8-bit results need columns that are multiples of 16 where other types need fewer.
        const bool vectors = row->target == TESSERA_TARGET_SM_90A && columns.multiple > 1;
        const uint32_t multiple = vectors ? 16 : columns.multiple;
        const uint32_t most = std::min<uint32_t>(columns.max, 9000) / multiple * multiple;
        for (uint32_t value = 0; value < prec_i->count; value++) {
            if (!(tessera_set_of(row->served, prec_i) >> value & 1)) continue;
            for (uint32_t n : {most, multiple, most / 2 / multiple * multiple})
                all.push_back(device->argument() + " -instance=" + row->name + " -prec_i=" + prec_i->words[value] +
                              " -n=" + std::to_string(n));
        }
    }
    return {"Instances", {all}, with({{"-m=5|3"}, outputs(op, false), fills_of_numbers}, fused(op))};
}

Suite landed_suite(const Place &on, const Operation &op) {
    Axis all;
    for (const Device &device : devices(on, op.table()))
        for (const std::string &type : types)
            for (const std::string &output : outputs(op, device.target != TESSERA_TARGET_GFX90A))
                all.push_back(device.argument() + " " + type + " " + output);
    return {"Landed", {all}, with({{"-n=1", "-n=8", "-n=77", "-n=8196", "-n=9001"}, {"-m=2"}}, fused(op))};
}

Suite refused_suite(const Place &on, const Operation &op) {
    Axis gfx90a;
    for (const Device &device : devices(on, op.table()))
        if (device.target == TESSERA_TARGET_GFX90A)
            gfx90a.push_back(device.argument() + (fuses(op) ? " -fquant=2" : ""));
    return {"Refused", {gfx90a, types, {"-m=2 -n=64 -prec_o=fp8"}}, {}};
}
