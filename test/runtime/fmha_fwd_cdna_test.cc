// SPDX-License-Identifier: MIT
// Launches of CDNA instances: the kernel's argument and grid, what is refused, and that no memory is read.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstring>
#include <map>

#include "fake_hip.h"
#include "fmha_fwd_fixture.h"
#include "tessera/kernel/fmha_fwd_cdna.h"
#include "tessera/kernel/fmha_fwd_combine_gpu.h"

extern "C" {
#include "device/device.h"
}

namespace {

using Args = tessera_fmha_fwd_gpu_args;

class Cdna : public ::testing::Test {
  protected:
    Cdna() : hip({"gfx942"}) {
        EXPECT_EQ(tessera_device_open("hip:0", &device), TESSERA_SUCCESS) << tessera_last_error();
        instance = make_instance("short_name", TESSERA_TARGET_GFX942, &all, 128, 64);
        instance.base.symbol = "kernel";
        instance.base.threads = 256;
        const std::string pack = make_pack("fmha_fwd", "gfx942", {{"kernel", "ELF kernel"}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        call.traits.data_type = TESSERA_FMHA_FP16;
        call.args.seqlen_q = call.args.max_seqlen_q = 300;
        call.args.seqlen_k = 77;
        call.set_strides();
    }
    ~Cdna() override { tessera_device_close(device); }

    tessera_status check() {
        const tessera_fmha_fwd_call whole = call.whole();
        const tessera_status status = tessera_check_call(&tessera_fmha_fwd_operation, &whole, false, true);
        return status == TESSERA_SUCCESS ? tessera_fmha_fwd_cdna_check(&instance, &whole) : status;
    }

    tessera_status launch(void *stream = nullptr) {
        tessera_fmha_fwd_call whole = call.whole();
        whole.queries = call.args.seqlen_q, whole.keys = call.args.seqlen_k;
        tessera_plan plan;
        const tessera_status planned =
            tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan);
        return planned ? planned : tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, stream);
    }

    Args launched(void *stream = nullptr) {
        Args args = {};
        hip.launches.clear();
        EXPECT_EQ(launch(stream), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(hip.launches.size(), 1u);
        if (hip.launches.size() == 1 && hip.launches[0].argument.size() == sizeof args)
            memcpy(&args, hip.launches[0].argument.data(), sizeof args);
        else
            ADD_FAILURE() << "no argument";
        return args;
    }

    FakeHip hip;
    Call call;
    tessera_device *device = nullptr;
    Served all;
    tessera_fmha_fwd_instance instance;
};

TEST_F(Cdna, Grid) {
    const Args args = launched(reinterpret_cast<void *>(0x77));
    const FakeLaunch &l = hip.launches[0];
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3),
              (std::vector<unsigned>{8, 3, 1})); // heads of 2 sequences, 300 / 128
    EXPECT_EQ(l.block[0], 256u);
    EXPECT_EQ(l.stream, reinterpret_cast<void *>(0x77));
    EXPECT_EQ(args.blocks_q, 3);
    call.group();
    call.args.max_seqlen_q = 129;
    EXPECT_EQ(launched().blocks_q, 2);
}

TEST_F(Cdna, NothingToDo) {
    call.args.seqlen_q = 0;
    EXPECT_EQ(launch(), TESSERA_SUCCESS);
    EXPECT_TRUE(hip.launches.empty());
}

TEST_F(Cdna, BatchMode) {
    call.args.cu_seqlen_q_ptr = call.cu_q.data();
    const Args args = launched();
    const tessera_fmha_fwd_args &a = call.args;
    EXPECT_EQ(args.q, a.q_ptr);
    EXPECT_EQ(args.k, a.k_ptr);
    EXPECT_EQ(args.v, a.v_ptr);
    EXPECT_EQ(args.o, a.o_ptr);
    EXPECT_EQ(args.stride_q, a.stride_q);
    EXPECT_EQ(args.stride_k, a.stride_k);
    EXPECT_EQ(args.stride_v, a.stride_v);
    EXPECT_EQ(args.stride_o, a.stride_o);
    EXPECT_EQ(args.nhead_stride_q, a.nhead_stride_q);
    EXPECT_EQ(args.nhead_stride_k, a.nhead_stride_k);
    EXPECT_EQ(args.nhead_stride_v, a.nhead_stride_v);
    EXPECT_EQ(args.nhead_stride_o, a.nhead_stride_o);
    EXPECT_EQ(args.batch_stride_q, a.batch_stride_q);
    EXPECT_EQ(args.batch_stride_k, a.batch_stride_k);
    EXPECT_EQ(args.batch_stride_v, a.batch_stride_v);
    EXPECT_EQ(args.batch_stride_o, a.batch_stride_o);
    EXPECT_EQ(args.seqstart_q, nullptr);
    EXPECT_EQ(args.seqlen_q_of, nullptr);
    EXPECT_EQ(args.cu_seqlen_q, a.cu_seqlen_q_ptr);
    EXPECT_EQ(args.cu_seqlen_k, nullptr);
    EXPECT_EQ(args.seqlen_q, 300);
    EXPECT_EQ(args.seqlen_k, 77);
    EXPECT_EQ(args.group, 2);
    EXPECT_EQ(args.nhead_q, 4);
    EXPECT_EQ(args.nhead_k, 2);
    EXPECT_EQ(args.min_seqlen_q, -1);
    EXPECT_EQ(args.q_descale, nullptr) << "not asked for, though there is a pointer";
    EXPECT_EQ(args.block_scale_size_q | args.block_scale_size_kv, 0);
}

TEST_F(Cdna, GroupMode) {
    call.group();
    call.args.seqlen_q_ptr = call.seqlen_q.data();
    call.args.cu_seqlen_q_ptr = call.cu_q.data(); // ignored, as lengths are given
    call.args.cu_seqlen_k_ptr = call.cu_k.data();
    call.traits.skip_min_seqlen_q = 1;
    call.args.min_seqlen_q = 5;
    const Args args = launched();
    EXPECT_EQ(args.seqstart_q, call.seqstart_q.data());
    EXPECT_EQ(args.seqstart_k, call.seqstart_k.data());
    EXPECT_EQ(args.seqlen_q_of, call.seqlen_q.data());
    EXPECT_EQ(args.seqlen_k_of, nullptr);
    EXPECT_EQ(args.cu_seqlen_q, nullptr);
    EXPECT_EQ(args.cu_seqlen_k, call.cu_k.data());
    EXPECT_EQ(args.batch_stride_q | args.batch_stride_k | args.batch_stride_v | args.batch_stride_o, 0);
    EXPECT_EQ(args.batch_stride_lse, 0);
    EXPECT_EQ(args.min_seqlen_q, 5);
}

