// SPDX-License-Identifier: MIT
// What calls and launchers of fmha_bwd refuse, and in which words.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tessera/kernel/fmha_bwd.h"

extern "C" {
#include "ops/fmha_bwd_internal.h"
}

namespace {

// Two sequences of 3 queries and 5 keys, 4 and 2 heads of 8 and 4 floats; group mode has the same.
struct Call {
    static constexpr size_t kBytes = 4096;
    std::vector<unsigned char> memory = std::vector<unsigned char>(26 * kBytes);
    tessera_fmha_bwd_traits traits = tessera_fmha_bwd_traits_init();
    tessera_fmha_bwd_args args = tessera_fmha_bwd_args_init();
    std::vector<int32_t> q{0, 3, 6}, k{0, 5, 10}, lengths_q{3, 2}, lengths_k{5, 4};

    explicit Call(bool group) {
        traits.is_group_mode = group;
        traits.batch = args.batch = 2, traits.nhead_q = args.nhead_q = 4, traits.nhead_k = args.nhead_k = 2;
        traits.seqlen_q = args.seqlen_q = group ? 6 : 3, traits.seqlen_k = args.seqlen_k = group ? 10 : 5;
        traits.max_seqlen_q = args.max_seqlen_q = 3, traits.max_seqlen_k = args.max_seqlen_k = 5;
        traits.hdim_q = args.hdim_q = 8, traits.hdim_v = args.hdim_v = 4;
        args.scale = 1;
        args.stride_q = args.stride_dq = args.stride_k = args.stride_dk = 8;
        args.stride_v = args.stride_dv = args.stride_o = args.stride_do = 4;
        args.nhead_stride_q = args.nhead_stride_dq = args.nhead_stride_k = args.nhead_stride_dk = 80;
        args.nhead_stride_v = args.nhead_stride_dv = args.nhead_stride_o = args.nhead_stride_do = 40;
        args.batch_stride_q = args.batch_stride_dq = args.batch_stride_k = args.batch_stride_dk = 320;
        args.batch_stride_v = args.batch_stride_dv = args.batch_stride_o = args.batch_stride_do = 160;
        args.nhead_stride_lsed = 6, args.batch_stride_lsed = 24;
        args.stride_bias = args.stride_dbias = args.stride_randval = 5;
        args.nhead_stride_bias = args.nhead_stride_dbias = args.nhead_stride_randval = 30;
        args.batch_stride_bias = args.batch_stride_dbias = args.batch_stride_randval = 120;
        args.q_ptr = at(0), args.k_ptr = at(1), args.v_ptr = at(2), args.o_ptr = at(3), args.do_ptr = at(4);
        args.lse_ptr = at(5), args.d_ptr = at(6), args.dq_ptr = at(7), args.dk_ptr = at(8), args.dv_ptr = at(9);
        args.bias_ptr = at(10), args.dbias_ptr = at(11), args.rand_val_ptr = at(12);
        if (group) args.seqstart_q_ptr = q.data(), args.seqstart_k_ptr = k.data();
    }
    void *at(size_t number) { return memory.data() + number * kBytes; }
};

struct Refusal {
    const char *says;
    std::function<void(Call &)> change;
    bool group = false;
};

const Refusal refusals[] = {
    {"hdim_q is 0", [](Call &c) { c.traits.hdim_q = c.args.hdim_q = 0; }},
    {"hdim_q is 513", [](Call &c) { c.traits.hdim_q = c.args.hdim_q = 513; }},
    {"hdim_v is 0", [](Call &c) { c.traits.hdim_v = c.args.hdim_v = 0; }},
    {"hdim_v is 513", [](Call &c) { c.traits.hdim_v = c.args.hdim_v = 513; }},
    {"data_type is -1", [](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(-1); }},
    {"data_type is 3 (fp8)", [](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8; }},
    {"mask_type is 4", [](Call &c) { c.traits.mask_type = c.args.mask_type = TESSERA_MASK_COUNT; }},
    {"bias_type is 3", [](Call &c) { c.traits.bias_type = TESSERA_BIAS_COUNT; }},
    {"is_deterministic is 2", [](Call &c) { c.traits.is_deterministic = 2; }},
    {"is_group_mode is -1", [](Call &c) { c.traits.is_group_mode = -1; }},
    {"has_dbias and bias_type no", [](Call &c) { c.traits.has_dbias = 1; }},
    {"is_store_randval without", [](Call &c) { c.traits.is_store_randval = 1; }},
    {"soft cap goes only without bias",
     [](Call &c) {
         c.traits.has_logits_soft_cap = 1, c.args.logits_soft_cap = 1, c.traits.bias_type = TESSERA_BIAS_ELEMENTWISE;
     }},
    {"batch is 0", [](Call &c) { c.traits.batch = c.args.batch = 0; }},
    {"nhead_q is 0", [](Call &c) { c.traits.nhead_q = c.args.nhead_q = 0; }},
    {"nhead_k is 0", [](Call &c) { c.traits.nhead_k = c.args.nhead_k = 0; }},
    {"nhead_q is 4: a multiple", [](Call &c) { c.traits.nhead_k = c.args.nhead_k = 3; }},
    {"batch * nhead_q is", [](Call &c) { c.traits.batch = c.args.batch = INT32_MAX, c.args.batch_stride_dq = 0; }},
    {"seqlen_q is -1", [](Call &c) { c.traits.seqlen_q = c.args.seqlen_q = -1; }},
    {"seqlen_q is 1073741824", [](Call &c) { c.traits.seqlen_q = c.args.seqlen_q = 1 << 30; }},
    {"seqlen_k is -1", [](Call &c) { c.traits.seqlen_k = c.args.seqlen_k = -1; }},
    {"seqlen_k is 1073741824", [](Call &c) { c.traits.seqlen_k = c.args.seqlen_k = 1 << 30; }},
    {"max_seqlen_q is -1: 0 to", [](Call &c) { c.traits.max_seqlen_q = c.args.max_seqlen_q = -1; }, true},
    {"max_seqlen_q is 1073741824", [](Call &c) { c.traits.max_seqlen_q = c.args.max_seqlen_q = 1 << 30; }, true},
    {"max_seqlen_k is -1: 0 to", [](Call &c) { c.traits.max_seqlen_k = c.args.max_seqlen_k = -1; }, true},
    {"max_seqlen_k is 1073741824", [](Call &c) { c.traits.max_seqlen_k = c.args.max_seqlen_k = 1 << 30; }, true},
    {"may have 16777217 queries",
     [](Call &c) { c.traits.has_dropout = 1, c.traits.seqlen_q = c.args.seqlen_q = (1 << 24) + 1; }},
    {"may have 16777217 keys",
     [](Call &c) { c.traits.has_dropout = 1, c.traits.seqlen_k = c.args.seqlen_k = (1 << 24) + 1; }},
    {"batch * nhead_q is 2097152: dropout",
     [](Call &c) { c.traits.has_dropout = 1, c.traits.batch = c.args.batch = 1 << 19; }},
    {"args->seqlen_k is 4", [](Call &c) { c.args.seqlen_k = 4; }},
    {"args->nhead_q is 2", [](Call &c) { c.args.nhead_q = 2; }},
    {"args->mask_type is 1", [](Call &c) { c.args.mask_type = TESSERA_MASK_TOP_LEFT; }},
    {"scale is 1e+20", [](Call &c) { c.args.scale = 1e20F; }},
    {"logits_soft_cap is 0", [](Call &c) { c.traits.has_logits_soft_cap = 1; }},
    {"logits_soft_cap is 1e+20", [](Call &c) { c.traits.has_logits_soft_cap = 1, c.args.logits_soft_cap = 1e20F; }},
    {"sink_size is -1",
     [](Call &c) { c.traits.mask_type = c.args.mask_type = TESSERA_MASK_TOP_LEFT, c.args.sink_size = -1; }},
    {"p_drop is -0.5", [](Call &c) { c.traits.has_dropout = 1, c.args.p_drop = -0.5F; }},
    {"p_drop is 1", [](Call &c) { c.traits.has_dropout = 1, c.args.p_drop = 1; }},
    {"drop_prefs is -1", [](Call &c) { c.traits.has_dropout = 1, c.args.drop_prefs = -1; }},
    {"drop_prefs is 2",
     [](Call &c) {
         c.traits.has_dropout = 1, c.args.drop_prefs = 2,
         c.args.drop_seed_ptr = c.args.drop_offset_ptr = static_cast<uint64_t *>(c.at(20));
     }},
    {"is_workspace_prepared is -1", [](Call &c) { c.args.is_workspace_prepared = -1; }},
    {"is_workspace_prepared is 2", [](Call &c) { c.args.is_workspace_prepared = 2; }},
    {"seqstart_q_ptr is NULL", [](Call &c) { c.args.seqstart_q_ptr = nullptr; }, true},
    {"seqstart_q_ptr[0] is -1", [](Call &c) { c.q[0] = -1; }, true},
    {"seqstart_k_ptr[0] -1", [](Call &c) { c.k[0] = -1; }, true},
    {"seqstart_q_ptr[2] is 2",
     [](Call &c) { c.q[2] = 2, c.args.seqlen_q_ptr = c.lengths_q.data(), c.lengths_q[1] = 0; }, true},
    {"seqstart_k_ptr[2] is 4",
     [](Call &c) { c.k[2] = 4, c.args.seqlen_k_ptr = c.lengths_k.data(), c.lengths_k[1] = 0; }, true},
    {"5 in the traits",
     [](Call &c) {
         static const int32_t other[] = {0, 3, 5};
         c.traits.seqstart_qs = other;
     },
     true},
    {"9 in the traits",
     [](Call &c) {
         static const int32_t other[] = {0, 5, 9};
         c.traits.seqstart_ks = other;
     },
     true},
    {"sequence 1 has -1 queries", [](Call &c) { c.args.seqlen_q_ptr = c.lengths_q.data(), c.lengths_q[1] = -1; }, true},
    {"sequence 0 has 4 queries: 0 to its room of 3",
     [](Call &c) {
         c.args.seqlen_q_ptr = c.lengths_q.data(), c.lengths_q[0] = 4, c.traits.max_seqlen_q = c.args.max_seqlen_q = 4;
     },
     true},
    {"sequence 1 has -1 keys", [](Call &c) { c.args.seqlen_k_ptr = c.lengths_k.data(), c.lengths_k[1] = -1; }, true},
    {"sequence 0 has 6 keys: 0 to its room of 5",
     [](Call &c) {
         c.args.seqlen_k_ptr = c.lengths_k.data(), c.lengths_k[0] = 6, c.traits.max_seqlen_k = c.args.max_seqlen_k = 6;
     },
     true},
    {"max_seqlen_q is 2: sequence 0", [](Call &c) { c.traits.max_seqlen_q = c.args.max_seqlen_q = 2; }, true},
    {"max_seqlen_k is 4: sequence 0", [](Call &c) { c.traits.max_seqlen_k = c.args.max_seqlen_k = 4; }, true},
    {"5 keys, padding included",
     [](Call &c) {
         c.args.seqlen_k_ptr = c.lengths_k.data(), c.lengths_k[0] = 4, c.traits.max_seqlen_k = c.args.max_seqlen_k = 4;
         c.traits.is_deterministic = 1, c.traits.seqstart_ks = c.k.data();
     },
     true},
    {"have 6 tokens of q", [](Call &c) { c.traits.seqlen_q = c.args.seqlen_q = 5; }, true},
    {"dq_ptr is NULL", [](Call &c) { c.args.dq_ptr = nullptr; }},
    {"d_sink_ptr is NULL", [](Call &c) { c.args.sink_ptr = c.at(13); }},
    {"overlaps", [](Call &c) { c.args.dk_ptr = c.args.dq_ptr; }},
};

TEST(FmhaBwdCheck, Refusals) {
    for (bool group : {false, true}) {
        Call good(group);
        EXPECT_EQ(tessera_fmha_bwd_check(&good.traits, &good.args), TESSERA_SUCCESS) << tessera_last_error();
    }
    for (const Refusal &refusal : refusals) {
        Call call(refusal.group);
        refusal.change(call);
        EXPECT_EQ(tessera_fmha_bwd_check(&call.traits, &call.args), TESSERA_ERROR_INVALID_ARGUMENT) << refusal.says;
        EXPECT_NE(std::string(tessera_last_error()).find(refusal.says), std::string::npos)
            << refusal.says << ": " << tessera_last_error();
    }
}

TEST(FmhaBwdCheck, WithoutPaddingWhereItSizesNothing) {
    for (bool deterministic : {false, true}) {
        Call call(true);
        call.args.seqlen_k_ptr = call.lengths_k.data(), call.lengths_k[0] = 4;
        call.traits.max_seqlen_k = call.args.max_seqlen_k = 4;
        call.traits.is_deterministic = deterministic;
        if (deterministic) call.traits.seqstart_qs = call.q.data(), call.traits.seqstart_ks = call.k.data();
        EXPECT_EQ(tessera_fmha_bwd_check(&call.traits, &call.args), TESSERA_SUCCESS) << tessera_last_error();
    }
}

// ---- launchers

class Launchers : public testing::Test {
  protected:
    Launchers() { EXPECT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    ~Launchers() override { tessera_device_close(device); }
    void refuses(tessera_status status, tessera_status wanted, const char *says) {
        EXPECT_EQ(status, wanted) << says;
        EXPECT_NE(std::string(tessera_last_error()).find(says), std::string::npos)
            << says << ": " << tessera_last_error();
    }
    tessera_device *device = nullptr;
    tessera_fmha_bwd_launcher l = {};
};

TEST_F(Launchers, RefuseSizesThatOverflow) {
    const tessera_status wrong = TESSERA_ERROR_INVALID_ARGUMENT;
    Call call(false);
    call.traits.batch = call.traits.nhead_q = call.traits.nhead_k = 1 << 15, call.traits.hdim_q = 512;
    for (int32_t queries : {(1 << 30) - 1, 1 << 23}) { // the product overflows; its bytes do
        call.traits.seqlen_q = queries;
        refuses(tessera_fmha_bwd_launcher_init(device, &call.traits, &l), wrong, "dq_acc");
    }
}

TEST_F(Launchers, RefuseWhatTheyCannotPrepare) {
    const tessera_status wrong = TESSERA_ERROR_INVALID_ARGUMENT, workspace = TESSERA_ERROR_WORKSPACE;
    Call call(true);
    call.traits.is_deterministic = 1, call.traits.mask_type = call.args.mask_type = TESSERA_MASK_TOP_LEFT;
    refuses(tessera_fmha_bwd_launcher_init(nullptr, &call.traits, &l), wrong, "device is NULL");
    refuses(tessera_fmha_bwd_launcher_init(device, &call.traits, nullptr), wrong, "out is NULL");
    refuses(tessera_fmha_bwd_prepare_workspace(nullptr, nullptr, nullptr), wrong, "launcher is NULL");
    refuses(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), wrong, "launcher was not filled in");
    l.struct_size = sizeof l;
    refuses(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), wrong, "launcher was not filled in");
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(device, &call.traits, &l), TESSERA_SUCCESS);
    tessera_fmha_bwd_launcher other = l;
    other.struct_size--;
    std::vector<char> storage(l.workspace_size + 64);
    char *const memory = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    const int32_t *const q = call.q.data(), *const k = call.k.data();
    const auto prepare = [&](void *to, const int32_t *starts_q, const int32_t *starts_k) {
        return tessera_fmha_bwd_prepare_workspace_async(&l, to, starts_q, starts_k, nullptr);
    };
    refuses(tessera_fmha_bwd_prepare_workspace_async(&other, memory, q, k, nullptr), wrong,
            "launcher was not filled in");
    refuses(tessera_fmha_bwd_prepare_workspace_async(&l, memory, q, k, memory), wrong, "stream is");
    refuses(prepare(nullptr, q, k), workspace, "workspace is");
    refuses(prepare(memory + 16, q, k), workspace, "workspace is");
    refuses(prepare(memory, nullptr, k), wrong, "seqstart_q is NULL");
    refuses(prepare(memory, q, nullptr), wrong, "seqstart_k is NULL");
    const int32_t below[] = {-1, 3, 5}, falling[] = {0, 3, 2}, longer[] = {0, 3, 60000};
    refuses(prepare(memory, below, k), wrong, "seqstart_q[0] is -1: 0 or more");
    refuses(prepare(memory, falling, k), wrong, "seqstart_q[2] is 2");
    refuses(prepare(memory, longer, k), wrong, "has room for");
    refuses(tessera_fmha_bwd_prepare_workspace(&l, memory, nullptr), wrong, "seqstart_qs, seqstart_ks");
    l.traits.seqstart_qs = q;
    refuses(tessera_fmha_bwd_prepare_workspace(&l, memory, nullptr), wrong, "seqstart_qs, seqstart_ks");
    l.traits.seqstart_qs = nullptr, l.traits.seqstart_ks = k;
    refuses(tessera_fmha_bwd_prepare_workspace(&l, memory, nullptr), wrong, "seqstart_qs, seqstart_ks");
}

