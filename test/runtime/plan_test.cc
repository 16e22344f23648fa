// SPDX-License-Identifier: MIT
// Calls of a made-up operation: y[i] = factor * (sum of x), by two steps over three regions of workspace. The first
// step's kernel has a table of its own, the factor comes by a copy, and the sum begins at zero.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_hip.h"

extern "C" {
#include "op/call.h"
}

namespace {

struct Traits {
    size_t struct_size;
    int32_t n;
    tessera_type input; // fp32
};
struct Args {
    size_t struct_size;
    const float *x_ptr;
    float *y_ptr;
    float factor;
    int32_t fails; // 1: more steps than there may be; 2: a kernel that no pack holds
    void *workspace_ptr;
    size_t workspace_size;
    const tessera_instance *instance;
};
struct Call {
    Traits traits;
    Args args;
    const tessera_instance *sum;
};

// The argument of both steps' kernels.
struct Problem {
    const float *x, *factor;
    float *y, *sum, *scratch;
    int32_t n;
};

enum { SUM, FACTOR, SCRATCH };
constexpr size_t kScratch = 64; // of a thread

const char *const types[] = {"fp32", "fp16"};
const tessera_trait traits[] = {{"input", offsetof(Traits, input), 0, 0, 2, types}};
const tessera_size sizes[] = {{"n", offsetof(Traits, n), false}};
const tessera_schema schema = {"mean", traits, 1, sizes, 1, nullptr, 0, 0},
                     sum_schema = {"mean_sum", traits, 1, sizes, 1, nullptr, 0, 0};
const tessera_served all = {{3, 0}, {{1, 1 << 20, 1}}}, short_ones = {{3, 0}, {{1, 1 << 10, 1}}};

// The kernels of the CPU and of the GPU. The GPU's sum has one row for short x only, and another for all.
const tessera_instance rows[] = {
    {"scale", TESSERA_TARGET_PORTABLE, &all, 1, "p", "e", nullptr, 0, 0, 1, 0, 0},
    {"gpu_scale", TESSERA_TARGET_GFX942, &all, 1, "p", "e", "kernel_scale", 128, 0, 1, 0, 0},
};
const tessera_instance sum_rows[] = {
    {"sum", TESSERA_TARGET_PORTABLE, &all, 1, "p", "e", nullptr, 0, 0, 1, 0, 0},
    {"gpu_sum", TESSERA_TARGET_GFX942, &short_ones, 1, "p", "e", "kernel_sum", 64, 0, 1, 0, 0},
};
const tessera_instance lost_row = {"lost", TESSERA_TARGET_GFX942, &all, 1, "p", "e", "kernel_lost", 64, 0, 1, 0, 0};
const uint32_t buckets[] = {UINT32_MAX}, order[] = {0, 1};
const tessera_slice slices[TESSERA_TARGET_COUNT * 2] = {{0, 1}, {0, 1}, {}, {}, {}, {}, {},     {},
                                                        {},     {},     {}, {}, {}, {}, {1, 1}, {1, 1}};
const tessera_table table = {&schema, rows, sizeof rows[0], 2, buckets, 1, slices, order, 0},
                    sum_table = {&sum_schema, sum_rows, sizeof rows[0], 2, buckets, 1, slices, order, 0};

double cost(const tessera_instance *, const tessera_request *) { return 1; }
const tessera_kernels sum_kernels = {
    [] { return &sum_table; }, nullptr, cost, nullptr, nullptr, nullptr, nullptr, nullptr};

void set_defaults(void *to) {
    static_cast<Call *>(to)->traits = {sizeof(Traits), 0, TESSERA_TYPE_FP32};
    static_cast<Call *>(to)->args = {sizeof(Args), nullptr, nullptr, 1, 0, nullptr, 0, nullptr};
}

tessera_status check_sizes(void *of) {
    const Call *const call = static_cast<Call *>(of);
    if (call->traits.n < 1) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "n is %d", call->traits.n);
    return TESSERA_SUCCESS;
}

tessera_status check_memory(const void *of, bool, tessera_tensors *tensors) {
    const Call *const call = static_cast<const Call *>(of);
    const tessera_axis none = {nullptr, 1, 0};
    tessera_add_array(tensors, "x_ptr", call->args.x_ptr, 32, call->traits.n);
    tessera_add_tensor(tensors, "y_ptr", call->args.y_ptr, 32, true, none, none, none, call->traits.n);
    return TESSERA_SUCCESS;
}