TEST_F(Cdna, Lse) {
    Args args = launched();
    EXPECT_EQ(args.lse, nullptr) << "not asked for, though there is a pointer";
    EXPECT_EQ(args.nhead_stride_lse | args.batch_stride_lse, 0);
    call.traits.has_lse = 1;
    args = launched();
    EXPECT_EQ(args.lse, call.args.lse_ptr);
    EXPECT_EQ(args.nhead_stride_lse, call.args.nhead_stride_lse);
    EXPECT_EQ(args.batch_stride_lse, call.args.batch_stride_lse);
}

TEST_F(Cdna, Scale) {
    const struct {
        float scale_s, scale_log2;
    } cases[] = {{0.5f, 0.5f * 1.44269504f}, {-0.5f, -0.5f * 1.44269504f},      {0, FLT_MIN}, {-0.0f, -FLT_MIN},
                 {1e-45f, FLT_MIN},          {-0x1p64f, -0x1p64f * 1.44269504f}};
    for (const auto &c : cases) {
        call.args.scale_s = c.scale_s;
        const Args args = launched();
        EXPECT_EQ(args.scale_log2, c.scale_log2) << c.scale_s;
        EXPECT_EQ(args.features, c.scale_s < 0 ? static_cast<uint32_t>(TESSERA_GPU_SCALED) : 0u) << c.scale_s;
    }
}

TEST_F(Cdna, SoftCap) {
    call.traits.has_logits_soft_cap = 1;
    call.args.logits_soft_cap = 4;
    call.args.scale_s = -0.5f;
    const Args args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_SOFT_CAP | TESSERA_GPU_SCALED));
    EXPECT_FLOAT_EQ(args.cap_log2, 4 * 1.44269504f);
    EXPECT_FLOAT_EQ(args.cap_scale, 0.5f);
    EXPECT_FLOAT_EQ(args.scale_log2, -0.5f * 1.44269504f);
}

TEST_F(Cdna, Bias) {
    EXPECT_EQ(launched().bias, nullptr) << "not asked for, though there is a pointer";
    call.traits.bias_type = TESSERA_BIAS_ELEMENTWISE;
    call.args.stride_bias = 77;
    call.args.nhead_stride_bias = 0;
    call.args.batch_stride_bias = 300 * 77;
    Args args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_BIAS | TESSERA_GPU_SCALED));
    EXPECT_EQ(args.bias, call.args.bias_ptr);
    EXPECT_EQ(args.stride_bias, 77);
    EXPECT_EQ(args.nhead_stride_bias, 0);
    EXPECT_EQ(args.batch_stride_bias, 300 * 77);
    call.group();
    args = launched();
    EXPECT_EQ(args.batch_stride_bias, 0);
}

TEST_F(Cdna, Alibi) {
    const auto features = [&](tessera_mask mask, int left, int right) {
        call.traits.mask_type = call.args.mask_type = mask;
        call.args.window_size_left = left;
        call.args.window_size_right = right;
        return launched().features & ~static_cast<uint32_t>(TESSERA_GPU_ALIBI | TESSERA_GPU_SCALED);
    };
    call.traits.bias_type = TESSERA_BIAS_ALIBI;
    call.args.stride_bias = 4;
    EXPECT_EQ(launched().batch_stride_bias, 4);
    EXPECT_EQ(features(TESSERA_MASK_NONE, -1, -1), static_cast<uint32_t>(TESSERA_GPU_ALIBI_SHIFT));
    EXPECT_EQ(features(TESSERA_MASK_BOTTOM_RIGHT, 3, 4), static_cast<uint32_t>(TESSERA_GPU_ALIBI_SHIFT));
    EXPECT_EQ(features(TESSERA_MASK_TOP_LEFT, 3, 4), 0u);
    EXPECT_EQ(features(TESSERA_MASK_GENERIC, 3, 4), 0u);
    EXPECT_EQ(features(TESSERA_MASK_TOP_LEFT, -1, 0), static_cast<uint32_t>(TESSERA_GPU_ALIBI_VERTICAL));
    EXPECT_EQ(features(TESSERA_MASK_BOTTOM_RIGHT, -1, 0), static_cast<uint32_t>(TESSERA_GPU_ALIBI_VERTICAL));
}

TEST_F(Cdna, Dropout) {
    EXPECT_EQ(launched().keep_scale, 1);
    call.traits.has_dropout = 1;
    call.args.p_drop = 0.25f;
    call.args.drop_seed = 7;
    call.args.drop_offset = 9;
    Args args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_DROPOUT));
    EXPECT_EQ(args.keep_below, 191u); // 255 * 0.75, down
    EXPECT_FLOAT_EQ(args.keep_scale, 1 / 0.75f);
    EXPECT_EQ(args.drop_seed, 7u);
    EXPECT_EQ(args.drop_offset, 9u);
    EXPECT_EQ(args.drop_seed_ptr, nullptr);
    EXPECT_EQ(args.rand_val, nullptr);
    const uint64_t numbers[2] = {1, 2};
    call.args.drop_prefs = 1;
    call.args.drop_seed_ptr = &numbers[0];
    call.args.drop_offset_ptr = &numbers[1];
    args = launched();
    EXPECT_EQ(args.drop_seed_ptr, &numbers[0]);
    EXPECT_EQ(args.drop_offset_ptr, &numbers[1]);
    call.args.s_randval = 1;
    call.args.stride_randval = 77;
    args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_DROPOUT | TESSERA_GPU_RANDVAL));
    EXPECT_EQ(args.rand_val, call.args.rand_val_ptr);
    EXPECT_EQ(args.stride_randval, 77);
}

// The formula of a workgroup's key head, from the argument's header.
TEST_F(Cdna, OverNheadK) {
    call.args.batch = 1;
    for (const uint32_t heads : {1u, 2u, 3u, 7u, 48u, 255u, 1000u, 32767u, 65535u}) {
        call.args.nhead_q = call.args.nhead_k = static_cast<int32_t>(heads);
        const Args args = launched();
        const uint64_t over = args.over_nhead_k;
        for (uint32_t x = 0; x < 65536; x++)
            ASSERT_EQ((x + 1) * over >> 32 >> args.shift_nhead_k, x / heads) << x << " / " << heads;
        for (uint64_t end = INT32_MAX; end > 65536; end -= end / 7) { // and near multiples of heads
            const uint64_t x = end - end % heads;
            ASSERT_EQ(x * over >> 32 >> args.shift_nhead_k, (x - 1) / heads) << x - 1 << " / " << heads;
            ASSERT_EQ((x + 1) * over >> 32 >> args.shift_nhead_k, x / heads) << x << " / " << heads;
        }
    }
}

