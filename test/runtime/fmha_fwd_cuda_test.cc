// SPDX-License-Identifier: MIT
// Launches of sm_90a instances: tensor maps, tasks and the counter that they are taken from, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "fake_cuda.h"
#include "fmha_fwd_fixture.h"
#include "tessera/kernel/fmha_fwd_combine_gpu.h"
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
        instance.workgroups = 1;
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

    Args argument_of(size_t n) {
        Args args = {};
        if (n < cuda.launches.size() && cuda.launches[n].argument.size() == sizeof args)
            memcpy(&args, cuda.launches[n].argument.data(), sizeof args);
        else
            ADD_FAILURE() << "no argument of launch " << n;
        return args;
    }

    Args launched() {
        cuda.launches.clear();
        cuda.maps.clear();
        EXPECT_EQ(launch(), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(cuda.launches.size(), 1u);
        return argument_of(0);
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
    instance.workgroups = 3;
    EXPECT_EQ(launched().tasks, 192);
    EXPECT_EQ(cuda.launches[0].grid[0], 192u); // each has room for more
    call.args.seqlen_q = 0;
    cuda.launches.clear();
    EXPECT_EQ(launch(), TESSERA_SUCCESS);
    EXPECT_TRUE(cuda.launches.empty());
}

// Where an instance takes strips of 64 rows, the last tasks of a call without a mask are such, if that is sooner.
TEST_F(CudaFmha, StripsInPlaceOfALastRound) {
    instance.strip = 0.4f;
    Args args = launched(); // 8 heads of 300 rows: two blocks, and one strip behind them
    EXPECT_EQ(args.call.blocks_q, 2);
    EXPECT_EQ(args.heads, 8);
    EXPECT_EQ(args.whole, 0);
    EXPECT_EQ(args.strips_behind, 1);
    EXPECT_EQ(args.tasks, 8 * 5);
    EXPECT_EQ(cuda.launches[0].grid[0], 40u);
    call.args.seqlen_q = 3000;
    call.set_strides();
    args = launched(); // 184 blocks of which 84 are no whole round: 1 + 2 * 0.4 rounds in place of 2
    EXPECT_EQ(args.call.blocks_q, 23);
    EXPECT_EQ(args.whole, 100);
    EXPECT_EQ(args.tasks, 100 + 2 * 84 + 8);
    EXPECT_EQ(cuda.launches[0].grid[0], 100u);
    instance.strip = 0.5f; // as long
    args = launched();
    EXPECT_EQ(args.call.blocks_q, 24);
    EXPECT_EQ(args.whole, 192);
    EXPECT_EQ(args.tasks, 192);
    instance.strip = 0.1f;
    alignas(64) char workspace[64];
    call.args.workspace_ptr = workspace;
    call.args.workspace_size = sizeof workspace;
    mask();
    args = launched(); // short tasks come last by themselves
    EXPECT_EQ(args.whole, 192);
    EXPECT_EQ(args.tasks, 192);
}

// Where so many tasks read each tile of v as an instance says, a launch of its own transposes them first.
TEST_F(CudaFmha, TransposedFirst) {
    instance.v_first = 6; // 300 rows are three tasks of each of the two heads of a key head
    instance.tile.bn1 = 16;
    alignas(64) static char workspace[2 * 2 * 2 * 64 * 16]; // sequences, key heads, tiles of 64 keys
    call.args.workspace_ptr = workspace;
    call.args.workspace_size = sizeof workspace;
    ASSERT_EQ(launch(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(cuda.launches.size(), 2u);
    const Args first = argument_of(0);
    Args second = argument_of(1);
    EXPECT_EQ(tessera_plan_workspace(&plan), sizeof workspace);
    EXPECT_EQ(first.v, TESSERA_CUDA_V_TRANSPOSING);
    EXPECT_EQ(first.transposed, workspace);
    EXPECT_EQ(first.all_tiles, 8);
    EXPECT_EQ(first.head_tiles, 2);
    EXPECT_EQ(cuda.launches[0].grid[0], 8u);
    EXPECT_EQ(cuda.launches[1].grid[0], 24u);
    EXPECT_EQ(second.v, TESSERA_CUDA_V_TRANSPOSED);
    second.v = first.v;
    EXPECT_EQ(memcmp(&first, &second, sizeof first), 0);
    mask(); // half of them
    EXPECT_EQ(launched().v, TESSERA_CUDA_V_ROWS);
    call.args.window_size_left = 5;
    instance.v_first = 1;
    EXPECT_EQ(launched().v, TESSERA_CUDA_V_ROWS);
    call.group();
    call.traits.mask_type = call.args.mask_type = TESSERA_MASK_NONE;
    EXPECT_EQ(launched().v, TESSERA_CUDA_V_ROWS);
}

// Where an instance can, and all workgroups have long tasks of the same keys side by side, they share tiles in pairs.
class CudaPairs : public CudaFmha {
  protected:
    CudaPairs() {
        instance.paired = 0.9f;
        call.args.seqlen_q = call.args.max_seqlen_q = 3000; // 24 blocks of each of 8 heads
        call.args.seqlen_k = 2000;                          // 32 tiles
        call.set_strides();
    }
    void expect_none() {
        const Args args = launched();
        EXPECT_EQ(args.paired, 0);
        EXPECT_EQ(cuda.launches.at(0).cluster, 0u);
        EXPECT_EQ(cuda.maps.at(1).box, (Box{64, 64, 1, 1}));
    }
};

TEST_F(CudaPairs, Launch) {
    const Args args = launched();
    EXPECT_EQ(args.paired, 192);
    EXPECT_EQ(args.tasks, 192);
    EXPECT_EQ(cuda.launches[0].cluster, 2u);
    EXPECT_EQ(cuda.launches[0].grid[0], 100u);
    EXPECT_EQ(cuda.maps[0].box, (Box{64, 128, 1, 1}));
    EXPECT_EQ(cuda.maps[1].box, (Box{64, 32, 1, 1})); // each brings a half
    EXPECT_EQ(cuda.maps[2].box, (Box{64, 32, 1, 1}));
    instance.paired = 0;
    expect_none();
}

TEST_F(CudaPairs, KeysOfNeighboursDiffer) {
    call.args.seqlen_q = call.args.max_seqlen_q = 2900; // 23 blocks, but of two heads of the same keys
    call.set_strides();
    Args args = launched();
    EXPECT_EQ(args.paired, 184);
    EXPECT_EQ(args.blocks_behind, 0);
    call.args.nhead_k = 4;
    call.set_strides();
    args = launched(); // one block of each head has no neighbour
    EXPECT_EQ(args.tasks, 184);
    EXPECT_EQ(args.paired, 176);
    EXPECT_EQ(args.blocks_behind, 1);
    call.args.seqlen_q = call.args.max_seqlen_q = 3000;
    call.set_strides();
    args = launched();
    EXPECT_EQ(args.paired, 192);
    EXPECT_EQ(args.blocks_behind, 0);
}

TEST_F(CudaPairs, TasksDifferOrAreShort) {
    call.args.seqlen_k = 1984; // 31 tiles
    call.set_strides();
    expect_none();
    call.args.seqlen_k = 2000;
    call.args.seqlen_q = call.args.max_seqlen_q = 1500; // 96 tasks of 100 workgroups
    call.set_strides();
    expect_none();
    call.args.seqlen_q = call.args.max_seqlen_q = 3000;
    call.set_strides();
    alignas(64) char workspace[64];
    call.args.workspace_ptr = workspace;
    call.args.workspace_size = sizeof workspace;
    mask();
    expect_none();
}

TEST_F(CudaPairs, Strips) {
    instance.strip = 0.1f;
    Args args = launched(); // 23 blocks and a strip: pairs of the heads of a key head
    EXPECT_EQ(args.strips_behind, 1);
    EXPECT_EQ(args.tasks, 100 + 2 * 84 + 8);
    EXPECT_EQ(args.paired, args.tasks);
    call.args.nhead_k = 4; // else strips are alone
    call.set_strides();
    args = launched();
    EXPECT_EQ(args.whole, 100);
    EXPECT_EQ(args.paired, 100);
    EXPECT_EQ(args.blocks_behind, 1);
    instance.strip = 0.6f; // pairs, without strips, are sooner
    args = launched();
    EXPECT_EQ(args.strips_behind, 0);
    EXPECT_EQ(args.paired, 192);
    call.args.seqlen_q = call.args.max_seqlen_q = 1600; // whole tasks in pairs of 96 of 100 workgroups
    call.set_strides();
    args = launched();
    EXPECT_EQ(args.whole, 96);
    EXPECT_EQ(args.tasks, 104);
    EXPECT_EQ(args.paired, 96);
}

// Halves are brought by maps: where lanes would copy, each workgroup does so for itself.
TEST_F(CudaPairs, MapsThatThereAreNot) {
    call.args.nhead_stride_k = 0; // one key head for all
    Args args = launched();
    EXPECT_EQ(args.paired, 0);
    EXPECT_EQ(args.maps, unsigned{TESSERA_CUDA_MAP_Q});
    EXPECT_EQ(cuda.launches[0].cluster, 0u);
    call.set_strides();
    call.args.batch_stride_q = INT64_C(1) << 40;
    args = launched();
    EXPECT_EQ(args.paired, 0);
    EXPECT_EQ(args.maps, 0u);
}

// A driver without the function that launches clusters: each workgroup brings all for itself.
TEST_F(CudaPairs, NoClusters) {
    std::vector<tessera_driver_entry> some = cuda.entries();
    some.erase(std::remove_if(some.begin(), some.end(),
                              [](const auto &entry) { return strcmp(entry.name, "cuLaunchKernelEx") == 0; }),
               some.end());
    ASSERT_EQ(tessera_set_driver("cuda", some.data(), some.size()), TESSERA_SUCCESS);
    tessera_device_close(device);
    ASSERT_EQ(tessera_device_open("cuda:0", &device), TESSERA_SUCCESS) << tessera_last_error();
    expect_none();
}

// The launch that transposes v brings whole tiles of it, to its own workgroup.
TEST_F(CudaPairs, TransposedFirst) {
    instance.v_first = 1;
    instance.tile.bn1 = 16;
    alignas(64) static char workspace[2 * 2 * 32 * 64 * 16]; // sequences, key heads, tiles
    call.args.workspace_ptr = workspace;
    call.args.workspace_size = sizeof workspace;
    ASSERT_EQ(launch(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(cuda.launches.size(), 2u);
    const Args first = argument_of(0), second = argument_of(1);
    EXPECT_EQ(first.paired, 0);
    EXPECT_EQ(cuda.launches[0].cluster, 0u);
    EXPECT_EQ(second.paired, 192);
    EXPECT_EQ(second.v, TESSERA_CUDA_V_TRANSPOSED);
    EXPECT_EQ(cuda.launches[1].cluster, 2u);
    EXPECT_EQ(cuda.maps[1].box, (Box{64, 32, 1, 1}));
    EXPECT_EQ(cuda.maps[2].box, (Box{64, 64, 1, 1}));
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

// Column-major v has rows of keys, of which a box takes 128 bytes for each column of o.
TEST_F(CudaFmha, MapsOfColumns) {
    instance.tile.bn1 = 16;
    call.traits.is_v_rowmajor = 0;
    call.set_strides();
    call.args.stride_v = 80;
    call.args.nhead_stride_v = 16 * 80;
    call.args.batch_stride_v = 2 * 16 * 80;
    EXPECT_EQ(launched().maps, 7u);
    ASSERT_EQ(cuda.maps.size(), 3u);
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{8, 77, 2, 2}));
    EXPECT_EQ(cuda.maps[2].base, call.args.v_ptr);
    EXPECT_EQ(cuda.maps[2].sizes, (Sizes{77, 16, 2, 2}));
    EXPECT_EQ(cuda.maps[2].strides, (Sizes{160, 2560, 5120}));
    EXPECT_EQ(cuda.maps[2].box, (Box{64, 16, 1, 1}));
    call.args.stride_v = 0;
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_K});
    call.args.stride_v = 80;
    call.args.seqlen_k = 0;
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q});
}