tessera_status check_row(const void *of, const tessera_instance *row) {
    const Call *const call = static_cast<const Call *>(of);
    if (row->symbol && call->args.factor > 100) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "factor");
    return TESSERA_SUCCESS;
}

tessera_status add_regions(void *of, tessera_plan *plan) {
    Call *const call = static_cast<Call *>(of);
    const tessera_status status = tessera_plan_choose(plan, &sum_kernels, &call->traits, call, nullptr, &call->sum);
    if (status != TESSERA_SUCCESS) return status;
    tessera_add_region(plan, "sum", 4, true);
    tessera_add_region(plan, "factor", 100, false);
    return tessera_add_region(plan, "scratch", kScratch * static_cast<size_t>(plan->threads), false);
}

std::atomic<int> missing{0}; // threads that must still arrive before any goes on
std::mutex mutex;
std::set<void *> scratches;

void sum_up(void *context, int64_t index, void *scratch) {
    if (missing) {
        for (missing--; missing;) std::this_thread::yield();
        const std::lock_guard<std::mutex> lock(mutex);
        scratches.insert(scratch);
    }
    const auto *const p = static_cast<Problem *>(context);
    *static_cast<float *>(scratch) = p->x[index]; // of this thread alone
    float before = 0;
    __atomic_load(p->sum, &before, __ATOMIC_RELAXED);
    for (float after = before + *static_cast<float *>(scratch);
         !__atomic_compare_exchange(p->sum, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);)
        after = before + *static_cast<float *>(scratch);
}
void scale(void *context, int64_t index, void *) {
    const auto *const p = static_cast<Problem *>(context);
    p->y[index] = *p->factor * *p->sum;
}

tessera_status add_steps(void *of, tessera_plan *plan) {
    Call *const call = static_cast<Call *>(of);
    void *room = nullptr, *factor = nullptr;
    tessera_plan_room(plan, sizeof(float), &factor);
    const tessera_status status = tessera_plan_room(plan, sizeof(Problem), &room);
    if (status != TESSERA_SUCCESS) return status;
    auto *const p = static_cast<Problem *>(room);
    memcpy(factor, &call->args.factor, sizeof(float));
    *p = {call->args.x_ptr,
          static_cast<float *>(tessera_region_memory(plan, "factor")),
          call->args.y_ptr,
          static_cast<float *>(tessera_region_memory(plan, "sum")),
          static_cast<float *>(tessera_region_memory(plan, "scratch")),
          call->traits.n};
    for (int i = 0; call->args.fails == 1 && i < TESSERA_PLAN_STEPS; i++)
        tessera_add_copy(plan, plan->regions[FACTOR].memory, factor, 4);
    tessera_status added = tessera_add_copy(plan, plan->regions[FACTOR].memory, factor, 4);
    if (added != TESSERA_SUCCESS) return added;
    if (plan->row->symbol) {
        const uint32_t grid[] = {7, 1, 2}, whole[] = {3, 2, 1};
        tessera_add_launch(plan, call->sum, grid, 512, p, sizeof *p);
        tessera_add_launch(plan, plan->row, whole, 0, p, sizeof *p);
        return call->args.fails ? tessera_add_launch(plan, &lost_row, whole, 0, p, sizeof *p) : TESSERA_SUCCESS;
    }
    tessera_add_work(plan, sum_up, p, p->n, 1024, p->scratch, kScratch);
    return tessera_add_work(plan, scale, p, p->n, 2, nullptr, 0);
}

void add_problem(tessera_text *out, const void *of) {
    tessera_text_add(out, "-n=%d", static_cast<const Call *>(of)->traits.n);
}

const tessera_operation operation = {
    "mean",
    offsetof(Call, traits),
    sizeof(Traits),
    offsetof(Call, args),
    sizeof(Args),
    offsetof(Args, instance),
    offsetof(Args, workspace_ptr),
    offsetof(Args, workspace_size),
    set_defaults,
    {[] { return &table; }, nullptr, cost, nullptr, nullptr, nullptr, nullptr, nullptr},
    check_sizes,
    check_memory,
    check_row,
    add_regions,
    add_steps,
    add_problem};

