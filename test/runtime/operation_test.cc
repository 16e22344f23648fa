// SPDX-License-Identifier: MIT
// Selection for a made-up operation: it takes no more than a schema, rows and a cost.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

extern "C" {
#include "library.h"
#include "op/select.h"
}

namespace {

struct Traits {
    size_t struct_size;
    int32_t n;
    tessera_type input;
    int32_t fused_add, saves, shade;
};

const char *const types[] = {"fp16", "bf16"}, *const adds[] = {"no", "pre", "pre_store"}, *const flags[] = {"0", "1"};
const char *const add_tokens[] = {"nadd", "add", "sadd"}, *const save_tokens[] = {"nsave", "save"};
const char *const wide_tokens[] = {"narrow", "wide"}, *const odd_tokens[] = {"even", "odd"};
const std::vector<const char *> shades(60, "shade");

// The sets of the first three fill 7 bits of a word, so that the fourth one's are in the next.
const tessera_trait traits[] = {
    {"input", offsetof(Traits, input), 0, 0, 2, types},
    {"fused_add", offsetof(Traits, fused_add), 0, 2, 3, adds},
    {"saves", offsetof(Traits, saves), 0, 5, 2, flags},
    {"shade", offsetof(Traits, shade), 1, 0, 60, shades.data()},
};
const tessera_size sizes[] = {{"n", offsetof(Traits, n), false}};
const uint32_t limits[] = {1024, 8192};
const tessera_ck_axis axes[] = {
    {"input", types, 2, 0, nullptr},        {"n", wide_tokens, 2, -1, limits},    {"add", add_tokens, 3, 1, nullptr},
    {"parity", odd_tokens, 2, -1, nullptr}, {"save", save_tokens, 2, 2, nullptr},
};
const tessera_schema schema = {"norm2d_fwd", traits, 4, sizes, 1, axes, 5, 2};

struct Row {
    tessera_instance base;
    double cycles; // of an element
};

double cost(const tessera_instance *row, const tessera_request *r) {
    return reinterpret_cast<const Row *>(row)->cycles * r->sizes[0];
}
int list_starts(const tessera_request *r, tessera_start starts[TESSERA_MAX_STARTS]) {
    starts[0] = {"x_stride", *static_cast<const uint64_t *>(r->call), 16, false, true};
    return 1;
}
void add_ck_tile(tessera_text *out, const tessera_instance *row, const uint32_t *held) {
    tessera_text_add(out, "_%s%u", row->pipeline, held[0]);
}
uint32_t count_ck(const tessera_request *r, const tessera_instance *, const uint32_t *) { return r->sizes[0] % 2; }

class Operation : public ::testing::Test {
  protected:
    Operation() {
        short_rows.sets[0] = long_rows.sets[0] = 0b11'111'11;
        short_rows.sets[1] = long_rows.sets[1] = (UINT64_C(1) << 60) - 1;
        short_rows.ranges[0] = {8, 1024, 8};
        long_rows.ranges[0] = {8, 8192, 8};
    }

    tessera_request ask() {
        rows = {
            {{"short", TESSERA_TARGET_PORTABLE, &short_rows, 1, "one_pass", "store", nullptr, 0, alignment, 8, 0, 100},
             1},
            {{"long", TESSERA_TARGET_PORTABLE, &long_rows, 1, "two_pass", "store", nullptr, 0, 0, 8, 0, 100}, 2}};
        table = {&schema, rows.data(), sizeof rows[0], 2, buckets, 2, slices, order, 0};
        tessera_request r = {};
        r.kernels = &kernels;
        r.table = &table;
        r.traits = &asked;
        r.call = &stride;
        tessera_ask(&r, &facts);
        return r;
    }

    std::string chosen() {
        const tessera_request r = ask();
        tessera_choice chosen;
        return tessera_choose(&r, &chosen) == TESSERA_SUCCESS ? chosen.row->name : tessera_last_error();
    }

    std::string explained(bool all) {
        const tessera_request r = ask();
        char text[1024];
        tessera_text out = {text, sizeof text, 0};
        tessera_add_explanation(&out, &r, all);
        return text;
    }

    std::string ck_name() {
        const tessera_request r = ask();
        char text[256];
        tessera_text out = {text, sizeof text, 0};
        tessera_add_ck_name(&out, &r, &rows[0].base);
        return text;
    }

