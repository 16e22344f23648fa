// SPDX-License-Identifier: MIT
// What calls of fmha_fwd_appendkv refuse, in which words, and that they write nothing then; in place; that a key is
// written once; its names; and that a GPU, which nobody checks arrays for, leaves rows out that have no place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

extern "C" {
#include "op/call.h"
#include "ops/fmha_fwd_appendkv_internal.h"
}

namespace {

// Two sequences in pages of 4 rows, 3 pages each; 4 and 2 heads of 32 and 16 elements; 2 queries, 3 new keys.
enum { kQ, kRotated, kK, kV, kKnew, kVnew, kCos, kSin, kLengths, kTable, kTensors };
struct Call {
    static constexpr size_t kBytes = 4096;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes, 0x11);
    tessera_fmha_fwd_appendkv_traits traits = tessera_fmha_fwd_appendkv_traits_init();
    tessera_fmha_fwd_appendkv_args args = tessera_fmha_fwd_appendkv_args_init();
    int32_t *lengths = static_cast<int32_t *>(at(kLengths)), *table = static_cast<int32_t *>(at(kTable));

    Call() {
        traits.hdim_q = args.hdim_q = 32, traits.hdim_v = args.hdim_v = 16;
        traits.data_type = TESSERA_FMHA_FP16;
        traits.rope_type = TESSERA_ROPE_HALF;
        args.batch = 2, args.nhead_q = 4, args.nhead_k = 2, args.seqlen_q = 2, args.seqlen_knew = 3;
        args.rotary_dim = 16, args.rotary_rows = 12, args.has_mask = 1;
        args.page_block_size = 4, args.max_seqlen_k = 12, args.cache_blocks = 7, args.batch_stride_block_table = 3;
        args.stride_q = args.stride_q_rotated = args.stride_k = args.stride_knew = 32;
        args.stride_v = args.stride_vnew = 16;
        args.nhead_stride_q = args.nhead_stride_q_rotated = 64, args.nhead_stride_k = 128, args.nhead_stride_knew = 96;
        args.nhead_stride_v = 64, args.nhead_stride_vnew = 48;
        args.batch_stride_q = args.batch_stride_q_rotated = 256, args.batch_stride_k = 256;
        args.batch_stride_knew = 192, args.batch_stride_v = 128, args.batch_stride_vnew = 96;
        const int32_t before[] = {5, 8}, pages[] = {6, 0, 2, 1, 5, 3};
        std::copy_n(before, 2, lengths);
        std::copy_n(pages, 6, table);
        uint16_t *const all = static_cast<uint16_t *>(at(0)); // halves from 0.5 up, which are all finite
        for (size_t i = 0; i < kLengths * kBytes / 2; i++) all[i] = static_cast<uint16_t>(0x3800 + i * 37 % 1024);
        point(memory.data());
    }
    void point(unsigned char *base) {
        const auto place = [=](size_t number) { return static_cast<void *>(base + number * kBytes); };
        args.q_ptr = place(kQ), args.q_rotated_ptr = place(kRotated), args.k_ptr = place(kK), args.v_ptr = place(kV);
        args.knew_ptr = place(kKnew), args.vnew_ptr = place(kVnew), args.rotary_cos_ptr = place(kCos);
        args.rotary_sin_ptr = place(kSin), args.seqlen_k_ptr = place(kLengths), args.block_table_ptr = place(kTable);
    }
    void *at(size_t number) { return memory.data() + number * kBytes; }
    std::vector<unsigned char> tensor(size_t number) const {
        return {memory.begin() + static_cast<ptrdiff_t>(number * kBytes),
                memory.begin() + static_cast<ptrdiff_t>((number + 1) * kBytes)};
    }
    tessera_status run(const tessera_device *device) {
        return tessera_fmha_fwd_appendkv(device, &traits, &args, nullptr);
    }
};

class Appendkv : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;
};

void *behind(const void *pointer, ptrdiff_t bytes) {
    return reinterpret_cast<void *>(reinterpret_cast<intptr_t>(pointer) + bytes);
}

// A cache of sequences, without pages, of which the call's two are these.
void in_order(Call &c, int32_t first, int32_t second) {
    c.args.cache_batch_idx = c.table;
    c.args.block_table_ptr = nullptr;
    c.table[0] = first, c.table[1] = second;
    c.args.cache_blocks = 2;
    c.args.nhead_stride_k = 384, c.args.batch_stride_k = 768;
    c.args.nhead_stride_v = 192, c.args.batch_stride_v = 384;
}