// Beside column-major v of 8 bits a box of k has two of each four rows.
TEST_F(CudaFmha, MapsOfKeysInFours) {
    instance.tile.bn1 = 16;
    call.args.hdim_q = call.traits.hdim_q = 16;
    call.traits.is_v_rowmajor = 0;
    call.dtype(TESSERA_FMHA_FP8BF16, TESSERA_QSCALE_NONE);
    call.args.stride_v = 80;
    call.args.nhead_stride_v = 16 * 80;
    call.args.batch_stride_v = 2 * 16 * 80;
    EXPECT_EQ(launched().maps, 7u);
    ASSERT_EQ(cuda.maps.size(), 3u);
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{16, 4, 19, 2, 2})); // of 77 keys the last one is no part of four
    EXPECT_EQ(cuda.maps[1].strides, (Sizes{16, 64, 1232, 2464}));
    EXPECT_EQ(cuda.maps[1].box, (Box{128, 2, 16, 1, 1}));
    EXPECT_EQ(cuda.maps[2].sizes, (Sizes{77, 16, 2, 2}));
    EXPECT_EQ(cuda.maps[2].box, (Box{128, 16, 1, 1}));
    call.args.stride_k = 0; // one key for all
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_V});
    call.args.stride_k = 16;
    call.args.seqlen_k = 3;
    EXPECT_EQ(launched().maps, unsigned{TESSERA_CUDA_MAP_Q | TESSERA_CUDA_MAP_V});
    call.traits.is_v_rowmajor = 1;
    call.args.seqlen_k = 77;
    call.set_strides();
    launched();
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{16, 77, 2, 2})); // the transposition of v brings its keys into another order
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
    call.args.nhead_q = 256;
    EXPECT_EQ(check(), TESSERA_SUCCESS);
    call.args.nhead_q = 512;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tessera_last_error()),
              "batch * nhead_q * blocks of 128 queries are 536870912: at most 536870911 on a GPU");
}