TEST_F(Cdna, Order) {
    call.args.batch = 3;
    call.args.nhead_q = 32, call.args.nhead_k = 16;
    instance.workgroups = 1, instance.alone_cycles = instance.busy_cycles = 1000, instance.start = 2, instance.half = 1;
    call.set_strides();
    const Args args = launched();
    const FakeLaunch &l = hip.launches[0];
    // As many key heads as there are dies take turns, since no order costs less: caches hold all keys.
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{8 * 2, 3, 6}));
    EXPECT_EQ(args.together, 8);
    EXPECT_EQ(args.over_together, UINT32_MAX);
    EXPECT_EQ(args.shift_together, 3u);
    EXPECT_EQ(std::vector<int>({args.turns, args.rows, args.blocks_q}), (std::vector<int>{1, 3, 3}));
}

// Blocks that a workgroup takes in turns are in no other's.
TEST_F(Cdna, OrderOfBlocks) {
    call.args.batch = 1;
    call.args.nhead_q = 32, call.args.nhead_k = 16;
    call.args.seqlen_q = call.args.seqlen_k = 5 * 128 - 1; // 160 blocks on 100 units, some of which would have two
    call.traits.mask_type = TESSERA_MASK_TOP_LEFT;
    call.args.window_size_left = -1, call.args.window_size_right = 0;
    instance.workgroups = 2, instance.alone_cycles = instance.busy_cycles = 1000, instance.start = 2, instance.half = 1;
    instance.turns = 2;
    call.set_strides();
    const Args args = launched();
    const FakeLaunch &l = hip.launches[0];
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{8 * 2, 3, 2}));
    EXPECT_EQ(std::vector<int>({args.together, args.turns, args.rows, args.blocks_q}), (std::vector<int>{8, 2, 3, 5}));
}

// Second blocks that begin at once cost what evenness gains, and gain where they begin while others are in their loops.
TEST_F(Cdna, OrderOfEvenBlocks) {
    instance.workgroups = 2, instance.alone_cycles = instance.busy_cycles = 1000, instance.start = 2, instance.half = 1;
    instance.turns = 2;
    tessera_fmha_fwd_shape s = {};
    s.queries = s.keys = 4 * 128, s.batch = 1, s.nhead_q = s.nhead_k = 64;
    const auto turns = [&](int64_t units) { return tessera_fmha_fwd_find_order(&instance, &s, units).turns; };
    EXPECT_EQ(turns(64), 1); // 256 blocks on 128 places: a pair for each
    EXPECT_EQ(turns(32), 2);
    s.queries = s.keys = 128;
    EXPECT_EQ(turns(32), 1); // sequences have no second block
}

// Where workgroups differ and all have a place at once, a unit gets a long and a short one of all heads.
TEST_F(Cdna, OrderOfLongAndShort) {
    instance.workgroups = 2, instance.alone_cycles = instance.busy_cycles = 1000, instance.start = 2, instance.half = 1;
    tessera_fmha_fwd_shape s = {};
    s.queries = s.keys = 300, s.batch = 2, s.nhead_q = s.nhead_k = 32; // 192 workgroups
    const auto together = [&](int64_t units) { return tessera_fmha_fwd_find_order(&instance, &s, units).together; };
    EXPECT_EQ(together(100), 8);
    s.has_right = true;
    EXPECT_EQ(together(100), 64);
    EXPECT_EQ(together(192), 8); // none has two
}

// Of heads further apart than the clock looks fewer are taken to find another's keys.
TEST_F(Cdna, OrderOfManyHeads) {
    instance.workgroups = 2, instance.alone_cycles = instance.busy_cycles = 1000, instance.start = 2, instance.half = 1;
    tessera_fmha_fwd_shape s = {};
    s.queries = s.keys = 8192, s.batch = 1, s.hdims = 256, s.has_right = true;
    const auto cycles = [&](int32_t heads) { // no multiple of the dies divides them
        s.nhead_q = s.nhead_k = heads;
        return tessera_fmha_fwd_find_order(&instance, &s, 304).cycles;
    };
    EXPECT_GT(cycles(131), 1.5 * cycles(127)); // 8 dies: 127 are less than 16 apart on each
}

// One sequence after the other, where no multiple of the dies divides the heads and a grid has no room for all.
TEST_F(Cdna, OrderOfManySequences) {
    call.args.batch = 9999;
    call.args.nhead_q = 22, call.args.nhead_k = 11;
    call.set_strides();
    EXPECT_EQ(launched().together, 11);
    const FakeLaunch &l = hip.launches[0];
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{22, 3, 9999}));
    call.args.batch = 999; // there is
    call.set_strides();
    EXPECT_EQ(launched().together, 999 * 11);
}

// ---- the rest of a call, by another instance

const tessera_fmha_fwd_instance *find_instance(const std::string &name) {
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    for (uint32_t i = 0; i < table->row_count; i++)
        if (name == tessera_row(table, i)->name)
            return reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
    return nullptr;
}

