// SPDX-License-Identifier: MIT
// What calls of fmha_fwd_splitkv refuse, in which words, and that they write nothing then; and their names.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tessera/kernel/fmha_fwd_splitkv.h"

extern "C" {
#include "ops/fmha_fwd_internal.h"
}

namespace {

// Two sequences in pages of 4 rows, 3 pages each; 4 and 2 heads of 32 and 16 elements; 2 queries; 9 and 12 keys.
enum { kQ, kK, kV, kO, kLse, kLengths, kStartQ, kStartK, kTable, kKnew, kVnew, kCos, kSin, kWorkspace };
struct Call {
    static constexpr size_t kBytes = 4096, kTensors = kWorkspace + 128;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes + 64, 0x11);
    unsigned char *const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tessera_fmha_fwd_splitkv_traits traits = tessera_fmha_fwd_splitkv_traits_init();
    tessera_fmha_fwd_splitkv_args args = tessera_fmha_fwd_splitkv_args_init();
    int32_t *lengths = ints(kLengths), *start_q = ints(kStartQ), *start_k = ints(kStartK), *table = ints(kTable);

    Call() {
        traits.hdim_q = args.hdim_q = 32, traits.hdim_v = args.hdim_v = 16;
        traits.data_type = TESSERA_FMHA_FP16;
        traits.has_lse = 1;
        args.batch = 2, args.nhead_q = 4, args.nhead_k = 2, args.seqlen_q = args.max_seqlen_q = 2, args.seqlen_k = 12;
        args.cache_blocks = 7, args.page_block_size = 4, args.batch_stride_block_table = 3, args.num_splits = 2;
        args.scale_s = 0.2F;
        args.stride_q = args.stride_k = 32, args.stride_v = args.stride_o = 16;
        args.nhead_stride_q = 64, args.nhead_stride_k = 128, args.nhead_stride_v = 64, args.nhead_stride_o = 32;
        args.batch_stride_q = 256, args.batch_stride_k = 256, args.batch_stride_v = 128, args.batch_stride_o = 128;
        args.nhead_stride_lse = 2, args.batch_stride_lse = 8;
        args.q_ptr = at(kQ), args.k_ptr = at(kK), args.v_ptr = at(kV), args.o_ptr = at(kO), args.lse_ptr = at(kLse);
        args.seqlen_k_ptr = lengths, args.block_table_ptr = table;
        args.workspace_ptr = at(kWorkspace), args.workspace_size = 128 * kBytes;
        put({9, 12}, lengths), put({0, 2, 4}, start_q), put({3, 2, 0}, start_k), put({6, 0, 2, 1, 5, 3, 4, 4}, table);
    }
    static void put(std::initializer_list<int32_t> values, int32_t *to) { std::copy(values.begin(), values.end(), to); }
    void *at(size_t number) { return base + number * kBytes; }
    int32_t *ints(size_t number) { return static_cast<int32_t *>(at(number)); }
    tessera_status run(const tessera_device *device) {
        return tessera_fmha_fwd_splitkv(device, &traits, &args, nullptr);
    }
};

// Two sequences of a cache without pages.
void in_order(Call &c, int32_t first, int32_t second) {
    c.args.cache_batch_idx = c.table;
    c.args.block_table_ptr = nullptr;
    c.table[0] = first, c.table[1] = second;
    c.args.cache_blocks = 3;
    c.args.nhead_stride_k = 384, c.args.batch_stride_k = 768;
    c.args.nhead_stride_v = 192, c.args.batch_stride_v = 384;
}

// Queries one after the other. gappy: sequences begin in rows 3 and 2 of their first pages.
void grouped(Call &c, bool gappy) {
    c.traits.is_group_mode = 1;
    c.args.seqstart_q_ptr = c.start_q;
    c.args.nhead_stride_q = 128, c.args.nhead_stride_o = 64, c.args.nhead_stride_lse = 4;
    c.args.is_gappy = gappy;
    c.args.seqstart_k_ptr = c.start_k;
    if (gappy)
        c.args.batch_stride_block_table = 4, c.put({6, 0, 2, -7, 1, 5, 3, 4}, c.table);
    else
        c.put({0, 9, 21}, c.start_k);
}

// Keys one after the other, too.
void tokens(Call &c) {
    grouped(c, false);
    c.args.block_table_ptr = c.args.seqlen_k_ptr = nullptr;
    c.args.nhead_stride_k = 21 * 32, c.args.nhead_stride_v = 21 * 16;
}

