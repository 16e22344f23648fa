// SPDX-License-Identifier: MIT
// What calls of mla_prefill refuse, in which words, and that they write nothing then.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/mla_prefill.h"

namespace {

// Two sequences of 2 queries and 3 keys; two heads.
struct Call {
    static constexpr size_t kBytes = 16384;
    std::vector<unsigned char> memory = std::vector<unsigned char>(512 * kBytes, 0);
    unsigned char *const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tessera_mla_prefill_traits traits = tessera_mla_prefill_traits_init();
    tessera_mla_prefill_args args = tessera_mla_prefill_args_init();

    Call() {
        traits.data_type = TESSERA_FMHA_BF16;
        traits.has_lse = 1;
        args.batch = 2, args.seqlen_q = 2, args.seqlen_k = 3, args.nhead_q = args.nhead_k = 2, args.scale_s = 0.1F;
        args.q_ptr = at(0), args.k_ptr = at(1), args.k_rope_ptr = at(2), args.v_ptr = at(3);
        args.o_ptr = at(4), args.lse_ptr = at(5);
        args.stride_q = 192, args.nhead_stride_q = 384, args.batch_stride_q = 768;
        args.stride_k = args.stride_v = args.stride_o = 128;
        args.nhead_stride_k = args.nhead_stride_v = 384, args.batch_stride_k = args.batch_stride_v = 768;
        args.stride_k_rope = 64, args.batch_stride_k_rope = 192;
        args.nhead_stride_o = 256, args.batch_stride_o = 512;
        args.nhead_stride_lse = 2, args.batch_stride_lse = 4;
        args.workspace_ptr = at(6), args.workspace_size = 500 * kBytes;
    }
    void *at(size_t number) { return base + number * kBytes; }
};

class MlaPrefill : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_status run(Call &call) { return tessera_mla_prefill(device, &call.traits, &call.args, nullptr); }
    tessera_device *device = nullptr;
};

TEST_F(MlaPrefill, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.hdim_q = 128; }, "hdim_q is 128: 192"},
        {[](Call &c) { c.traits.hdim_v = 192; }, "hdim_v is 192: 128"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP16; }, "data_type is"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8FP32; }, "data_type is"},
        {[](Call &c) { c.traits.mask_type = TESSERA_MASK_GENERIC; }, "mask_type is 3: no, top_left, bottom_right"},
        {[](Call &c) { c.traits.mask_type = static_cast<tessera_mask>(-1); },
         "mask_type is -1: no, top_left, bottom_right"},
        {[](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_BLOCK; }, "qscale_type is"},
        {[](Call &c) { c.traits.qscale_type = static_cast<tessera_qscale>(-1); }, "qscale_type is -1: no, pt"},
        {[](Call &c) { c.args.k_rope_ptr = nullptr; }, "k_rope_ptr is NULL"},
        {[](Call &c) { c.args.o_ptr = const_cast<void *>(c.args.k_rope_ptr); }, "overlaps"},
    };
    for (const auto &bad : all) {
        Call call;
        bad.spoil(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(run(call), TESSERA_ERROR_INVALID_ARGUMENT) << bad.says;
        EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
            << bad.says << "\nbut: " << tessera_last_error();
        EXPECT_EQ(call.memory, before) << bad.says;
    }
    for (const tessera_mask mask : {TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT, TESSERA_MASK_BOTTOM_RIGHT}) {
        Call call;
        call.traits.mask_type = mask;
        EXPECT_EQ(run(call), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, Call().memory); // the logarithm of sums
    }
}

} // namespace