TEST_F(Launchers, RefuseWhatWasNotPrepared) {
    Call call(true);
    call.traits.is_deterministic = 1;
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(device, &call.traits, &l), TESSERA_SUCCESS);
    std::vector<char> storage(l.workspace_size + 64);
    char *const memory = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    int32_t *const parts = reinterpret_cast<int32_t *>(memory);
    int64_t *const offsets = reinterpret_cast<int64_t *>(memory + l.offsets_offset);
    call.args.workspace_ptr = memory;
    const auto prepare = [&] {
        ASSERT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, memory, call.q.data(), call.k.data(), nullptr),
                  TESSERA_SUCCESS);
    };
    prepare();
    EXPECT_EQ(tessera_fmha_bwd_launcher_run(&l, &call.args, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    parts[1]--;
    refuses(tessera_fmha_bwd_launcher_run(&l, &call.args, nullptr), TESSERA_ERROR_WORKSPACE, "nsplits[1] is 0");
    prepare();
    offsets[2]--;
    refuses(tessera_fmha_bwd_launcher_run(&l, &call.args, nullptr), TESSERA_ERROR_WORKSPACE, "dq_acc_offsets[2]");
    prepare();
    for (int n = 0; n < 3; n++) offsets[n] += 4; // as long, elsewhere
    refuses(tessera_fmha_bwd_launcher_run(&l, &call.args, nullptr), TESSERA_ERROR_WORKSPACE, "dq_acc_offsets[1]");
}

TEST(LaunchersOfGpus, NeedStartsOfBoth) {
    tessera_device *gpu = nullptr;
    tessera_fmha_bwd_launcher l;
    Call call(true);
    alignas(64) char workspace[64];
#ifdef TESSERA_SIM
    setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
#endif
    if (tessera_device_open("sim:gfx942", &gpu) != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    call.traits.data_type = TESSERA_FMHA_BF16, call.traits.hdim_v = 8;
    const tessera_status status = tessera_fmha_bwd_launcher_init(gpu, &call.traits, &l);
    if (status == TESSERA_SUCCESS) {
        EXPECT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, workspace, nullptr, call.k.data(), nullptr),
                  TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find("seqstart_q is NULL"), std::string::npos);
        EXPECT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, workspace, call.q.data(), nullptr, nullptr),
                  TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find("seqstart_k is NULL"), std::string::npos);
    }
    tessera_device_close(gpu);
    if (status == TESSERA_ERROR_NO_INSTANCE) GTEST_SKIP() << "this build has no instance for gfx942";
    EXPECT_EQ(status, TESSERA_SUCCESS) << tessera_last_error();
}

