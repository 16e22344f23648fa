// SPDX-License-Identifier: MIT
// Launches of sm_90a instances: tensor maps, tasks and the counter that they are taken from, what is refused.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>

#include "fake_cuda.h"
#include "fmha_fwd_fixture.h"
#include "tessera/kernel/fmha_fwd_cuda.h"

namespace {

using Args = tessera_fmha_fwd_cuda_args;
using Sizes = std::vector<uint64_t>;
using Box = std::vector<uint32_t>;

class CudaFmha : public ::testing::Test {
  protected:
    CudaFmha() : cuda({90}) {
        cuda.argument_bytes = sizeof(Args);
        EXPECT_EQ(tessera_device_open("cuda:0", &device), TESSERA_SUCCESS) << tessera_last_error();
        instance = make_instance("short_name", TESSERA_TARGET_SM_90A, &all, 128, 64);
        instance.base.symbol = "kernel";
        instance.base.threads = 384;
        instance.shared_bytes = 100000;
        const std::string pack = make_pack("fmha_fwd", "sm_90a", {{"kernel", "kernel"}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        call.traits.data_type = TESSERA_FMHA_BF16;
        call.args.seqlen_q = call.args.max_seqlen_q = 300;
        call.args.seqlen_k = 77;
        call.set_strides();
    }
    ~CudaFmha() override { tessera_device_close(device); }

    tessera_status launch() {
        tessera_fmha_fwd_call whole = call.whole();
        const tessera_status checked = tessera_fmha_fwd_check_sizes(&whole);
        const tessera_status planned =
            checked ? checked
                    : tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan);
        return planned ? planned : tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, nullptr);
    }

    Args launched() {
        Args args = {};
        cuda.launches.clear();
        cuda.maps.clear();
        EXPECT_EQ(launch(), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(cuda.launches.size(), 1u);
        if (cuda.launches.size() == 1 && cuda.launches[0].argument.size() == sizeof args)
            memcpy(&args, cuda.launches[0].argument.data(), sizeof args);
        else
            ADD_FAILURE() << "no argument";
        return args;
    }

    void mask() {
        call.traits.mask_type = call.args.mask_type = TESSERA_MASK_TOP_LEFT;
        call.args.window_size_right = 0;
    }

    FakeCuda cuda;
    Call call;
    tessera_device *device = nullptr;
    Served all;
    tessera_fmha_fwd_instance instance;
    tessera_plan plan;
};

TEST_F(CudaFmha, Launch) {
    const Args args = launched();
    const FakeLaunch &l = cuda.launches[0];
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{24, 1, 1})); // b 2, h 4, 300 / 128
    EXPECT_EQ(l.block[0], 384u);
    EXPECT_EQ(l.lds_bytes, 100000u);
    EXPECT_EQ(args.tasks, 24);
    EXPECT_EQ(args.heads_together, 1);
    EXPECT_EQ(args.counter, nullptr);
    EXPECT_EQ(args.call.blocks_q, 3);
    EXPECT_EQ(args.call.seqlen_k, 77);
    EXPECT_EQ(args.call.group, 2);
    call.args.seqlen_q = 3000;
    call.set_strides();
    EXPECT_EQ(launched().tasks, 192);
    EXPECT_EQ(cuda.launches[0].grid[0], 100u); // compute units
    call.args.seqlen_q = 0;
    cuda.launches.clear();
    EXPECT_EQ(launch(), TESSERA_SUCCESS);
    EXPECT_TRUE(cuda.launches.empty());
}

TEST_F(CudaFmha, MapsOfBatches) {
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_K | TESSERA_CUDA_MAP_V});
    ASSERT_EQ(cuda.maps.size(), 3u);
    EXPECT_EQ(cuda.maps[0].base, call.args.q_ptr);
    EXPECT_EQ(cuda.maps[0].sizes, (Sizes{8, 300, 4, 2}));
    EXPECT_EQ(cuda.maps[0].strides, (Sizes{16, 4800, 19200}));
    EXPECT_EQ(cuda.maps[0].box, (Box{64, 128, 1, 1})); // 128 bytes of a row, and the tile's rows
    EXPECT_EQ(cuda.maps[1].base, call.args.k_ptr);
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{8, 77, 2, 2})); // key heads
    EXPECT_EQ(cuda.maps[1].box, (Box{64, 64, 1, 1}));
    EXPECT_EQ(cuda.maps[2].base, call.args.v_ptr);
    EXPECT_EQ(cuda.maps[2].sizes, (Sizes{16, 77, 2, 2}));
    EXPECT_EQ(cuda.maps[2].strides, (Sizes{32, 2464, 4928}));
    for (const FakeTensorMap &map : cuda.maps) EXPECT_EQ(map.swizzle, 3);
}

