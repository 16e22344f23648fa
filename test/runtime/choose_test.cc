// SPDX-License-Identifier: MIT
// Choices that threads remember: of a made-up operation, whose cost counts its calls, and of fmha_fwd over the tables
// of this build.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "fmha_fwd_fixture.h"
extern "C" {
#include "library.h"
}

namespace {

// ---- a made-up operation: one trait, one size, and a call that is a number with its name

struct Traits {
    size_t struct_size;
    int32_t n, kind;
};
struct Asked {
    uint64_t number;
    const char *name;
};

const char *const kinds[] = {"a", "b"};
const tessera_trait traits[] = {{"kind", offsetof(Traits, kind), 0, 0, 2, kinds}};
const tessera_size sizes[] = {{"n", offsetof(Traits, n), false}};
const tessera_schema schema = {"made_up", traits, 1, sizes, 1, nullptr, 0, 0};
const tessera_served all = {{3, 0}, {{1, 1024, 1}}};
tessera_instance make_row(const char *name) {
    return {name, TESSERA_TARGET_PORTABLE, &all, 1, "p", "e", nullptr, 0, 16, 1, 0, 1};
}
const tessera_instance rows[] = {make_row("even"), make_row("odd")};
const uint32_t buckets[] = {UINT32_MAX}, order[] = {0, 1};
const tessera_slice slices[TESSERA_TARGET_COUNT * 2] = {{0, 2}, {0, 2}}; // of the first target
tessera_table make_table() { return {&schema, rows, sizeof rows[0], 2, buckets, 1, slices, order, 0}; }
const tessera_table own = make_table();

std::atomic<int> costs{0};         // how often a cost was asked for
std::atomic<bool> saw_call{false}; // what is not a part of what choices are remembered by

uint32_t describe(const void *call, void *shape) {
    memcpy(shape, &static_cast<const Asked *>(call)->number, sizeof(uint64_t));
    return sizeof(uint64_t);
}
double cost(const tessera_instance *row, const tessera_request *r) {
    costs++;
    if (r->table == &own && (r->call || r->traits)) saw_call = true;
    return (row->name[0] == 'o') == (r->shape[0] % 2 == 1) ? 1 : 2;
}
int list_starts(const tessera_request *r, tessera_start starts[TESSERA_MAX_STARTS]) {
    starts[0] = {"name", reinterpret_cast<uintptr_t>(static_cast<const Asked *>(r->call)->name), 8, true, true};
    return 1;
}
tessera_cut cut(const tessera_instance *, const tessera_request *r) {
    return {static_cast<int64_t>(r->shape[0]), r->units, 0, nullptr};
}
const tessera_kernels kernels = {[] { return &own; }, describe, cost, list_starts, nullptr, nullptr, nullptr, cut};

class Choose : public ::testing::Test {
  protected:
    Choose() {
        static uint64_t fresh = 0;
        asked.number = fresh += 10000; // which no test before has asked for
        asked.name = reinterpret_cast<const char *>(UINT64_C(128));
    }