// On 8 units, 17 key heads of 2 query heads, or as many sequences, whose blocks of 256 queries are 4 rounds and 2 more.
class RestOnCdna : public Cdna {
  protected:
    void SetUp() override {
        row = find_instance("fmha_fwd_d128_bf16__gfx942_b256x64x128_w8_qr_bundled");
        if (!row) GTEST_SKIP() << "this build does not have the instance";
        facts = device->facts;
        facts.compute_units = 8;
        call.traits.data_type = TESSERA_FMHA_BF16;
        call.traits.has_lse = 1;
        call.traits.hdim_q = call.traits.hdim_v = call.args.hdim_q = call.args.hdim_v = 128;
        call.args.seqlen_q = call.args.max_seqlen_q = 256;
        call.args.seqlen_k = 8192;
    }
    void sizes(int32_t batch, int32_t nhead_k) {
        call.args.batch = batch, call.args.nhead_k = nhead_k, call.args.nhead_q = 2 * nhead_k;
        call.set_strides();
    }
    void plan_call() {
        tessera_fmha_fwd_call whole = call.whole();
        ASSERT_EQ(tessera_fmha_fwd_check_call(&whole), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &row->base, &facts, 1, &plan), TESSERA_SUCCESS)
            << tessera_last_error();
    }
    void launch_all() {
        std::map<std::string, std::string> objects;
        for (uint32_t i = 0; i < plan.row_count; i++)
            objects[plan.rows[i].row->symbol] = std::string("ELF ") + plan.rows[i].row->symbol;
        const std::string pack = make_pack("fmha_fwd", "gfx942", objects);
        ASSERT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS) << tessera_last_error();
        tessera_fmha_fwd_call whole = call.whole();
        ASSERT_EQ(tessera_fmha_fwd_check_call(&whole), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, nullptr), TESSERA_SUCCESS)
            << tessera_last_error();
        for (const FakeLaunch &l : hip.launches) {
            Args one;
            memcpy(&one, l.argument.data(), sizeof one);
            args.push_back(one);
        }
    }
    // Expects a launch of all but one, and one that begins with the last, `q` and `k` strides further.
    void expect_two(int64_t q, int64_t k, int64_t lse) {
        ASSERT_NO_FATAL_FAILURE(plan_call());
        ASSERT_EQ(plan.row_count, 2u);
        EXPECT_EQ(tessera_plan_workspace(&plan), 0u);
        ASSERT_NO_FATAL_FAILURE(launch_all());
        ASSERT_EQ(args.size(), 2u);
        const auto apart = [&](auto member) {
            return static_cast<const char *>(static_cast<const void *>(args[1].*member)) -
                   static_cast<const char *>(static_cast<const void *>(args[0].*member));
        };
        EXPECT_EQ(args[0].q, call.args.q_ptr);
        EXPECT_EQ(apart(&Args::q), 2 * q);
        EXPECT_EQ(apart(&Args::o), 2 * q);
        EXPECT_EQ(apart(&Args::k), 2 * k);
        EXPECT_EQ(apart(&Args::v), 2 * k);
        EXPECT_EQ(apart(&Args::lse), 4 * lse);
        EXPECT_EQ(args[0].blocks_q, 1);
        EXPECT_EQ(hip.launches[0].grid[0] * hip.launches[0].grid[1] * hip.launches[0].grid[2], 32u);
        EXPECT_EQ(hip.launches[1].grid[0] * hip.launches[1].grid[1] * hip.launches[1].grid[2],
                  2u * static_cast<unsigned>(args[1].blocks_q));
        EXPECT_GT(args[1].blocks_q, 1);
    }

    const tessera_fmha_fwd_instance *row = nullptr;
    tessera_device_facts facts = {};
    tessera_plan plan = {};
    std::vector<Args> args;
};

TEST_F(RestOnCdna, OfHeads) {
    sizes(1, 17);
    ASSERT_NO_FATAL_FAILURE(
        expect_two(32 * call.args.nhead_stride_q, 16 * call.args.nhead_stride_k, 32 * call.args.nhead_stride_lse));
    EXPECT_EQ(args[0].nhead_q, 32);
    EXPECT_EQ(std::vector<int>({args[1].nhead_q, args[1].nhead_k, args[1].group}), (std::vector<int>{2, 1, 2}));
}

TEST_F(RestOnCdna, OfSequences) {
    sizes(17, 1);
    ASSERT_NO_FATAL_FAILURE(
        expect_two(16 * call.args.batch_stride_q, 16 * call.args.batch_stride_k, 16 * call.args.batch_stride_lse));
    EXPECT_EQ(std::vector<int>({args[0].nhead_q, args[1].nhead_q}), (std::vector<int>{2, 2}));
}

TEST_F(RestOnCdna, Explained) {
    const auto explain = [&] {
        std::string text(20000, '\0');
        tessera_fmha_fwd_table_explain(tessera_fmha_fwd_get_table(), &facts, &call.traits, &call.args,
                                       TESSERA_EXPLAIN_INSTANCES, text.data(), text.size());
        return text;
    };
    sizes(1, 17);
    ASSERT_NO_FATAL_FAILURE(plan_call());
    ASSERT_EQ(plan.row_count, 2u);
    EXPECT_NE(explain().find(std::string("\n+ ") + plan.rows[1].row->name + "  in a second launch\n"),
              std::string::npos);
    call.args.instance = row;
    EXPECT_EQ(explain().find("\n+ "), std::string::npos);
}

// Where short workgroups fill the last round, where it is half full, and where results depend on a head's number.
TEST_F(RestOnCdna, None) {
    const auto rows = [&] {
        plan_call();
        return plan.row_count;
    };
    sizes(1, 17);
    EXPECT_EQ(rows(), 2u);
    call.traits.mask_type = call.args.mask_type = TESSERA_MASK_TOP_LEFT;
    call.args.window_size_left = -1, call.args.window_size_right = 0;
    EXPECT_EQ(rows(), 1u);
    call.traits.mask_type = call.args.mask_type = TESSERA_MASK_NONE;
    sizes(1, 19); // 38 workgroups: 6 units of 8 have one more
    EXPECT_EQ(rows(), 1u);
    sizes(1, 3); // there is no round before
    EXPECT_EQ(rows(), 1u);
    sizes(1, 17);
    call.traits.has_dropout = 1;
    EXPECT_EQ(rows(), 1u);
    call.traits.has_dropout = 0;
    call.args.instance = row;
    EXPECT_EQ(rows(), 1u);
}

TEST_F(Cdna, PerTensor) {
    call.dtype(TESSERA_FMHA_FP8BF16, TESSERA_QSCALE_PER_TENSOR);
    const Args args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_PER_TENSOR));
    EXPECT_EQ(args.q_descale, call.args.q_descale_ptr);
    EXPECT_EQ(args.k_descale, call.args.k_descale_ptr);
    EXPECT_EQ(args.v_descale, call.args.v_descale_ptr);
    EXPECT_EQ(args.nhead_stride_q_descale | args.batch_stride_q_descale | args.block_scale_size_q, 0);
}

TEST_F(Cdna, BlockScale) {
    call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_BLOCK);
    call.args.block_scale_size_q = 3;
    call.args.block_scale_size_kv = 100;
    const tessera_fmha_fwd_args &a = call.args;
    Args args = launched();
    EXPECT_EQ(args.features, static_cast<uint32_t>(TESSERA_GPU_BLOCK | TESSERA_GPU_SCALED));
    EXPECT_EQ(args.q_descale, a.q_descale_ptr);
    EXPECT_EQ(args.k_descale, a.k_descale_ptr);
    EXPECT_EQ(args.v_descale, a.v_descale_ptr);
    EXPECT_EQ(args.block_scale_size_q, 3);
    EXPECT_EQ(args.block_scale_size_kv, 100);
    EXPECT_EQ(args.nhead_stride_q_descale, a.nhead_stride_q_descale);
    EXPECT_EQ(args.nhead_stride_k_descale, a.nhead_stride_k_descale);
    EXPECT_EQ(args.nhead_stride_v_descale, a.nhead_stride_v_descale);
    EXPECT_EQ(args.batch_stride_q_descale, a.batch_stride_q_descale);
    EXPECT_EQ(args.batch_stride_k_descale, a.batch_stride_k_descale);
    EXPECT_EQ(args.batch_stride_v_descale, a.batch_stride_v_descale);
    EXPECT_EQ(args.block_scale_seqstart_q, nullptr);
    EXPECT_EQ(args.block_scale_seqstart_k, nullptr);
    call.group();
    args = launched();
    EXPECT_EQ(args.batch_stride_q_descale | args.batch_stride_k_descale | args.batch_stride_v_descale, 0);
    EXPECT_EQ(args.block_scale_seqstart_q, call.block_q.data());
    EXPECT_EQ(args.block_scale_seqstart_k, call.block_k.data());
    EXPECT_EQ(args.seqstart_v_scale, nullptr);
}