// 3 new keys for each sequence, which has 5 and 9, rotated by halves.
void appending(Call &c) {
    c.put({5, 9}, c.lengths);
    c.args.knew_ptr = c.at(kKnew), c.args.vnew_ptr = c.at(kVnew);
    c.args.rotary_cos_ptr = c.at(kCos), c.args.rotary_sin_ptr = c.at(kSin);
    c.args.rope_type = TESSERA_ROPE_HALF;
    c.args.seqlen_knew = 3, c.args.rotary_dim = 16, c.args.rotary_rows = 12;
    c.args.stride_knew = 32, c.args.nhead_stride_knew = 96, c.args.batch_stride_knew = 192;
    c.args.stride_vnew = 16, c.args.nhead_stride_vnew = 48, c.args.batch_stride_vnew = 96;
}

class Splitkv : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;
};

TEST_F(Splitkv, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.hdim_q = 0; }, "hdim_q is 0: 1 to 512"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_MXFP8; }, "data_type is mxfp8: all but mxfp8 and mxfp4"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_MXFP4; }, "data_type is mxfp4: all but mxfp8 and mxfp4"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(99); }, "data_type is 99"},
        {[](Call &c) { c.traits.is_v_rowmajor = 0; }, "is_v_rowmajor is 0: 1"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8, c.traits.qscale_type = TESSERA_QSCALE_BLOCK; },
         "qscale_type is bs: a cache has no blocks with scales"},
        {[](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_PER_TENSOR; }, "qscale_type pt with data_type fp16"},
        {[](Call &c) { c.args.num_splits = -2; }, "num_splits is -2: 1 to 128, 0 for as many as pay, or -1 for as"},
        {[](Call &c) { c.args.num_splits = 129; }, "num_splits is 129: 1 to 128"},
        {[](Call &c) { c.args.is_gappy = 2; }, "is_gappy is 2: 0 or 1"},
        {[](Call &c) { c.args.is_gappy = -1; }, "is_gappy is -1: 0 or 1"},
        {[](Call &c) { c.args.is_gappy = 1; }, "is_gappy is 1: for pages in group mode alone"},
        {[](Call &c) { tokens(c), c.args.is_gappy = 1; }, "is_gappy is 1: for pages in group mode alone"},
        {[](Call &c) { c.args.cache_batch_idx = c.lengths; }, "cache_batch_idx is given: NULL with pages"},
        {[](Call &c) { tokens(c), c.args.cache_batch_idx = c.lengths; }, "NULL with pages and in group mode"},
        {[](Call &c) { c.args.seqlen_k = -1; }, "seqlen_k is -1: 0 to"},
        {[](Call &c) { grouped(c, false), c.args.seqlen_k = -1; }, "seqlen_k is -1: 0 to"},
        {[](Call &c) { c.args.seqlen_k = 1 << 30; }, "seqlen_k is 1073741824: 0 to 1073741823"},
        {[](Call &c) { grouped(c, false), c.args.seqlen_k = 1 << 30; }, "seqlen_k is 1073741824: 0 to 1073741823"},
        {[](Call &c) { c.args.page_block_size = 0; }, "page_block_size is 0: 1 or more"},
        {[](Call &c) { c.args.cache_blocks = -1; }, "cache_blocks is -1: 0 or more"},
        {[](Call &c) { in_order(c, 0, 1), c.args.cache_batch_idx = nullptr, c.args.cache_blocks = 1; },
         "cache_blocks is 1: at least batch, 2"},
        {[](Call &c) { in_order(c, 0, 3); }, "cache_batch_idx[1] is 3: 0 to 2"},
        {[](Call &c) { in_order(c, -1, 0); }, "cache_batch_idx[0] is -1: 0 to 2"},
        {[](Call &c) { c.lengths[1] = -1; }, "sequence 1 has -1 keys: 0 to its room of 12"},
        {[](Call &c) { c.lengths[1] = 13; }, "sequence 1 has 13 keys: 0 to its room of 12"},
        {[](Call &c) { grouped(c, false), c.args.seqlen_k_ptr = nullptr, c.start_k[2] = 22; },
         "sequence 1 has 13 keys: 0 to its room of 12"},
        {[](Call &c) { tokens(c), c.start_k[0] = -1; }, "seqstart_k_ptr[0] is -1: 0 or more"},
        {[](Call &c) { tokens(c), c.start_k[1] = 22; }, "seqstart_k_ptr[2] is 21: at least the one before, 22"},
        {[](Call &c) { c.table[2] = 7; }, "block_table_ptr[0][2] is 7: a page, 0 to 6"},
        {[](Call &c) { c.table[5] = -1; }, "block_table_ptr[1][2] is -1: a page, 0 to 6"},
        {[](Call &c) { grouped(c, true), c.start_k[1] = 4; },
         "seqstart_k_ptr[1] is 4: with is_gappy a row of the first"},
        {[](Call &c) { grouped(c, true), c.start_k[1] = -1; }, "seqstart_k_ptr[1] is -1: with is_gappy"},
        {[](Call &c) { grouped(c, true), c.table[7] = 7; }, "block_table_ptr[1][3] is 7: a page, 0 to 6"},
        {[](Call &c) { grouped(c, true), c.args.seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL: is_gappy needs it"},
        {[](Call &c) { grouped(c, true), c.args.seqstart_k_ptr = nullptr; }, "seqstart_k_ptr is NULL: in group mode"},
        {[](Call &c) { grouped(c, false), c.args.seqlen_k_ptr = c.args.seqstart_k_ptr = nullptr; },
         "seqstart_k_ptr is NULL: in group mode"},
        {[](Call &c) { c.args.k_ptr = nullptr; }, "k_ptr is NULL"},
        {[](Call &c) { c.args.lse_ptr = nullptr; }, "lse_ptr is NULL"},
        {[](Call &c) { grouped(c, false), c.args.seqstart_q_ptr = nullptr; }, "seqstart_q_ptr is NULL"},
        {[](Call &c) { tokens(c), c.args.seqstart_k_ptr = nullptr; }, "seqstart_k_ptr is NULL"},
        {[](Call &c) { c.args.batch_stride_v = INT64_C(1) << 61; }, "v_ptr: its sizes and strides reach beyond"},
        {[](Call &c) { c.args.o_ptr = const_cast<void *>(c.args.v_ptr); }, "overlaps"},
        {[](Call &c) { c.args.o_ptr = c.table; }, "overlaps block_table_ptr"},
        {[](Call &c) { grouped(c, false), c.args.seqlen_knew = 3; },
         "seqlen_knew is 3, rope_type 0: both 0 in group mode"},
        {[](Call &c) { grouped(c, false), c.args.rope_type = TESSERA_ROPE_HALF; },
         "seqlen_knew is 0, rope_type 2: both 0 in group mode"},
        {[](Call &c) { c.args.seqlen_knew = -1; }, "seqlen_knew is -1: 0 or more"},
        {[](Call &c) { appending(c), c.args.rope_type = static_cast<tessera_rope>(3); }, "rope_type is 3: 0, 1, 2"},
        {[](Call &c) { appending(c), c.args.rotary_dim = 48; }, "rotary_dim is 48: a multiple of 16 up to hdim_q, 32"},
        {[](Call &c) { appending(c), c.lengths[1] = 10; }, "sequence 1 has 10 keys and gets 3: it has room for 12"},
        {[](Call &c) { appending(c), c.args.rotary_rows = 11; },
         "rotary_rows is 11: sequence 1 has positions up to 11"},
        {[](Call &c) { appending(c), c.lengths[1] = 8, c.table[5] = 7; }, "block_table_ptr[1][2] is 7: a page, 0 to 6"},
        {[](Call &c) { appending(c), c.args.seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL"},
        {[](Call &c) { appending(c), c.args.vnew_ptr = nullptr; }, "vnew_ptr is NULL"},
        {[](Call &c) { appending(c), c.args.rotary_sin_ptr = nullptr; }, "rotary_sin_ptr is NULL"},
        {[](Call &c) { appending(c), c.args.q_ptr = nullptr; }, "q_ptr is NULL"},
        {[](Call &c) { appending(c), c.args.knew_ptr = c.args.o_ptr; }, "overlaps knew_ptr"},
        {[](Call &c) { appending(c), c.args.k_ptr = c.args.q_ptr; }, "overlaps"},
        {[](Call &c) { appending(c), c.args.stride_k = 16; }, "k_ptr overlaps itself: stride_k is 16"},
        {[](Call &c) { appending(c), c.args.workspace_ptr = const_cast<void *>(c.args.vnew_ptr); }, "overlaps"},
    };
    for (const auto &bad : all) {
        Call call;
        bad.spoil(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_ERROR_INVALID_ARGUMENT) << bad.says;
        EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
            << bad.says << "\nbut: " << tessera_last_error();
        EXPECT_EQ(call.memory, before) << bad.says;
    }
    const std::function<void(Call &)> good[] = {
        [](Call &) {},
        [](Call &c) { in_order(c, 2, 0); },
        [](Call &c) { grouped(c, false); },
        [](Call &c) { grouped(c, false), c.args.seqlen_k_ptr = nullptr; },
        [](Call &c) { grouped(c, true); },
        tokens,
        appending,
        [](Call &c) { appending(c), in_order(c, 1, 0), c.args.cache_blocks = 2; },
        [](Call &c) { appending(c), c.args.seqlen_knew = 0; },
        [](Call &c) { c.args.stride_k = 16; }};
    for (const auto &change : good) {
        Call call;
        change(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
}

// A sequence without keys has no pages, and its entries may be none; one that may have none needs no block at all.
TEST_F(Splitkv, NoKeysNeedNoPages) {
    Call call;
    call.lengths[0] = call.lengths[1] = 0;
    std::fill_n(call.table, 6, -7);
    call.args.cache_blocks = 0;
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    in_order(call, -7, -7);
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
}

// A cache that callers share, each of which has pages of its own in it.
struct Shared {
    static constexpr int kCallers = 4, kSteps = 4, kPages = 6; // of a caller
    std::vector<uint16_t> k = std::vector<uint16_t>(static_cast<size_t>(kCallers * kPages) * 256);
    std::vector<uint16_t> v = std::vector<uint16_t>(static_cast<size_t>(kCallers * kPages) * 128);
    std::vector<unsigned char> results[kCallers];

    // Both sequences of a caller grow from nothing by 3 keys in each step.
    void serve(const tessera_device *device, int caller) {
        Call call;
        appending(call);
        call.args.k_ptr = k.data(), call.args.v_ptr = v.data();
        call.args.cache_blocks = kCallers * kPages;
        for (int i = 0; i < kPages; i++) call.table[i] = caller * kPages + i;
        for (int step = 0; step < kSteps; step++) {
            call.lengths[0] = call.lengths[1] = 3 * step;
            for (const size_t input : {kQ, kKnew, kVnew, kCos, kSin}) {
                auto *const halves = static_cast<uint16_t *>(call.at(input)); // of 0.5 to 1
                for (size_t i = 0; i < Call::kBytes / 2; i++)
                    halves[i] = static_cast<uint16_t>(0x3800 + (i * 37 + input * 5 + step * 11 + caller * 101) % 1024);
            }
            EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
            const auto *const o = static_cast<const unsigned char *>(call.at(kO));
            results[caller].insert(results[caller].end(), o, o + Call::kBytes);
        }
    }
};

TEST_F(Splitkv, CallersAppendToTheirSequencesOfOneCacheAtOnce) {
    Shared one, all;
    std::vector<std::thread> callers;
    for (int n = 0; n < Shared::kCallers; n++) one.serve(device, n);
    for (int n = 0; n < Shared::kCallers; n++) callers.emplace_back([&, n] { all.serve(device, n); });
    for (std::thread &caller : callers) caller.join();
    for (int n = 0; n < Shared::kCallers; n++) EXPECT_EQ(one.results[n], all.results[n]) << n;
    EXPECT_EQ(one.k, all.k);
    EXPECT_EQ(one.v, all.v);
    EXPECT_NE(all.results[0], all.results[1]);
}

// Computed by hand from the rule in the header.
TEST(CkSplits, AreThoseOfTheRule) {
    const struct {
        int32_t batch, heads, heads_k, queries, units;
        tessera_mask mask;
        tessera_bias bias;
        int32_t splits;
    } all[] = {
        {1, 8, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 65},         // 8 n / 608 is 0.855
        {64, 8, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 1},         // 512 blocks are 0.84 of 608
        {60, 8, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 5},         // 480 are not: 3.95 of 4 rounds
        {16, 8, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 9},         // 1.89 of 2 rounds; 4 take 0.84 of one
        {1, 64, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 65},        // heads of a key head are rows
        {1, 64, 8, 1, 304, TESSERA_MASK_BOTTOM_RIGHT, TESSERA_BIAS_NONE, 9}, // not under a mask
        {1, 64, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_ALIBI, 9},        // nor with a bias
        {1, 64, 8, 2, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 9},         // nor of two queries
        {1, 1024, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 33},      // 128 rows are 2 blocks
        {1, 8, 8, 64, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 65},        //
        {1, 8, 8, 65, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 33},        // 16 blocks
        {1, 1, 1, 1, 1, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 2},            // no more than there are places
        {1, 1, 1, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 109},        // 109 / 128 is 0.8516
        {0, 8, 8, 1, 304, TESSERA_MASK_NONE, TESSERA_BIAS_NONE, 1},          // nothing
    };
    for (const auto &x : all) {
        tessera_fmha_fwd_call call;
        call.traits = tessera_fmha_fwd_traits_init();
        call.args = tessera_fmha_fwd_args_init();
        call.traits.mask_type = x.mask, call.traits.bias_type = x.bias;
        call.args.batch = x.batch, call.args.nhead_q = x.heads, call.args.nhead_k = x.heads_k;
        call.queries = x.queries;
        EXPECT_EQ(tessera_fmha_fwd_ck_splits(&call, x.units), x.splits)
            << x.batch << " " << x.heads << " " << x.queries;
    }
}

// A call takes them: its workspace is that of as many splits.
TEST_F(Splitkv, AsManySplitsAsCkTakes) {
    Call call;
    size_t bytes = 0, same = 0;
    call.args.batch = call.args.nhead_k = 1;
    call.args.seqlen_q = call.args.max_seqlen_q = 1;
    const int32_t units = tessera_device_get_facts(device)->compute_units;
    call.args.num_splits = TESSERA_NUM_SPLITS_CK;
    ASSERT_EQ(tessera_fmha_fwd_splitkv_workspace_size(device, &call.traits, &call.args, &bytes), TESSERA_SUCCESS);
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    tessera_fmha_fwd_call attention;
    attention.traits = tessera_fmha_fwd_traits_init();
    attention.args = tessera_fmha_fwd_args_init();
    attention.args.batch = attention.args.nhead_k = 1, attention.args.nhead_q = 4;
    attention.queries = 1;
    call.args.num_splits = tessera_fmha_fwd_ck_splits(&attention, units);
    ASSERT_EQ(tessera_fmha_fwd_splitkv_workspace_size(device, &call.traits, &call.args, &same), TESSERA_SUCCESS);
    EXPECT_EQ(bytes, same) << units;
}

// There is an instance, but on a GPU none that attends by rows that begin anywhere: what is asked beforehand says so.
TEST_F(Splitkv, SelectionIsOfAllSteps) {
    Call call;
    tessera_device_facts facts = *tessera_device_get_facts(device);
    facts.targets = 1u << TESSERA_TARGET_GFX942;
    facts.compute_units = 304;
    const tessera_fmha_fwd_splitkv_instance *instance = nullptr;
    if (tessera_fmha_fwd_splitkv_select(&facts, &call.traits, &call.args, &instance) != TESSERA_SUCCESS)
        GTEST_SKIP() << tessera_last_error();
    instance = nullptr;
    call.args.stride_q = 33;
    EXPECT_EQ(tessera_fmha_fwd_splitkv_select(&facts, &call.traits, &call.args, &instance), TESSERA_ERROR_NO_INSTANCE);
    EXPECT_EQ(instance, nullptr);
    const std::string why = tessera_last_error();
    std::string text(4096, '\0');
    text.resize(tessera_fmha_fwd_splitkv_explain(&facts, &call.traits, &call.args, TESSERA_EXPLAIN_REASONS, text.data(),
                                                 text.size()) -
                1);
    EXPECT_NE(text.find("but a step has none: " + why), std::string::npos) << text;
}

TEST_F(Splitkv, NameOfCk) {
    Call call;
    const tessera_fmha_fwd_splitkv_instance *instance = nullptr;
    char text[256] = "";
    ASSERT_EQ(tessera_fmha_fwd_splitkv_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
              TESSERA_SUCCESS);
    tessera_fmha_fwd_splitkv_ck_name(instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "fmha_fwd_splitkv_d32_fp16_batch_b64x128x32x32x32x32_r4x1x1_r4x1x1_w16x16x16_w16x16x16_qr_vr_"
                       "psskddv_nlogits_nbias_nmask_lse_nsquant_pagedkv_nsink");
}

} // namespace
