// SPDX-License-Identifier: MIT
// What calls of hadamard_rotate refuse, in which words, and that they write nothing then; and its names.
#include "tessera/kernel/hadamard_rotate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace {

struct Call {
    std::vector<float> memory = std::vector<float>(8192, 1.5F);
    tessera_hadamard_rotate_traits traits = tessera_hadamard_rotate_traits_init();
    tessera_hadamard_rotate_args args = tessera_hadamard_rotate_args_init();
    Call() {
        traits.hdim = 64, traits.data_type = TESSERA_FMHA_FP32;
        args.x_ptr = memory.data(), args.y_ptr = memory.data() + 4096;
        args.tokens = 3, args.nhead = 2;
        args.stride_x = args.stride_y = 128, args.nhead_stride_x = args.nhead_stride_y = 64;
    }
};

class HadamardRotate : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_status run(Call &c) { return tessera_hadamard_rotate(device, &c.traits, &c.args, nullptr); }
    tessera_device *device = nullptr;
};

TEST_F(HadamardRotate, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8; }, "data_type is 3: fp32, fp16 or bf16"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(-1); }, "data_type is -1"},
        {[](Call &c) { c.traits.hdim = 96; }, "hdim is 96: 64, 128 or 256"},
        {[](Call &c) { c.traits.hdim = 192; }, "hdim is 192: 64, 128 or 256"},
        {[](Call &c) { c.traits.hdim = 512; }, "hdim is 512: 64, 128 or 256"},
        {[](Call &c) { c.args.tokens = -1; }, "tokens is -1: 0 or more"},
        {[](Call &c) { c.args.nhead = 0; }, "nhead is 0: 1 or more"},
        {[](Call &c) { c.args.x_ptr = nullptr; }, "x_ptr is NULL"},
        {[](Call &c) { c.args.y_ptr = nullptr; }, "y_ptr is NULL"},
        {[](Call &c) { c.args.stride_x = -1; }, "stride_x is -1"},
        {[](Call &c) { c.args.nhead_stride_y = 32; }, "nhead_stride_y"},
        {[](Call &c) { c.args.y_ptr = c.memory.data() + 32; }, "overlaps x_ptr"},
        {[](Call &c) { c.args.y_ptr = c.memory.data(), c.args.stride_y = 130; }, "overlaps x_ptr"},
    };
    for (const auto &bad : all) {
        Call call;
        bad.spoil(call);
        const std::vector<float> before = call.memory;
        EXPECT_EQ(run(call), TESSERA_ERROR_INVALID_ARGUMENT) << bad.says;
        EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
            << bad.says << "\nbut: " << tessera_last_error();
        EXPECT_EQ(call.memory, before) << bad.says;
    }
    const std::function<void(Call &)> good[] = {
        [](Call &) {},
        [](Call &c) { c.args.y_ptr = c.memory.data(); },
        [](Call &c) { c.traits.hdim = 128, c.args.nhead = 1; },
        [](Call &c) { c.traits.hdim = 256, c.args.nhead = 1, c.args.stride_x = c.args.stride_y = 256; },
        [](Call &c) { c.traits.data_type = TESSERA_FMHA_BF16; },
    };
    for (const auto &change : good) {
        Call call;
        change(call);
        const std::vector<float> before = call.memory;
        EXPECT_EQ(run(call), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
    Call none;
    none.args.tokens = 0, none.args.x_ptr = none.args.y_ptr = nullptr;
    EXPECT_EQ(run(none), TESSERA_SUCCESS) << tessera_last_error();
}

TEST_F(HadamardRotate, Name) {
    Call call;
    const tessera_hadamard_rotate_instance *instance = nullptr;
    char text[256] = "";
    call.traits.hdim = 128, call.args.nhead = 1;
    ASSERT_EQ(tessera_hadamard_rotate_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
              TESSERA_SUCCESS);
    tessera_hadamard_rotate_ck_name(instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "hadamard_rotate_d128_fp32");
}

TEST_F(HadamardRotate, AGpuHasFewerRows) {
#ifdef TESSERA_SIM
    setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
#endif
    tessera_device *gpu = nullptr;
    if (tessera_device_open("sim:gfx942", &gpu) != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    Call call;
    const auto check = [&] { return tessera_hadamard_rotate_check_on(gpu, &call.traits, &call.args); };
    if (check() != TESSERA_ERROR_NO_INSTANCE) {
        call.args.y_ptr = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(call.args.y_ptr) + (UINT64_C(1) << 40));
        call.args.tokens = 1 << 23;
        EXPECT_EQ(check(), TESSERA_SUCCESS) << tessera_last_error();
        call.args.tokens++;
        EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find("there are 16777218 rows, of all tokens and heads: on a GPU"),
                  std::string::npos)
            << tessera_last_error();
    }
    tessera_device_close(gpu);
}

} // namespace
