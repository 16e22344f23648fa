// SPDX-License-Identifier: MIT
// NVIDIA GPUs with a driver that counts calls: opening, contexts, images, launches, capture, tensor maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fake_cuda.h"
#include "inside.h"

namespace {

const uint32_t kLds = 200 << 10;
const tessera_launch kLaunch = {{5, 4, 3}, {128, 1, 1}, kLds, 0, false};
const char kArgument[] = "the argument";
void *const kStream = reinterpret_cast<void *>(0x1234);
using Strings = std::vector<std::string>;

// An image as codegen/nvptx.py makes them, but for the last byte where that is zero, which make_pack() adds.
std::string image(std::string ptx, const std::string &cubin) {
    ptx.resize((ptx.size() / 64 + 1) * 64 - cubin.empty());
    return ptx + cubin;
}
const std::string kElf = "\x7f"
                         "ELF ";

std::string failure(const char *name, tessera_status expected = TESSERA_ERROR_DEVICE) {
    tessera_device *device = nullptr;
    EXPECT_EQ(tessera_device_open(name, &device), expected);
    EXPECT_EQ(device, nullptr);
    return tessera_last_error();
}

class Cuda : public ::testing::Test {
  protected:
    Cuda() : cuda({80, 90}) {
        EXPECT_EQ(tessera_device_open("cuda:1", &device), TESSERA_SUCCESS) << tessera_last_error();
        load_pack({{"first", image(".ptx first", kElf + "first")}, {"second", image(".ptx second", "")}});
        cuda.argument_bytes = sizeof kArgument;
        cuda.calls.clear();
        cuda.order.clear();
    }
    ~Cuda() override {
        tessera_device_close(device);
        EXPECT_TRUE(cuda.images.empty()) << "every module is unloaded";
        EXPECT_EQ(cuda.primary[1].users, 0);
        EXPECT_TRUE(FakeCuda::stack().empty()) << "the current context is as it was";
    }

    static void load_pack(const std::map<std::string, std::string> &images) {
        const std::string pack = make_pack("test", "sm_90a", images);
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS) << tessera_last_error();
    }
    tessera_status launch(const tessera_gpu_kernel &kernel, void *stream = nullptr) {
        return launch_on(device, kernel, stream);
    }
    static tessera_status launch_on(tessera_device *on, const tessera_gpu_kernel &kernel, void *stream = nullptr) {
        return inside(tessera_gpu_launch, on, &kernel, &kLaunch, kArgument, sizeof kArgument, stream);
    }

    FakeCuda cuda;
    tessera_device *device = nullptr;
    const tessera_gpu_kernel first = {"test", "first"}, second = {"test", "second"}, third = {"test", "third"};
};

// ---- opening

TEST_F(Cuda, Facts) {
    EXPECT_STREQ(tessera_device_name(device), "cuda:1");
    const tessera_device_facts *const facts = tessera_device_get_facts(device);
    EXPECT_EQ(facts->targets, 1u << TESSERA_TARGET_SM_90A);
    EXPECT_EQ(facts->compute_units, 101);
    EXPECT_EQ(facts->l2_bytes, 50 << 20);
    EXPECT_EQ(facts->lds_bytes, 227 << 10);
    EXPECT_EQ(tessera_device_fp8_format(device), TESSERA_E4M3FN);
}

TEST_F(Cuda, OtherGpusAreRefused) {
    EXPECT_EQ(failure("cuda:0"), "cuda:0 is of architecture sm_80: sm_90a");
    cuda.capabilities[0] = 100;
    EXPECT_EQ(failure("cuda:0"), "cuda:0 is of architecture sm_100a: sm_90a");
    EXPECT_EQ(cuda.primary[0].users, 0);
    EXPECT_EQ(failure("cuda:2"), "cuda:2: the table of tessera_set_driver() shows 2 devices");
    EXPECT_EQ(failure("cuda:", TESSERA_ERROR_INVALID_ARGUMENT),
              "device \"cuda:\": cuda:N with the number of a GPU, such as cuda:0");
    EXPECT_EQ(failure("cuda:0:1", TESSERA_ERROR_INVALID_ARGUMENT),
              "device \"cuda:0:1\": cuda:N with the number of a GPU, such as cuda:0");
}

