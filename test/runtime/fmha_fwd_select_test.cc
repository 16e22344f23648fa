// SPDX-License-Identifier: MIT
// Selection over handwritten tables with handwritten facts: any machine can ask what any other would choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "fmha_fwd_fixture.h"
extern "C" {
#include "library.h"
}

namespace {

uint32_t bit(tessera_target target) { return 1u << target; }

class Select : public ::testing::Test {
  protected:
    Select() {
        facts = {sizeof facts, bit(TESSERA_TARGET_PORTABLE) | bit(TESSERA_TARGET_X86_64_V3), 1, 1 << 15, 1 << 20, 0, 0};
        sizes(1024, 1024);
    }

    void sizes(int seqlen_q, int seqlen_k) {
        call.args.seqlen_q = call.args.max_seqlen_q = seqlen_q;
        call.args.seqlen_k = seqlen_k;
    }

    std::string chosen(const Table &table) {
        const tessera_fmha_fwd_instance *instance = nullptr;
        const tessera_status status =
            tessera_fmha_fwd_table_select(table.get(), &facts, &call.traits, &call.args, &instance);
        if (status != TESSERA_SUCCESS) return std::string(tessera_status_string(status)) + ": " + tessera_last_error();
        return tessera_fmha_fwd_instance_name(instance);
    }

    std::string explained(const Table &table, tessera_explain how = TESSERA_EXPLAIN_INSTANCES) {
        const auto explain = [&](char *text, size_t size) {
            return tessera_fmha_fwd_table_explain(table.get(), &facts, &call.traits, &call.args, how, text, size);
        };
        const size_t bytes = explain(nullptr, 0);
        std::string text(bytes, '?');
        EXPECT_EQ(explain(text.data(), bytes), bytes);
        EXPECT_EQ(text.back(), '\0');
        text.pop_back();
        EXPECT_EQ(text.find('\0'), std::string::npos);
        return text;
    }

    tessera_device_facts facts;
    Call call;
    Served all;
};

TEST_F(Select, FastestOfTheTargetsThatTheDeviceRuns) {
    const Table table({make_instance("portable", TESSERA_TARGET_PORTABLE, &all, 64, 64, 2),
                       make_instance("v3", TESSERA_TARGET_X86_64_V3, &all, 64, 64, 12),
                       make_instance("v4", TESSERA_TARGET_X86_64_V4, &all, 64, 64, 25)});
    EXPECT_EQ(chosen(table), "v3");
    facts.targets |= bit(TESSERA_TARGET_X86_64_V4);
    EXPECT_EQ(chosen(table), "v4");
    facts.targets = bit(TESSERA_TARGET_PORTABLE);
    EXPECT_EQ(chosen(table), "portable");
}

TEST_F(Select, RatesOfProcessorsWithFp16) {
    auto pairs = make_instance("pairs", TESSERA_TARGET_X86_64_V4_BF16, &all, 64, 64, 50);
    pairs.base.macs_per_cycle_fp16 = 14;
    const Table table({make_instance("floats", TESSERA_TARGET_X86_64_V4, &all, 64, 64, 25), pairs});
    facts.targets |= bit(TESSERA_TARGET_X86_64_V4) | bit(TESSERA_TARGET_X86_64_V4_BF16);
    EXPECT_EQ(chosen(table), "pairs");
    facts.targets |= bit(TESSERA_TARGET_X86_64_V4_FP16);
    EXPECT_EQ(chosen(table), "floats");
}

TEST_F(Select, EachTraitIsHeld) {
    const std::pair<const char *, void (*)(Served &)> narrowed[] = {
        {"data_type fp32 (serves fp16)", [](auto &s) { s.hold("data_type", 1 << TESSERA_FMHA_FP16); }},
        {"mask_type no (serves top_left, generic)", [](auto &s) { s.hold("mask_type", 0b1010); }},
        {"bias_type no (serves alibi)", [](auto &s) { s.hold("bias_type", 0b100); }},
        {"qscale_type no (serves pt)", [](auto &s) { s.hold("qscale_type", 0b10); }},
        {"is_group_mode 0 (serves 1)", [](auto &s) { s.hold("is_group_mode", 0b10); }},
        {"is_v_rowmajor 1 (serves 0)", [](auto &s) { s.hold("is_v_rowmajor", 0b01); }},
        {"has_logits_soft_cap 0 (serves 1)", [](auto &s) { s.hold("has_logits_soft_cap", 0b10); }},
        {"has_lse 0 (serves 1)", [](auto &s) { s.hold("has_lse", 0b10); }},
        {"has_dropout 0 (serves 1)", [](auto &s) { s.hold("has_dropout", 0b10); }},
        {"skip_min_seqlen_q 0 (serves 1)", [](auto &s) { s.hold("skip_min_seqlen_q", 0b10); }},
        {"has_sink 0 (serves 1)", [](auto &s) { s.hold("has_sink", 0b10); }},
        {"hdim_q 8 (serves 9 to 512)", [](auto &s) { s.hdim_q().min = 9; }},
        {"hdim_q 8 (serves 1 to 7)", [](auto &s) { s.hdim_q().max = 7; }},
        {"hdim_q 8 (serves 1 to 512, multiples of 16)", [](auto &s) { s.hdim_q().multiple = 16; }},
        {"hdim_v 16 (serves 17 to 512)", [](auto &s) { s.hdim_v().min = 17; }},
        {"hdim_v 16 (serves 1 to 15)", [](auto &s) { s.hdim_v().max = 15; }},
        {"hdim_v 16 (serves 1 to 512, multiples of 5)", [](auto &s) { s.hdim_v().multiple = 5; }},
    };
    for (const auto &[why, narrow] : narrowed) {
        Served served = all;
        narrow(served);
        const Table table({make_instance("narrow", TESSERA_TARGET_X86_64_V3, &served, 64, 64, 20),
                           make_instance("wide", TESSERA_TARGET_PORTABLE, &all, 64, 64, 1)});
        EXPECT_EQ(chosen(table), "wide") << why;
        EXPECT_NE(explained(table).find(std::string("- narrow  no: ") + why + "\n"), std::string::npos)
            << why << "\n"
            << explained(table);
    }
}

TEST_F(Select, AnyOfItsProducts) {
    Served products[2] = {all, all};
    products[0].hold("data_type", 1 << TESSERA_FMHA_FP16);
    products[1].hold("data_type", 1 << TESSERA_FMHA_FP32);
    products[1].hdim_q().max = 8;
    auto instance = make_instance("two", TESSERA_TARGET_PORTABLE, products, 64, 64);
    instance.base.served_count = 2;
    const Table table({instance});
    EXPECT_EQ(chosen(table), "two");
    call.traits.hdim_q = call.args.hdim_q = 9; // each trait by itself is served, together they are not
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is two, kept out by "
                             "data_type fp32 (serves fp16): change data_type to fp16");
    call.traits.data_type = TESSERA_FMHA_FP16;
    EXPECT_EQ(chosen(table), "two");
}