// ---- few queries: heads are merged, and keys are cut into parts

class MergedHeads : public CudaFmha {
  protected:
    MergedHeads() {
        instance = make_instance("merging", TESSERA_TARGET_SM_90A, &all, 64, 64);
        instance.base.symbol = "kernel";
        instance.base.threads = 256;
        instance.merged = 1;
        if (const tessera_instance *const combine = combining(TESSERA_TARGET_SM_90A)) { // the fake loads no real code
            const std::string symbol = combine->symbol;
            const std::string pack = make_pack("fmha_fwd_combine", "sm_90a", {{symbol, symbol}});
            EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        }
        instance.workgroups = 1;
        instance.alone_cycles = instance.busy_cycles = 2000;
        instance.start = 0.5F;
        call.args.seqlen_q = call.args.max_seqlen_q = 3;
        call.args.seqlen_k = 6400; // 100 tiles
        call.set_strides();
    }

    void SetUp() override {
        if (!combining(TESSERA_TARGET_SM_90A)) GTEST_SKIP() << "this build has no kernel to combine";
    }

    tessera_status launch_all() {
        cuda.launches.clear();
        cuda.maps.clear();
        tessera_fmha_fwd_call whole = call.whole();
        const tessera_status checked = tessera_fmha_fwd_check_sizes(&whole);
        if (checked) return checked;
        const tessera_status planned =
            tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan);
        if (planned) return planned;
        workspace.assign(tessera_plan_workspace(&plan) + 64, 0);
        const auto start = reinterpret_cast<uintptr_t>(workspace.data());
        whole.args.workspace_ptr = call.args.workspace_ptr = workspace.data() + (64 - start % 64) % 64;
        whole.args.workspace_size = tessera_plan_workspace(&plan);
        return tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, nullptr);
    }

    template <typename T> T argument(size_t number) {
        T args = {};
        EXPECT_LT(number, cuda.launches.size());
        if (number < cuda.launches.size()) memcpy(&args, cuda.launches[number].argument.data(), sizeof args);
        return args;
    }

    // Asks for parts, and expects so many of so many tiles.
    void expect_parts(int asked, int parts, int tiles) {
        call.args.num_splits = asked;
        ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(cuda.launches.size(), parts > 1 ? 2u : 1u);
        const Args args = argument<Args>(0);
        EXPECT_EQ(args.parts, parts);
        EXPECT_EQ(args.part_tiles, tiles);
        EXPECT_EQ(args.tasks, 4 * parts); // sequences and key heads, since 3 queries of 2 heads are a block
        EXPECT_EQ(args.call.blocks_q, 1);
        EXPECT_EQ(args.counter, nullptr);
    }

    std::vector<char> workspace;
};