TEST_F(Cdna, Microscaling) {
    call.dtype(TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX);
    const tessera_fmha_fwd_args &a = call.args;
    Args args = launched();
    EXPECT_EQ(args.features, 0u);
    EXPECT_EQ(args.q_descale, a.q_descale_ptr);
    EXPECT_EQ(args.k_descale, a.k_descale_ptr);
    EXPECT_EQ(args.v_descale, a.v_descale_ptr);
    EXPECT_EQ(args.stride_q_descale, a.stride_q_descale);
    EXPECT_EQ(args.stride_k_descale, a.stride_k_descale);
    EXPECT_EQ(args.stride_v_descale, a.stride_v_descale);
    EXPECT_EQ(args.nhead_stride_v_descale, a.nhead_stride_v_descale);
    EXPECT_EQ(args.batch_stride_v_descale, a.batch_stride_v_descale);
    EXPECT_EQ(args.seqstart_v_scale, nullptr);
    call.group();
    EXPECT_EQ(launched().seqstart_v_scale, call.v_scale.data());
}

TEST_F(Cdna, Sink) {
    call.args.sink_size = 3;
    Args args = launched();
    EXPECT_EQ(args.sink_size, 0);
    EXPECT_EQ(args.sink, nullptr);
    const float sinks[4] = {};
    call.traits.has_sink = 1;
    call.args.sink_ptr = sinks;
    args = launched();
    EXPECT_EQ(args.sink_size, 3);
    EXPECT_EQ(args.sink, sinks);
}

// Whether query i sees key j, by the fields of the argument and the formula in its header.
bool visible(const Args &args, int sq, int sk, int64_t i, int64_t j) {
    const int64_t y = args.mask_y + args.shift_y * (sq - sk), x = args.mask_x - args.shift_x * (sq - sk);
    return i - y < j && j < i + x;
}

TEST_F(Cdna, Masks) {
    const int far = INT_MAX;
    for (const auto mask : {TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT, TESSERA_MASK_BOTTOM_RIGHT, TESSERA_MASK_GENERIC})
        for (const int left : {-1, 0, 1, 7, far})
            for (const int right : {-1, 0, 3, far}) {
                call.traits.mask_type = call.args.mask_type = mask;
                call.args.window_size_left = left;
                call.args.window_size_right = right;
                const Args args = launched();
                for (const auto &[sq, sk] : {std::pair{9, 9}, {5, 12}, {12, 5}})
                    for (int64_t i = 0; i < sq; i++)
                        for (int64_t j = 0; j < sk; j++) {
                            const int64_t edge = mask == TESSERA_MASK_GENERIC ? 0 : 1;
                            const int64_t shift = mask == TESSERA_MASK_BOTTOM_RIGHT ? sk - sq : 0;
                            const bool all_left = mask == TESSERA_MASK_NONE || left < 0;
                            const bool all_right = mask == TESSERA_MASK_NONE || right < 0;
                            const bool expected = (all_left || i - (edge + left - shift) < j) &&
                                                  (all_right || j < i + edge + right + shift);
                            ASSERT_EQ(visible(args, sq, sk, i, j), expected)
                                << mask << " " << left << " " << right << " " << sq << " " << sk << " " << i << " "
                                << j;
                        }
            }
}

TEST_F(Cdna, Limits) {
    const auto says = [&] {
        const tessera_fmha_fwd_call whole = call.whole();
        EXPECT_EQ(tessera_fmha_fwd_cdna_check(&instance, &whole), TESSERA_ERROR_INVALID_ARGUMENT);
        call.set_strides();
        return std::string(tessera_last_error());
    };
    const auto passes = [&] {
        const tessera_fmha_fwd_call whole = call.whole();
        const tessera_status status = tessera_fmha_fwd_cdna_check(&instance, &whole);
        call.set_strides();
        return status == TESSERA_SUCCESS;
    };
    call.args.stride_q = 8388606;
    EXPECT_TRUE(passes());
    call.args.stride_q = 1 << 23;
    EXPECT_EQ(says(), "stride_q is 8388608: 0 to less than 8388607 on a GPU");
    call.args.stride_o = -1;
    EXPECT_EQ(says(), "stride_o is -1: 0 to less than 8388607 on a GPU");
    call.args.stride_k = 1 << 24;
    EXPECT_EQ(says(), "stride_k is 16777216: 0 to less than 16777215 on a GPU");
    call.args.stride_v = 1 << 24;
    EXPECT_EQ(says(), "stride_v is 16777216: 0 to less than 16777215 on a GPU");
    call.args.batch = 65536;
    EXPECT_EQ(says(), "batch is 65536: at most 65535 on a GPU");
    call.args.batch = 2;
    call.args.nhead_q = call.args.nhead_k = 65536;
    EXPECT_EQ(says(), "nhead_q is 65536: at most 65535 on a GPU");
    call.args.batch = 32769, call.args.nhead_q = call.args.nhead_k = 65535;
    EXPECT_EQ(says(), "batch is 32769: at most 32768 on a GPU with nhead_k 65535");
    call.args.batch = 2, call.args.nhead_q = call.args.nhead_k = 2;
    call.args.seqlen_q = 65535 * 128;
    EXPECT_TRUE(passes());
    call.args.seqlen_q++;
    EXPECT_EQ(says(), "seqlen_q is 8388481: at most 8388480 on a GPU with blocks of 128 queries");
    call.args.seqlen_q = 1;
    call.traits.has_logits_soft_cap = 1;
    call.args.logits_soft_cap = 4096;
    EXPECT_TRUE(passes());
    call.args.logits_soft_cap = 4097;
    EXPECT_EQ(says(), "logits_soft_cap is 4097: at most 4096 for fp16 on a GPU");
    call.traits.has_logits_soft_cap = 0;
    call.group();
    call.args.max_seqlen_q = 65535 * 128 + 1;
    EXPECT_EQ(says(), "max_seqlen_q is 8388481: at most 8388480 on a GPU with blocks of 128 queries");
}