    // Chooses, and returns how many costs that took. Expects the row for the number, cut as the request says.
    int chosen() {
        tessera_request r = {};
        tessera_choice choice = {};
        r.kernels = &kernels, r.table = table, r.traits = &of, r.call = &asked, r.wanted = wanted;
        tessera_ask(&r, &facts);
        const int before = costs;
        EXPECT_EQ(tessera_choose(&r, &choice), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(choice.row, wanted ? wanted : &table_rows(table)[asked.number % 2]);
        EXPECT_EQ(choice.cut.parts, static_cast<int64_t>(asked.number));
        EXPECT_EQ(choice.cut.length, facts.compute_units);
        EXPECT_FALSE(saw_call);
        return costs - before;
    }
    static const tessera_instance *table_rows(const tessera_table *table) { return tessera_row(table, 0); }

    const tessera_table *table = &own;
    const tessera_instance *wanted = nullptr;
    tessera_device_facts facts = {sizeof facts, 1u << TESSERA_TARGET_PORTABLE, 4, 0, 0, 0, 0};
    Traits of = {sizeof of, 512, 0};
    Asked asked = {};
};

TEST_F(Choose, WhatDecidesIsRemembered) {
    EXPECT_EQ(chosen(), 2);
    EXPECT_EQ(chosen(), 0);
    asked.name += 128; // as aligned as rows may ask for
    EXPECT_EQ(chosen(), 0);
    asked.number++;
    EXPECT_EQ(chosen(), 2);
    of.kind = 1;
    EXPECT_EQ(chosen(), 2);
    of.n = 511;
    EXPECT_EQ(chosen(), 2);
    facts.compute_units++;
    EXPECT_EQ(chosen(), 2);
    facts.targets |= 1u << TESSERA_TARGET_X86_64_V2;
    EXPECT_EQ(chosen(), 2);
    asked.name += 16; // less aligned
    EXPECT_EQ(chosen(), 2);
    EXPECT_EQ(chosen(), 0);
}

TEST_F(Choose, ThoseOfEachThread) {
    EXPECT_EQ(chosen(), 2);
    std::thread([&] {
        EXPECT_EQ(chosen(), 2);
        EXPECT_EQ(chosen(), 0);
    }).join();
    EXPECT_EQ(chosen(), 0);
}

TEST_F(Choose, OlderOnesGiveWay) {
    const uint64_t first = asked.number;
    for (int round = 0; round < 2; round++)
        for (asked.number = first; asked.number < first + 1000; asked.number++) chosen();
    asked.number = first;
    EXPECT_EQ(chosen(), 2);
}

TEST_F(Choose, RefusalsAreNotRemembered) {
    tessera_request r = {};
    tessera_choice choice = {};
    of.n = 1025;
    r.kernels = &kernels, r.table = &own, r.traits = &of, r.call = &asked;
    tessera_ask(&r, &facts);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(tessera_choose(&r, &choice), TESSERA_ERROR_NO_INSTANCE);
        EXPECT_NE(std::string(tessera_last_error()).find("n 1025 (serves 1 to 1024)"), std::string::npos);
    }
    r.wanted = &rows[1];
    EXPECT_EQ(tessera_choose(&r, &choice), TESSERA_ERROR_NO_INSTANCE);
    EXPECT_NE(std::string(tessera_last_error()).find("odd does not serve this call: n 1025"), std::string::npos);
    of.n = 1024;
    wanted = &rows[1];
    EXPECT_EQ(chosen(), 0); // what is wanted costs nothing
}

// A caller's tables and rows may change from call to call.
TEST_F(Choose, OnlyTheLibrarysTablesAndRows) {
    tessera_table others = make_table();
    std::vector<tessera_instance> changed(rows, rows + 2);
    others.rows = changed.data();
    table = &others;
    EXPECT_EQ(chosen(), 2);
    EXPECT_EQ(chosen(), 2);
    tessera_served few = all;
    tessera_instance mine = make_row("mine");
    mine.served = &few;
    table = &own;
    wanted = &mine;
    EXPECT_EQ(chosen(), 0);
    few.ranges[0].max = 1;
    tessera_request r = {};
    tessera_choice choice = {};
    r.kernels = &kernels, r.table = &own, r.traits = &of, r.call = &asked, r.wanted = wanted;
    tessera_ask(&r, &facts);
    EXPECT_EQ(tessera_choose(&r, &choice), TESSERA_ERROR_NO_INSTANCE);
}

TEST(Tables, RowsAskForPowersOfTwo) {
    for (size_t t = 0; t < tessera_table_count; t++)
        for (uint32_t i = 0; i < tessera_tables[t]()->row_count; i++) {
            const uint32_t alignment = tessera_row(tessera_tables[t](), i)->alignment;
            EXPECT_EQ(alignment & (alignment - 1), 0u);
            EXPECT_LE(alignment, static_cast<uint32_t>(TESSERA_MAX_ALIGNMENT));
        }
}

// ---- fmha_fwd

// Random calls, valid ones among them, with or without a cache. Sizes and devices are few, so that calls recur.
class Calls {
  public:
    explicit Calls(unsigned seed) : random(seed) {}

    // Makes the next request of `call`; false: it is not valid.
    bool next(tessera_request *r) {
        call = {};
        call.traits = tessera_fmha_fwd_traits_init();
        call.args = tessera_fmha_fwd_args_init();
        fill();
        if (tessera_fmha_fwd_check_call(&call) != TESSERA_SUCCESS) return false;
        *r = {};
        r->kernels = &tessera_fmha_fwd_operation.kernels;
        r->table = tessera_fmha_fwd_get_table();
        r->traits = &call.traits, r->call = &call;
        const tessera_device_facts facts = {
            sizeof facts, 1u << of(targets()), of({16, 132, 304}), 1 << 15, 1 << 20, 1 << 25, 1 << 16};
        if (!targets().empty()) tessera_ask(r, &facts);
        if (pick(16) == 0) r->wanted = tessera_row(r->table, pick(r->table->row_count));
        return true;
    }

