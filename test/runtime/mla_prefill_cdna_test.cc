// SPDX-License-Identifier: MIT
// Launches of mla_prefill on AMD's GPUs: the kernel's argument, static and persistent grids, and what is refused.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <string>

#include "fake_hip.h"
#include "tessera/kernel/mla_prefill_cdna.h"

extern "C" {
#include "device/device.h"
#include "op/call.h"
#include "ops/mla_prefill_internal.h"
extern const struct tessera_operation tessera_mla_prefill_operation;
}

namespace {

using Args = tessera_mla_prefill_cdna_args;

const void *address(int number) { return reinterpret_cast<const void *>(uintptr_t{1} << 44 | uintptr_t(number) << 40); }

// Two sequences of 300 queries and 77 keys; four heads over two of keys, which share the rotated part.
class MlaPrefillCdna : public ::testing::Test {
  protected:
    MlaPrefillCdna() : hip({"gfx950"}) {
        EXPECT_EQ(tessera_device_open("hip:0", &device), TESSERA_SUCCESS) << tessera_last_error();
        row.base.name = "short_name";
        row.base.target = TESSERA_TARGET_GFX950;
        row.base.symbol = "kernel";
        row.base.threads = 512;
        row.base.macs_per_cycle = 2000;
        row.tile = {256, 128};
        row.start = 2;
        const std::string pack = make_pack("mla_prefill", "gfx950", {{"kernel", "ELF kernel"}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        traits.data_type = TESSERA_FMHA_FP8BF16;
        a.batch = 2, a.seqlen_q = a.max_seqlen_q = 300, a.seqlen_k = 77, a.nhead_q = 4, a.nhead_k = 2;
        a.scale_s = 0.5F;
        a.q_ptr = address(1), a.k_ptr = address(2), a.k_rope_ptr = address(3), a.v_ptr = address(4);
        a.o_ptr = const_cast<void *>(address(5));
        a.seqstart_q_ptr = address(6), a.seqstart_k_ptr = address(7);
        a.stride_q = 192, a.stride_k = a.stride_v = a.stride_o = 128, a.stride_k_rope = 64;
        spread(1 << 20);
    }
    ~MlaPrefillCdna() override { tessera_device_close(device); }

    // Heads and sequences lie apart, however many there are.
    void spread(int64_t head) {
        a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v = a.nhead_stride_o = head;
        a.batch_stride_q = a.batch_stride_k = a.batch_stride_v = a.batch_stride_o = head * a.nhead_q;
        a.batch_stride_k_rope = 1 << 20;
    }
    tessera_mla_prefill_call whole() const {
        tessera_mla_prefill_call call{};
        call.traits = traits, call.args = a;
        return call;
    }
    std::string refusal() {
        tessera_mla_prefill_call call = whole();
        const auto *const op = &tessera_mla_prefill_operation;
        if (op->check_sizes(&call) != TESSERA_SUCCESS) return tessera_last_error();
        return op->check_row(&call, &row.base) == TESSERA_SUCCESS ? "" : tessera_last_error();
    }
    Args launched() {
        Args args = {};
        tessera_mla_prefill_call call = whole();
        tessera_plan plan;
        const auto *const op = &tessera_mla_prefill_operation;
        hip.launches.clear();
        EXPECT_EQ(op->check_sizes(&call), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(tessera_plan_call(op, &call, &row.base, &device->facts, 1, &plan), TESSERA_SUCCESS)
            << tessera_last_error();
        EXPECT_EQ(tessera_run_call(op, &call, device, &plan, nullptr), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(hip.launches.size(), 1U);
        if (hip.launches.size() == 1 && hip.launches[0].argument.size() == sizeof args)
            std::memcpy(&args, hip.launches[0].argument.data(), sizeof args);
        return args;
    }
    void expect_grid(uint32_t x, uint32_t y, uint32_t z) {
        ASSERT_EQ(hip.launches.size(), 1U);
        EXPECT_EQ(hip.launches[0].grid[0], x);
        EXPECT_EQ(hip.launches[0].grid[1], y);
        EXPECT_EQ(hip.launches[0].grid[2], z);
    }

    FakeHip hip;
    tessera_device *device = nullptr;
    tessera_mla_prefill_instance row = {};
    tessera_mla_prefill_traits traits = tessera_mla_prefill_traits_init();
    tessera_mla_prefill_args a = tessera_mla_prefill_args_init();
};

TEST_F(MlaPrefillCdna, Argument) {
    const Args args = launched();
    expect_grid(4, 2, 2);
    EXPECT_EQ(args.call.q, a.q_ptr);
    EXPECT_EQ(args.call.k, a.k_ptr);
    EXPECT_EQ(args.k_rope, a.k_rope_ptr);
    EXPECT_EQ(args.call.v, a.v_ptr);
    EXPECT_EQ(args.stride_k_rope, 64);
    EXPECT_EQ(args.nhead_stride_k_rope, 0);
    EXPECT_EQ(args.batch_stride_k_rope, 1 << 20);
    EXPECT_EQ(args.call.seqlen_k, 77);
    EXPECT_EQ(args.call.seqstart_k, nullptr);
    EXPECT_EQ(args.call.blocks_q, 2);
    EXPECT_EQ(args.items, 16U);
}

TEST_F(MlaPrefillCdna, GroupMode) {
    traits.is_group_mode = 1;
    a.nhead_stride_k_rope = 1 << 20;
    const Args args = launched();
    EXPECT_EQ(args.batch_stride_k_rope, 0);
    EXPECT_EQ(args.nhead_stride_k_rope, 1 << 20);
    EXPECT_EQ(args.call.seqstart_k, a.seqstart_k_ptr);
    EXPECT_EQ(args.call.cu_seqlen_k, nullptr);
}

TEST_F(MlaPrefillCdna, PersistentGrid) {
    const auto units = static_cast<uint32_t>(device->facts.compute_units);
    row.persistent = 1;
    EXPECT_EQ(launched().workgroups, 16U); // fewer items than units
    expect_grid(16, 1, 1);
    a.nhead_q = a.nhead_k = 4096;
    spread(1 << 16);
    const Args args = launched();
    expect_grid(units, 1, 1);
    EXPECT_EQ(args.workgroups, units);
    EXPECT_EQ(args.items, 4096U * 2 * 2);
}

TEST_F(MlaPrefillCdna, NothingToDo) {
    a.seqlen_q = a.max_seqlen_q = 0;
    tessera_mla_prefill_call call = whole();
    tessera_plan plan;
    const auto *const op = &tessera_mla_prefill_operation;
    ASSERT_EQ(op->check_sizes(&call), TESSERA_SUCCESS);
    ASSERT_EQ(tessera_plan_call(op, &call, &row.base, &device->facts, 1, &plan), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_run_call(op, &call, device, &plan, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_TRUE(hip.launches.empty());
}

TEST_F(MlaPrefillCdna, Refuses) {
    EXPECT_EQ(refusal(), "");
    a.stride_k_rope = INT32_MAX / 128 - 1;
    EXPECT_EQ(refusal(), "");
    a.stride_k_rope++;
    EXPECT_EQ(refusal(), "stride_k_rope is 16777215: 0 to less than 16777215 on a GPU");
    a.stride_k_rope = 64;
    a.stride_q = INT32_MAX / 256;
    EXPECT_EQ(refusal(), "stride_q is 8388607: 0 to less than 8388607 on a GPU");
    a.stride_q = 192;
    a.stride_v = INT32_MAX / 128;
    EXPECT_EQ(refusal(), "stride_v is 16777215: 0 to less than 16777215 on a GPU");
    a.stride_v = 128;
    a.nhead_q = a.nhead_k = 65535;
    EXPECT_EQ(refusal(), "");
    a.nhead_q = a.nhead_k = 65536;
    EXPECT_EQ(refusal(), "nhead_q is 65536: at most 65535 on a GPU");
    a.nhead_q = a.nhead_k = 4;
    a.batch = 65535;
    EXPECT_EQ(refusal(), "");
    a.batch = 65536;
    EXPECT_EQ(refusal(), "batch is 65536: at most 65535 on a GPU");
    a.batch = 2;
    a.seqlen_q = 65535 * 256;
    EXPECT_EQ(refusal(), "");
    a.seqlen_q++;
    EXPECT_EQ(refusal(), "seqlen_q is 16776961: at most 16776960 on a GPU");
    traits.is_group_mode = 1;
    a.max_seqlen_q = a.seqlen_q;
    EXPECT_EQ(refusal(), "max_seqlen_q is 16776961: at most 16776960 on a GPU");
    traits.is_group_mode = 0;
    a.seqlen_q = 65535 * 256, a.nhead_q = a.nhead_k = 16384, a.batch = 2;
    EXPECT_EQ(refusal(), "");
    a.batch = 3;
    EXPECT_EQ(refusal(),
              "nhead_q, batch and lengths of queries make 3221176320 work items: at most 2147483647 on a GPU");
}

// Rounds of the units without a mask; under one the longest item, or the units' work.
TEST_F(MlaPrefillCdna, Costs) {
    const auto cost = [&](int64_t units) {
        tessera_mla_prefill_call call = whole();
        EXPECT_EQ(tessera_mla_prefill_operation.check_sizes(&call), TESSERA_SUCCESS);
        tessera_fmha_fwd_shape shape;
        tessera_fmha_fwd_describe(&call.over.attention, &shape);
        return tessera_mla_prefill_cdna_cost(&row, &shape, units);
    };
    const double tile = 256.0 * 128 * 320 / 2000;
    a.seqlen_k = 1000;
    EXPECT_DOUBLE_EQ(cost(16), 10 * tile); // 16 items of 8 tiles and a start of 2
    EXPECT_DOUBLE_EQ(cost(15), 20 * tile);
    traits.mask_type = TESSERA_MASK_BOTTOM_RIGHT;
    EXPECT_DOUBLE_EQ(cost(32), 10 * tile);                                // the longest
    EXPECT_NEAR(cost(4), 4 * (2 + 978.0 / 128 + 0.5) * tile, tile / 100); // 1000 - 300 / 2 + 256 / 2 keys on average
}

} // namespace