TEST_F(CudaFmha, MapsOfGroups) {
    call.group();
    call.args.max_seqlen_q = 300;
    launched();
    ASSERT_EQ(cuda.maps.size(), 3u);
    EXPECT_EQ(cuda.maps[0].sizes, (Sizes{8, INT_MAX, 4, 1})); // all tokens, however many there are
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{8, INT_MAX, 2, 1}));
    EXPECT_EQ(cuda.maps[2].sizes, (Sizes{16, INT_MAX, 2, 1}));
}

TEST_F(CudaFmha, MapsThatThereAreNot) {
    call.args.nhead_stride_k = 0; // one key head for all
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_V});
    call.set_strides();
    call.args.stride_v = 20; // 40 bytes
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_K});
    call.set_strides();
    call.args.batch_stride_q = INT64_C(1) << 40;
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_K | TESSERA_CUDA_MAP_V});
    EXPECT_EQ(cuda.maps.size(), 2u);
    call.set_strides();
    call.args.batch = 1;
    call.args.batch_stride_q = call.args.batch_stride_k = call.args.batch_stride_v = 1; // of one sequence: no matter
    EXPECT_EQ(launched().maps, 7u);
    call.set_strides();
    call.args.seqlen_k = 0;
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q}); // a map of nothing there is none
}

TEST_F(CudaFmha, TasksOfDifferentLengthsAreCounted) {
    alignas(64) char workspace[64];
    call.args.workspace_ptr = workspace;
    call.args.workspace_size = sizeof workspace;
    mask();
    EXPECT_EQ(launched().counter, nullptr); // a task for each compute unit
    call.args.seqlen_q = 3000;
    call.set_strides();
    EXPECT_EQ(launched().counter, reinterpret_cast<uint32_t *>(workspace));
    EXPECT_EQ(tessera_plan_workspace(&plan), 64u);
    EXPECT_TRUE(plan.regions[0].zeroed);
    call.traits.mask_type = call.args.mask_type = TESSERA_MASK_NONE;
    EXPECT_EQ(launched().counter, nullptr);
    EXPECT_EQ(tessera_plan_workspace(&plan), 0u);
    call.args.cu_seqlen_k_ptr = call.cu_k.data();
    EXPECT_EQ(launched().counter, reinterpret_cast<uint32_t *>(workspace));
    call.args.cu_seqlen_k_ptr = nullptr;
    call.group();
    call.args.max_seqlen_q = 3000;
    EXPECT_EQ(launched().counter, reinterpret_cast<uint32_t *>(workspace));
}

TEST_F(CudaFmha, HeadsOfAMaskShareL2) {
    mask();
    EXPECT_EQ(launched().heads_together, 8); // all
    call.args.seqlen_k = 1 << 19;            // 24 MB of k and v of a key head, which two query heads share
    call.set_strides();
    EXPECT_EQ(launched().heads_together, 2);
    call.args.seqlen_k = 1 << 21;
    call.set_strides();
    EXPECT_EQ(launched().heads_together, 1);
}

TEST_F(CudaFmha, MostTasks) {
    const auto check = [&] {
        const tessera_fmha_fwd_call whole = call.whole();
        return tessera_fmha_fwd_cuda_check(&instance, &whole);
    };
    call.args.seqlen_q = 128;
    call.args.batch = 1 << 20;
    call.args.nhead_q = 512;
    EXPECT_EQ(check(), TESSERA_SUCCESS);
    call.args.nhead_q = 1024;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tessera_last_error()),
              "batch * nhead_q * blocks of 128 queries are 1073741824: at most 1073741823 on a GPU");
}

} // namespace