  private:
    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random() % below); }
    template <typename T> T of(const std::vector<T> &values) {
        return values[pick(static_cast<uint32_t>(values.size()))];
    }
    int of(std::initializer_list<int> values) { return values.begin()[pick(static_cast<uint32_t>(values.size()))]; }
    char *address() { return reinterpret_cast<char *>(UINT64_C(0x100000) * (1 + pick(1000)) + (pick(9) ? 0 : 4)); }

    static const std::vector<tessera_target> &targets() {
        static const std::vector<tessera_target> those = [] {
            std::set<tessera_target> found;
            const tessera_table *const table = tessera_fmha_fwd_get_table();
            for (uint32_t i = 0; i < table->row_count; i++) found.insert(tessera_row(table, i)->target);
            return std::vector<tessera_target>(found.begin(), found.end());
        }();
        return those;
    }

    void fill() {
        tessera_fmha_fwd_traits &t = call.traits;
        tessera_fmha_fwd_args &a = call.args;
        t.hdim_q = t.hdim_v = a.hdim_q = a.hdim_v = of({64, 128, 128, 128});
        t.data_type = static_cast<tessera_fmha_dtype>(of({TESSERA_FMHA_BF16, TESSERA_FMHA_FP16}));
        t.is_group_mode = of({0, 0, 1});
        t.mask_type = a.mask_type = static_cast<tessera_mask>(of({0, 0, 1, 2}));
        a.window_size_left = of({-1, -1, 100}), a.window_size_right = of({0, 0, -1, 100});
        t.has_lse = of({0, 0, 1});
        a.batch = of({1, 2, 33});
        a.nhead_k = of({1, 8});
        a.nhead_q = a.nhead_k * of({1, 4});
        a.seqlen_q = a.max_seqlen_q = of({1, 100, 1024});
        a.seqlen_k = of({0, 77, 1024, 8192});
        a.num_splits = of({0, 0, 0, 1, 5});
        a.scale_s = of({1, 1, 2, -1}) * 0.25f;
        a.q_ptr = address(), a.k_ptr = address(), a.v_ptr = address(), a.o_ptr = address();
        a.stride_q = a.stride_k = a.stride_v = a.stride_o = a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v =
            a.nhead_stride_o = a.batch_stride_q = a.batch_stride_k = a.batch_stride_v = a.batch_stride_o = 4096;
        if (pick(8) == 0) a.cu_seqlen_k_ptr = reinterpret_cast<int32_t *>(address());
        if (pick(8) == 0) a.cu_seqlen_q_ptr = reinterpret_cast<int32_t *>(address());
        if (pick(3) == 0) fill_cache();
    }

    // In pages, or none; some with rows of 4 bits, those of all heads beside one another.
    void fill_cache() {
        const int64_t slot = call.args.hdim_q / 2 + 2, row = call.args.nhead_k * slot;
        tessera_attention_pages &p = cache.pages;
        cache = {};
        call.cache = &cache;
        call.splits = of({0, 0, 3});
        p.table = pick(3) ? reinterpret_cast<int32_t *>(address()) : nullptr;
        p.begin = pick(3) ? nullptr : reinterpret_cast<int32_t *>(address());
        p.piece_v = of({0, 0, 8}), p.page_size = of({1, 16, 64});
        p.dtype = static_cast<tessera_kv_cache_dtype>(pick(TESSERA_KV_CACHE_DTYPE_COUNT));
        p.hdim_q = p.hdim_v = call.args.hdim_q;
        char *const k = address(), *const v = address();
        p.k = k, p.v = v, p.k_scale.base = k + slot - 2, p.v_scale.base = v + slot - 2;
        p.of_k = p.of_v = {16 * row, slot, row + of({0, 0, 8})};
        cache.seqlen_k = pick(2) ? reinterpret_cast<int32_t *>(address()) : nullptr;
    }

    std::mt19937 random;
    tessera_fmha_fwd_call call;
    tessera_attention_cache cache;
};