TEST_F(Select, NamesTheNearestInstance) {
    Served far = all, near = all;
    far.hold("data_type", 2);
    far.hold("has_lse", 2);
    far.hold("has_dropout", 2);
    near.hold("has_sink", 2);
    const Table table({make_instance("far", TESSERA_TARGET_PORTABLE, &far, 64, 64),
                       make_instance("elsewhere", TESSERA_TARGET_GFX942, &all, 64, 64),
                       make_instance("near", TESSERA_TARGET_PORTABLE, &near, 64, 64)});
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is near, kept out by "
                             "has_sink 0 (serves 1): change has_sink to 1; as it is it runs on gfx942");
    EXPECT_EQ("TESSERA_ERROR_NO_INSTANCE: " + explained(table),
              chosen(table) + "\n"
                              "- far        no: data_type fp32 (serves fp16); has_lse 0 (serves 1); has_dropout 0 "
                              "(serves 1)\n"
                              "- elsewhere  no: target gfx942 (not this device's)\n"
                              "- near       no: has_sink 0 (serves 1)\n");
}

TEST_F(Select, TheNearestIsOfTheDataType) {
    Served wrong_type = all, two_away = all;
    wrong_type.hold("data_type", 1 << TESSERA_FMHA_FP16);
    two_away.hold("is_v_rowmajor", 1);
    two_away.hdim_q().multiple = 16;
    const Table table({make_instance("wrong_type", TESSERA_TARGET_PORTABLE, &wrong_type, 64, 64),
                       make_instance("two_away", TESSERA_TARGET_PORTABLE, &two_away, 64, 64)});
    EXPECT_EQ(chosen(table),
              "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is two_away, kept out by "
              "is_v_rowmajor 1 (serves 0); hdim_q 8 (serves 1 to 512, multiples of 16): change "
              "is_v_rowmajor to 0, hdim_q to 16 (filled up with zeros)");
}

TEST_F(Select, TheNearestIsThatOfTheNearestHeadDims) {
    Served narrow = all, wide = all;
    narrow.hdim_q() = narrow.hdim_v() = {1, 64, 8};
    wide.hdim_q() = wide.hdim_v() = {1, 128, 8};
    const Table table({make_instance("narrow", TESSERA_TARGET_PORTABLE, &narrow, 64, 64),
                       make_instance("wide", TESSERA_TARGET_PORTABLE, &wide, 64, 64)});
    const auto nearest = [&](int hdim) {
        call.traits.hdim_q = call.args.hdim_q = hdim;
        const std::string text = chosen(table);
        return text.substr(text.find("nearest is ") + 11);
    };
    EXPECT_EQ(nearest(60),
              "narrow, kept out by hdim_q 60 (serves 1 to 64, multiples of 8): change hdim_q to 64 (filled "
              "up with zeros)");
    EXPECT_EQ(nearest(65), "wide, kept out by hdim_q 65 (serves 1 to 128, multiples of 8): change hdim_q to 72 (filled "
                           "up with zeros)");
    EXPECT_EQ(nearest(130), "wide, kept out by hdim_q 130 (serves 1 to 128, multiples of 8): change hdim_q to at most "
                            "128");
}

TEST_F(Select, AllValuesThatWouldDo) {
    Served fp16 = all, two = all, both = all;
    fp16.hold("data_type", 1 << TESSERA_FMHA_FP16);
    two.hold("data_type", 1 << TESSERA_FMHA_BF16 | 1 << TESSERA_FMHA_FP8);
    both.hold("data_type", 1 << TESSERA_FMHA_MXFP8); // which something else keeps out as well
    both.hold("has_sink", 2);
    const Table table({make_instance("fp16", TESSERA_TARGET_PORTABLE, &fp16, 64, 64),
                       make_instance("two", TESSERA_TARGET_PORTABLE, &two, 64, 64),
                       make_instance("both", TESSERA_TARGET_PORTABLE, &both, 64, 64)});
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is fp16, kept out by "
                             "data_type fp32 (serves fp16): change data_type to fp16, bf16 or fp8");
}