// A block's rows span less than 2 GiB, whatever the size of elements.
TEST_F(Cdna, LimitsOfElements) {
    const struct {
        tessera_fmha_dtype dtype;
        tessera_qscale qscale;
        int64_t tessera_fmha_fwd_args::*stride;
        int64_t least_refused;
    } cases[] = {
        {TESSERA_FMHA_FP32, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_q, INT32_MAX / 4 / 128},
        {TESSERA_FMHA_FP32, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_o, INT32_MAX / 4 / 128},
        {TESSERA_FMHA_FP8, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_k, INT32_MAX / 64},
        {TESSERA_FMHA_FP8, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_o, INT32_MAX / 128},
        {TESSERA_FMHA_FP8BF16, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_o, INT32_MAX / 2 / 128},
        {TESSERA_FMHA_FP8FP32, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_v, INT32_MAX / 64},
        {TESSERA_FMHA_FP8FP32, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_bias, INT32_MAX / 4 / 128},
        {TESSERA_FMHA_BF16, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_bias, INT32_MAX / 2 / 128},
        {TESSERA_FMHA_BF16, TESSERA_QSCALE_NONE, &tessera_fmha_fwd_args::stride_randval, INT32_MAX / 128},
        {TESSERA_FMHA_MXFP4, TESSERA_QSCALE_MX, &tessera_fmha_fwd_args::stride_q, INT32_MAX * INT64_C(2) / 128},
        {TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX, &tessera_fmha_fwd_args::stride_q_descale, INT32_MAX / 128},
        {TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX, &tessera_fmha_fwd_args::stride_v_descale, INT32_MAX / 16},
    };
    for (const auto &c : cases) {
        call.traits.bias_type = TESSERA_BIAS_ELEMENTWISE;
        call.traits.has_dropout = call.args.s_randval = 1;
        call.dtype(c.dtype, c.qscale);
        for (const int64_t stride : {c.least_refused - 1, c.least_refused}) {
            call.args.*c.stride = stride;
            const tessera_fmha_fwd_call whole = call.whole();
            EXPECT_EQ(tessera_fmha_fwd_cdna_check(&instance, &whole) == TESSERA_SUCCESS, stride < c.least_refused)
                << tessera_fmha_dtype_string(c.dtype) << " " << stride << " " << tessera_last_error();
        }
    }
    call.traits.is_v_rowmajor = 0; // rows of v are columns of the head, of which there are 16
    call.dtype(TESSERA_FMHA_BF16, TESSERA_QSCALE_NONE);
    for (const int64_t stride : {INT32_MAX / 2 / 16 - 1, INT32_MAX / 2 / 16}) {
        call.args.stride_v = stride;
        const tessera_fmha_fwd_call whole = call.whole();
        EXPECT_EQ(tessera_fmha_fwd_cdna_check(&instance, &whole) == TESSERA_SUCCESS, stride < INT32_MAX / 2 / 16);
    }
}

TEST_F(Cdna, Refused) {
    const struct {
        std::function<void()> change;
        const char *says;
    } cases[] = {
        {[&] { call.args.q_ptr = nullptr; }, "q_ptr is NULL: this call needs it"},
        {[&] { call.args.o_ptr = static_cast<char *>(call.args.o_ptr) + 1; }, "o_ptr is "},
        {[&] { call.args.o_ptr = const_cast<void *>(call.args.q_ptr); }, "o_ptr ["},
        {[&] { call.args.scale_s = NAN; }, "scale_s is nan: -2^64 to 2^64"},
        {[&] {
             call.group();
             call.args.stride_o = -1;
         },
         "stride_o is -1"},
        {[&] {
             call.group();
             call.args.seqstart_k_ptr = nullptr;
         },
         "seqstart_k_ptr is NULL: this call needs it"},
        {[&] {
             call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_PER_TENSOR);
             call.args.k_descale_ptr = nullptr;
         },
         "k_descale_ptr is NULL: this call needs it"},
        {[&] {
             call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_BLOCK);
             call.args.v_descale_ptr = static_cast<const char *>(call.args.v_descale_ptr) + 2;
         },
         "v_descale_ptr is "},
        {[&] {
             call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_BLOCK);
             call.args.block_scale_size_kv = 0;
         },
         "block_scale_size_kv is 0: 1 or more, 128 is usual"},
        {[&] {
             call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_BLOCK);
             call.group();
             call.args.block_scale_seqstart_q_ptr = nullptr;
         },
         "block_scale_seqstart_q_ptr is NULL: this call needs it"},
        {[&] {
             call.dtype(TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX);
             call.group();
             call.args.seqstart_v_scale_ptr = nullptr;
         },
         "seqstart_v_scale_ptr is NULL: this call needs it"},
        {[&] {
             call.dtype(TESSERA_FMHA_MXFP4, TESSERA_QSCALE_MX);
             call.args.stride_k = 33;
         },
         "stride_k is 33: even for mxfp4, which packs two elements a byte"},
    };
    const auto args = call.args;
    const auto traits = call.traits;
    EXPECT_EQ(check(), TESSERA_SUCCESS) << tessera_last_error();
    for (const auto &c : cases) {
        c.change();
        EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT) << c.says;
        EXPECT_EQ(std::string(tessera_last_error()).find(c.says), 0u) << tessera_last_error();
        call.args = args;
        call.traits = traits;
    }
}

// Where no sequence of a group has keys, rows of dropout's bytes are empty and may all begin at the same address.
TEST_F(Cdna, NoKeysToDrop) {
    call.group();
    call.traits.has_dropout = call.args.s_randval = 1;
    call.args.stride_randval = call.args.nhead_stride_randval = 0;
    EXPECT_EQ(check(), TESSERA_SUCCESS) << tessera_last_error();
    call.args.stride_randval = 10;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "rand_val_ptr overlaps itself: nhead_stride_randval is 0 for 4 elements");
}