    const tessera_kernels kernels = {nullptr, nullptr, cost, list_starts, add_ck_tile, count_ck, nullptr, nullptr};
    const uint32_t buckets[2] = {1024, UINT32_MAX}, order[2] = {0, 1};
    const tessera_slice slices[4] = {{0, 2}, {1, 1}, {0, 2}, {1, 1}}; // of the first target; there are no others
    tessera_device_facts facts = {sizeof facts, 1u << TESSERA_TARGET_PORTABLE, 4, 0, 0, 0, 0};
    tessera_served short_rows = {}, long_rows = {};
    Traits asked = {sizeof asked, 512, TESSERA_TYPE_FP32, 0, 0, 0};
    uint64_t stride = 512;
    uint32_t alignment = 0;
    std::vector<Row> rows;
    tessera_table table = {};
};

TEST_F(Operation, CheapestThatServes) {
    EXPECT_EQ(chosen(), "short");
    asked.n = 1032; // in the next bucket
    EXPECT_EQ(chosen(), "long");
    asked.n = 1024;
    short_rows.sets[1] &= ~(UINT64_C(1) << 59);
    EXPECT_EQ(chosen(), "short");
    asked.shade = 59;
    EXPECT_EQ(chosen(), "long");
}

TEST_F(Operation, StartsAreOfTheOperation) {
    alignment = 16;
    EXPECT_EQ(chosen(), "short");
    stride = 516;
    EXPECT_EQ(chosen(), "long");
    EXPECT_EQ(explained(true), "* long   cost 1024 cycles\n- short  no: x_stride 516 (serves multiples of 8)\n");
}

TEST_F(Operation, ReasonsAreInItsWords) {
    asked.fused_add = 2;
    short_rows.sets[0] = 0b11'001'11;
    EXPECT_EQ(explained(false), "* long  cost 1024 cycles\n- 1 kept out by fused_add pre_store (it serves no)\n");
    long_rows.sets[0] = 0b11'011'11;
    EXPECT_EQ(chosen(), "no instance serves this call; nearest is short, kept out by fused_add pre_store (serves no): "
                        "change fused_add to no or pre");
}

TEST_F(Operation, RowsThatAreNotFilledUp) {
    asked.n = 1020;
    EXPECT_EQ(chosen(), "no instance serves this call; nearest is short, kept out by n 1020 (serves 8 to 1024, "
                        "multiples of 8): change n to 1024");
    asked.n = 1 << 30;
    EXPECT_EQ(chosen(), "no instance serves this call; nearest is long, kept out by n 1073741824 (serves 8 to 8192, "
                        "multiples of 8): change n to at most 8192");
}

// The formula stands in runtime/op/cost.c; rows do 8 multiply-adds per cycle, and each task takes 100 cycles more.
TEST_F(Operation, Roofline) {
    const tessera_rates rates = tessera_target_rates[TESSERA_TARGET_PORTABLE];
    const auto cycles = [&](double macs, double bytes, int64_t tasks, int32_t units) {
        facts.compute_units = units;
        const tessera_request r = ask();
        return tessera_roofline(&rows[0].base, &r, {macs, bytes, tasks});
    };
    ASSERT_GT(rates.unit_bytes, 0);
    ASSERT_GT(rates.device_bytes, 2 * rates.unit_bytes);
    EXPECT_DOUBLE_EQ(cycles(8000, 8, 1, 4), 1000 + 100);
    EXPECT_DOUBLE_EQ(cycles(8000, 8, 4, 4), 250 + 100);
    EXPECT_DOUBLE_EQ(cycles(8000, 8, 5, 4), 400 + 200); // the busiest has 2 of 5
    EXPECT_DOUBLE_EQ(cycles(8, 1e6, 1, 4), 1e6 / rates.unit_bytes + 100);
    EXPECT_DOUBLE_EQ(cycles(8, 1e6, 2, 2), 5e5 / rates.unit_bytes + 100);
    EXPECT_DOUBLE_EQ(cycles(8, 1e6, 1000, 1000), 1e6 / rates.device_bytes + 100);
    EXPECT_DOUBLE_EQ(cycles(0, 0, 0, 4), 100);
}

TEST_F(Operation, CkName) {
    EXPECT_EQ(ck_name(), "norm2d_fwd_fp16_narrow_one_pass1024_nadd_even_nsave");
    asked = {sizeof asked, 2049, static_cast<tessera_type>(1), 2, 1, 0};
    EXPECT_EQ(ck_name(), "norm2d_fwd_bf16_wide_one_pass8192_sadd_odd_save");
}

} // namespace