// One query with 4 heads to a key head, over a cache in pages or not.
struct OneQuery {
    OneQuery(tessera_fmha_dtype dtype, int hdim, int batch, int keys, bool in_pages, tessera_mask mask) {
        tessera_fmha_fwd_traits &t = call.traits;
        tessera_fmha_fwd_args &a = call.args;
        t = tessera_fmha_fwd_traits_init(), a = tessera_fmha_fwd_args_init();
        t.hdim_q = t.hdim_v = a.hdim_q = a.hdim_v = hdim;
        t.data_type = dtype, t.mask_type = a.mask_type = mask;
        a.window_size_right = mask == TESSERA_MASK_NONE ? -1 : 0;
        a.batch = batch, a.nhead_k = 8, a.nhead_q = 32;
        a.seqlen_q = a.max_seqlen_q = 1, a.seqlen_k = keys;
        a.scale_s = 0.1f;
        a.stride_q = a.stride_k = a.stride_v = a.stride_o = a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v =
            a.nhead_stride_o = a.batch_stride_q = a.batch_stride_k = a.batch_stride_v = a.batch_stride_o = 4096;
        cache.pages.table = &page, cache.pages.page_size = 16, cache.pages.hdim_q = cache.pages.hdim_v = hdim;
        if (in_pages) call.cache = &cache;
    }
    // Whether this build has a row of this target for it.
    bool serves(uint32_t target) {
        const tessera_device_facts facts = facts_of(1u << target, 304);
        const tessera_request r = ask(facts);
        return tessera_best(&r) != nullptr;
    }
    // The row that a device with this target chooses, and how it cuts keys.
    tessera_choice choose(uint32_t target) { return choose_of(1u << target, 304); }
    tessera_choice choose_of(uint32_t targets, int32_t units) {
        const tessera_device_facts facts = facts_of(targets, units);
        tessera_request r = ask(facts);
        tessera_choice choice = {};
        EXPECT_EQ(tessera_choose(&r, &choice), TESSERA_SUCCESS) << tessera_last_error();
        return choice;
    }
    static tessera_device_facts facts_of(uint32_t targets, int32_t units) {
        return {sizeof(tessera_device_facts), targets, units, 1 << 15, 1 << 22, 1 << 28, 1 << 16};
    }
    tessera_request ask(const tessera_device_facts &facts) {
        tessera_request r = {};
        EXPECT_EQ(tessera_fmha_fwd_check_call(&call), TESSERA_SUCCESS) << tessera_last_error();
        r.kernels = &tessera_fmha_fwd_operation.kernels, r.table = tessera_fmha_fwd_get_table();
        r.traits = &call.traits, r.call = &call;
        tessera_ask(&r, &facts);
        return r;
    }
    tessera_fmha_fwd_call call = {};
    tessera_attention_cache cache = {};
    int32_t page = 0;
};

// Targets of this build's table whose rows attend to keys of the type in pages.
std::set<uint32_t> targets_of_pages(tessera_fmha_dtype dtype) {
    std::set<uint32_t> found;
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *const row = tessera_row(table, i);
        const auto *const of_fwd = reinterpret_cast<const tessera_fmha_fwd_instance *>(row);
        const bool serves = tessera_set_of(row->served, table->schema->traits) >> dtype & 1;
        if (serves && of_fwd->kv == TESSERA_KV_AUTO && tessera_fmha_fwd_looks_up(of_fwd)) found.insert(row->target);
    }
    return found;
}

// A bit for each target of this build's table.
uint32_t targets_of_table() {
    uint32_t found = 0;
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++) found |= 1u << tessera_row(table, i)->target;
    return found;
}

// Whether this build has instances that cut keys.
bool cuts_keys() {
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++)
        if (reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i))->merged) return true;
    return false;
}