// Every pointer leads to memory that cannot be accessed.
TEST_F(Cdna, ReadsNoMemory) {
    const size_t bytes = 1 << 24;
    void *const trap = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(trap, MAP_FAILED);
    const auto at = [&](int place) { return static_cast<char *>(trap) + (place << 18); };
    for (const auto &[group, qscale] : {std::pair{false, TESSERA_QSCALE_PER_TENSOR},
                                        {false, TESSERA_QSCALE_BLOCK},
                                        {true, TESSERA_QSCALE_PER_TENSOR},
                                        {true, TESSERA_QSCALE_BLOCK}}) {
        call.dtype(TESSERA_FMHA_FP8FP32, qscale);
        if (group) call.group();
        call.traits.has_lse = 1;
        call.args.q_descale_ptr = at(11);
        call.args.k_descale_ptr = at(12);
        call.args.v_descale_ptr = at(13);
        call.args.block_scale_seqstart_q_ptr = at(14);
        call.args.block_scale_seqstart_k_ptr = at(15);
        call.args.q_ptr = at(1);
        call.args.k_ptr = at(2);
        call.args.v_ptr = at(3);
        call.args.o_ptr = at(4);
        call.args.lse_ptr = at(5);
        call.args.seqstart_q_ptr = group ? at(6) : nullptr;
        call.args.seqstart_k_ptr = group ? at(7) : nullptr;
        call.args.seqlen_q_ptr = group ? at(8) : nullptr;
        call.args.cu_seqlen_q_ptr = group ? nullptr : at(9);
        call.args.cu_seqlen_k_ptr = at(10);
        ASSERT_EQ(check(), TESSERA_SUCCESS) << tessera_last_error();
        launched();
    }
    munmap(trap, bytes);
}

// Calls after the first one call nothing of the driver but the launch, and ask once whether its device is current.
TEST_F(Cdna, OnlyLaunches) {
    launched();
    hip.calls.clear();
    for (int i = 0; i < 10; i++) {
        ASSERT_EQ(check(), TESSERA_SUCCESS);
        launched();
    }
    const std::map<std::string, int> expected = {{"hipGetDevice", 10}, {"hipModuleLaunchKernel", 10}};
    EXPECT_EQ(hip.calls, expected);
}

TEST_F(Cdna, PreparedCallsAreCaptured) {
    void *const stream = reinterpret_cast<void *>(0x55);
    const tessera_gpu_kernel kernel = {"fmha_fwd", "kernel"};
    hip.capturing = stream;
    EXPECT_EQ(launch(stream), TESSERA_ERROR_NOT_PREPARED);
    EXPECT_EQ(tessera_gpu_load(device, &kernel), TESSERA_SUCCESS);
    EXPECT_EQ(launch(stream), TESSERA_SUCCESS);
}

// ---- few queries: heads are merged, and keys are cut into parts

class MergedOnCdna : public Cdna {
  protected:
    MergedOnCdna() {
        instance.tile.bm0 = 32;
        instance.merged = 1;
        instance.workgroups = 4;
        instance.alone_cycles = 1000, instance.busy_cycles = 250, instance.start = 2;
        if (const tessera_instance *const combine = combining(TESSERA_TARGET_GFX942)) { // the fake loads no real code
            const std::string pack = make_pack("fmha_fwd_combine", "gfx942", {{combine->symbol, combine->symbol}});
            EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        }
        call.args.seqlen_q = call.args.max_seqlen_q = 20; // of two heads: 2 blocks of 32 rows
        call.args.seqlen_k = 6400;                        // 100 tiles
        call.set_strides();
    }

    void SetUp() override {
        if (!combining(TESSERA_TARGET_GFX942)) GTEST_SKIP() << "this build has no kernel to combine";
    }

    tessera_status launch_all() {
        hip.launches.clear();
        tessera_fmha_fwd_call whole = call.whole();
        whole.cache = cache;
        tessera_status status = tessera_fmha_fwd_check_call(&whole);
        if (!status)
            status = tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan);
        if (status) return status;
        workspace.assign(tessera_plan_workspace(&plan) + 64, 0);
        const auto start = reinterpret_cast<uintptr_t>(workspace.data());
        whole.args.workspace_ptr = workspace.data() + (64 - start % 64) % 64;
        whole.args.workspace_size = tessera_plan_workspace(&plan);
        return tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, nullptr);
    }

    tessera_status check_limits() {
        tessera_fmha_fwd_call whole = call.whole();
        whole.cache = cache;
        EXPECT_EQ(tessera_fmha_fwd_check_call(&whole), TESSERA_SUCCESS) << tessera_last_error();
        return tessera_fmha_fwd_cdna_check(&instance, &whole);
    }

    template <typename T> T argument(size_t number) {
        T args = {};
        EXPECT_LT(number, hip.launches.size());
        if (number < hip.launches.size()) {
            EXPECT_EQ(hip.launches[number].argument.size(), sizeof args);
            memcpy(&args, hip.launches[number].argument.data(), sizeof args);
        }
        return args;
    }

    const tessera_attention_cache *cache = nullptr;
    tessera_plan plan;
    std::vector<char> workspace;
};

TEST_F(MergedOnCdna, PartsThatAreAskedFor) {
    call.args.num_splits = 7;
    call.traits.has_sink = 1;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip.launches.size(), 2u);
    const auto args = argument<tessera_fmha_fwd_cdna_args>(0);
    const FakeLaunch &l = hip.launches[0];
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3),
              (std::vector<unsigned>{2, 2 * 7, 2})); // key heads, blocks and parts, batch: no die of 8 without work
    EXPECT_EQ(args.sequences, 2);
    EXPECT_EQ(args.log_sequences, 0);
    EXPECT_EQ(args.log_parts, 0);
    EXPECT_EQ(args.parts, 7);
    EXPECT_EQ(args.part_tiles, 15);
    EXPECT_EQ(args.queries, 20);
    EXPECT_EQ(args.call.blocks_q, 2);
    EXPECT_EQ(args.call.sink, nullptr); // it counts once
    EXPECT_EQ(args.o_acc, plan.regions[0].memory);
    EXPECT_EQ(args.lse_acc, plan.regions[1].memory);
    const auto combine = argument<tessera_fmha_fwd_combine_args>(1);
    EXPECT_EQ(combine.splits, 7);
    EXPECT_EQ(combine.o_acc, args.o_acc);
    EXPECT_EQ(combine.o, call.args.o_ptr);
    EXPECT_EQ(combine.sink, call.args.sink_ptr);
}

// A causal mask of one query hides nothing: as many workgroups as without it, one for each key head and part.
TEST_F(MergedOnCdna, OneQueryUnderACausalMask) {
    call.args.num_splits = 8;
    call.args.seqlen_q = call.args.max_seqlen_q = 1;
    call.set_strides();
    for (const tessera_mask mask : {TESSERA_MASK_NONE, TESSERA_MASK_BOTTOM_RIGHT}) {
        call.traits.mask_type = call.args.mask_type = mask;
        call.args.window_size_right = 0;
        ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(hip.launches.size(), 2u);
        const FakeLaunch &l = hip.launches[0];
        EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{2 * 8, 1, 2})); // a part a die
        EXPECT_EQ(argument<tessera_fmha_fwd_cdna_args>(0).part_tiles, 13);
    }
}

TEST_F(MergedOnCdna, OnePart) {
    call.args.num_splits = 1;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip.launches.size(), 1u);
    EXPECT_EQ(argument<tessera_fmha_fwd_cdna_args>(0).parts, 1);
    EXPECT_EQ(plan.region_count, 0u);
}