TEST(CudaDriver, NoLibrary) {
    setenv("TESSERA_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    EXPECT_EQ(failure("cuda:0").find("cuda:0: TESSERA_CUDA_LIBRARY=/nonexistent/libcuda.so.1 cannot be opened: "), 0u);
    setenv("TESSERA_CUDA_LIBRARY", TESSERA_LIBRARY, 1);
    EXPECT_EQ(failure("cuda:0"), "cuda:0: " TESSERA_LIBRARY " lacks the function cuInit");
    unsetenv("TESSERA_CUDA_LIBRARY");
}

TEST(CudaDriver, TableThatLacksAFunction) {
    FakeCuda cuda({90});
    const Strings optional = {"cuFuncLoad", "cuLaunchKernelEx", "cuMemsetD32Async", "cuMemcpyHtoDAsync_v2",
                              "cuTensorMapEncodeTiled"};
    const auto all = cuda.entries();
    for (const auto &left_out : all) {
        std::vector<tessera_driver_entry> some;
        for (const auto &entry : all)
            if (entry.function != left_out.function) some.push_back(entry);
        ASSERT_EQ(tessera_set_driver("cuda", some.data(), some.size()), TESSERA_SUCCESS);
        if (std::count(optional.begin(), optional.end(), left_out.name)) {
            tessera_device *device = nullptr;
            EXPECT_EQ(tessera_device_open("cuda:0", &device), TESSERA_SUCCESS) << left_out.name;
            tessera_device_close(device);
        } else {
            EXPECT_EQ(failure("cuda:0"),
                      std::string("cuda:0: the table of tessera_set_driver() lacks the function ") + left_out.name);
        }
    }
    EXPECT_EQ(cuda.primary[0].users, 0);
}

TEST(CudaDriver, EveryCallThatFails) {
    for (const char *name : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute",
                             "cuCtxGetCurrent", "cuDevicePrimaryCtxRetain"}) {
        FakeCuda cuda({90});
        cuda.fails[name] = 719;
        EXPECT_EQ(failure("cuda:0"),
                  std::string("cuda:0: ") + name + " failed with CUDA_ERROR_OF_THE_FAKE (719): the fake was told to");
        EXPECT_EQ(cuda.primary[0].users, 0);
    }
    FakeCuda cuda({90});
    cuda.fails["cuInit"] = 100;
    EXPECT_EQ(failure("cuda:0"), "cuda:0: cuInit failed with no name (100): no text");
    cuda.fails.clear();
    cuda.units = 0;
    EXPECT_EQ(failure("cuda:0"), "cuda:0 has 0 compute units");
}

// ---- contexts

TEST_F(Cuda, ThePrimaryContextIsKeptWhileTheDeviceIsOpen) {
    EXPECT_EQ(cuda.primary[1].users, 1);
    tessera_device *other = nullptr;
    ASSERT_EQ(tessera_device_open("cuda:1", &other), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.primary[1].users, 2);
    tessera_device_close(other);
    EXPECT_EQ(cuda.primary[1].users, 1);
}

TEST_F(Cuda, TheContextIsCurrentOnlyDuringACall) {
    ASSERT_EQ(tessera_gpu_load(device, &first), TESSERA_SUCCESS);
    FakeContext elsewhere = {0, 0};
    for (FakeContext *const before : {static_cast<FakeContext *>(nullptr), &elsewhere}) {
        if (before) FakeCuda::stack().push_back(before);
        const auto stack = FakeCuda::stack();
        cuda.launches.clear();
        ASSERT_EQ(launch(first), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(cuda.launches.at(0).device, 1);
        cuda.fails["cuLaunchKernel"] = 700;
        EXPECT_EQ(launch(first), TESSERA_ERROR_DEVICE);
        cuda.fails.clear();
        EXPECT_EQ(FakeCuda::stack(), stack);
    }
    FakeCuda::stack().clear();
}

TEST_F(Cuda, LaunchesWithFewCalls) {
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    cuda.order.clear();
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.order, (Strings{"cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"}));
    FakeCuda::stack().push_back(&cuda.primary[1]);
    cuda.order.clear();
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.order, (Strings{"cuCtxGetCurrent", "cuLaunchKernel"}));
    FakeCuda::stack().clear();
}

const tessera_launch kPairs = {{6, 4, 3}, {128, 1, 1}, kLds, 2, false};