// Chooses for random calls, most of which came before, and expects what would be chosen anew.
void compare(unsigned seed) {
    std::set<const tessera_instance *> chosen;
    int cuts = 0;
    tessera_fail_quietly(true);
    for (int round = 0; round < 40; round++)
        for (unsigned from = 0; from < 25; from++) {
            Calls calls(seed + 1000 * (from + static_cast<unsigned>(round) / 20 * 25)); // the same ones in 20 rounds
            tessera_request r;
            for (int i = 0; i < 4; i++) {
                if (!calls.next(&r)) continue;
                tessera_choice choice = {};
                const tessera_instance *const best = tessera_best(&r);
                const tessera_status status = tessera_choose(&r, &choice);
                ASSERT_EQ(status == TESSERA_SUCCESS, best != nullptr);
                if (!best) continue;
                const tessera_cut anew = tessera_cut_by(best, &r);
                ASSERT_EQ(choice.row, best) << choice.row->name << " for " << best->name;
                ASSERT_EQ(choice.cut.parts, anew.parts) << best->name;
                ASSERT_EQ(choice.cut.length, anew.length) << best->name;
                chosen.insert(best);
                cuts += anew.parts > 1;
            }
        }
    tessera_fail_quietly(false);
    EXPECT_GT(chosen.size(), 1u);
    EXPECT_EQ(cuts > 0, cuts_keys());
}

TEST(ChooseFmhaFwd, IsAsChosenAnew) {
    for (unsigned seed = 0; seed < 20; seed++) compare(seed);
}

// A causal mask of one query hides nothing, and takes nothing away: GPUs merge the heads of a key head under it, too,
// and keys are cut as without it. (CPUs fold those heads into rows in every call: fmha_fwd_launch_test.cc.)
TEST(ChooseFmhaFwd, ACausalMaskOfOneQueryChangesNothing) {
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_FP16, TESSERA_FMHA_BF16})
        for (const uint32_t target : targets_of_pages(dtype))
            for (const int hdim : {64, 128, 256})
                for (const int batch : {1, 64})
                    for (const int keys : {100, 8192})
                        for (const bool in_pages : {false, true}) {
                            OneQuery none(dtype, hdim, batch, keys, in_pages, TESSERA_MASK_NONE);
                            OneQuery causal(dtype, hdim, batch, keys, in_pages, TESSERA_MASK_BOTTOM_RIGHT);
                            if (hdim == 256 && !none.serves(target)) continue; // not in all builds
                            const tessera_choice a = none.choose(target), b = causal.choose(target);
                            ASSERT_NE(b.row, nullptr);
                            EXPECT_EQ(a.row, b.row) << a.row->name << " and " << b.row->name;
                            EXPECT_EQ(a.cut.parts, b.cut.parts) << b.row->name << " of " << keys << " keys";
                            EXPECT_EQ(a.cut.length, b.cut.length) << b.row->name << " of " << keys << " keys";
                            if (b.row->symbol && keys > 100) { // of few keys others may be faster
                                EXPECT_TRUE(reinterpret_cast<const tessera_fmha_fwd_instance *>(b.row)->merged)
                                    << b.row->name;
                            }
                        }
}

// How many rows of a key head the rows for decoding are taken for, where integers are fast and bf16 is not.
TEST(ChooseFmhaFwd, DecodingOfCachesByTheirTypes) {
    const uint32_t cpus = 1u << TESSERA_TARGET_X86_64_V4 | 1u << TESSERA_TARGET_X86_64_V4_BF16;
    const uint32_t targets = cpus | 1u << TESSERA_TARGET_X86_64_V4_FP16;
    if ((targets_of_table() & targets) != targets) GTEST_SKIP() << "this build lacks some of their targets";
    const struct {
        tessera_kv_cache_dtype kv;
        int most, not_for; // rows; 0: not known
    } all[] = {
        {TESSERA_KV_AUTO, 24, 32}, {TESSERA_KV_FP8_E4M3, 40, 96}, {TESSERA_KV_INT8, 96, 0}, {TESSERA_KV_TURBO4, 64, 0}};
    for (const auto &of : all)
        for (const bool few : {true, false}) {
            if (!few && !of.not_for) continue;
            OneQuery rows(TESSERA_FMHA_BF16, 128, 1, 1024, true, TESSERA_MASK_BOTTOM_RIGHT);
            rows.cache.pages.dtype = of.kv;
            rows.call.args.nhead_k = 1, rows.call.args.nhead_q = 8;
            rows.call.args.seqlen_q = rows.call.args.max_seqlen_q = (few ? of.most : of.not_for) / 8;
            const std::string pipeline = rows.choose_of(targets, 2).row->pipeline;
            EXPECT_EQ(pipeline == "decode", few) << tessera_kv_cache_dtype_string(of.kv) << " " << pipeline;
        }
}