class Plans : public ::testing::Test {
  protected:
    ~Plans() override {
        close();
        tessera_set_num_threads(0);
    }

    void close() {
        tessera_device_close(device);
        device = nullptr;
    }

    void open(const char *name) {
        ASSERT_EQ(tessera_device_open(name, &device), TESSERA_SUCCESS) << tessera_last_error();
        size_t bytes = 0;
        ASSERT_EQ(size(&bytes), TESSERA_SUCCESS) << tessera_last_error();
        memory.assign(bytes + 256, 0x41);
        args.workspace_ptr = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        args.workspace_size = bytes;
    }

    tessera_status size(size_t *bytes) {
        Call call;
        return tessera_call_workspace_size(&operation, &call, device, &asked, &args, bytes);
    }
    tessera_status run(void *stream = nullptr) {
        Call call;
        return tessera_call_run(&operation, &call, device, &asked, &args, stream);
    }
    std::string failure(tessera_status status, tessera_status want) {
        EXPECT_EQ(status, want);
        return tessera_last_error();
    }
    unsigned char *workspace() { return static_cast<unsigned char *>(args.workspace_ptr); }

    std::vector<float> x = std::vector<float>(1000, 1), y = std::vector<float>(1000, -1);
    std::vector<unsigned char> memory;
    Traits asked = {sizeof(Traits), 1000, TESSERA_TYPE_FP32};
    Args args = {sizeof(Args), x.data(), y.data(), 2.5f, 0, nullptr, 0, nullptr};
    tessera_device *device = nullptr;
};