TEST_F(Appendkv, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.hdim_q = 0; }, "hdim_q is 0: 1 to 512"},
        {[](Call &c) { c.traits.hdim_q = 513; }, "hdim_q is 513: 1 to 512"},
        {[](Call &c) { c.traits.hdim_v = 0; }, "hdim_v is 0: 1 to 512"},
        {[](Call &c) { c.traits.hdim_v = 513; }, "hdim_v is 513: 1 to 512"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_MXFP4; }, "data_type is mxfp4: all but mxfp8 and mxfp4"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(99); }, "data_type is 99"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8; }, "rope_type is half: fp8 is not rotated"},
        {[](Call &c) { c.traits.is_v_rowmajor = 0; }, "is_v_rowmajor is 0: 1"},
        {[](Call &c) { c.traits.rope_type = static_cast<tessera_rope>(3); }, "rope_type is 3: 0, 1, 2"},
        {[](Call &c) { c.args.rotary_dim = 24; }, "rotary_dim is 24: a multiple of 16 up to hdim_q, 32"},
        {[](Call &c) { c.args.rotary_dim = 48; }, "rotary_dim is 48"},
        {[](Call &c) { c.args.rotary_dim = 0; }, "rotary_dim is 0"},
        {[](Call &c) { c.args.rotary_rows = -1; }, "rotary_rows is -1: 0 or more"},
        {[](Call &c) { c.args.has_mask = 2; }, "has_mask is 2: 0 or 1"},
        {[](Call &c) { c.args.has_mask = -1; }, "has_mask is -1: 0 or 1"},
        {[](Call &c) { c.args.hdim_q = 16; }, "hdim_q, hdim_v are 16, 16: those of the traits, 32, 16"},
        {[](Call &c) { c.args.hdim_v = 32; }, "hdim_q, hdim_v are 32, 32: those of the traits, 32, 16"},
        {[](Call &c) { c.args.batch = -1; }, "batch is -1: 0 or more"},
        {[](Call &c) { c.args.seqlen_q = -1; }, "seqlen_q is -1: 0 or more"},
        {[](Call &c) { c.args.seqlen_knew = -2; }, "seqlen_knew is -2: 0 or more"},
        {[](Call &c) { c.args.nhead_k = 0; }, "nhead_k is 0: 1 or more"},
        {[](Call &c) { c.args.nhead_q = 0; }, "nhead_q is 0: a multiple of nhead_k, 2"},
        {[](Call &c) { c.args.nhead_q = 3; }, "nhead_q is 3: a multiple of nhead_k, 2"},
        {[](Call &c) { c.args.nhead_k = c.args.nhead_q = 1 << 30; },
         "rows, of all tokens and heads: at most 2147483647"},
        {[](Call &c) { c.args.max_seqlen_k = -4; }, "max_seqlen_k is -4: 0 or more"},
        {[](Call &c) { c.args.cache_blocks = -1; }, "cache_blocks is -1: 0 or more"},
        {[](Call &c) { c.args.page_block_size = 0; }, "page_block_size is 0: 1 or more"},
        {[](Call &c) { c.args.cache_batch_idx = c.lengths; }, "cache_batch_idx is given: NULL with pages"},
        {[](Call &c) { c.args.block_table_ptr = nullptr, c.args.cache_blocks = 1; },
         "cache_blocks is 1: at least batch, 2"},
        {[](Call &c) { in_order(c, 0, 2); }, "cache_batch_idx[1] is 2: 0 to 1"},
        {[](Call &c) { in_order(c, -1, 0); }, "cache_batch_idx[0] is -1: 0 to 1"},
        {[](Call &c) { c.lengths[1] = -1; }, "seqlen_k_ptr[1] is -1: 0 or more"},
        {[](Call &c) { c.lengths[1] = 10; }, "sequence 1 has 10 keys and gets 3: it has room for 12"},
        {[](Call &c) { c.args.rotary_rows = 10; }, "rotary_rows is 10: sequence 1 has positions up to 10"},
        {[](Call &c) { c.table[1] = 7; }, "block_table_ptr[0][1] is 7: a page, 0 to 6"},
        {[](Call &c) { c.table[5] = -1; }, "block_table_ptr[1][2] is -1: a page, 0 to 6"},
        {[](Call &c) { c.args.q_ptr = nullptr; }, "q_ptr is NULL"},
        {[](Call &c) { c.args.q_rotated_ptr = nullptr; }, "q_rotated_ptr is NULL"},
        {[](Call &c) { c.args.k_ptr = nullptr; }, "k_ptr is NULL"},
        {[](Call &c) { c.args.vnew_ptr = nullptr; }, "vnew_ptr is NULL"},
        {[](Call &c) { c.args.seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL"},
        {[](Call &c) { c.args.rotary_cos_ptr = nullptr; }, "rotary_cos_ptr is NULL"},
        {[](Call &c) { c.args.rotary_sin_ptr = behind(c.args.rotary_sin_ptr, 1); }, "must be aligned to 2 bytes"},
        {[](Call &c) { c.args.stride_knew = -1; }, "stride_knew is -1"},
        {[](Call &c) { c.args.stride_k = 16; }, "stride_k is 16"},
        {[](Call &c) { c.args.batch_stride_v = INT64_C(1) << 61; }, "v_ptr: its sizes and strides reach beyond"},
        {[](Call &c) { c.args.v_ptr = behind(c.args.k_ptr, 64); }, "overlaps"},
        {[](Call &c) { c.args.q_rotated_ptr = behind(c.args.q_ptr, 64); }, "overlaps"},
        {[](Call &c) { c.args.k_ptr = behind(c.args.block_table_ptr, 0); }, "overlaps block_table_ptr"},
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
    for (const bool pages : {true, false}) {
        Call call;
        if (!pages) in_order(call, 1, 0);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
}

// A page of which no row is written may be none, as in tables that grow.
TEST_F(Appendkv, ReadsOnlyThePagesThatItNeeds) {
    Call call, other;
    other.table[0] = other.table[2] = other.table[3] = -7;
    ASSERT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(other.run(device), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(call.tensor(kK), other.tensor(kK));
}

TEST_F(Appendkv, NothingToDoNeedsNothing) {
    for (int what = 0; what < 2; what++) {
        Call call;
        tessera_fmha_fwd_appendkv_args &a = call.args;
        if (what == 0) a.batch = 0;
        if (what == 1) a.seqlen_knew = 0, call.traits.rope_type = TESSERA_ROPE_NONE;
        a.q_ptr = a.knew_ptr = a.vnew_ptr = a.seqlen_k_ptr = a.rotary_cos_ptr = a.rotary_sin_ptr = nullptr;
        a.q_rotated_ptr = a.k_ptr = a.v_ptr = nullptr;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    }
}

TEST_F(Appendkv, InPlaceGivesTheSameBits) {
    for (const tessera_rope rope : {TESSERA_ROPE_HALF, TESSERA_ROPE_INTERLEAVED}) {
        Call apart, inside;
        apart.traits.rope_type = inside.traits.rope_type = rope;
        inside.args.q_rotated_ptr = inside.at(kQ);
        ASSERT_EQ(apart.run(device), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(inside.run(device), TESSERA_SUCCESS) << tessera_last_error();
        const size_t bytes = 2 * 256 * sizeof(uint16_t); // of both sequences
        EXPECT_TRUE(std::equal(apart.memory.begin() + kRotated * Call::kBytes,
                               apart.memory.begin() + kRotated * Call::kBytes + bytes, inside.memory.begin()));
        EXPECT_NE(apart.tensor(kQ), inside.tensor(kQ));
    }
}

// How often each element of a cache's tensor is written where the rows of a call are computed one by one.
std::vector<int> count_writes(Call &call, tessera_fmha_fwd_appendkv_call &plan,
                              const tessera_fmha_fwd_appendkv_instance *instance, size_t tensor) {
    std::vector<int> count(Call::kBytes / 2);
    for (int64_t n = 0; n < plan.rows * call.args.batch; n++) {
        auto *const halves = static_cast<uint16_t *>(call.at(tensor));
        std::fill_n(halves, Call::kBytes / 2, 0xffff); // NaN, which no row has
        instance->run(&plan.problem, n, n + 1);
        for (size_t i = 0; i < count.size(); i++) count[i] += halves[i] != 0xffff;
    }
    return count;
}

// A key row is written once, however many query heads share it, and nothing else of the cache at all.
TEST_F(Appendkv, KeysAreWrittenOnce) {
    for (const tessera_rope rope : {TESSERA_ROPE_NONE, TESSERA_ROPE_HALF, TESSERA_ROPE_INTERLEAVED})
        for (const bool pages : {true, false}) {
            Call call;
            tessera_fmha_fwd_appendkv_call plan;
            const tessera_fmha_fwd_appendkv_instance *instance = nullptr;
            if (!pages) in_order(call, 1, 0);
            call.traits.rope_type = rope;
            call.args.nhead_q = 8;
            call.args.batch_stride_q = call.args.batch_stride_q_rotated = 512;
            ASSERT_EQ(
                tessera_fmha_fwd_appendkv_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
                TESSERA_SUCCESS);
            ASSERT_EQ(tessera_read_call(&tessera_fmha_fwd_appendkv_operation, &plan, &call.traits, &call.args),
                      TESSERA_SUCCESS);
            std::vector<int> want_k(Call::kBytes / 2), want_v(Call::kBytes / 2);
            for (int b = 0; b < 2; b++)
                for (int t = call.lengths[b]; t < call.lengths[b] + 3; t++)
                    for (int g = 0; g < 2; g++) {
                        const int64_t block = pages ? call.table[b * 3 + t / 4] : call.table[b], r = pages ? t % 4 : t;
                        const auto &a = call.args;
                        for (int d = 0; d < 32; d++)
                            want_k[block * a.batch_stride_k + g * a.nhead_stride_k + r * a.stride_k + d] = 1;
                        for (int d = 0; d < 16; d++)
                            want_v[block * a.batch_stride_v + g * a.nhead_stride_v + r * a.stride_v + d] = 1;
                    }
            EXPECT_EQ(count_writes(call, plan, instance, kK), want_k);
            EXPECT_EQ(count_writes(call, plan, instance, kV), want_v);
        }
}

// On a GPU, too: without rope a call with eight times the query heads runs the same instructions.
TEST_F(Appendkv, AGpuWritesKeysOnce) {
    const std::string path = testing::TempDir() + "appendkv_" + std::to_string(getpid()) + ".jsonl";
    tessera_device *gpu = nullptr;
#ifdef TESSERA_SIM
    setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
#endif
    setenv("TESSERA_SIM_STATS", path.c_str(), 1);
    const tessera_status opened = tessera_device_open("sim:gfx942", &gpu);
    unsetenv("TESSERA_SIM_STATS");
    if (opened != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    std::vector<std::string> launches;
    for (const int heads : {2, 16}) {
        Call call;
        call.traits.rope_type = TESSERA_ROPE_NONE;
        call.args.nhead_q = heads;
        void *memory = nullptr;
        ASSERT_EQ(tessera_device_malloc(gpu, call.memory.size(), &memory), TESSERA_SUCCESS);
        ASSERT_EQ(tessera_device_copy_to(gpu, memory, call.memory.data(), call.memory.size()), TESSERA_SUCCESS);
        call.point(static_cast<unsigned char *>(memory));
        const tessera_status status = call.run(gpu);
        EXPECT_EQ(tessera_device_free(gpu, memory), TESSERA_SUCCESS);
        if (status == TESSERA_ERROR_NO_INSTANCE) break;
        EXPECT_EQ(status, TESSERA_SUCCESS) << tessera_last_error();
    }
    tessera_device_close(gpu);
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) launches.push_back(line);
    lines.close();
    std::remove(path.c_str());
    if (launches.empty()) GTEST_SKIP() << "this build has no instance for gfx942";
    ASSERT_EQ(launches.size(), 2u);
    EXPECT_EQ(launches[0], launches[1]);
}

TEST_F(Appendkv, NameOfCk) {
    Call call;
    const auto name = [&] {
        const tessera_fmha_fwd_appendkv_instance *instance = nullptr;
        char text[256] = "";
        EXPECT_EQ(
            tessera_fmha_fwd_appendkv_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
            TESSERA_SUCCESS);
        tessera_fmha_fwd_appendkv_ck_name(instance, &call.traits, &call.args, text, sizeof text);
        return std::string(text);
    };
    EXPECT_EQ(name(), "fmha_fwd_appendkv_d32_fp16_b64x64x32x32_vr_psskddv_half_pagedkv");
    call.traits.rope_type = TESSERA_ROPE_NONE;
    call.traits.hdim_q = call.args.hdim_q = 128;
    call.args.block_table_ptr = nullptr;
    EXPECT_EQ(name(), "fmha_fwd_appendkv_d128_fp16_b64x64x128x128_vr_psskddv");
}

// Rows whose position, page or angles there are none of stay out; all others are as on the CPU.
TEST_F(Appendkv, AGpuLeavesOutWhatHasNoPlace) {
    tessera_device *gpu = nullptr;
#ifdef TESSERA_SIM
    setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
#endif
    if (tessera_device_open("sim:gfx942", &gpu) != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    const std::function<void(Call &)> spoils[] = {
        [](Call &) {},
        [](Call &c) { c.table[1] = 7; },
        [](Call &c) { c.table[1] = INT32_MIN; },
        [](Call &c) { c.lengths[0] = -2; },
        [](Call &c) { c.lengths[0] = 10; },
        [](Call &c) { c.lengths[0] = INT32_MAX - 1; },
        [](Call &c) { c.args.rotary_rows = 7; },
    };
    for (const auto &spoil : spoils) {
        Call call, right;
        spoil(call);
        const int64_t n = call.lengths[0];
        void *memory = nullptr;
        ASSERT_EQ(tessera_device_malloc(gpu, call.memory.size(), &memory), TESSERA_SUCCESS);
        ASSERT_EQ(tessera_device_copy_to(gpu, memory, call.memory.data(), call.memory.size()), TESSERA_SUCCESS);
        call.point(static_cast<unsigned char *>(memory));
        const tessera_status status = call.run(gpu);
        if (status == TESSERA_ERROR_NO_INSTANCE) {
            tessera_device_free(gpu, memory);
            tessera_device_close(gpu);
            GTEST_SKIP() << "this build has no instance for gfx942";
        }
        ASSERT_EQ(status, TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_device_synchronize(gpu), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_device_copy_from(gpu, call.memory.data(), memory, call.memory.size()), TESSERA_SUCCESS);
        ASSERT_EQ(tessera_device_free(gpu, memory), TESSERA_SUCCESS);

        // Which new keys of either sequence have a place.
        Call before;
        ASSERT_EQ(right.run(device), TESSERA_SUCCESS);
        std::vector<unsigned char> want = before.tensor(kV);
        for (int b = 0; b < 2; b++)
            for (int64_t j = 0; j < 3; j++) {
                const int64_t t = (b ? 8 : n) + j;
                const bool placed = t >= 0 && t < 12 && t < call.args.rotary_rows;
                const int32_t page = placed ? call.table[b * 3 + t / 4] : -1;
                for (int64_t g = 0; g < 2 && page >= 0 && page < 7; g++)
                    std::copy_n(static_cast<unsigned char *>(before.at(kVnew)) + 2 * (b * 96 + g * 48 + j * 16), 32,
                                want.begin() + 2 * (page * 128 + g * 64 + t % 4 * 16));
            }
        EXPECT_EQ(call.tensor(kV), want);
        if (&spoil == &spoils[0]) {
            EXPECT_EQ(call.tensor(kV), right.tensor(kV));
        }
        for (const size_t input : {kQ, kKnew, kVnew, kCos, kSin}) EXPECT_EQ(call.tensor(input), before.tensor(input));
    }
    Call many, large; // of inputs that lie in the same place
    for (Call *const call : {&many, &large}) {
        call->traits.rope_type = TESSERA_ROPE_NONE;
        call->args.batch_stride_knew = call->args.batch_stride_vnew = call->args.batch_stride_block_table = 0;
        call->args.stride_knew = call->args.stride_vnew = 0;
    }
    many.args.batch = 65536;
    EXPECT_EQ(many.run(gpu), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "batch is 65536: on a GPU at most 65535");
    large.args.seqlen_knew = 1 << 24;
    EXPECT_EQ(large.run(gpu), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(),
                 "a sequence has 33554432 rows, of all tokens and heads: on a GPU at most 16777216");
    tessera_device_close(gpu);
}

} // namespace