TEST_F(Select, CountsTheReasons) {
    Served fp16 = all, bf16 = all, even = all;
    fp16.hold("data_type", 1 << TESSERA_FMHA_FP16);
    bf16.hold("data_type", 1 << TESSERA_FMHA_BF16);
    bf16.hold("has_sink", 2);
    even.hold("has_sink", 2);
    even.hdim_q().multiple = 3;
    const Table table({make_instance("slow", TESSERA_TARGET_PORTABLE, &all, 64, 64, 1),
                       make_instance("fp16", TESSERA_TARGET_PORTABLE, &fp16, 64, 64),
                       make_instance("gpu", TESSERA_TARGET_GFX942, &fp16, 64, 64),
                       make_instance("amx", TESSERA_TARGET_X86_64_V4_AMX, &all, 64, 64),
                       make_instance("even", TESSERA_TARGET_PORTABLE, &even, 64, 64),
                       make_instance("bf16", TESSERA_TARGET_PORTABLE, &bf16, 64, 64),
                       make_instance("fast", TESSERA_TARGET_PORTABLE, &all, 64, 64, 9)});
    std::string text = explained(table, TESSERA_EXPLAIN_REASONS);
    const size_t candidates = text.find('-');
    EXPECT_EQ(text.substr(0, 13), "* fast  cost ") << text;
    EXPECT_EQ(text.substr(text.find('\n'), 14), "\n  slow  cost ") << text;
    EXPECT_EQ(text.substr(candidates), "- 1 kept out by has_sink 0 (it serves 1)\n"
                                       "- 2 kept out by data_type fp32 (they serve fp16, bf16)\n"
                                       "- 2 for other devices (gfx942, x86-64-v4-amx)\n");
}

TEST_F(Select, NamesTheFirstOfTheNearest) {
    Served near = all, far = all;
    near.hold("has_sink", 2);
    far.hold("has_lse", 2);
    far.hold("has_sink", 2);
    const Table table({make_instance("near", TESSERA_TARGET_PORTABLE, &near, 64, 64),
                       make_instance("as_near", TESSERA_TARGET_PORTABLE, &near, 64, 64),
                       make_instance("far", TESSERA_TARGET_PORTABLE, &far, 64, 64)});
    EXPECT_NE(chosen(table).find("nearest is near,"), std::string::npos) << chosen(table);
}

TEST_F(Select, OnlyForeignTargets) {
    const Table table({make_instance("gpu", TESSERA_TARGET_GFX942, &all, 64, 64)});
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call: this build has none for "
                             "portable, x86-64-v3");
}

TEST_F(Select, EmptyTable) {
    const Table table({});
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call: this build has none");
    EXPECT_EQ(explained(table), "no instance serves this call: this build has none\n");
}

TEST_F(Select, FewRowsTakeTheSmallTile) {
    const Table table({make_instance("large", TESSERA_TARGET_PORTABLE, &all, 256, 64, 12),
                       make_instance("small", TESSERA_TARGET_PORTABLE, &all, 16, 64, 10)});
    EXPECT_EQ(chosen(table), "large");
    facts.compute_units = 64; // 4 tiles of 256 for each of 4 heads keep 16 of them busy
    sizes(512, 512);
    EXPECT_EQ(chosen(table), "small");
}

TEST_F(Select, VectorsRoundRowsUp) {
    auto wide = make_instance("wide", TESSERA_TARGET_PORTABLE, &all, 64, 64, 30);
    wide.row_step = 64;
    const Table table({wide, make_instance("narrow", TESSERA_TARGET_PORTABLE, &all, 64, 64, 10)});
    EXPECT_EQ(chosen(table), "wide");
    sizes(1, 4096); // 2 folded rows: 64 of wide cost more than 16 of narrow
    EXPECT_EQ(chosen(table), "narrow");
}

TEST_F(Select, CostByHand) {
    const Table table({make_instance("one", TESSERA_TARGET_PORTABLE, &all, 64, 32, 10, 100)});
    const double block = 64 * 32 * (8 + 16) / 10.0 + 100;
    const auto expect_cost = [&](double cost) {
        char line[64];
        snprintf(line, sizeof line, "* one  cost %.4g cycles\n", cost);
        EXPECT_EQ(explained(table), line);
    };
    call.args.batch = 2;
    call.args.nhead_q = 6;
    call.args.nhead_k = 2;
    facts.compute_units = 3;
    sizes(100, 196); // 300 folded rows are 5 tiles and 19 vectors; 20 tiles in all make 7 rounds of 3
    expect_cost(4 * (19 * 16) * 200 / (64.0 * 32) * block / 20 * 7);
    call.args.batch = call.args.nhead_q = call.args.nhead_k = 1;
    sizes(1, 4096); // 8 parts of 512 keys make 3 rounds of 3
    expect_cost(16 * 4096 / (64.0 * 32) * block / 8 * 3);
}

// Quantised rows, and pages in pieces: what takes codes as they are has a rate of its own, others copy each key for
// each tile, a quarter of a cycle for a number.
TEST_F(Select, CostOfCodesByHand) {
    auto codes = make_instance("codes", TESSERA_TARGET_PORTABLE, &all, 16, 64, 10, 100);
    const auto numbers = make_instance("numbers", TESSERA_TARGET_PORTABLE, &all, 64, 32, 10, 100);
    codes.rates[TESSERA_KV_INT8] = 2;
    tessera_fmha_fwd_shape shape = {};
    shape.heads = 1, shape.rows = 40, shape.keys = 200, shape.hdims = 64;
    const auto expect = [&](double of_codes, double of_numbers) {
        EXPECT_DOUBLE_EQ(tessera_fmha_fwd_cpu_cost(&codes, &shape, 10, 1), of_codes);
        EXPECT_DOUBLE_EQ(tessera_fmha_fwd_cpu_cost(&numbers, &shape, 10, 1), of_numbers);
    };
    const double scores = 48 * 200, copied = 200 * 64 / 4.0; // of whole vectors; of a tile
    expect(scores / 1024 * (1024 * 6.4 + 100), scores / 2048 * (2048 * 6.4 + 100));
    shape.kv = TESSERA_KV_INT8;
    expect(scores / 1024 * (1024 * 3.2 + 100), scores / 2048 * (2048 * 6.4 + 100) + copied);
    shape.in_pieces = true;
    expect(scores / 1024 * (1024 * 6.4 + 100) + 3 * copied, scores / 2048 * (2048 * 6.4 + 100) + copied);
    shape.kv = TESSERA_KV_AUTO;
    expect(scores / 1024 * (1024 * 6.4 + 100) + 3 * copied, scores / 2048 * (2048 * 6.4 + 100) + copied);
}