TEST_F(Plans, OnTheCpu) {
    for (const int threads : {1, 2, 5}) {
        ASSERT_EQ(tessera_set_num_threads(threads), TESSERA_SUCCESS);
        y.assign(1000, -1);
        open("cpu");
        EXPECT_EQ(args.workspace_size, 64 + 128 + kScratch * static_cast<size_t>(threads));
        EXPECT_EQ(run(), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(y, std::vector<float>(1000, 2500));
        for (const unsigned char *p = workspace() + args.workspace_size; p < memory.data() + memory.size(); p++)
            EXPECT_EQ(*p, 0x41);
        close();
    }
}

TEST_F(Plans, EachThreadHasItsScratch) {
    tessera_set_num_threads(4);
    tessera_set_parallel_for(
        [](void *, int64_t count, tessera_parallel_body body, void *context) {
            std::vector<std::thread> threads;
            for (int64_t i = 0; i < count; i++) threads.emplace_back(body, context, i);
            for (auto &thread : threads) thread.join();
        },
        nullptr);
    asked.n = 4;
    open("cpu");
    missing = 4;
    EXPECT_EQ(run(), TESSERA_SUCCESS) << tessera_last_error();
    tessera_set_parallel_for(nullptr, nullptr);
    EXPECT_EQ(y[3], 10);
    std::set<void *> expected;
    for (size_t thread = 0; thread < 4; thread++) expected.insert(workspace() + 64 + 128 + thread * kScratch);
    EXPECT_EQ(scratches, expected);
}

// Fields that an older caller's struct lacks have their defaults.
TEST_F(Plans, OlderCallers) {
    open("cpu");
    Call call;
    memset(&call, 0x41, sizeof call);
    args.struct_size = offsetof(Args, factor);
    EXPECT_EQ(tessera_read_call(&operation, &call, &asked, &args), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(call.args.y_ptr, y.data());
    EXPECT_EQ(call.args.factor, 1);
    EXPECT_EQ(call.args.instance, nullptr);
    EXPECT_EQ(call.args.struct_size, sizeof(Args));
    EXPECT_EQ(call.traits.n, 1000);
}

TEST_F(Plans, WorkspacesThatAreRefused) {
    ASSERT_EQ(tessera_set_num_threads(1), TESSERA_SUCCESS);
    open("cpu");
    const Args right = args;
    args.workspace_ptr = nullptr;
    EXPECT_EQ(failure(run(), TESSERA_ERROR_WORKSPACE),
              "workspace_ptr is NULL: this call needs 256 bytes (sum 64, factor 128, scratch 64)");
    args = right;
    args.workspace_size = 255;
    EXPECT_EQ(failure(run(), TESSERA_ERROR_WORKSPACE),
              "workspace_size is 255: this call needs 256 (sum 64, factor 128, scratch 64)");
    args = right;
    args.workspace_ptr = workspace() + 32;
    EXPECT_NE(failure(run(), TESSERA_ERROR_WORKSPACE)
                  .find(": must be aligned to 64 bytes, as what it holds (sum 64, factor 128, scratch 64)"),
              std::string::npos);
    args = right;
    args.y_ptr = static_cast<float *>(args.workspace_ptr);
    EXPECT_NE(failure(run(), TESSERA_ERROR_INVALID_ARGUMENT).find("overlaps workspace_ptr"), std::string::npos);
    EXPECT_EQ(y, std::vector<float>(1000, -1));
}

TEST_F(Plans, WhatDoesNotFitFails) {
    open("cpu");
    args.fails = 1;
    EXPECT_EQ(failure(run(), TESSERA_ERROR_OUT_OF_MEMORY), "a plan has room for 8 steps");
    EXPECT_EQ(y, std::vector<float>(1000, -1));

    tessera_plan plan;
    const tessera_instance *row;
    void *room;
    const tessera_choice chosen = {&rows[0], {1, 1, 0, nullptr}};
    tessera_begin_plan(&plan, &device->facts, "mean", &chosen, 1);
    EXPECT_EQ(failure(tessera_add_copy(&plan, nullptr, nullptr, 4100), TESSERA_ERROR_OUT_OF_MEMORY),
              "a plan has room for 4096 bytes of a copy");
    EXPECT_EQ(tessera_plan_room(&plan, TESSERA_PLAN_ROOM - 63, &room), TESSERA_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(room) % 64, 0u);
    EXPECT_EQ(failure(tessera_plan_room(&plan, 1, &room), TESSERA_ERROR_OUT_OF_MEMORY),
              "a plan has room for 16384 bytes");
    for (int i = 0; i < TESSERA_PLAN_REGIONS; i++) EXPECT_EQ(tessera_add_region(&plan, "r", 1, false), TESSERA_SUCCESS);
    EXPECT_EQ(failure(tessera_add_region(&plan, "r", 1, false), TESSERA_ERROR_OUT_OF_MEMORY),
              "a plan has room for 8 regions");
    for (int i = 1; i < TESSERA_PLAN_ROWS; i++)
        EXPECT_EQ(tessera_plan_choose(&plan, &sum_kernels, &asked, nullptr, nullptr, &row), TESSERA_SUCCESS);
    EXPECT_EQ(
        failure(tessera_plan_choose(&plan, &sum_kernels, &asked, nullptr, nullptr, &row), TESSERA_ERROR_OUT_OF_MEMORY),
        "a plan has room for 8 rows");
}

class GpuPlans : public Plans {
  protected:
    GpuPlans() : hip({"gfx942"}) {
        add_pack("mean", "kernel_scale");
        add_pack("mean_sum", "kernel_sum");
        open("hip:0");
    }
    ~GpuPlans() override { close(); } // before its driver goes

    static void add_pack(const char *op, const char *symbol) {
        const std::string pack = make_pack(op, "gfx942", {{symbol, std::string("ELF ") + symbol}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
    }

    FakeHip hip;
    int object = 0;
    void *const stream = &object;
};

TEST_F(GpuPlans, NothingIsPutIntoTheStreamWhereAKernelLacks) {
    args.fails = 2;
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_DEVICE).find("kernel_lost"), std::string::npos);
    EXPECT_TRUE(hip.launches.empty());
    EXPECT_EQ(hip.calls["hipMemsetAsync"] + hip.calls["hipMemcpyAsync"], 0);
}

TEST_F(GpuPlans, Steps) {
    ASSERT_EQ(run(stream), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip.launches.size(), 2u);
    const FakeLaunch &sum = hip.launches[0], &whole = hip.launches[1];
    EXPECT_EQ(sum.symbol, "kernel_sum");
    EXPECT_EQ(std::vector<unsigned>(sum.grid, sum.grid + 3), (std::vector<unsigned>{7, 1, 2}));
    EXPECT_EQ(std::vector<unsigned>(sum.block, sum.block + 3), (std::vector<unsigned>{64, 1, 1}));
    EXPECT_EQ(sum.lds_bytes, 512u);
    EXPECT_EQ(whole.symbol, "kernel_scale");
    EXPECT_EQ(std::vector<unsigned>(whole.grid, whole.grid + 3), (std::vector<unsigned>{3, 2, 1}));
    EXPECT_EQ(whole.block[0], 128u);
    EXPECT_EQ(whole.lds_bytes, 0u);
    EXPECT_EQ(sum.argument, whole.argument);
    EXPECT_EQ(sum.stream, stream);
    EXPECT_EQ(whole.stream, stream);
    EXPECT_EQ(hip.filled, stream);
    Problem problem;
    ASSERT_EQ(sum.argument.size(), sizeof problem);
    memcpy(&problem, sum.argument.data(), sizeof problem);
    EXPECT_EQ(static_cast<void *>(problem.sum), workspace());
    EXPECT_EQ(static_cast<const void *>(problem.factor), workspace() + 64);
    EXPECT_EQ(*problem.sum, 0);
    EXPECT_EQ(*problem.factor, 2.5f);
    EXPECT_EQ(workspace()[4], 0x41) << "no more is zeroed than the region has";
    EXPECT_EQ(workspace()[68], 0x41);
}

// Steps run in order, up to the one that fails.
TEST_F(GpuPlans, AnErrorInTheMiddle) {
    hip.fails["hipMemcpyAsync"] = 1;
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_DEVICE).find("hipMemcpyAsync failed"), std::string::npos);
    EXPECT_EQ(hip.calls["hipMemsetAsync"], 1);
    EXPECT_TRUE(hip.launches.empty());
    hip.fails = {{"hipModuleLaunchKernel", 719}};
    hip.calls.clear();
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_DEVICE).find("hipModuleLaunchKernel failed"), std::string::npos);
    EXPECT_EQ(hip.calls["hipModuleLaunchKernel"], 1);
    EXPECT_EQ(hip.calls["hipMemcpyAsync"], 1);
}