using CombineArgs = tessera_fmha_fwd_combine_args;

TEST_F(MergedHeads, PartsThatAreAskedFor) {
    expect_parts(1, 1, 100);
    EXPECT_EQ(tessera_plan_workspace(&plan), 0u);
    expect_parts(2, 2, 50);
    expect_parts(3, 3, 34);
    expect_parts(7, 7, 15);
    expect_parts(40, 34, 3); // none is empty where the host knows the length
    expect_parts(128, 100, 1);
    for (int refused : {-1, 129}) {
        call.args.num_splits = refused;
        EXPECT_EQ(launch_all(), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(tessera_last_error()), "num_splits is " + std::to_string(refused) + ": 0 to 128");
    }
}

TEST_F(MergedHeads, OwnChoice) {
    expect_parts(0, 20, 5); // 80 workgroups for 100 compute units, since each part's results take time, too
    call.args.seqlen_k = 640;
    call.set_strides();
    expect_parts(0, 5, 2);
    call.args.seqlen_k = 128;
    call.set_strides();
    expect_parts(0, 1, 2); // to combine takes longer than a tile
    call.args.seqlen_k = 64;
    call.set_strides();
    expect_parts(0, 1, 1);
    call.args.seqlen_k = 0;
    call.set_strides();
    expect_parts(0, 1, 1);
    call.args.seqlen_k = 6400;
    call.args.window_size_left = 127;
    call.args.window_size_right = 0;
    call.traits.mask_type = call.args.mask_type = TESSERA_MASK_BOTTOM_RIGHT;
    call.set_strides();
    expect_parts(0, 1, 3); // the keys of a window are few
}

TEST_F(MergedHeads, Combination) {
    call.traits.has_lse = call.traits.has_sink = 1;
    expect_parts(7, 7, 15);
    const Args args = argument<Args>(0);
    const auto combine = argument<CombineArgs>(1);
    const auto *const row = reinterpret_cast<const tessera_fmha_fwd_combine_instance *>(plan.rows[1].row);
    ASSERT_EQ(plan.region_count, 2u);
    EXPECT_EQ(plan.regions[0].bytes, 2u * 4 * 3 * 7 * 16 * 4);
    EXPECT_EQ(plan.regions[1].bytes, 2u * 4 * 3 * 7 * 4);
    EXPECT_FALSE(plan.regions[0].zeroed || plan.regions[1].zeroed);
    EXPECT_EQ(args.o_acc, plan.regions[0].memory);
    EXPECT_EQ(args.lse_acc, plan.regions[1].memory);
    EXPECT_EQ(args.call.sink, nullptr); // it counts once
    EXPECT_EQ(combine.sink, call.args.sink_ptr);
    EXPECT_EQ(combine.o_acc, args.o_acc);
    EXPECT_EQ(combine.lse_acc, args.lse_acc);
    EXPECT_EQ(combine.o, call.args.o_ptr);
    EXPECT_EQ(combine.lse, call.args.lse_ptr);
    EXPECT_EQ(combine.splits, 7);
    EXPECT_EQ(combine.queries, 3);
    EXPECT_EQ(combine.nhead_q, 4);
    EXPECT_EQ(combine.hdim_v, 16);
    EXPECT_EQ(combine.type, TESSERA_COMBINED_BF16);
    EXPECT_EQ(combine.min_seqlen_q, -1);
    EXPECT_EQ(combine.stride_o, call.args.stride_o);
    EXPECT_EQ(combine.batch_stride_lse, call.args.batch_stride_lse);
    EXPECT_EQ(cuda.launches[1].grid[0], (2u * 4 * 3 + row->tile.rows - 1) / row->tile.rows);
    EXPECT_EQ(cuda.launches[1].block[0], row->base.threads);
    EXPECT_FALSE(cuda.launches[0].overlaps) << "what the caller launched before ends first";
    EXPECT_TRUE(cuda.launches[1].overlaps);
    call.traits.has_lse = 0;
    expect_parts(7, 7, 15);
    EXPECT_EQ(argument<CombineArgs>(1).lse, nullptr);
    const auto type_of = [&](tessera_fmha_dtype dtype) {
        call.dtype(dtype, TESSERA_QSCALE_NONE);
        EXPECT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
        return argument<CombineArgs>(1).type;
    };
    EXPECT_EQ(type_of(TESSERA_FMHA_FP16), TESSERA_COMBINED_FP16);
    EXPECT_EQ(type_of(TESSERA_FMHA_FP8), TESSERA_COMBINED_FP8);
    EXPECT_EQ(type_of(TESSERA_FMHA_FP8BF16), TESSERA_COMBINED_BF16);
    EXPECT_EQ(type_of(TESSERA_FMHA_FP8FP32), TESSERA_COMBINED_FP32);
}