// Numbers are loaded once for a tile, or for as many rows as are multiplied together: 4 or less, or 8. `rate` has the
// loads of whole tiles in it.
TEST_F(Select, CostOfLoadsByHand) {
    auto groups = make_instance("groups", TESSERA_TARGET_PORTABLE, &all, 16, 64, 10, 0);
    auto packed = make_instance("packed", TESSERA_TARGET_PORTABLE, &all, 32, 64, 10, 0);
    groups.row_step = 1, groups.heights = 0x11e;
    groups.rates[TESSERA_KV_INT8] = 2;
    groups.loads[TESSERA_KV_AUTO] = 0.125, groups.loads[TESSERA_KV_INT8] = 0.5;
    packed.loads[TESSERA_KV_AUTO] = 0.75;
    tessera_fmha_fwd_shape shape = {};
    shape.heads = 3, shape.keys = 200, shape.hdims = 64;
    const double numbers = 3 * 200 * 64, of_group = 0.1 - 2 * 0.125 / 16, of_packed = 0.1 - 0.75 / 32;
    const std::pair<int, int> loads_of_rows[] = {{1, 1}, {3, 1},  {4, 1},  {5, 2}, {7, 2},
                                                 {8, 1}, {15, 3}, {16, 2}, {21, 4}};
    for (const auto &[rows, loads] : loads_of_rows) {
        shape.rows = rows, shape.kv = TESSERA_KV_AUTO;
        const double tiles = rows > 16 ? 2 : 1, vectors = rows > 16 ? 32 : 16;
        EXPECT_FLOAT_EQ(tessera_fmha_fwd_cpu_cost(&groups, &shape, 10, 1), numbers * (loads * 0.125 + rows * of_group))
            << rows;
        EXPECT_FLOAT_EQ(tessera_fmha_fwd_cpu_cost(&packed, &shape, 10, 1), numbers * (0.75 + vectors * of_packed))
            << rows;
        shape.kv = TESSERA_KV_INT8;
        EXPECT_FLOAT_EQ(tessera_fmha_fwd_cpu_cost(&groups, &shape, 10, 1),
                        numbers * (loads * 0.5 + rows * of_group / 2))
            << rows;
        shape.in_pieces = true; // copied, and multiplied as numbers
        EXPECT_FLOAT_EQ(tessera_fmha_fwd_cpu_cost(&groups, &shape, 10, 1),
                        numbers * (tiles / 4 + loads * 0.125 + rows * of_group))
            << rows;
        shape.in_pieces = false;
    }
    groups.loads[TESSERA_KV_FP8_E4M3] = 1;
    shape.rows = 4, shape.kv = TESSERA_KV_AUTO, shape.data_type = TESSERA_FMHA_FP8; // rows of e4m3, in no cache
    EXPECT_FLOAT_EQ(tessera_fmha_fwd_cpu_cost(&groups, &shape, 10, 1), numbers * (1 + 4 * of_group));
}

TEST_F(Select, TileOverheadCounts) {
    const Table table({make_instance("idle", TESSERA_TARGET_PORTABLE, &all, 64, 64, 20, 1e6f),
                       make_instance("quick", TESSERA_TARGET_PORTABLE, &all, 64, 64, 10, 10)});
    EXPECT_EQ(chosen(table), "quick");
}

