// SPDX-License-Identifier: MIT
// GPUs with a driver that counts calls: facts, memory, the current device, loading, launching, capture.
#include <gtest/gtest.h>

#include <thread>

#include "fake_hip.h"
#include "inside.h"

namespace {

const tessera_launch kLaunch = {{5, 4, 3}, {64, 2, 8}, 96, 0, false};
const char kArgument[] = "the argument";
void *const kStream = reinterpret_cast<void *>(0x1234);

class Gpu : public ::testing::Test {
  protected:
    Gpu() : hip({"gfx90a", "gfx942:sramecc+:xnack-"}) {
        EXPECT_EQ(tessera_device_open("hip:1", &device), TESSERA_SUCCESS) << tessera_last_error();
        const std::string pack = make_pack("test", "gfx942", {{"first", "ELF first"}, {"second", "ELF second"}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS) << tessera_last_error();
        hip.calls.clear();
    }
    ~Gpu() override {
        tessera_device_close(device);
        EXPECT_TRUE(hip.images.empty()) << "every module is unloaded";
        EXPECT_EQ(hip.current, current) << "the current device is as it was";
    }

    tessera_status launch(const tessera_gpu_kernel &kernel, void *stream = nullptr) {
        return inside(tessera_gpu_launch, device, &kernel, &kLaunch, kArgument, sizeof kArgument, stream);
    }

    FakeHip hip;
    tessera_device *device = nullptr;
    int current = 0;
    const tessera_gpu_kernel first = {"test", "first"}, second = {"test", "second"};
};

TEST_F(Gpu, Facts) {
    EXPECT_STREQ(tessera_device_name(device), "hip:1");
    const tessera_device_facts *const facts = tessera_device_get_facts(device);
    EXPECT_EQ(facts->struct_size, sizeof *facts);
    EXPECT_EQ(facts->targets, 1u << TESSERA_TARGET_GFX942);
    EXPECT_EQ(facts->compute_units, 101);
    EXPECT_EQ(facts->l1_bytes, 0);
    EXPECT_EQ(facts->l2_bytes, 4 << 20);
    EXPECT_EQ(facts->l3_bytes, 0);
    EXPECT_EQ(facts->lds_bytes, 64 << 10);
}

TEST_F(Gpu, NamesThatAreNone) {
    tessera_device *none = nullptr;
    for (const char *name : {"hip:", "hip:x", "hip:-1", "hip:0x", "hip: 0", "hip:99999999999999999999"}) {
        EXPECT_EQ(tessera_device_open(name, &none), TESSERA_ERROR_INVALID_ARGUMENT) << name;
        EXPECT_NE(std::string(tessera_last_error()).find("hip:N with the number of a GPU"), std::string::npos);
    }
    EXPECT_EQ(tessera_device_open("hip:2", &none), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "hip:2: the table of tessera_set_driver() shows 2 devices");
    hip.archs.push_back("gfx1100");
    EXPECT_EQ(tessera_device_open("hip:2", &none), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "hip:2 is of architecture gfx1100: gfx90a, gfx942 or gfx950");
    EXPECT_EQ(tessera_device_open("sim:gfx1100", &none), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "sim:gfx1100 is of architecture gfx1100: gfx90a, gfx942 or gfx950");
    for (const char *name : {"sim:gfx942:", "sim:gfx942:xnack", "sim:gfx942:xnack*",
                             "sim:gfx942:sramecc+:", "sim:gfx942:wavefrontsize64+"}) {
        EXPECT_EQ(tessera_device_open(name, &none), TESSERA_ERROR_INVALID_ARGUMENT) << name;
        EXPECT_EQ(std::string(tessera_last_error()).find(std::string("device \"") + name + "\": sim:ARCH"), 0u);
    }
}

TEST_F(Gpu, Memory) {
    void *memory = nullptr;
    char back[4] = {};
    ASSERT_EQ(tessera_device_malloc(device, 4, &memory), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_set(device, memory, 7, 4), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_to(device, memory, "ab", 2), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_from(device, back, memory, 4), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(back, 4), "ab\7\7");
    EXPECT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS);
    EXPECT_EQ(hip.memory, 1);
    EXPECT_EQ(tessera_device_free(device, memory), TESSERA_SUCCESS);
    EXPECT_EQ(hip.memory, 0);
    const int before = hip.calls_of_all();
    EXPECT_EQ(tessera_device_free(device, nullptr), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_malloc(device, 0, &memory), TESSERA_SUCCESS);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(tessera_device_copy_to(device, nullptr, nullptr, 0), TESSERA_SUCCESS);
    EXPECT_EQ(hip.calls_of_all(), before);
}

TEST_F(Gpu, EveryCallThatFails) {
    alignas(4) char bytes[4] = {};
    const uint32_t word = 0;
    void *memory = nullptr;
    const std::vector<CallOf> calls = {
        {"hipMalloc", [&](auto d) { return tessera_device_malloc(d, 4, &memory); }},
        {"hipFree", [&](auto d) { return tessera_device_free(d, bytes); }},
        {"hipMemcpy", [&](auto d) { return tessera_device_copy_to(d, bytes, "abc", 4); }},
        {"hipMemcpy", [&](auto d) { return tessera_device_copy_from(d, bytes, "abc", 4); }},
        {"hipMemset", [&](auto d) { return tessera_device_set(d, bytes, 1, 4); }},
        {"hipDeviceSynchronize", [&](auto d) { return tessera_device_set(d, bytes, 1, 4); }},
        {"hipDeviceSynchronize", [&](auto d) { return tessera_device_synchronize(d); }},
        {"hipModuleLoadData", [&](auto) { return launch(first); }},
        {"hipModuleGetFunction", [&](auto) { return launch(first); }},
        {"hipStreamIsCapturing", [&](auto) { return launch(first); }},
        {"hipModuleLaunchKernel", [&](auto) { return launch(first); }},
        {"hipMemsetAsync", [&](auto d) { return inside(tessera_gpu_zero, d, bytes, 4, kStream); }},
        {"hipMemcpyAsync", [&](auto d) { return inside(tessera_gpu_copy_small, d, bytes, &word, 4, kStream); }},
        {"hipStreamIsCapturing", [&](auto d) { return inside(tessera_gpu_copy_small, d, bytes, &word, 4, kStream); }},
        {"hipGetDevice", [&](auto) { return launch(first); }},
        {"hipSetDevice", [&](auto) { return launch(first); }},
    };
    hip.expect_errors(device, calls, "hipErrorOfTheFake", [&](const char *function) {
        EXPECT_EQ(hip.current, 0) << function;
        EXPECT_EQ(hip.last_error, 0) << function;
    });
    EXPECT_EQ(memory, nullptr);
}

TEST_F(Gpu, LaunchesOnItsDeviceWithTheArgument) {
    ASSERT_EQ(launch(first, kStream), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip.launches.size(), 1u);
    const FakeLaunch &l = hip.launches[0];
    EXPECT_EQ(l.symbol, "first");
    EXPECT_EQ(l.device, 1);
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{5, 4, 3}));
    EXPECT_EQ(std::vector<unsigned>(l.block, l.block + 3), (std::vector<unsigned>{64, 2, 8}));
    EXPECT_EQ(l.lds_bytes, 96u);
    EXPECT_EQ(l.stream, kStream);
    EXPECT_EQ(std::string(l.argument.begin(), l.argument.end()), std::string(kArgument, sizeof kArgument));
}