TEST_F(Cuda, LaunchesClusters) {
    ASSERT_EQ(inside(tessera_gpu_launch, device, &first, &kPairs, kArgument, sizeof kArgument, kStream),
              TESSERA_SUCCESS)
        << tessera_last_error();
    ASSERT_EQ(cuda.launches.size(), 1u);
    const FakeLaunch &l = cuda.launches[0];
    EXPECT_EQ(l.symbol, "first");
    EXPECT_EQ(l.cluster, 2u);
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{6, 4, 3}));
    EXPECT_EQ(std::vector<unsigned>(l.block, l.block + 3), (std::vector<unsigned>{128, 1, 1}));
    EXPECT_EQ(l.lds_bytes, kLds);
    EXPECT_EQ(l.stream, kStream);
    EXPECT_EQ(memcmp(l.argument.data(), kArgument, sizeof kArgument), 0);
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.launches[1].cluster, 0u);
}

const tessera_launch kSecond = {{5, 4, 3}, {128, 1, 1}, kLds, 0, true},
                     kSecondPairs = {{6, 4, 3}, {128, 1, 1}, kLds, 2, true};

TEST_F(Cuda, LaunchesOverlap) {
    for (const tessera_launch *how : {&kLaunch, &kSecond, &kSecondPairs})
        ASSERT_EQ(inside(tessera_gpu_launch, device, &first, how, kArgument, sizeof kArgument, kStream),
                  TESSERA_SUCCESS)
            << tessera_last_error();
    ASSERT_EQ(cuda.launches.size(), 3u);
    EXPECT_FALSE(cuda.launches[0].overlaps);
    EXPECT_TRUE(cuda.launches[1].overlaps);
    EXPECT_EQ(cuda.launches[1].cluster, 0u);
    EXPECT_TRUE(cuda.launches[2].overlaps);
    EXPECT_EQ(cuda.launches[2].cluster, 2u);
}