// ---- what a GPU's instance refuses

TEST(FmhaBwdGpuCheck, Refusals) {
    tessera_fmha_bwd_instance instance = {};
    instance.base.symbol = "kernel";
    instance.tile.bm0 = 32, instance.tile.bn0 = 128;
    const std::vector<Refusal> limits = {
        {"nhead_q is 65536: at most", [](Call &c) { c.traits.nhead_q = c.args.nhead_q = 65536; }},
        {"batch is 65536: at most", [](Call &c) { c.traits.batch = c.args.batch = 65536; }},
        {"blocks of keys of all sequences",
         [](Call &c) { c.traits.batch = 65535, c.traits.nhead_q = 65535, c.traits.seqlen_k = 129; }},
        {"logits_soft_cap is 4097: at most 4096",
         [](Call &c) { c.traits.has_logits_soft_cap = 1, c.args.logits_soft_cap = 4097; }},
        {"logits_soft_cap is 129: at most 128",
         [](Call &c) {
             c.traits.data_type = TESSERA_FMHA_FP32;
             c.traits.has_logits_soft_cap = 1, c.args.logits_soft_cap = 129;
         }},
        {"stride_q is 33554432: less than 33554431", [](Call &c) { c.args.stride_q = 1 << 25; }},
        {"stride_dv is", [](Call &c) { c.args.stride_dv = 1 << 23; }},
        {"stride_dbias is",
         [](Call &c) {
             c.traits.bias_type = TESSERA_BIAS_ELEMENTWISE;
             c.traits.has_dbias = 1, c.args.stride_dbias = 1 << 25;
         }},
    };
    const auto check = [&](const Call &c) {
        tessera_fmha_bwd_call call = {};
        call.traits = c.traits, call.args = c.args;
        return tessera_fmha_bwd_gpu_check(&call, &instance.base);
    };
    Call good(false);
    good.traits.data_type = TESSERA_FMHA_BF16;
    EXPECT_EQ(check(good), TESSERA_SUCCESS) << tessera_last_error();
    good.args.stride_dbias = int64_t{1} << 40; // without dbias
    EXPECT_EQ(check(good), TESSERA_SUCCESS) << tessera_last_error();
    for (const Refusal &limit : limits) {
        Call call(false);
        call.traits.data_type = TESSERA_FMHA_BF16;
        limit.change(call);
        EXPECT_EQ(check(call), TESSERA_ERROR_INVALID_ARGUMENT) << limit.says;
        EXPECT_NE(std::string(tessera_last_error()).find(limit.says), std::string::npos) << tessera_last_error();
    }
}