TEST_F(Gpu, CurrentDeviceIsSetOnlyWhereItIsAnother) {
    current = hip.current = 1;
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(hip.calls["hipSetDevice"], 0);
    current = hip.current = 0;
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(hip.calls["hipSetDevice"], 2);
}

TEST_F(Gpu, LoadsOnceAndThenOnlyLaunches) {
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(hip.images, (std::vector<std::string>{"ELF first"}));
    hip.calls.clear();
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    const std::map<std::string, int> expected = {
        {"hipGetDevice", 1}, {"hipSetDevice", 2}, {"hipModuleLaunchKernel", 1}};
    EXPECT_EQ(hip.calls, expected);
    ASSERT_EQ(launch(second), TESSERA_SUCCESS);
    EXPECT_EQ(hip.images, (std::vector<std::string>{"ELF first", "ELF second"}));
}

TEST_F(Gpu, EachDeviceLoadsForItself) {
    tessera_device *other = nullptr;
    ASSERT_EQ(tessera_device_open("hip:1", &other), TESSERA_SUCCESS);
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(inside(tessera_gpu_launch, other, &first, &kLaunch, kArgument, sizeof kArgument, nullptr),
              TESSERA_SUCCESS);
    EXPECT_EQ(hip.images.size(), 2u);
    tessera_device_close(other);
    EXPECT_EQ(hip.images.size(), 1u);
    EXPECT_EQ(launch(first), TESSERA_SUCCESS);
}