// Where the driver is older than graphs that hold such launches, or the function is not there.
TEST(CudaDriver, LaunchesOneAfterTheOther) {
    for (const bool old : {true, false}) {
        FakeCuda cuda({90});
        cuda.argument_bytes = sizeof kArgument;
        if (old) cuda.version = 12020;
        std::vector<tessera_driver_entry> some;
        for (const auto &entry : cuda.entries())
            if (old || strcmp(entry.name, "cuLaunchKernelEx") != 0) some.push_back(entry);
        ASSERT_EQ(tessera_set_driver("cuda", some.data(), some.size()), TESSERA_SUCCESS);
        tessera_device *device = nullptr;
        ASSERT_EQ(tessera_device_open("cuda:0", &device), TESSERA_SUCCESS);
        const std::string pack = make_pack("test", "sm_90a", {{"first", image(".ptx first", kElf + "first")}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        const tessera_gpu_kernel first = {"test", "first"};
        EXPECT_EQ(inside(tessera_gpu_launch, device, &first, &kSecond, kArgument, sizeof kArgument, nullptr),
                  TESSERA_SUCCESS)
            << tessera_last_error();
        ASSERT_EQ(cuda.launches.size(), 1u);
        EXPECT_FALSE(cuda.launches[0].overlaps);
        if (old) {
            EXPECT_EQ(inside(tessera_gpu_launch, device, &first, &kSecondPairs, kArgument, sizeof kArgument, nullptr),
                      TESSERA_SUCCESS);
            EXPECT_FALSE(cuda.launches.at(1).overlaps) << "clusters are launched by the same function";
        }
        tessera_device_close(device);
    }
}

TEST(CudaDriver, TableThatLaunchesNoClusters) {
    FakeCuda cuda({90});
    std::vector<tessera_driver_entry> some;
    for (const auto &entry : cuda.entries())
        if (strcmp(entry.name, "cuLaunchKernelEx") != 0) some.push_back(entry);
    ASSERT_EQ(tessera_set_driver("cuda", some.data(), some.size()), TESSERA_SUCCESS);
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("cuda:0", &device), TESSERA_SUCCESS);
    const std::string pack = make_pack("test", "sm_90a", {{"first", image(".ptx first", kElf + "first")}});
    EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
    const tessera_gpu_kernel first = {"test", "first"};
    EXPECT_EQ(inside(tessera_gpu_launch, device, &first, &kPairs, kArgument, sizeof kArgument, nullptr),
              TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "cuda:0: the table of tessera_set_driver() lacks the function cuLaunchKernelEx");
    tessera_device_close(device);
}

TEST_F(Cuda, ADeviceBelongsToTheContextThatItWasOpenedIn) {
    FakeContext own = {1, 0}, elsewhere = {0, 0};
    tessera_device *in_own = nullptr, *in_primary = nullptr;
    FakeCuda::stack().push_back(&own);
    ASSERT_EQ(tessera_device_open("cuda:1", &in_own), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.primary[1].users, 1) << "that of the fixture's device";
    FakeCuda::stack().back() = &elsewhere;
    ASSERT_EQ(tessera_device_open("cuda:1", &in_primary), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.primary[1].users, 2) << "a context of another GPU is no choice";
    EXPECT_EQ(launch_on(in_own, first), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch_on(in_primary, first), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(cuda.images.size(), 2u) << "each context has its modules";

    FakeCuda::stack().back() = &own;
    EXPECT_EQ(launch_on(in_own, first), TESSERA_SUCCESS);
    EXPECT_EQ(launch_on(in_primary, first), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "cuda:1: the current context is another one of this GPU than that in which the "
                                       "device was opened: open a device in each");
    EXPECT_EQ(FakeCuda::stack(), (std::vector<FakeContext *>{&own}));
    tessera_device_close(in_own);
    FakeCuda::stack().clear();
    tessera_device_close(in_primary);
}

TEST_F(Cuda, EachGpuLoadsForItself) {
    cuda.capabilities[0] = 90;
    tessera_device *other = nullptr;
    ASSERT_EQ(tessera_device_open("cuda:0", &other), TESSERA_SUCCESS) << tessera_last_error();
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(launch(first), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(launch_on(other, first), TESSERA_SUCCESS) << tessera_last_error();
    }
    std::vector<int> devices;
    for (const FakeLaunch &l : cuda.launches) devices.push_back(l.device);
    EXPECT_EQ(devices, (std::vector<int>{1, 0, 1, 0}));
    EXPECT_EQ(cuda.images.size(), 2u);
    tessera_device_close(other);
    EXPECT_EQ(cuda.images.size(), 1u);
    EXPECT_EQ(cuda.primary[0].users, 0);
}

// ---- images

TEST_F(Cuda, LoadsTheCubinOrElseThePtx) {
    ASSERT_EQ(launch(first), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.images, Strings{kElf + "first"});
    ASSERT_EQ(launch(second), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.images, (Strings{kElf + "first", ".ptx second"}));
}

TEST_F(Cuda, ACubinThatDoesNotLoad) {
    cuda.cubin_error = 209;
    ASSERT_EQ(launch(first), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(cuda.images, Strings{".ptx first"});
    EXPECT_EQ(cuda.calls["cuModuleLoadDataEx"], 2);
    load_pack({{"third", image("", kElf + "third")}});
    EXPECT_EQ(launch(third), TESSERA_ERROR_DEVICE) << "there is no PTX";
    EXPECT_STREQ(tessera_last_error(), "cuda:1: cuModuleLoadDataEx of a cubin failed with no name (209): no text");
}

TEST_F(Cuda, PtxThatDoesNotCompile) {
    cuda.ptx_error = 718;
    EXPECT_EQ(launch(second), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(),
                 "cuda:1: cuModuleLoadDataEx of PTX failed with CUDA_ERROR_OF_THE_FAKE (718): the "
                 "fake was told to; ptxas fatal : no such thing");
    EXPECT_TRUE(cuda.images.empty());
}

TEST_F(Cuda, ImagesThatAreNone) {
    load_pack({{"third", image(".ptx of another", kElf + "another")}});
    EXPECT_EQ(launch(third), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(),
                 "cuda:1: cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND (500): the fake was told to");
    EXPECT_TRUE(cuda.images.empty()) << "the module is unloaded again";
    std::string pack = make_pack("test", "sm_90a", {{"third", ""}}); // one byte, of which 0 bytes will be left
    pack.replace(88 + 128, 8, 8, '\0');
    pack.replace(88 + 140, 4, 4, '\0');
    const std::string entries = pack.substr(88, 144);
    uint32_t crc = ~0u;
    for (const char c : entries) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    for (int i = 0; i < 4; i++) pack[static_cast<size_t>(76 + i)] = static_cast<char>(~crc >> 8 * i);
    ASSERT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch(third), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "cuda:1: the PTX of third has no end");
}

TEST_F(Cuda, LoadingDoesNotEndAnothersCapture) {
    cuda.captures_elsewhere = true;
    EXPECT_EQ(launch(first), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(FakeCuda::capture_mode(), 0) << "the mode is as it was";
    cuda.fails["cuModuleGetFunction"] = 700;
    EXPECT_EQ(launch(second), TESSERA_ERROR_DEVICE);
    EXPECT_EQ(FakeCuda::capture_mode(), 0);
    cuda.fails.clear();
}

TEST_F(Cuda, FunctionsAreWholeBeforeALaunch) {
    ASSERT_EQ(tessera_gpu_load(device, &first), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.order, (Strings{"cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuThreadExchangeStreamCaptureMode",
                                   "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncLoad", "cuDeviceGet",
                                   "cuDeviceGetAttribute", "cuFuncGetAttribute", "cuFuncSetAttribute",
                                   "cuThreadExchangeStreamCaptureMode", "cuCtxPopCurrent_v2"}));
}

TEST_F(Cuda, DriverWithoutCuFuncLoad) {
    std::vector<tessera_driver_entry> some;
    for (const auto &entry : cuda.entries())
        if (strcmp(entry.name, "cuFuncLoad") != 0) some.push_back(entry);
    ASSERT_EQ(tessera_set_driver("cuda", some.data(), some.size()), TESSERA_SUCCESS);
    tessera_device *old = nullptr;
    ASSERT_EQ(tessera_device_open("cuda:1", &old), TESSERA_SUCCESS);
    EXPECT_EQ(launch_on(old, first), TESSERA_SUCCESS) << tessera_last_error();
    tessera_device_close(old);
}

// ---- launches, memory, streams

TEST_F(Cuda, LaunchesWithTheArgument) {
    ASSERT_EQ(launch(first, kStream), TESSERA_SUCCESS) << tessera_last_error();
    const FakeLaunch &l = cuda.launches.at(0);
    EXPECT_EQ(l.symbol, "first");
    EXPECT_EQ(l.device, 1);
    EXPECT_EQ(std::vector<unsigned>(l.grid, l.grid + 3), (std::vector<unsigned>{5, 4, 3}));
    EXPECT_EQ(std::vector<unsigned>(l.block, l.block + 3), (std::vector<unsigned>{128, 1, 1}));
    EXPECT_EQ(l.lds_bytes, kLds);
    EXPECT_EQ(l.stream, kStream);
    EXPECT_EQ(std::string(l.argument.begin(), l.argument.end()), std::string(kArgument, sizeof kArgument));
}

TEST_F(Cuda, MoreLdsThanThereIs) {
    const tessera_launch most = {{1, 1, 1}, {128, 1, 1}, 226 << 10, 0, false};
    const tessera_launch more = {{1, 1, 1}, {128, 1, 1}, (226 << 10) + 1, 0, false};
    EXPECT_EQ(inside(tessera_gpu_launch, device, &first, &most, kArgument, sizeof kArgument, nullptr), TESSERA_SUCCESS);
    EXPECT_EQ(inside(tessera_gpu_launch, device, &first, &more, kArgument, sizeof kArgument, nullptr),
              TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(),
                 "cuda:1: cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE (1): the fake was told to");
}

TEST_F(Cuda, Memory) {
    void *memory = nullptr;
    char back[4] = {};
    ASSERT_EQ(tessera_device_malloc(device, 4, &memory), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_set(device, memory, 7, 4), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_to(device, memory, "ab", 2), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_from(device, back, memory, 4), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(back, 4), "ab\7\7");
    EXPECT_EQ(cuda.calls["cuStreamSynchronize"], 2) << "fills and copies are done when they return";
    EXPECT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.calls["cuCtxSynchronize"], 1);
    EXPECT_EQ(tessera_device_free(device, memory), TESSERA_SUCCESS);
    EXPECT_EQ(cuda.memory, 0);
}

TEST_F(Cuda, EveryCallThatFails) {
    alignas(4) char bytes[4] = {};
    const uint32_t word = 0;
    void *memory = nullptr;
    bool waited = true;
    const std::vector<CallOf> calls = {
        {"cuMemAlloc_v2", [&](auto d) { return tessera_device_malloc(d, 4, &memory); }},
        {"cuMemFree_v2", [&](auto d) { return tessera_device_free(d, bytes); }},
        {"cuMemcpyHtoD_v2", [&](auto d) { return tessera_device_copy_to(d, bytes, "abc", 4); }},
        {"cuStreamSynchronize", [&](auto d) { return tessera_device_copy_to(d, bytes, "abc", 4); }},
        {"cuMemcpyDtoH_v2", [&](auto d) { return tessera_device_copy_from(d, bytes, "abc", 4); }},
        {"cuMemsetD8Async", [&](auto d) { return tessera_device_set(d, bytes, 1, 4); }},
        {"cuStreamSynchronize", [&](auto d) { return tessera_device_set(d, bytes, 1, 4); }},
        {"cuCtxSynchronize", [&](auto d) { return tessera_device_synchronize(d); }},
        {"cuThreadExchangeStreamCaptureMode", [&](auto) { return launch(first); }},
        {"cuModuleGetFunction", [&](auto) { return launch(first); }},
        {"cuFuncLoad", [&](auto) { return launch(first); }},
        {"cuDeviceGet", [&](auto) { return launch(first); }},
        {"cuDeviceGetAttribute", [&](auto) { return launch(first); }},
        {"cuFuncGetAttribute", [&](auto) { return launch(first); }},
        {"cuFuncSetAttribute", [&](auto) { return launch(first); }},
        {"cuStreamIsCapturing", [&](auto) { return launch(first); }},
        {"cuLaunchKernel", [&](auto) { return launch(first); }},
        {"cuLaunchKernelEx",
         [&](auto d) { return inside(tessera_gpu_launch, d, &first, &kPairs, kArgument, sizeof kArgument, nullptr); }},
        {"cuMemsetD8Async", [&](auto d) { return inside(tessera_gpu_zero, d, bytes, 4, kStream); }},
        {"cuMemcpyHtoDAsync_v2", [&](auto d) { return inside(tessera_gpu_copy_small, d, bytes, &word, 4, kStream); }},
        {"cuStreamIsCapturing", [&](auto d) { return inside(tessera_gpu_copy_small, d, bytes, &word, 4, kStream); }},
        {"cuStreamSynchronize", [&](auto d) { return tessera_gpu_wait(d, kStream, &waited); }},
        {"cuCtxGetCurrent", [&](auto) { return launch(first); }},
        {"cuCtxPushCurrent_v2", [&](auto) { return launch(first); }},
    };
    cuda.expect_errors(device, calls, "CUDA_ERROR_OF_THE_FAKE", [&](const char *function) {
        EXPECT_TRUE(FakeCuda::stack().empty()) << function;
        EXPECT_EQ(FakeCuda::capture_mode(), 0) << function;
    });
    EXPECT_EQ(memory, nullptr);
    cuda.fails = {{"cuCtxPopCurrent_v2", 700}};
    EXPECT_EQ(tessera_device_synchronize(device), TESSERA_ERROR_DEVICE);
    cuda.fails.clear();
    FakeCuda::stack().clear();
}

TEST_F(Cuda, RefusesToLoadInCapture) {
    cuda.capturing = kStream;
    for (void *const stream : {kStream, static_cast<void *>(nullptr)}) { // the default stream cannot even be asked
        EXPECT_EQ(launch(first, stream), TESSERA_ERROR_NOT_PREPARED);
        EXPECT_STREQ(tessera_last_error(), "cuda:1: the stream captures, and first is not loaded: prepare the call or "
                                           "preload the device before");
    }
    EXPECT_EQ(cuda.calls["cuModuleLoadDataEx"], 0);
    EXPECT_EQ(launch(first, reinterpret_cast<void *>(0x99)), TESSERA_SUCCESS) << "another stream does not capture";
    cuda.order.clear();
    EXPECT_EQ(launch(first, kStream), TESSERA_SUCCESS) << "loaded now";
    EXPECT_EQ(cuda.calls["cuModuleLoadDataEx"], 1);
    EXPECT_EQ(cuda.order, (Strings{"cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"}));
}

TEST_F(Cuda, ZeroesAndCopiesInAStream) {
    uint32_t memory[4] = {9, 9, 9, 9};
    const uint32_t words[2] = {0x01020304, 0xfffefdfc};
    EXPECT_EQ(inside(tessera_gpu_zero, device, memory, 12, kStream), TESSERA_SUCCESS);
    EXPECT_EQ(std::vector<uint32_t>(memory, memory + 4), (std::vector<uint32_t>{0, 0, 0, 9}));
    EXPECT_EQ(cuda.filled, kStream);
    for (const bool capturing : {false, true}) {
        cuda.capturing = capturing ? kStream : nullptr;
        cuda.filled = nullptr;
        cuda.calls.clear();
        memory[1] = memory[2] = 0;
        EXPECT_EQ(inside(tessera_gpu_copy_small, device, &memory[1], words, sizeof words, kStream), TESSERA_SUCCESS);
        EXPECT_EQ(std::vector<uint32_t>(memory, memory + 4), (std::vector<uint32_t>{0, words[0], words[1], 9}));
        EXPECT_EQ(cuda.filled, kStream);
        EXPECT_EQ(cuda.calls["cuMemcpyHtoDAsync_v2"], !capturing) << "a graph would read host memory that is gone";
        EXPECT_EQ(cuda.calls["cuMemsetD32Async"], capturing ? 2 : 0);
    }
}

TEST_F(Cuda, WaitsUnlessTheStreamCaptures) {
    bool waited = false;
    EXPECT_EQ(tessera_gpu_wait(device, kStream, &waited), TESSERA_SUCCESS);
    EXPECT_TRUE(waited);
    cuda.capturing = kStream;
    EXPECT_EQ(tessera_gpu_wait(device, kStream, &waited), TESSERA_SUCCESS);
    EXPECT_FALSE(waited);
    EXPECT_EQ(cuda.calls["cuStreamSynchronize"], 1);
    cuda.fails = {{"cuStreamSynchronize", 900}};
    EXPECT_EQ(tessera_gpu_wait(device, reinterpret_cast<void *>(0x99), &waited), TESSERA_SUCCESS);
    EXPECT_FALSE(waited) << "another stream's capture can forbid it";
    cuda.fails.clear();
}

TEST_F(Cuda, TableWithoutWhatACallNeeds) {
    uint32_t words[2] = {};
    tessera_tensor_map map;
    const tessera_tensor_map_shape shape = {words, 2, 1, {64}, {}, {64}, 0, 0};
    const std::vector<CallOf> calls = {
        {"cuMemcpyHtoDAsync_v2", [&](auto d) { return inside(tessera_gpu_copy_small, d, words, words, 8, kStream); }},
        {"cuMemsetD32Async", [&](auto d) { return inside(tessera_gpu_copy_small, d, words, words, 8, kStream); }, true},
        {"cuTensorMapEncodeTiled", [&](auto d) { return inside(tessera_gpu_make_tensor_map, d, &shape, &map); }},
    };
    cuda.expect_needs("cuda:1", calls, kStream);
}

TEST_F(Cuda, ManyThreadsLoadOnce) {
    std::vector<std::thread> threads;
    std::vector<int> failures(16);
    for (size_t t = 0; t < failures.size(); t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; i++) failures[t] += launch(t % 2 ? first : second, kStream) != TESSERA_SUCCESS;
            failures[t] += !FakeCuda::stack().empty();
        });
    for (auto &thread : threads) thread.join();
    EXPECT_EQ(failures, std::vector<int>(failures.size()));
    EXPECT_EQ(cuda.launches.size(), 1600u);
    EXPECT_EQ(cuda.calls["cuModuleLoadDataEx"], 2);
}