// Instances that keep their queries write dq itself; others write an accumulator, whose rows have no room between them.
TEST(FmhaBwdGpuCheck, StrideOfDqWhereItIsWritten) {
    tessera_fmha_bwd_instance instance = {};
    instance.base.symbol = "kernel";
    instance.tile.bm0 = 32, instance.tile.bn0 = 128;
    Call wide(false);
    tessera_fmha_bwd_call call = {};
    call.traits = wide.traits, call.args = wide.args;
    call.traits.data_type = TESSERA_FMHA_BF16;
    call.args.stride_dq = 1 << 25;
    EXPECT_EQ(tessera_fmha_bwd_gpu_check(&call, &instance.base), TESSERA_SUCCESS) << tessera_last_error();
    instance.tile.max_q = 32;
    EXPECT_EQ(tessera_fmha_bwd_gpu_check(&call, &instance.base), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "stride_dq is 33554432: less than 33554431 on a GPU");
    call.args.stride_dq = (1 << 25) - 2;
    EXPECT_EQ(tessera_fmha_bwd_gpu_check(&call, &instance.base), TESSERA_SUCCESS) << tessera_last_error();
}

// Where tasks add to dq by turns there is one part of it, as where calls are not deterministic: a number for each
// sequence, and dq_acc is zeroed.
TEST(FmhaBwdWorkspace, OrderedHasOnePart) {
    tessera_fmha_bwd_instance instance = {};
    instance.tile.bn0 = 128;
    tessera_fmha_bwd_traits traits = Call(false).traits;
    traits.batch = 3, traits.nhead_q = traits.nhead_k = 2, traits.hdim_q = 64;
    traits.seqlen_q = 100, traits.seqlen_k = 1000, traits.max_seqlen_q = 50, traits.max_seqlen_k = 500;
    for (const bool group : {false, true}) {
        tessera_fmha_bwd_layout parted, ordered, free;
        traits.is_group_mode = group, traits.is_deterministic = 1;
        instance.tile.is_ordered = 0;
        ASSERT_EQ(tessera_fmha_bwd_lay_out(&traits, &instance.base, 2, &parted), TESSERA_SUCCESS);
        instance.tile.is_ordered = 1;
        ASSERT_EQ(tessera_fmha_bwd_lay_out(&traits, &instance.base, 2, &ordered), TESSERA_SUCCESS);
        traits.is_deterministic = 0;
        ASSERT_EQ(tessera_fmha_bwd_lay_out(&traits, &instance.base, 2, &free), TESSERA_SUCCESS);
        EXPECT_EQ(ordered.nsplits, 1);
        EXPECT_EQ(ordered.nsplits_count, group ? 3 : 1);
        EXPECT_EQ(ordered.host_bytes, parted.host_bytes);
        EXPECT_EQ(ordered.device_bytes, free.device_bytes);
        EXPECT_LT(ordered.device_bytes, parted.device_bytes);
        EXPECT_TRUE(ordered.is_ordered && ordered.is_zeroed);
        EXPECT_FALSE(parted.is_ordered || free.is_ordered);
    }
}

