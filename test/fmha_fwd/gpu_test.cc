// SPDX-License-Identifier: MIT
// The suites on GPUs, which are simulated unless TESSERA_TEST_DEVICE names a real one, with the data types, head dims,
// orders of v and scales that the linked table serves on each. A problem without an instance must be refused with a
// reason; the suites Landed list problems that must be served.
#include <algorithm>
#include <cstdio>

#include "problem.h"
#include "suites.h"
#include "tessera/kernel/fmha_fwd.h"

namespace {

// ---- every instance, whatever the ranking says

Suite instances_suite(const Place &on) {
    return {"Instances",
            {instances(on, precs, times(vlayouts, kernel_hdims)),
             {"-b=1 -h=2 -h_k=1 -s=150 -s_k=200 -mask=b", "-b=2 -h=1 -s=33 -s_k=129 -bias=e",
              "-b=1 -h=1 -s=20 -s_k=400 -scale_s=8"}}, // maxima leap from tile to tile
            {{"-lse=1 -init=nf"}}};
}

// ---- problems that must be served, whatever the covers are: every trait with every data type of the build

struct Landed {
    tessera_target target;
    Axis precs, wide, columns; // wide: those of head dims over 128; columns: of column-major v, for batches
};
const Axis of_gfx90a{"fp32", "fp16", "bf16"};
const Axis of_gfx942{"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "fp8 -qscale=pt", "fp8bf16 -qscale=bs"};
const Axis of_sm_90a{"fp16", "bf16", "fp8", "fp8bf16", "fp8 -qscale=pt", "fp8bf16 -qscale=bs"};
const Landed landed[] = {
    {TESSERA_TARGET_GFX90A, of_gfx90a, of_gfx90a, {}},
    {TESSERA_TARGET_GFX942, of_gfx942, of_gfx942, {}},
    {TESSERA_TARGET_GFX950, precs, precs, {}},
    {TESSERA_TARGET_SM_90A, of_sm_90a, {"fp16", "bf16"}, of_sm_90a},
};
// clang-format off
const Axis of_batches{"-d=32", "-d=64", "-d=96 -d_v=128", "-mask=t", "-mask=b:9,9", "-bias=e", "-bias=a", "-logits_soft_cap=5",
                      "-lse=1", "-p_drop=0.2", "-init_sink=1", "-iperm=0 -operm=0"},
    of_groups{"-mode=1", "-mode=1 -min_seqlen_q=64"};
// clang-format on

// The suite of some data types, on targets that this build has instances for.
Suite landed_suite(const Place &on, const char *name, Axis Landed::*types, const std::string &all, const Axis &traits) {
    Axis kinds;
    for (const Landed &one : landed)
        for (const std::string &prec : one.*types)
            for (const Device &device : devices(on, tessera_fmha_fwd_get_table()))
                if (device.target == one.target) kinds.push_back(device.argument() + " -prec=" + prec);
    return {name, {kinds, {"-b=1 -h=2 -s=64 -d=128" + all}, traits}, {}};
}

// ---- few queries, on targets with instances that merge the heads of a key head and cut keys into parts, beside those
// for caches

// Of a type, which names of instances say before the target's.
bool merges(tessera_target target, const std::string &type) {
    const tessera_table *table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++) {
        const auto *row = reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
        const std::string name(row->base.name);
        const bool is_of_type = (name.substr(0, name.find("__")) + "_").find("_" + type + "_") != std::string::npos;
        if (row->base.target == target && is_of_type && row->merged && row->keys_in == TESSERA_KEYS_IN_ROWS)
            return true;
    }
    return false;
}

Axis kinds_that_merge(const Place &on, const Axis &types, const Axis &more) {
    Axis all;
    for (const std::string &type : types)
        for (const std::string &kind : kinds(on, {type}, times({"-vlayout=r"}, more)))
            if (merges(target_of(Case(fmha_fwd, kind)), type.substr(0, type.find(' ')))) all.push_back(kind);
    return all;
}

// clang-format off
Suite decode_suite(const std::string &name, const Axis &kinds, const Axis &changes) {
    const Axis splits{"-num_splits=0", "-num_splits=2", "-num_splits=3", "-num_splits=7", "-num_splits=128"};
    return {name,
            {kinds, splits, {"-mode=0", "-mode=1"},
             {"-b=2 -h=2", "-b=3 -h=4 -h_k=2", "-b=1 -h=8 -h_k=2", "-b=2 -h=7 -h_k=1", "-b=1 -h=8 -h_k=1", "-b=1 -h=16 -h_k=1", "-b=1 -h=80 -h_k=1"},
             {"-s=1", "-s=2", "-s=3", "-s=4", "-s=5", "-s=8", "-s=33"},
             {"-s_k=0", "-s_k=1", "-s_k=127", "-s_k=128", "-s_k=129", "-s_k=1000", "-s_k=8192"},
             {"-mask=0", "-mask=b", "-mask=t", "-mask=b:300,0", "-mask=b:130,2,5", "-mask=g:20,9"},
             changes, {"-init_sink=0", "-init_sink=1"}, {"-lse=1", "-lse=0"}},
            {{"-init=nf", "-init=uf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}}};
}

// In fp8 of head dim 256 they leave what changes scores to others.
std::vector<Suite> decode_suites(const Place &on) {
    const Axis few{"-d=64", "-d=128", "-d=192 -d_v=128", "-d=112 -d_v=48"}, fp8{"fp8 -qscale=pt", "fp8bf16 -qscale=pt"};
    Axis all = kinds_that_merge(on, {"fp16", "bf16"}, few);
    for (const Axis &more : {kinds_that_merge(on, {"fp16", "bf16"}, {"-d=256"}), kinds_that_merge(on, fp8, few)})
        all.insert(all.end(), more.begin(), more.end());
    return {decode_suite("Decode", all, {"-bias=n", "-bias=e", "-bias=a", "-logits_soft_cap=5"}),
            decode_suite("DecodePlain", kinds_that_merge(on, fp8, {"-d=256"}), {"-bias=n"})};
}

// Instances that are so, each with its data type, which is a word of its name, and the greatest head dim.
Axis instances_that(const Place &on, bool (*are)(const tessera_fmha_fwd_instance &)) {
    const tessera_table *table = tessera_fmha_fwd_get_table();
    Axis all;
    for (const Device &device : devices(on, table))
        for (uint32_t i = 0; i < table->row_count; i++) {
            const auto &row = *reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
            const std::string name = row.base.name, hdim = " -d=" + std::to_string(row.base.served->ranges[0].max);
            if (row.base.target != device.target || !are(row)) continue;
            for (const std::string prec : {"fp16", "bf16", "fp8", "fp8bf16"})
                if (name.find("_" + prec + "_") != name.npos)
                    all.push_back(device.argument() + " -prec=" + prec + hdim + " -instance=" + name);
        }
    return all;
}

// Instances that take self-attention over whole tiles alone.
Suite whole_tiles_suite(const Place &on) {
    const Axis all = instances_that(on, [](const tessera_fmha_fwd_instance &row) { return row.whole_tiles != 0; });
    return {"WholeTiles",
            {all, {"-s=256", "-s=512", "-s=768", "-s=1280"}, {"-h=2", "-h=4 -h_k=2", "-h=3 -h_k=1"},
             {"-mask=0", "-mask=t", "-mask=b"}},
            {{"-b=1", "-b=2"}, {"-lse=1 -init=nf", "-init=uf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}, {"-scale_s=0", "-scale_s=3", "-scale_s=1e6"}, {"-init_sink=0", "-init_sink=1"}}};
}

// Instances whose workgroups may take blocks in turns: with 256 units costs say of these calls that they do.
Suite turns_suite(const Place &on) {
    const Axis all = instances_that(on, [](const tessera_fmha_fwd_instance &row) { return row.turns > 1; });
    return {"Turns",
            {all, {"-b=1 -h=33 -s=900", "-b=2 -h=20 -h_k=10 -s=890", "-mode=1 -b=3 -h=13 -s=700,890,1 -s_k=890,500,90"}, {"-mask=t", "-mask=b"}},
            {{"-lse=1 -init=nf", "-init=uf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}, {"-scale_s=0", "-scale_s=3", "-scale_s=1e6"}, {"-init_sink=0", "-init_sink=1"}}};
}

// Calls whose last sequences, or key heads of the only one, are left to a second launch of another instance.
Suite rest_suite(const Place &on) {
    Axis of_gfx90a;
    for (const Device &device : devices(on, tessera_fmha_fwd_get_table()))
        if (device.target == TESSERA_TARGET_GFX90A) of_gfx90a.push_back(device.argument() + " -prec=bf16 -d=64");
    return {"Rest",
            {of_gfx90a, {"-b=11 -h=80 -h_k=10 -s=32 -s_k=512", "-b=1 -h=880 -h_k=110 -s=32 -s_k=512"}},
            {{"-lse=1 -iperm=1 -operm=1 -init=nf", "-iperm=0 -operm=0 -init=uf"}}};
}

// Calls whose v a launch of its own transposes, as many heads read it, by the instances that have one.
Suite many_readers_suite(const Place &on) {
    const Axis all = instances_that(on, [](const tessera_fmha_fwd_instance &row) { return row.v_first > 0; });
    return {"ManyReaders",
            {all, {"-b=2 -h=80 -h_k=2 -s=200 -s_k=97", "-b=1 -h=96 -h_k=1 -s=193 -s_k=300", "-b=1 -h=80 -h_k=1 -s=190 -s_k=1", "-b=3 -h=40 -h_k=1 -s=64 -s_k=96"},
             {"-mask=0", "-mask=t", "-mask=b"}},
            {{"-qscale=pt -lse=1 -init=nf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}}};
}

// Calls whose workgroups share tiles in pairs, if there are at most 132 of them: by whole tasks or strips, of one head
// or of two, by v that is transposed first, where keys or queries are no whole tiles. All have as few queries as do.
Axis instances_with_pairs(const Place &on) {
    return instances_that(on, [](const tessera_fmha_fwd_instance &row) { return row.paired > 0; });
}
Suite pairs_suite(const Place &on) {
    return {"Pairs",
            {instances_with_pairs(on), {"-b=2 -h=80 -h_k=2 -s=50 -s_k=4000", "-b=4 -h=44 -h_k=22 -s=20 -s_k=3073", "-b=1 -h=80 -h_k=2 -s=100 -s_k=3073",
              "-b=2 -h=33 -h_k=33 -s=200 -s_k=3200"}},
            {{"-lse=1 -init=nf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}, {"-init_sink=0", "-init_sink=1"}}};
}

void expect_two_launches_valid(const std::string &arguments) {
    Problem p(arguments);
    std::string text(20000, '\0');
    tessera_fmha_fwd_explain(tessera_device_get_facts(p.device), p.traits, p.args, TESSERA_EXPLAIN_INSTANCES,
                             text.data(), text.size());
    EXPECT_NE(text.find("in a second launch"), std::string::npos) << text.c_str();
    expect_valid(arguments);
}

// Lengths that only the device knows.
Suite ragged_suite(const Place &on) {
    return {"Ragged",
            {kinds_that_merge(on, {"bf16"}, {"-d=64", "-d=128"}), {"-num_splits=0", "-num_splits=4", "-num_splits=128"},
             {"-mode=1 -b=5 -s=1,1,1,1,1 -s_k=8192,0,1,129,3000", "-mode=1 -b=3 -s=4,0,7 -s_k=1000,50,2000", "-mode=1 -b=2 -s=3,1 -s_k=700,3000 -s_kpad=800,4096",
              "-b=3 -s=2 -s_k=3000 -kv_eff_lens=3000,1,0", "-b=3 -s=4 -s_k=2000 -q_eff_lens=4,0,1 -kv_eff_lens=100,2000,1999", "-mode=1 -min_seqlen_q=2 -b=3 -s=1,3,2 -s_k=500,900,70"},
             {"-h=8 -h_k=2", "-h=14 -h_k=2", "-h=3"}, {"-mask=0", "-mask=b"}, {"-init_sink=0", "-init_sink=1"}, {"-bias=n", "-bias=a"}},
            {{"-lse=1 -init=nf"}}};
}
// clang-format on

// ---- problems as large as real ones, which only a real GPU runs: of some rows the reference says what is right

Suite large_suite(const Place &on) {
    return {"Large",
            {kinds(on, {"fp16", "bf16", "fp8bf16 -qscale=pt"}, {"-d=64", "-d=128", "-d=192 -d_v=128", "-d=256"}),
             {"-b=4 -h=16 -s=4096", "-b=1 -h=8 -h_k=2 -s=8192 -mask=t", "-b=16 -h=32 -h_k=8 -s=1 -s_k=8192",
              "-mode=1 -b=6 -h=16 -s=100,7000,1,3000,2048,515 -mask=b", "-b=2 -h=8 -s=3328 -mask=b:1000,0 -lse=1"}},
            {{"-init=nf"}}};
}

// A task of each head has no neighbour, and behind all there are strips.
Suite large_pairs_suite(const Place &on) {
    return {"PairsLarge",
            {instances_with_pairs(on), {"-b=1 -h=44 -s=386 -s_k=4000"}},
            {{"-lse=1 -init=nf"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}, {"-init_sink=0", "-init_sink=1"}}};
}

void expect_sample_valid(const std::string &arguments) {
    SCOPED_TRACE(command(arguments));
    example_result result;
    run_case(fmha_fwd.program, Case(fmha_fwd, arguments + " -v=1").values(), &result);
    EXPECT_EQ(result.verification, EXAMPLE_VALID) << result.message;
    EXPECT_GE(result.rows_checked, std::min<int64_t>(result.rows, 512));
}

// ---- refused with a reason: there is no instance, and nothing runs

const Axis refusals{"-d=100", "-d=264", "-d=64 -d_v=260"};

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    const Axis usual = kinds(gpus, {"bf16"});
    if (usual.empty()) {
        std::printf("this build has no instances for the GPU, or no simulator\n");
        return 77;
    }
    Place valid = gpus, in_two = gpus, refused = gpus, large = gpus;
    valid.run = cpus.run;
    in_two.run = expect_two_launches_valid;
    refused.run = [](const std::string &arguments) { expect_refused(fmha_fwd, arguments); };
    for (const Suite &suite : suites(gpus)) register_suite(gpus, suite);
    register_suite(gpus, instances_suite(gpus));
    register_suite(valid, landed_suite(gpus, "Landed", &Landed::precs, "", of_batches));
    register_suite(valid, landed_suite(gpus, "LandedGroups", &Landed::precs, "", of_groups));
    register_suite(valid, landed_suite(gpus, "LandedWide", &Landed::wide, "", {"-d=192 -d_v=128", "-d=256"}));
    register_suite(valid,
                   landed_suite(gpus, "LandedColumns", &Landed::columns, " -vlayout=c -pad_columns=1", of_batches));
    for (const Suite &suite : decode_suites(gpus)) register_suite(valid, suite);
    register_suite(valid, ragged_suite(gpus));
    register_suite(valid, whole_tiles_suite(gpus));
    register_suite(valid, turns_suite(gpus));
    register_suite(in_two, rest_suite(gpus));
    register_suite(valid, many_readers_suite(gpus));
    if (real_gpu()) register_suite(valid, pairs_suite(gpus));
    register_suite(refused, {"Refused", {usual, {"-b=1 -h=2 -s=64 -d=64"}, refusals}, {}});
    large.run = expect_sample_valid;
    if (real_gpu()) register_suite(large, large_suite(large));
    if (real_gpu()) register_suite(large, large_pairs_suite(large));
    const int status = RUN_ALL_TESTS();
    print_refused();
    return status;
}