// ---- tensor maps

TEST_F(Cuda, TensorMaps) {
    alignas(16) char tensor[16];
    tessera_tensor_map map = {};
    const tessera_tensor_map_shape shape = {tensor,          2,   4,  {64, 1000, 2, 8}, {256, 128, 256000},
                                            {64, 128, 2, 1}, 128, 256};
    ASSERT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &map), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(map.words[15], UINT64_C(0x5a5a5a5a5a5a5a5a));
    const FakeTensorMap &m = cuda.maps.at(0);
    EXPECT_EQ(m.out, &map);
    EXPECT_EQ(m.base, tensor);
    EXPECT_EQ(m.element, 1) << "CU_TENSOR_MAP_DATA_TYPE_UINT16";
    EXPECT_EQ(m.sizes, (std::vector<uint64_t>{64, 1000, 2, 8}));
    EXPECT_EQ(m.strides, (std::vector<uint64_t>{256, 128, 256000}));
    EXPECT_EQ(m.box, (std::vector<uint32_t>{64, 128, 2, 1}));
    EXPECT_EQ(m.element_strides, (std::vector<uint32_t>{1, 1, 1, 1}));
    EXPECT_EQ(m.swizzle, 3) << "CU_TENSOR_MAP_SWIZZLE_128B";
    EXPECT_EQ(m.promotion, 3) << "CU_TENSOR_MAP_L2_PROMOTION_L2_256B";
    EXPECT_EQ(m.interleave, 0);
    EXPECT_EQ(m.fill, 0) << "zeros";
    const struct {
        uint32_t tessera_tensor_map_shape::*field, bytes;
        int FakeTensorMap::*as, value;
    } cases[] = {
        {&tessera_tensor_map_shape::element_bytes, 1, &FakeTensorMap::element, 0},
        {&tessera_tensor_map_shape::element_bytes, 4, &FakeTensorMap::element, 7}, // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
        {&tessera_tensor_map_shape::swizzle, 0, &FakeTensorMap::swizzle, 0},
        {&tessera_tensor_map_shape::swizzle, 32, &FakeTensorMap::swizzle, 1},
        {&tessera_tensor_map_shape::swizzle, 64, &FakeTensorMap::swizzle, 2},
        {&tessera_tensor_map_shape::l2_bytes, 0, &FakeTensorMap::promotion, 0},
        {&tessera_tensor_map_shape::l2_bytes, 64, &FakeTensorMap::promotion, 1},
        {&tessera_tensor_map_shape::l2_bytes, 128, &FakeTensorMap::promotion, 2},
    };
    for (const auto &c : cases) {
        tessera_tensor_map_shape other = shape;
        other.*c.field = c.bytes;
        ASSERT_EQ(inside(tessera_gpu_make_tensor_map, device, &other, &map), TESSERA_SUCCESS);
        EXPECT_EQ(cuda.maps.back().*c.as, c.value) << c.bytes;
    }
}