// The head that the host writes for it.
TEST(FmhaBwdWorkspace, OrderedHead) {
    tessera_fmha_bwd_instance instance = {};
    instance.tile.bn0 = 128, instance.tile.is_ordered = 1;
    tessera_fmha_bwd_traits traits = Call(true).traits;
    const int32_t q[]{0, 10, 10, 60}, k[]{0, 300, 900, 900};
    traits.batch = 3, traits.nhead_q = traits.nhead_k = 2, traits.hdim_q = 64, traits.seqlen_q = 60;
    traits.seqstart_qs = q, traits.seqstart_ks = k, traits.is_group_mode = traits.is_deterministic = 1;
    tessera_fmha_bwd_layout l;
    ASSERT_EQ(tessera_fmha_bwd_lay_out(&traits, &instance.base, 2, &l), TESSERA_SUCCESS);
    std::vector<char> head(l.host_bytes);
    ASSERT_EQ(tessera_fmha_bwd_write_head(&traits, &l, q, k, head.data()), TESSERA_SUCCESS) << tessera_last_error();
    const auto *parts = reinterpret_cast<const int32_t *>(head.data());
    const auto *offsets = reinterpret_cast<const int64_t *>(head.data() + l.offsets_offset);
    for (int b = 0; b < 3; b++) {
        EXPECT_EQ(parts[b], 1);
        EXPECT_EQ(offsets[b + 1], int64_t{2} * q[b + 1] * 64);
    }
    EXPECT_EQ(tessera_fmha_bwd_check_head(&traits, &l, q, k, head.data()), TESSERA_SUCCESS);
}

} // namespace