TEST_F(GpuPlans, TheGpuIsMadeCurrentOnce) {
    hip.current = 7;
    ASSERT_EQ(run(stream), TESSERA_SUCCESS) << tessera_last_error();
    hip.calls.clear();
    ASSERT_EQ(run(stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(hip.calls["hipSetDevice"], 2) << "there and back";
    EXPECT_EQ(hip.current, 7);
    hip.fails = {{"hipModuleLaunchKernel", 719}};
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_DEVICE).find("hipModuleLaunchKernel failed"), std::string::npos);
    EXPECT_EQ(hip.current, 7);
    hip.fails = {{"hipGetDevice", 719}};
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_DEVICE).find("hipGetDevice failed"), std::string::npos);
    hip.fails.clear();
    hip.current = 0;
}

TEST_F(GpuPlans, Capture) {
    hip.capturing = stream;
    EXPECT_NE(failure(run(stream), TESSERA_ERROR_NOT_PREPARED).find("kernel_sum is not loaded"), std::string::npos);
    EXPECT_EQ(hip.calls["hipMemsetAsync"], 0);
    Call call;
    ASSERT_EQ(tessera_call_prepare(&operation, &call, device, &asked, &args), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(run(stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(hip.launches.size(), 2u);
    EXPECT_EQ(hip.calls["hipMemcpyAsync"], 0);
    float factor;
    memcpy(&factor, workspace() + 64, sizeof factor);
    EXPECT_EQ(factor, 2.5f) << "as a value in the graph";
}

TEST_F(GpuPlans, NoRowForAStep) {
    asked.n = 1025;
    Call call;
    const std::string says = "no instance serves this call; nearest is gpu_sum, kept out by n 1025 (serves 1 to 1024)";
    EXPECT_EQ(failure(run(stream), TESSERA_ERROR_NO_INSTANCE).find(says), 0u) << tessera_last_error();
    EXPECT_EQ(tessera_call_check_on(&operation, &call, device, &asked, &args), TESSERA_ERROR_NO_INSTANCE);
}

TEST_F(GpuPlans, WhatTheRowNeeds) {
    args.factor = 101;
    EXPECT_EQ(failure(run(stream), TESSERA_ERROR_INVALID_ARGUMENT), "factor");
    Call call;
    EXPECT_EQ(tessera_call_check_on(&operation, &call, device, &asked, &args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_call_check(&operation, &call, &asked, &args), TESSERA_SUCCESS) << "of no device";
}

} // namespace