// Rows of a key head that decode: of processors that run these targets, those of `by` are the fastest (measured on Zen
// 4 and 5; of AMX by what its kernels load). A loop for so many rows is not filled up with others.
TEST(ChooseFmhaFwd, DecodingOfFewRows) {
    const uint32_t v3 = 1u << TESSERA_TARGET_X86_64_V3, v4 = v3 | 1u << TESSERA_TARGET_X86_64_V4;
    const uint32_t zen4 = v4 | 1u << TESSERA_TARGET_X86_64_V4_BF16;
    const uint32_t zen5 = zen4 | 1u << TESSERA_TARGET_X86_64_V4_VP2INTERSECT;
    const uint32_t amx = zen4 | 1u << TESSERA_TARGET_X86_64_V4_AMX | 1u << TESSERA_TARGET_X86_64_V4_FP16;
    int compared = 0;
    const struct {
        uint32_t targets;
        tessera_fmha_dtype dtype;
        tessera_target by;
    } all[] = {{v4, TESSERA_FMHA_FP16, TESSERA_TARGET_X86_64_V4},
               {v4, TESSERA_FMHA_FP32, TESSERA_TARGET_X86_64_V4},
               {zen4, TESSERA_FMHA_FP16, TESSERA_TARGET_X86_64_V4_BF16},
               {zen4, TESSERA_FMHA_FP32, TESSERA_TARGET_X86_64_V4_BF16},
               {zen4, TESSERA_FMHA_BF16, TESSERA_TARGET_X86_64_V4_BF16},
               {zen5, TESSERA_FMHA_FP16, TESSERA_TARGET_X86_64_V4_BF16},
               {zen5, TESSERA_FMHA_BF16, TESSERA_TARGET_X86_64_V4_VP2INTERSECT},
               {amx, TESSERA_FMHA_FP16, TESSERA_TARGET_X86_64_V4},
               {amx, TESSERA_FMHA_FP32, TESSERA_TARGET_X86_64_V4}};
    for (const auto &of : all) {
        if ((targets_of_table() & of.targets) != of.targets) continue; // not in all builds
        for (int kv = 0; kv < TESSERA_KV_CACHE_DTYPE_COUNT; kv++)
            for (const int rows : {1, 2, 3, 4, 5, 6, 8}) {
                OneQuery one(of.dtype, 128, 2, 2048, true, TESSERA_MASK_BOTTOM_RIGHT);
                one.cache.pages.dtype = static_cast<tessera_kv_cache_dtype>(kv);
                one.call.args.nhead_q = one.call.args.nhead_k * rows;
                const tessera_instance *const row = one.choose_of(of.targets, 2).row;
                EXPECT_EQ(std::string(row->pipeline), "decode") << rows << " rows: " << row->name;
                EXPECT_EQ(row->target, of.by) << rows << " rows of " << one.cache.pages.dtype << ": " << row->name;
                compared++;
            }
    }
    if (!compared) GTEST_SKIP() << "this build lacks some of the targets of each processor";
}

// Where codes take longer to load for each few rows than to be copied once for all of them, many rows are packed.
TEST(ChooseFmhaFwd, ManyRowsOfCodesThatLoadSlowly) {
    const uint32_t targets = 1u << TESSERA_TARGET_X86_64_V4 | 1u << TESSERA_TARGET_X86_64_V4_BF16;
    if ((targets_of_table() & targets) != targets) GTEST_SKIP() << "this build lacks some of their targets";
    const auto chosen = [&](tessera_kv_cache_dtype kv) {
        OneQuery one(TESSERA_FMHA_FP16, 128, 2, 2048, true, TESSERA_MASK_BOTTOM_RIGHT);
        one.cache.pages.dtype = kv;
        one.call.args.nhead_q = one.call.args.nhead_k * 16;
        return std::string(one.choose_of(targets, 2).row->pipeline);
    };
    EXPECT_EQ(chosen(TESSERA_KV_FP8_E4M3), "qr");
    EXPECT_EQ(chosen(TESSERA_KV_INT8), "decode");
}

TEST(ChooseFmhaFwd, IsAsChosenAnewOnThreads) {
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; seed++) threads.emplace_back(compare, seed);
    for (std::thread &thread : threads) thread.join();
}

} // namespace