// Queries are copied by lanes.
TEST_F(MergedHeads, Maps) {
    expect_parts(1, 1, 100);
    EXPECT_EQ(argument<Args>(0).maps, unsigned{TESSERA_CUDA_MAP_K | TESSERA_CUDA_MAP_V});
    EXPECT_EQ(cuda.maps.size(), 2u);
}

// Of a cache of 8 bits a box has eight rows of all heads, in slices of 128 bytes, which at that head dim may be
// anywhere.
TEST_F(MergedHeads, MapsOfRowsOfAllHeads) {
    int32_t table[1] = {};
    tessera_attention_cache cache = {};
    cache.is_paged = true, cache.blocks = 5, cache.rows = cache.pages.page_size = 16;
    cache.pages.table = table, cache.pages.dtype = TESSERA_KV_INT8;
    instance.keys_in = TESSERA_KEYS_IN_PAGES, instance.kv = TESSERA_KV_INT8, instance.heads = 2;
    const auto launch_over_cache = [&](int hdim) {
        call.args.hdim_q = call.traits.hdim_q = hdim, call.args.hdim_v = call.traits.hdim_v = hdim;
        call.args.seqlen_k = 16;
        call.set_strides();
        call.args.batch_stride_k = call.args.batch_stride_v = 32 * hdim;
        call.args.stride_k = 2 * hdim, call.args.nhead_stride_k = hdim;  // [row, head]
        call.args.stride_v = hdim, call.args.nhead_stride_v = 16 * hdim; // [head, row]
        tessera_fmha_fwd_call whole = call.whole();
        whole.cache = &cache, whole.splits = 1;
        cuda.maps.clear();
        EXPECT_EQ(tessera_fmha_fwd_check_call(&whole), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan),
                  TESSERA_SUCCESS);
        EXPECT_EQ(tessera_run_call(&tessera_fmha_fwd_operation, &whole, device, &plan, nullptr), TESSERA_SUCCESS);
    };
    launch_over_cache(128);
    ASSERT_EQ(cuda.maps.size(), 2u);
    EXPECT_EQ(cuda.maps[0].base, call.args.k_ptr);
    EXPECT_EQ(cuda.maps[0].sizes, (Sizes{128, 16, 2, 5}));
    EXPECT_EQ(cuda.maps[0].strides, (Sizes{256, 128, 4096}));
    EXPECT_EQ(cuda.maps[0].box, (Box{128, 8, 2, 1}));
    EXPECT_EQ(cuda.maps[1].base, call.args.v_ptr);
    EXPECT_EQ(cuda.maps[1].sizes, (Sizes{128, 16, 2, 5}));
    EXPECT_EQ(cuda.maps[1].strides, (Sizes{128, 2048, 4096}));
    EXPECT_EQ(cuda.maps[1].box, (Box{128, 8, 2, 1}));
    launch_over_cache(256);
    ASSERT_EQ(cuda.maps.size(), 2u);
    EXPECT_EQ(cuda.maps[0].sizes, (Sizes{128, 16, 4, 5}));
    EXPECT_EQ(cuda.maps[0].strides, (Sizes{512, 128, 8192}));
    EXPECT_EQ(cuda.maps[0].box, (Box{128, 8, 4, 1}));
}

// Lengths that only the device knows: parts are as asked for, since sequences may be longer than the hint.
TEST_F(MergedHeads, Groups) {
    call.group();
    call.args.seqlen_k = 6400;
    call.args.num_splits = 40;
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(argument<Args>(0).parts, 40);
    EXPECT_EQ(argument<Args>(0).part_tiles, 3);
    EXPECT_EQ(argument<Args>(0).queries, call.args.max_seqlen_q);
    EXPECT_EQ(argument<Args>(0).counter, plan.regions[2].memory);
    EXPECT_TRUE(plan.regions[2].zeroed);
    EXPECT_EQ(argument<CombineArgs>(1).seqstart_q, call.args.seqstart_q_ptr);
    call.args.num_splits = 0;
    call.args.seqlen_k = 0; // no hint
    ASSERT_EQ(launch_all(), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(argument<Args>(0).parts, 32);
    EXPECT_EQ(argument<Args>(0).part_tiles, 4);
}

TEST_F(MergedHeads, OthersRefuseParts) {
    const auto check = [&] {
        tessera_fmha_fwd_call whole = call.whole();
        EXPECT_EQ(tessera_fmha_fwd_check_sizes(&whole), TESSERA_SUCCESS);
        return tessera_fmha_fwd_operation.check_row(&whole, &instance.base);
    };
    call.args.num_splits = 2;
    EXPECT_EQ(check(), TESSERA_SUCCESS);
    instance.merged = 0;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tessera_last_error()), "num_splits is 2: merging does not cut keys into parts");
    instance.base.target = TESSERA_TARGET_GFX942;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    instance.base.target = TESSERA_TARGET_X86_64_V3;
    instance.base.symbol = nullptr;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tessera_last_error()), "num_splits is 2: merging does not cut keys into parts");
    call.args.num_splits = 1;
    EXPECT_EQ(check(), TESSERA_SUCCESS);
}