TEST_F(Gpu, RefusesToLoadInCapture) {
    hip.capturing = kStream;
    for (void *const stream : {kStream, static_cast<void *>(nullptr)}) { // the default stream cannot even be asked
        EXPECT_EQ(launch(first, stream), TESSERA_ERROR_NOT_PREPARED);
        EXPECT_STREQ(tessera_last_error(), "hip:1: the stream captures, and first is not loaded: prepare the call or "
                                           "preload the device before");
        EXPECT_EQ(hip.last_error, 0);
    }
    EXPECT_TRUE(hip.launches.empty());
    EXPECT_EQ(hip.calls["hipModuleLoadData"], 0);
    EXPECT_EQ(launch(first, reinterpret_cast<void *>(0x99)), TESSERA_SUCCESS) << "another stream does not capture";
    EXPECT_EQ(launch(first, kStream), TESSERA_SUCCESS) << "loaded now";
}

TEST_F(Gpu, WhatWasPreparedIsCaptured) {
    ASSERT_EQ(tessera_gpu_load(device, &first), TESSERA_SUCCESS);
    hip.capturing = kStream;
    EXPECT_EQ(launch(first, kStream), TESSERA_SUCCESS);
    EXPECT_EQ(hip.calls["hipStreamIsCapturing"], 0);
}

TEST_F(Gpu, ZeroesAndCopiesInAStream) {
    uint32_t memory[4] = {9, 9, 9, 9};
    const uint32_t words[2] = {0x01020304, 0xfffefdfc};
    EXPECT_EQ(inside(tessera_gpu_zero, device, memory, 12, kStream), TESSERA_SUCCESS);
    EXPECT_EQ(std::vector<uint32_t>(memory, memory + 4), (std::vector<uint32_t>{0, 0, 0, 9}));
    EXPECT_EQ(hip.filled, kStream);
    for (const bool capturing : {false, true}) {
        hip.capturing = capturing ? kStream : nullptr;
        hip.filled = nullptr;
        hip.calls.clear();
        memory[1] = memory[2] = 0;
        EXPECT_EQ(inside(tessera_gpu_copy_small, device, &memory[1], words, sizeof words, kStream), TESSERA_SUCCESS);
        EXPECT_EQ(std::vector<uint32_t>(memory, memory + 4), (std::vector<uint32_t>{0, words[0], words[1], 9}));
        EXPECT_EQ(hip.filled, kStream);
        EXPECT_EQ(hip.calls["hipMemcpyAsync"], !capturing) << "a graph would read host memory that is gone";
        EXPECT_EQ(hip.calls["hipMemsetD32Async"], capturing ? 2 : 0);
    }
}

TEST_F(Gpu, TableWithoutWhatACallNeeds) {
    uint32_t words[2] = {};
    const std::vector<CallOf> calls = {
        {"hipMemsetAsync", [&](auto d) { return inside(tessera_gpu_zero, d, words, 8, kStream); }},
        {"hipMemcpyAsync", [&](auto d) { return inside(tessera_gpu_copy_small, d, words, words, 8, kStream); }},
        {"hipMemsetD32Async", [&](auto d) { return inside(tessera_gpu_copy_small, d, words, words, 8, kStream); },
         true},
    };
    hip.expect_needs("hip:1", calls, kStream);
}

TEST_F(Gpu, TensorMapsAreOfOtherKinds) {
    tessera_tensor_map map;
    const tessera_tensor_map_shape shape = {&map, 2, 1, {64}, {}, {64}, 0, 0};
    EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &map), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "hip:1: devices of its kind have no tensor maps");
}