TEST_F(Cuda, TensorMapsThatThereAreNot) {
    alignas(16) char tensor[32];
    const tessera_tensor_map_shape good = {tensor, 2, 3, {64, 1000, 8}, {128, 256000}, {64, 128, 1}, 128, 256};
    using Shape = tessera_tensor_map_shape;
    const struct {
        std::function<void(Shape &)> change;
        const char *says;
    } own[] =
        {
            {[](Shape &s) { s.rank = 0; }, "rank is 0: 1 to 5"},
            {[](Shape &s) { s.rank = 6; }, "rank is 6: 1 to 5"},
            {[](Shape &s) { s.element_bytes = 3; }, "element_bytes is 3: 1, 2, 4"},
            {[](Shape &s) { s.swizzle = 16; }, "swizzle is 16: 0, 32, 64, 128"},
            {[](Shape &s) { s.l2_bytes = 32; }, "l2_bytes is 32: 0, 64, 128, 256"},
        },
      drivers[] = {
          {[](Shape &s) { s.base = static_cast<const char *>(s.base) + 8; }, "; base is "},
          {[](Shape &s) { s.sizes[1] = 0; }, "; sizes[1] is 0: 1 to 2^32"},
          {[](Shape &s) { s.sizes[0] = (UINT64_C(1) << 32) + 1; }, "; sizes[0] is 4294967297: 1 to 2^32"},
          {[](Shape &s) { s.box[2] = 0; }, "; box[2] is 0: 1 to 256"},
          {[](Shape &s) { s.box[1] = 257; }, "; box[1] is 257: 1 to 256"},
          {[](Shape &s) { s.strides[1] = 24; }, "; strides[1] is 24: a multiple of 16 below 2^40"},
          {[](Shape &s) { s.strides[0] = UINT64_C(1) << 40; },
           "; strides[0] is 1099511627776: a multiple of 16 below 2^40"},
          {[](Shape &s) { s.box[0] = 60; }, "; a row of the box has 120 bytes: a multiple of 16"},
          {[](Shape &s) { s.box[0] = 72; }, "; a row of the box has 144 bytes: at most those of the swizzle, 128"},
          {[](Shape &) {}, "told to"},
      };
    tessera_tensor_map map;
    for (const auto &c : own) {
        Shape shape = good;
        c.change(shape);
        EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &map), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_STREQ(tessera_last_error(), c.says);
    }
    cuda.fails = {{"cuTensorMapEncodeTiled", 1}};
    for (const auto &c : drivers) {
        Shape shape = good;
        c.change(shape);
        EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &map), TESSERA_ERROR_DEVICE);
        const std::string error = tessera_last_error();
        EXPECT_EQ(error.find("cuda:1: cuTensorMapEncodeTiled failed with CUDA_ERROR_INVALID_VALUE (1): "), 0u) << error;
        EXPECT_NE(error.find(c.says), std::string::npos) << error;
    }
    cuda.fails.clear();
}

} // namespace