TEST_F(MergedHeads, MostPartialResults) {
    const auto check = [&] {
        const tessera_fmha_fwd_call whole = call.whole();
        tessera_fmha_fwd_call copy = whole;
        copy.queries = call.args.seqlen_q;
        return tessera_fmha_fwd_cuda_check(&instance, &copy);
    };
    call.args.num_splits = 2;
    call.args.seqlen_q = 1 << 15;
    call.args.batch = 1 << 12;
    call.args.nhead_q = call.args.nhead_k = 8;
    EXPECT_EQ(check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tessera_last_error()), "batch * nhead_q * queries are 1073741824: at most 1073741823 where "
                                                 "num_splits asks for parts");
    call.args.nhead_q = call.args.nhead_k = 7;
    EXPECT_EQ(check(), TESSERA_SUCCESS);
}

// ---- which of both is taken

class FewQueries : public ::testing::Test {
  protected:
    FewQueries() {
        call.traits.data_type = TESSERA_FMHA_BF16;
        call.traits.hdim_q = call.traits.hdim_v = call.args.hdim_q = call.args.hdim_v = 128;
        call.args.batch = 64;
        call.args.nhead_q = 32;
        call.args.nhead_k = 8;
    }

    // A row of tiles of 128 keys.
    static tessera_fmha_fwd_instance row(const char *name, uint16_t bm0, uint32_t merged, float begin, float busy,
                                         const tessera_served *served) {
        tessera_fmha_fwd_instance made = make_instance(name, TESSERA_TARGET_SM_90A, served, bm0, 128);
        made.base.symbol = name;
        made.merged = merged;
        made.workgroups = 1;
        made.alone_cycles = made.busy_cycles = busy;
        made.start = begin / busy;
        return made;
    }

    // The explanation's first line.
    std::string best(int queries, int keys) {
        const Table table({row("wide", 128, 0, 4500, 3000, &all), row("merging", 64, 1, 1500, 2000, &all)});
        call.args.seqlen_q = call.args.max_seqlen_q = queries;
        call.args.seqlen_k = keys;
        call.set_strides();
        char text[1000];
        tessera_fmha_fwd_table_explain(table.get(), &facts, &call.traits, &call.args, TESSERA_EXPLAIN_INSTANCES, text,
                                       sizeof text);
        const std::string whole = text;
        return whole.substr(0, whole.find('\n'));
    }
    static std::string line(const char *name, double cycles) {
        char text[100];
        snprintf(text, sizeof text, "* %s  cost %.4g cycles", name, cycles);
        return text;
    }

    tessera_device_facts facts = {sizeof facts, 1u << TESSERA_TARGET_SM_90A, 132, 1 << 15, 1 << 20, 0, 0};
    Call call;
    Served all;
};

TEST_F(FewQueries, CostByHand) {
    const double device = 2622.95, tile = 128 * 256 * 2; // bytes a cycle, and of a tile of k and v
    // 512 tasks of 64 tiles in four rounds take less time than reading does, of which ends have some.
    EXPECT_EQ(best(1, 8192), line("merging", 512 * 64 * tile / device + 4 * (1500 + 64 * 2000.0) / 16));
    // 8 tasks in 11 parts of 6 tiles; results go to memory and back, and are put together one after another.
    call.args.batch = 1;
    const double part = 1500 + 6 * 2000.0, memory = (8 * 64 * tile + 8 * 32 * 11 * 128) / device;
    EXPECT_EQ(best(1, 8192), line("merging", memory + part / 16 + 5500 + 11 * 400));
    call.args.batch = 64;
    // 16 queries of 4 heads are one block, 64 of them four.
    EXPECT_EQ(best(16, 8192), line("merging", 512 * 64 * tile / device + 4 * (1500 + 64 * 2000.0) / 16));
    EXPECT_EQ(best(4096, 4096).substr(0, 6), "* wide");
    call.args.num_splits = 2; // which the other does not do
    EXPECT_EQ(best(4096, 4096).substr(0, 9), "* merging");
}