TEST_F(MergedOnCdna, BytesOfKeysAreThoseOfTheCache) {
    tessera_fmha_fwd_call whole = call.whole();
    tessera_attention_cache there = {};
    ASSERT_EQ(tessera_fmha_fwd_check_call(&whole), TESSERA_SUCCESS) << tessera_last_error();
    const double numbers = call.args.hdim_q + call.args.hdim_v;
    const auto key_bytes = [&] {
        tessera_fmha_fwd_shape shape;
        tessera_fmha_fwd_describe(&whole, &shape);
        return tessera_fmha_fwd_key_bytes(&shape);
    };
    EXPECT_EQ(key_bytes(), 2 * numbers);
    whole.cache = &there;
    EXPECT_EQ(key_bytes(), 2 * numbers);
    there.pages.dtype = TESSERA_KV_INT8;
    EXPECT_EQ(key_bytes(), numbers);
    there.pages.dtype = TESSERA_KV_TURBO4;
    EXPECT_EQ(key_bytes(), numbers / 2);
}

TEST_F(MergedOnCdna, Limits) {
    call.args.num_splits = 128;
    call.args.seqlen_q = call.args.max_seqlen_q = 513 * 16;
    call.set_strides();
    EXPECT_NE(check_limits(), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(tessera_last_error()),
              "seqlen_q gives 65664 workgroups of 32 queries of a key head and a part of its keys: at most 65535");
    call.args.num_splits = 2;
    instance.merged = 0;
    EXPECT_NE(check_limits(), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(tessera_last_error()), "num_splits is 2: short_name does not cut keys into parts");
}

// Tables and strides of pages go to the kernel as they are; lengths take the place of those of tensors.
TEST_F(MergedOnCdna, Pages) {
    int32_t table[8], lengths[2], last[2];
    tessera_attention_cache there = {};
    there.pages.table = table, there.pages.table_stride = 4, there.pages.page_size = 16;
    there.pages.of_k = {1, 2, 3}, there.pages.of_v = {4, 5, 6};
    there.blocks = 8, there.rows = 16, there.seqlen_k = lengths, there.last = last;
    there.max_seqlen_k = 64, there.is_paged = true;
    cache = &there;
    instance.keys_in = TESSERA_KEYS_IN_ROWS | TESSERA_KEYS_IN_PAGES | TESSERA_KEYS_IN_PIECES;
    call.args.seqlen_k = 64;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    const auto args = argument<tessera_fmha_fwd_cdna_args>(0);
    EXPECT_EQ(args.pages.table, table);
    EXPECT_EQ(args.pages.table_stride, 4);
    EXPECT_EQ(args.pages.page_size, 16);
    EXPECT_EQ(args.pages.of_v.row, 6);
    EXPECT_EQ(args.last, last);
    EXPECT_EQ(args.call.seqlen_k_of, lengths);
    EXPECT_EQ(args.call.seqlen_k, 64);
    EXPECT_EQ(args.call.seqstart_k, nullptr);
}

// Pages in pieces have no strides of rows: kernels get those of runs of k, and of pieces of v with all of their
// columns.
TEST_F(MergedOnCdna, PagesInPieces) {
    int32_t table[8], lengths[2];
    tessera_attention_cache there = {};
    there.pages.table = table, there.pages.table_stride = 4, there.pages.page_size = 16, there.pages.piece_v = 16;
    there.pages.of_k = {1, 2, 3}, there.pages.of_v = {4, 5, 6};
    there.pages.element_bytes = 2, there.pages.row_v = 40;
    there.blocks = 8, there.rows = 16, there.seqlen_k = lengths, there.max_seqlen_k = 64, there.is_paged = true;
    cache = &there;
    instance.keys_in = TESSERA_KEYS_IN_ROWS | TESSERA_KEYS_IN_PAGES | TESSERA_KEYS_IN_PIECES;
    call.args.seqlen_k = 64;
    call.args.stride_k = call.args.stride_v = -1; // ignored
    EXPECT_EQ(check_limits(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    const auto args = argument<tessera_fmha_fwd_cdna_args>(0);
    EXPECT_EQ(args.pages.of_k.row, 8);
    EXPECT_EQ(args.pages.of_v.row, 16 * 40);
    EXPECT_EQ(args.pages.of_v.page, 4);
    there.pages.page_size = 4;
    EXPECT_NE(check_limits(), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(tessera_last_error()),
              "page_block_size is 4: at least 8 on a GPU, where pages are not linear");
    there.pages.page_size = 8, there.pages.element_bytes = 1;
    EXPECT_NE(check_limits(), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(tessera_last_error()),
              "page_block_size is 8: at least 16 on a GPU, where pages are not linear");
    there.pages.dtype = TESSERA_KV_INT8; // whose numbers become 16 bits
    EXPECT_EQ(check_limits(), TESSERA_SUCCESS) << tessera_last_error();
}

// Scales of all queries, or of each and its head, make those of rows a feature of the call.
TEST_F(MergedOnCdna, ScaledRows) {
    int32_t table[8], lengths[2];
    float scales[4];
    tessera_attention_cache there = {};
    there.pages.table = table, there.pages.table_stride = 4, there.pages.page_size = 16, there.pages.element_bytes = 1;
    there.blocks = 8, there.rows = 16, there.seqlen_k = lengths, there.max_seqlen_k = 64, there.is_paged = true;
    cache = &there;
    instance.keys_in = TESSERA_KEYS_IN_ROWS | TESSERA_KEYS_IN_PAGES | TESSERA_KEYS_IN_PIECES;
    call.args.seqlen_k = 64;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_FALSE(argument<tessera_fmha_fwd_cdna_args>(0).call.features & TESSERA_GPU_ROWS);
    there.scale_q = scales;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    const auto one = argument<tessera_fmha_fwd_cdna_args>(0);
    EXPECT_TRUE(one.call.features & TESSERA_GPU_ROWS);
    EXPECT_EQ(one.call.q_descale, scales);
    EXPECT_EQ(one.call.stride_q_descale, 0);
    EXPECT_EQ(one.call.nhead_stride_q_descale, 0);
    there.scale_q = nullptr, there.q_scales = scales;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    const auto each = argument<tessera_fmha_fwd_cdna_args>(0);
    EXPECT_TRUE(each.call.features & TESSERA_GPU_ROWS);
    EXPECT_EQ(each.call.q_descale, scales);
    EXPECT_EQ(each.call.stride_q_descale, call.args.nhead_q);
    EXPECT_EQ(each.call.nhead_stride_q_descale, 1);
}

} // namespace