TEST_F(Gpu, KernelThatNoPackHas) {
    const tessera_gpu_kernel missing = {"test", "third"}, other_op = {"other", "first"};
    EXPECT_EQ(launch(missing), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "no pack of test for gfx942 has third: tessera_load_pack() adds one, where this "
                                       "library has none inside");
    EXPECT_EQ(launch(other_op), TESSERA_ERROR_DEVICE);
}

TEST_F(Gpu, CodeObjectWithoutTheKernel) {
    const std::string pack = make_pack("test", "gfx942", {{"fourth", "ELF of another"}});
    ASSERT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
    const tessera_gpu_kernel fourth = {"test", "fourth"};
    EXPECT_EQ(launch(fourth), TESSERA_ERROR_DEVICE);
    EXPECT_NE(std::string(tessera_last_error()).find("hipModuleGetFunction failed with hipErrorNotFound (500)"),
              std::string::npos);
    EXPECT_TRUE(hip.images.empty()) << "the module is unloaded again";
}

TEST_F(Gpu, ManyThreadsLoadOnce) {
    std::vector<std::thread> threads;
    std::vector<int> failures(16);
    current = hip.current = 1; // the fake has one current device for all threads
    for (size_t t = 0; t < failures.size(); t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; i++) failures[t] += launch(t % 2 ? first : second, kStream) != TESSERA_SUCCESS;
        });
    for (auto &thread : threads) thread.join();
    EXPECT_EQ(failures, std::vector<int>(failures.size()));
    EXPECT_EQ(hip.launches.size(), 1600u);
    EXPECT_EQ(hip.calls["hipModuleLoadData"], 2);
}

TEST_F(Gpu, StreamsAreTheGpus) {
    tessera_device *cpu = nullptr;
    ASSERT_EQ(tessera_device_open("cpu", &cpu), TESSERA_SUCCESS);
    void *memory = nullptr;
    ASSERT_EQ(tessera_device_malloc(cpu, 100, &memory), TESSERA_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    char back[100];
    EXPECT_EQ(tessera_device_set(cpu, memory, 3, 100), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_to(cpu, memory, "xyz", 3), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_from(cpu, back, memory, 100), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(back, 5), "xyz\3\3");
    EXPECT_EQ(tessera_device_synchronize(cpu), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_preload(cpu), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_free(cpu, memory), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_malloc(cpu, SIZE_MAX, &memory), TESSERA_ERROR_OUT_OF_MEMORY);
    tessera_device_close(cpu);
    EXPECT_EQ(hip.calls_of_all(), 0);
}

TEST(GpuArguments, Refused) {
    tessera_device *cpu = nullptr;
    void *memory = nullptr;
    char byte = 0;
    ASSERT_EQ(tessera_device_open("cpu", &cpu), TESSERA_SUCCESS);
    const struct {
        std::function<tessera_status()> call;
        const char *says;
    } cases[] = {
        {[&] { return tessera_device_malloc(nullptr, 1, &memory); }, "device is NULL"},
        {[&] { return tessera_device_malloc(cpu, 1, nullptr); }, "out is NULL"},
        {[&] { return tessera_device_free(nullptr, memory); }, "device is NULL"},
        {[&] { return tessera_device_copy_to(nullptr, &byte, &byte, 1); }, "device is NULL"},
        {[&] { return tessera_device_copy_to(cpu, nullptr, &byte, 1); }, "the memory to copy 1 bytes to is NULL"},
        {[&] { return tessera_device_copy_from(cpu, &byte, nullptr, 1); }, "the memory to copy 1 bytes from is NULL"},
        {[&] { return tessera_device_set(nullptr, &byte, 0, 1); }, "device is NULL"},
        {[&] { return tessera_device_set(cpu, nullptr, 0, 1); }, "the memory to set 1 bytes of is NULL"},
        {[&] { return tessera_device_synchronize(nullptr); }, "device is NULL"},
        {[&] { return tessera_preload(nullptr); }, "device is NULL"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(c.call(), TESSERA_ERROR_INVALID_ARGUMENT) << c.says;
        EXPECT_EQ(std::string(tessera_last_error()).find(c.says), 0u) << tessera_last_error();
    }
    tessera_device_close(cpu);
}

} // namespace