// An instance that looks rows up takes no call whose keys are in no cache, even if the call names it.
TEST_F(FewQueries, PagesAreOfCaches) {
    tessera_fmha_fwd_instance paged = row("paged", 64, 1, 1500, 2000, &all);
    paged.keys_in = TESSERA_KEYS_IN_PAGES;
    const Table table({paged});
    call.args.seqlen_q = call.args.max_seqlen_q = 1;
    call.args.seqlen_k = 8192;
    call.args.instance = reinterpret_cast<const tessera_fmha_fwd_instance *>(table.get()->rows);
    call.set_strides();
    const tessera_fmha_fwd_instance *chosen = nullptr;
    EXPECT_EQ(tessera_fmha_fwd_table_select(table.get(), &facts, &call.traits, &call.args, &chosen),
              TESSERA_ERROR_NO_INSTANCE);
    EXPECT_NE(std::string(tessera_last_error()).find("keys in no cache"), std::string::npos) << tessera_last_error();
}

// Of 16 bits some instances are for pages in pieces and others for linear ones; quantised ones are for both.
TEST_F(FewQueries, PagesInPiecesHaveInstances) {
    int32_t table[8] = {};
    tessera_attention_cache cache = {};
    cache.pages.table = table, cache.pages.page_size = 16, cache.pages.piece_v = 16;
    tessera_fmha_fwd_call whole = call.whole();
    whole.cache = &cache;
    tessera_request request = {};
    tessera_fmha_fwd_instance paged = row("paged", 64, 1, 1500, 2000, &all);
    const auto kept_out_by = [&](uint32_t places, tessera_kv_cache_dtype kv, int32_t piece) {
        char words[100] = "";
        tessera_text why = {words, sizeof words, 0};
        paged.keys_in = places, paged.kv = kv, cache.pages.dtype = kv, cache.pages.piece_v = piece;
        tessera_fmha_fwd_describe(&whole, request.shape);
        return tessera_fmha_fwd_keeps_out(&paged.base, &request, &why) ? std::string(words) : "nothing";
    };
    const uint32_t linear = TESSERA_KEYS_IN_PAGES, pieces = TESSERA_KEYS_IN_PIECES, both = linear | pieces;
    EXPECT_EQ(kept_out_by(linear, TESSERA_KV_AUTO, 16), "keys in pages that are not linear");
    EXPECT_EQ(kept_out_by(pieces, TESSERA_KV_AUTO, 16), "nothing");
    EXPECT_EQ(kept_out_by(pieces, TESSERA_KV_AUTO, 0), "keys in linear pages");
    EXPECT_EQ(kept_out_by(linear, TESSERA_KV_AUTO, 0), "nothing");
    EXPECT_EQ(kept_out_by(both, TESSERA_KV_INT8, 16), "nothing");
    EXPECT_EQ(kept_out_by(both, TESSERA_KV_INT8, 0), "nothing");
    cache.pages.table = nullptr; // sequences one after the other, whose rows nobody looks up
    EXPECT_EQ(kept_out_by(linear, TESSERA_KV_AUTO, 0), "keys in no cache");
}

// An instance whose tasks have all of eight heads, and pages of one table for it.
class HeadsTogether : public FewQueries {
  protected:
    HeadsTogether() : instance(row("heads", 8, 1, 1500, 2000, &all)) {
        pages.table = table;
        pages.hdim_q = pages.hdim_v = 128;
        pages.k = pages.v = k;
        whole.cache = &cache;
        whole.args.nhead_k = 8;
        instance.keys_in = TESSERA_KEYS_IN_PAGES;
        instance.heads = 8, instance.tile.bk0max = 128;
    }

    // Why the pages are not for the instance.
    std::string kept_out() {
        tessera_request request = {};
        char words[100] = "";
        tessera_text why = {words, sizeof words, 0};
        tessera_fmha_fwd_describe(&whole, request.shape);
        return tessera_fmha_fwd_keeps_out(&instance.base, &request, &why) ? words : "nothing";
    }
    template <typename Field, typename Value> std::string kept_out_with(Field &field, Value value) {
        const Field was = field;
        field = value;
        const std::string why = kept_out();
        field = was;
        return why;
    }

    char *const k = reinterpret_cast<char *>(0x10000);
    int32_t table[8] = {};
    tessera_attention_cache cache = {};
    tessera_attention_pages &pages = cache.pages;
    tessera_fmha_fwd_call whole = call.whole();
    tessera_fmha_fwd_instance instance;
};

// Of 4 bits pages are one run of bytes, and others are left to instances of one head.
TEST_F(HeadsTogether, LieInRuns) {
    const int64_t slot = 66, rows = 8 * slot;
    pages.page_size = 16, pages.dtype = instance.kv = TESSERA_KV_TURBO4;
    pages.k_scale.base = pages.v_scale.base = k + 64;
    pages.of_k = pages.of_v = {16 * rows, slot, rows};
    instance.tile.bn0 = 64;
    const std::string others = "rows that are not those of 8 key heads together";
    EXPECT_EQ(kept_out(), "nothing");
    const auto without = [&](auto &field, auto value) { EXPECT_EQ(kept_out_with(field, value), others); };
    without(whole.args.nhead_k, 16);
    without(pages.hdim_q, 112);
    without(pages.hdim_v, 112);
    without(pages.of_k.head, slot + 2);
    without(pages.of_v.head, 16 * slot);
    without(pages.of_k.row, rows + 16);
    without(pages.of_v.row, slot);
    without(pages.of_k.page, 16 * rows + 8);
    without(pages.of_v.page, 16 * rows + 2);
    without(pages.k_scale.base, k);
    without(pages.v_scale.base, k + 32);
    without(pages.offset, table);
    without(pages.page_size, 1);
    instance.heads = 1;
    pages.of_k.row = slot;
    EXPECT_EQ(kept_out(), "nothing");
}