TEST_F(Select, OfEqualsTheMoreCapableTargetThenTheFirst) {
    const Table table({make_instance("first", TESSERA_TARGET_PORTABLE, &all, 64, 64),
                       make_instance("second", TESSERA_TARGET_PORTABLE, &all, 64, 64),
                       make_instance("third", TESSERA_TARGET_X86_64_V3, &all, 64, 64)});
    EXPECT_EQ(chosen(table), "third");
    const std::string text = explained(table);
    EXPECT_LT(text.find("third"), text.find("first"));
    EXPECT_LT(text.find("first"), text.find("second"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
    facts.targets = bit(TESSERA_TARGET_PORTABLE);
    EXPECT_EQ(chosen(table), "first");
}

TEST_F(Select, ExplainsBestFirst) {
    Served fp16 = all;
    fp16.hold("data_type", 1 << TESSERA_FMHA_FP16);
    const Table table({make_instance("slow", TESSERA_TARGET_PORTABLE, &all, 64, 64, 1),
                       make_instance("other", TESSERA_TARGET_PORTABLE, &fp16, 64, 64, 1),
                       make_instance("fast", TESSERA_TARGET_X86_64_V3, &all, 64, 64, 9)});
    std::istringstream lines(explained(table));
    std::string line;
    for (const char *start : {"* fast   cost ", "  slow   cost ", "- other  no: data_type fp32 (serves fp16)"}) {
        ASSERT_TRUE(std::getline(lines, line));
        EXPECT_EQ(line.rfind(start, 0), 0u) << line;
    }
    EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(Select, ExplainWritesNoMoreThanItsBuffer) {
    const Table table({make_instance("some_instance", TESSERA_TARGET_PORTABLE, &all, 64, 64)});
    const std::string whole = explained(table);
    for (size_t size = 1; size <= whole.size() + 1; size++) {
        std::string text(size + 8, '#');
        EXPECT_EQ(tessera_fmha_fwd_table_explain(table.get(), &facts, &call.traits, &call.args,
                                                 TESSERA_EXPLAIN_INSTANCES, text.data(), size),
                  whole.size() + 1);
        EXPECT_EQ(text.substr(0, size - 1), whole.substr(0, size - 1));
        EXPECT_EQ(text.substr(size - 1), std::string(1, '\0') + "########");
    }
}

TEST_F(Select, GroupModeKnowsTheLongest) {
    call.group();
    const Table table({make_instance("large", TESSERA_TARGET_PORTABLE, &all, 256, 64, 12),
                       make_instance("small", TESSERA_TARGET_PORTABLE, &all, 16, 64, 10)});
    call.args.max_seqlen_q = 4096;
    EXPECT_EQ(chosen(table), "large");
    facts.compute_units = 256;
    call.args.max_seqlen_q = 600;
    EXPECT_EQ(chosen(table), "small");
}

TEST_F(Select, ReadsNoPointers) {
    call.args.q_ptr = call.args.k_ptr = call.args.v_ptr = nullptr;
    call.args.o_ptr = nullptr;
    call.args.stride_q = -1;
    const Table table({make_instance("only", TESSERA_TARGET_PORTABLE, &all, 64, 64)});
    EXPECT_EQ(chosen(table), "only");
}

TEST_F(Select, RefusesWhatIsWrong) {
    const Table table({make_instance("only", TESSERA_TARGET_PORTABLE, &all, 64, 64)});
    const tessera_fmha_fwd_instance *instance = nullptr;
    EXPECT_EQ(tessera_fmha_fwd_table_select(nullptr, &facts, &call.traits, &call.args, &instance),
              TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_fmha_fwd_table_select(table.get(), nullptr, &call.traits, &call.args, &instance),
              TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "facts is NULL");
    EXPECT_EQ(tessera_fmha_fwd_table_select(table.get(), &facts, &call.traits, &call.args, nullptr),
              TESSERA_ERROR_INVALID_ARGUMENT);
    facts.compute_units = 0;
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_INVALID_ARGUMENT: compute_units is 0: 1 or more");
    facts.compute_units = 1;
    call.traits.hdim_q = 0;
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_INVALID_ARGUMENT: hdim_q is 0: 1 to 512");
    EXPECT_EQ(explained(table), "hdim_q is 0: 1 to 512\n");
    call.traits.hdim_q = 8;
    call.args.batch = 0;
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_INVALID_ARGUMENT: batch is 0: 1 or more");
    EXPECT_EQ(instance, nullptr);
}

TEST_F(Select, TheCallersInstanceIsTakenWhateverItCosts) {
    Served sink = all;
    sink.hold("has_sink", 2);
    const Table table({make_instance("fast", TESSERA_TARGET_PORTABLE, &all, 64, 64, 20),
                       make_instance("slow", TESSERA_TARGET_PORTABLE, &all, 64, 64, 1),
                       make_instance("sink", TESSERA_TARGET_PORTABLE, &sink, 64, 64),
                       make_instance("elsewhere", TESSERA_TARGET_X86_64_V4, &all, 64, 64)});
    EXPECT_EQ(chosen(table), "fast");
    call.args.instance = table.row(1);
    EXPECT_EQ(chosen(table), "slow");
    EXPECT_NE(explained(table).find("\n* slow "), std::string::npos) << explained(table);
    call.args.instance = table.row(2);
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: sink does not serve this call: has_sink 0 (serves 1)");
    call.args.instance = table.row(3);
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: elsewhere does not serve this call: target x86-64-v4 (not "
                             "this device's)");
}

TEST_F(Select, NamesOfNoInstance) {
    char text[128];
    EXPECT_EQ(tessera_fmha_fwd_instance_name(nullptr), nullptr);
    EXPECT_GT(tessera_fmha_fwd_ck_name(nullptr, &call.traits, &call.args, text, sizeof text), 1u);
    EXPECT_EQ(std::string(text).rfind("instance is NULL", 0), 0u);
    const auto instance = make_instance("name", TESSERA_TARGET_PORTABLE, &all, 64, 64);
    EXPECT_STREQ(tessera_fmha_fwd_instance_name(&instance), "name");
    call.traits.hdim_q = 0;
    tessera_fmha_fwd_ck_name(&instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "hdim_q is 0: 1 to 512");
}

TEST_F(Select, EmptySequencesHaveAnInstanceToo) {
    const Table table({make_instance("only", TESSERA_TARGET_PORTABLE, &all, 64, 64)});
    for (const auto &[q, k] : {std::pair{0, 0}, {0, 5}, {5, 0}}) {
        sizes(q, k);
        EXPECT_EQ(chosen(table), "only");
    }
}

// ---- GPUs

tessera_fmha_fwd_instance make_gpu_instance(const char *name, const tessera_served *served, uint16_t bm0,
                                            float busy = 1000, float alone = 1000, uint32_t workgroups = 2) {
    auto instance = make_instance(name, TESSERA_TARGET_GFX942, served, bm0, 32);
    instance.base.symbol = name;
    instance.base.threads = 256;
    instance.workgroups = workgroups;
    instance.alone_cycles = alone;
    instance.busy_cycles = busy;
    instance.start = 1;
    instance.half = 1;
    return instance;
}

class SelectOnGpu : public Select {
  protected:
    void mask(tessera_mask type) { call.traits.mask_type = call.args.mask_type = type; }

    SelectOnGpu() {
        facts = {sizeof facts, bit(TESSERA_TARGET_GFX942), 304, 0, 4 << 20, 0, 64 << 10};
        call.args.batch = 1;
        call.args.nhead_q = call.args.nhead_k = 16;
        call.traits.hdim_q = call.args.hdim_q = call.traits.hdim_v = call.args.hdim_v = 128;
        call.traits.data_type = TESSERA_FMHA_BF16;
        call.set_strides();
    }
};

TEST_F(SelectOnGpu, OnlyItsOwn) {
    const Table table(
        {make_instance("cpu", TESSERA_TARGET_PORTABLE, &all, 64, 64, 1e6f), make_gpu_instance("gpu", &all, 128)});
    EXPECT_EQ(chosen(table), "gpu");
    facts.targets = bit(TESSERA_TARGET_GFX950);
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call: this build has none for gfx950");
}

TEST_F(SelectOnGpu, SmallTilesWhereLargeOnesLeaveUnitsIdle) {
    const Table table({make_gpu_instance("large", &all, 256, 3600, 3600, 1), make_gpu_instance("small", &all, 64)});
    sizes(1024, 1024); // 64 workgroups or 256, of 304 units
    EXPECT_EQ(chosen(table), "small");
    sizes(1 << 16, 1024); // 4,096 or 16,384: the units are full
    EXPECT_EQ(chosen(table), "large");
    sizes(256 * 19 + 1, 1024); // 320 or 1,232: 2 rounds of 3,600 cycles or 5 of 1,000
    EXPECT_EQ(chosen(table), "small");
    sizes(256 * 38, 1024); // 608 or 2,432: 2 rounds of 3,600 or 8 of 1,000
    EXPECT_EQ(chosen(table), "large");
}

// An instance of whole tiles takes self-attention over these alone; another one takes other calls.
TEST_F(SelectOnGpu, WholeTilesAlone) {
    auto whole = make_gpu_instance("whole", &all, 64, 100, 100);
    whole.whole_tiles = 1;
    const Table table({whole, make_gpu_instance("any", &all, 128)});
    const auto expect_kept_out = [&](const std::string &why) {
        EXPECT_EQ(chosen(table), "any") << why;
        EXPECT_NE(explained(table).find("- whole  no: " + why + "\n"), std::string::npos) << explained(table);
    };
    sizes(128, 128); // four tiles of keys
    EXPECT_EQ(chosen(table), "whole");
    sizes(64, 64);
    expect_kept_out("seqlen_k 64 (at least 128, four tiles)");
    sizes(1000, 1000);
    expect_kept_out("seqlen_q 1000 (multiples of 64)");
    sizes(1024, 2048);
    expect_kept_out("seqlen_q 1024 other than seqlen_k 2048");
    sizes(1024, 1024);
    call.args.scale_s = -1;
    expect_kept_out("scale_s -1 (0 or more)");
    call.args.scale_s = 0;
    mask(TESSERA_MASK_BOTTOM_RIGHT);
    call.args.window_size_left = -1;
    call.args.window_size_right = 0;
    EXPECT_EQ(chosen(table), "whole");
    call.args.window_size_left = 100;
    expect_kept_out("a window (no mask or a causal one)");
}

// Those of this build are ranked as others are: whether they are taken is for their figures to say.
TEST_F(SelectOnGpu, WholeTilesWhereTheyAreBest) {
    facts.targets = bit(TESSERA_TARGET_GFX950);
    const tessera_table *const own = tessera_fmha_fwd_get_table();
    std::vector<tessera_fmha_fwd_instance> rows;
    for (uint32_t i = 0; i < own->row_count; i++)
        if (tessera_row(own, i)->target == TESSERA_TARGET_GFX950)
            rows.push_back(*reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(own, i)));
    int whole = 0;
    for (const tessera_fmha_fwd_instance &row : rows) {
        if (!row.whole_tiles) continue;
        whole++;
        const std::string name = row.base.name;
        SCOPED_TRACE(name);
        call.traits.hdim_q = call.args.hdim_q = call.traits.hdim_v = call.args.hdim_v = row.tile.bk0max;
        call.set_strides();
        const auto chosen_with = [&](float factor) { // of the cycles of its blocks
            std::vector<tessera_fmha_fwd_instance> changed = rows;
            for (tessera_fmha_fwd_instance &one : changed)
                if (one.base.name == name) one.alone_cycles *= factor, one.busy_cycles *= factor;
            return chosen(Table(changed));
        };
        for (const tessera_mask type : {TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT}) {
            mask(type);
            call.args.window_size_left = -1, call.args.window_size_right = 0;
            sizes(16384, 16384);
            EXPECT_EQ(chosen_with(0.5f), name);
            EXPECT_NE(chosen_with(2), name);
            sizes(16384 + 1, 16384 + 1);
            EXPECT_NE(chosen_with(0.5f), name);
        }
    }
    if (whole == 0) GTEST_SKIP() << "this build has none";
}

class GpuCost : public SelectOnGpu {
  protected:
    const double two =
        std::pow(std::pow(1500, 4) + std::pow(2000, 4), 0.25); // workgroups where there is room for three

    // A time, and that of memory beside it.
    static double both(double time, double memory) { return std::pow(std::pow(time, 4) + std::pow(memory, 4), 0.25); }

    void expect_cost(double cost, float half = 1, int merged = 0, int turns = 1, uint32_t workgroups = 3) {
        auto instance = make_gpu_instance("gpu", &all, 128, 1000, 1500, workgroups);
        instance.tile.rm0 = 128 / 32;
        instance.half = half;
        instance.merged = merged;
        instance.turns = turns;
        const Table table({instance});
        char line[64];
        snprintf(line, sizeof line, "* gpu  cost %.4g cycles\n", cost);
        EXPECT_EQ(explained(table), line);
    }
};

TEST_F(GpuCost, IsTheTimeOfTheUnitWithMostTiles) {
    const std::pair<int, double> cycles[] = {{1, 1500},        {19 * 128, 1500},  {19 * 128 + 1, two},
                                             {38 * 128, two},  {57 * 128, 3000},  {57 * 128 + 1, 4500},
                                             {76 * 128, 4500}, {114 * 128, 6000}, {190 * 128, 9000 + 1500}};
    for (const auto &[seqlen_q, rounds] : cycles) { // 19 * 16 tiles are one for each unit
        SCOPED_TRACE(seqlen_q);
        sizes(seqlen_q, 65); // 3 blocks of 32 keys, and one
        expect_cost(4 * rounds);
    }
    sizes(0, 0);
    expect_cost(1500);
}

TEST_F(GpuCost, OfWorkgroupsWithoutHalfOfTheirQueries) {
    sizes(64, 65);
    expect_cost(4 * 1500 * 0.5, 0.5f);
    sizes(65, 65);
    expect_cost(4 * 1500, 0.5f);
}

TEST_F(GpuCost, OfMemoryWhereNoCacheHoldsTheKeys) {
    const tessera_rates rates = tessera_target_rates[TESSERA_TARGET_GFX942];
    const double row = 2 * (128 + 128), read = 304 * 4096 * row / rates.device_bytes, time = (1 + 4096 / 32) * 1500;
    EXPECT_GT(304 * 4096 * row, rates.cache_bytes);
    EXPECT_LT(304 * 1024 * row, rates.cache_bytes);
    call.args.nhead_q = call.args.nhead_k = 304; // as many as units
    call.set_strides();
    sizes(128, 4096);
    expect_cost(both(time, read));
    expect_cost(both(time, read), 1, 0, 1, 1);
    sizes(64, 4096); // where there is room for one workgroup, half of its waves only load
    expect_cost(both(time / 2, read), 0.5f);
    expect_cost(time / 2 + read, 0.5f, 0, 1, 1);
    sizes(128, 1024);
    expect_cost((1 + 1024 / 32) * 1500);
    call.args.nhead_q = call.args.nhead_k = 152; // two tiles of a head run at once, and read keys together
    call.set_strides();
    sizes(256, 8192);
    expect_cost(both((1 + 8192 / 32) * 1500, read));
}

TEST_F(GpuCost, OfMemoryWhereHeadsAreMerged) {
    const tessera_rates rates = tessera_target_rates[TESSERA_TARGET_GFX942];
    const double row = 2 * (128 + 128), read = 304 * 4096 * row / rates.device_bytes;
    call.args.nhead_k = 304, call.args.nhead_q = 608, call.args.num_splits = 1;
    call.set_strides();
    sizes(64, 4096); // the queries of two heads are a tile
    expect_cost(both((1 + 4096 / 32) * 1500, read), 1, 1);
    sizes(64, 1024); // the last cache has room for these
    expect_cost((1 + 1024 / 32) * 1500, 1, 1);
    call.args.nhead_k = 152, call.args.nhead_q = 304;
    call.set_strides();
    sizes(128, 8192); // two tiles of a key head read keys together
    expect_cost(both((1 + 8192 / 32) * 1500, read), 1, 1);
}

TEST_F(GpuCost, OfAWindowWithTwoEdges) {
    mask(TESSERA_MASK_TOP_LEFT);
    call.args.window_size_left = 20;
    call.args.window_size_right = 12;
    sizes(19 * 128, 1 << 12);
    expect_cost((1 + 5) * 1500.0); // 160 keys
    sizes(19 * 128, 64);
    expect_cost((1 + 2) * 1500.0);
    mask(TESSERA_MASK_NONE);
    sizes(19 * 128, 1 << 12);
    expect_cost((1 + (1 << 7)) * 1500.0);
}

TEST_F(GpuCost, OfACausalMaskIsThatOfTheLongestOrOfAll) {
    mask(TESSERA_MASK_BOTTOM_RIGHT);
    call.args.window_size_left = -1;
    call.args.window_size_right = 0;
    sizes(19 * 128, 19 * 128); // a tile for each unit
    expect_cost((1 + 19 * 4) * 1500.0);
    // 10 for each, three at a time, of 5 to 761 blocks: in whole rounds as far as they are alike
    // and 57 at once read keys of one of the 16 heads.
    const double read =
        3040 * 382.0 * 32 * (2 * (128 + 128)) / tessera_target_rates[TESSERA_TARGET_GFX942].device_bytes;
    const double ten = both(383 * (5 / 761.0 * 10500 + 756 / 761.0 * 10 / 3 * 3000), read / 57);
    sizes(190 * 128, 190 * 128);
    expect_cost(ten);
    sizes(38 * 128, 38 * 128); // two for each, one of which has the unit for itself at last
    expect_cost((1 + 38 * 4) * (1500 + 3 * two) / 4.0);
    sizes(128, 64 * 32); // few queries see nearly all keys
    expect_cost((1 + 64) * 1500.0);
    call.args.window_size_left = 0;
    call.args.window_size_right = -1;
    sizes(190 * 128, 190 * 128);
    expect_cost(ten);
}

TEST_F(GpuCost, OfSequencesThatTakeTurnsUnderACausalMask) {
    mask(TESSERA_MASK_BOTTOM_RIGHT);
    call.args.window_size_left = -1;
    call.args.window_size_right = 0;
    call.args.batch = 3; // all sequences fill the units together
    call.set_strides();
    sizes(19 * 128, 19 * 128);
    expect_cost((1 + 19 * 4) * (1500 + 3 * 3000) / 4.0);
}

TEST_F(GpuCost, OfHeadsThatTakeTurns) {
    const tessera_rates rates = tessera_target_rates[TESSERA_TARGET_GFX942];
    mask(TESSERA_MASK_BOTTOM_RIGHT);
    call.args.window_size_left = -1;
    call.args.window_size_right = 0;
    call.args.nhead_q = call.args.nhead_k = 912; // as many as places: all together would read keys alone
    call.set_strides();
    sizes(4 * 128, 4 * 128); // 5 to 17 blocks, 12 workgroups for a unit
    const double bytes = 912 * 4 * 10 * 32 * (2 * (128 + 128)), quarter = bytes / rates.device_bytes / 4;
    const double time = 11 * (5 / 17.0 * 12000 + 12 / 17.0 * 12000);
    const double tail = 12 * 3000 * (0.85 - 0.7 * 16 * 4 / 912); // 16 together; 912 is no multiple of 32
    expect_cost(both(time + tail, quarter));
    expect_cost(both(22 * 6000, quarter), 1, 0, 2); // pairs of blocks are as long
}

TEST_F(GpuCost, OfHeadsThatFillAllPlacesOnce) {
    const tessera_rates rates = tessera_target_rates[TESSERA_TARGET_GFX942];
    mask(TESSERA_MASK_BOTTOM_RIGHT);
    call.args.window_size_left = -1;
    call.args.window_size_right = 0;
    call.args.nhead_q = call.args.nhead_k = 16;
    sizes(57 * 128, 57 * 128);
    const double bytes = 16 * 57 * 116 * 32 * (2 * (128 + 128)), sequence = bytes / rates.device_bytes; // read alone
    call.args.batch = 4; // 16 heads fill 912 places
    call.set_strides();
    expect_cost(both(117 * 12000, 4 * sequence / 57));
    call.args.batch = 5; // all together, for each of which there are 11.4 places: else half of the units would wait
    call.set_strides();
    expect_cost(both(117 * 15000, 5 * sequence / 11.4));
}

TEST_F(SelectOnGpu, AlignmentIsOfTheRow) {
    auto aligned = make_gpu_instance("aligned", &all, 128);
    aligned.base.alignment = 16;
    const Table table({aligned, make_gpu_instance("any", &all, 128, 8000, 8000)});
    const tessera_fmha_fwd_args args = call.args;
    EXPECT_EQ(chosen(table), "aligned");
    const struct {
        const char *name;
        int64_t *stride;
    } strides[] = {{"stride_q", &call.args.stride_q},
                   {"stride_k", &call.args.stride_k},
                   {"stride_v", &call.args.stride_v},
                   {"stride_o", &call.args.stride_o},
                   {"nhead_stride_q", &call.args.nhead_stride_q},
                   {"nhead_stride_o", &call.args.nhead_stride_o}};
    for (const auto &[name, stride] : strides) {
        *stride += 4;
        EXPECT_EQ(chosen(table), "any") << name;
        const std::string why = std::string("no: ") + name + " " + std::to_string(*stride) + " (serves multiples of 8)";
        EXPECT_NE(explained(table).find(why), std::string::npos) << explained(table);
        *stride += 4;
        EXPECT_EQ(chosen(table), "aligned") << name;
        call.args = args;
    }
    call.args.q_ptr = static_cast<const char *>(call.args.q_ptr) + 8;
    EXPECT_EQ(chosen(table), "any");
    EXPECT_NE(explained(table).find("q_ptr 0x"), std::string::npos) << explained(table);
    EXPECT_NE(explained(table).find("(serves multiples of 16)"), std::string::npos) << explained(table);
}

TEST_F(SelectOnGpu, AlignmentOfWhatIsNeverStepped) {
    auto aligned = make_gpu_instance("aligned", &all, 128);
    aligned.base.alignment = 16;
    const Table table({aligned});
    call.args.batch_stride_q += 4; // one sequence
    EXPECT_EQ(chosen(table), "aligned");
    call.args.batch = 2;
    EXPECT_NE(chosen(table), "aligned");
    call.args.batch = call.args.seqlen_q = 1;
    call.args.stride_q += 4; // one row
    EXPECT_EQ(chosen(table), "aligned");
    call.args.q_ptr = call.args.k_ptr = call.args.v_ptr = call.args.o_ptr = nullptr; // as where only sizes are known
    EXPECT_EQ(chosen(table), "aligned");
}

TEST_F(SelectOnGpu, SaysThatTheCpuServes) {
    Served row_major = all;
    row_major.hold("is_v_rowmajor", 2);
    auto other = make_gpu_instance("other", &all, 128);
    other.base.target = TESSERA_TARGET_GFX950;
    const Table table({make_instance("portable", TESSERA_TARGET_PORTABLE, &all, 64, 64),
                       make_instance("v3", TESSERA_TARGET_X86_64_V3, &all, 64, 64), other,
                       make_gpu_instance("gpu", &row_major, 128)});
    call.traits.is_v_rowmajor = 0;
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is gpu, kept out by "
                             "is_v_rowmajor 0 (serves 1): change is_v_rowmajor to 1; as it is it runs on cpu, gfx950");
}

TEST_F(SelectOnGpu, NoInstanceNamesTheAlignment) {
    auto aligned = make_gpu_instance("aligned", &all, 128);
    aligned.base.alignment = 16;
    const Table table({aligned});
    call.args.stride_k = 129;
    EXPECT_EQ(chosen(table), "TESSERA_ERROR_NO_INSTANCE: no instance serves this call; nearest is aligned, kept out by "
                             "stride_k 129 (serves multiples of 8): change stride_k to a multiple of 8");
}

TEST_F(Select, EveryHdimFindsItsSlice) {
    Served small = all;
    small.hdim_q().max = small.hdim_v().max = 64;
    const Table table({make_instance("small", TESSERA_TARGET_PORTABLE, &small, 64, 64, 100),
                       make_instance("any", TESSERA_TARGET_PORTABLE, &all, 64, 64, 10)});
    for (int hdim = 1; hdim <= 512; hdim++) {
        call.traits.hdim_q = call.args.hdim_q = hdim;
        call.traits.hdim_v = call.args.hdim_v = 1 + hdim / 2;
        EXPECT_EQ(chosen(table), hdim <= 64 ? "small" : "any") << hdim;
    }
}

} // namespace