// Of 8 bits rows lie anywhere that a tensor map has them, and so does what they are scaled by. Pages have eight rows at
// least.
TEST_F(HeadsTogether, LieInBoxes) {
    const int64_t head = 128, rows = 8 * head;
    pages.page_size = 8, pages.dtype = instance.kv = TESSERA_KV_INT8;
    pages.of_k = pages.of_v = {16 * rows, head, rows};
    instance.tile.bn0 = 32;
    const auto is_kept_out = [&] { return kept_out() != "nothing"; };
    const auto with = [&](auto &field, auto value) { return kept_out_with(field, value) != "nothing"; };
    EXPECT_FALSE(is_kept_out());
    EXPECT_FALSE(with(pages.of_k.row, rows + 16));
    EXPECT_FALSE(with(pages.of_v.page, 16 * rows + 16));
    EXPECT_FALSE(with(pages.of_k.head, 16 * head));
    EXPECT_FALSE(with(pages.k_scale.base, pages.k));
    EXPECT_TRUE(with(pages.offset, table));
    EXPECT_TRUE(with(pages.page_size, 4));
    EXPECT_TRUE(with(pages.of_v.row, int64_t{0}));
    EXPECT_TRUE(with(whole.args.nhead_k, 4));
    EXPECT_TRUE(with(pages.hdim_q, 112));
    EXPECT_TRUE(with(pages.hdim_v, 112));
    EXPECT_TRUE(with(pages.dtype, TESSERA_KV_FP8_E4M3));
    EXPECT_TRUE(with(pages.piece_v, 16));
    EXPECT_TRUE(with(pages.of_k.head, head + 8));
    EXPECT_TRUE(with(pages.of_v.head, int64_t{0}));
    EXPECT_TRUE(with(pages.of_k.row, rows + 8));
    EXPECT_TRUE(with(pages.of_v.row, rows + 4));
    EXPECT_TRUE(with(pages.of_k.page, 16 * rows + 8));
    EXPECT_TRUE(with(pages.of_v.page, 16 * rows + 2));
    instance.tile.bk0max = pages.hdim_q = pages.hdim_v =
        256; // heads have two slices each, one of 128 bytes behind the other
    EXPECT_TRUE(is_kept_out());
    pages.of_k.head = pages.of_v.head = 256;
    EXPECT_FALSE(is_kept_out());
}

// Tasks have rows of all heads then.
TEST_F(FewQueries, TasksOfSeveralHeadsAreFewer) {
    tessera_fmha_fwd_instance one = row("one", 8, 1, 1500, 2000, &all), eight = one;
    eight.heads = 8;
    call.args.seqlen_q = call.args.max_seqlen_q = 1, call.args.num_splits = 1;
    call.args.nhead_q = call.args.nhead_k = 8, call.args.batch = 132, call.args.seqlen_k = 8192;
    const tessera_fmha_fwd_call whole = call.whole();
    tessera_fmha_fwd_shape shape;
    tessera_fmha_fwd_describe(&whole, &shape);
    const double of_one = tessera_fmha_fwd_find_parts(&one, &shape, 132).cycles;
    EXPECT_GT(of_one, 7 * tessera_fmha_fwd_find_parts(&eight, &shape, 132).cycles);
}

TEST_F(FewQueries, PagesInPiecesHaveLimits) {
    int32_t table[8] = {};
    tessera_attention_cache cache = {};
    cache.pages.table = table, cache.pages.page_size = 8, cache.pages.piece_v = 8;
    tessera_fmha_fwd_call whole = call.whole();
    whole.cache = &cache;
    const tessera_fmha_fwd_instance paged = row("paged", 64, 1, 1500, 2000, &all);
    const auto refused = [&] {
        return tessera_fmha_fwd_cuda_check(&paged, &whole) ? std::string(tessera_last_error()) : "nothing";
    };
    whole.args.k_ptr = reinterpret_cast<void *>(0x1000), whole.args.v_ptr = reinterpret_cast<void *>(0x2000);
    whole.args.nhead_stride_k = whole.args.nhead_stride_v = 1 << 10;
    whole.args.batch_stride_k = whole.args.batch_stride_v = 1 << 13;
    EXPECT_EQ(refused(), "nothing");
    cache.pages.page_size = cache.pages.piece_v = 4;
    EXPECT_EQ(refused(), "page_block_size is 4: at least 8 on a GPU, where pages are not linear");
    cache.pages.page_size = cache.pages.piece_v = 8, cache.pages.dtype = TESSERA_KV_INT8;
    EXPECT_EQ(refused(), "nothing");
    whole.args.nhead_stride_v = 1000;
    EXPECT_EQ(refused(), "nhead_stride_v is 0x3e8: a multiple of 16 bytes on a GPU, where pages are not linear");
    whole.args.nhead_stride_v = 1008, whole.args.v_ptr = reinterpret_cast<void *>(0x2008);
    EXPECT_EQ(refused(), "v_ptr is 0x2008: a multiple of 16 bytes on a GPU, where pages are not linear");
}

} // namespace
