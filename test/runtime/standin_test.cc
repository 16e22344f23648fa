// SPDX-License-Identifier: MIT
// The library on the simulator's HIP runtime: each way to find that, facts, and a call in a captured graph.
#ifdef TESSERA_STANDIN
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "inside.h"
#include "tessera/fmha_fwd.h"

namespace {

const std::string kStandin = TESSERA_STANDIN; // and 5, 6 or 7

// What `run` returns or prints in a process of its own, since an opened library is never closed.
template <typename Run> std::string in_child(const Run &run) {
    int ends[2];
    if (pipe(ends)) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        const std::string text = run();
        const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    std::string all;
    char part[256];
    for (ssize_t size; (size = read(ends[0], part, sizeof part)) > 0;) all.append(part, static_cast<size_t>(size));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? all : "died: " + all;
}

void keep_driver_line(void *user, tessera_log_level, const char *line) {
    const std::string text = line;
    if (text.rfind("driver: ", 0) == 0) *static_cast<std::string *>(user) = text.substr(8);
}

// Opens a device and returns what the log says about its driver.
std::string driver_of(const char *name) {
    std::string line;
    tessera_device *device = nullptr;
    tessera_set_log(keep_driver_line, &line, TESSERA_LOG_INFO);
    const tessera_status status = tessera_device_open(name, &device);
    tessera_set_log(nullptr, nullptr, TESSERA_LOG_ERROR);
    if (status != TESSERA_SUCCESS) return tessera_last_error();
    tessera_device_close(device);
    return line;
}

TEST(Standin, NamedLibraryOfEachVersion) {
    for (const char *major : {"5", "6", "7"}) {
        const std::string file = kStandin + major, line = in_child([&] {
                                                       setenv("TESSERA_HIP_LIBRARY", file.c_str(), 1);
                                                       return driver_of("hip:1");
                                                   });
        EXPECT_EQ(line.rfind(file + ", HIP " + major + ".", 0), 0u) << line;
    }
}

TEST(Standin, LoadedCopyIsPreferred) {
    for (const char *major : {"5", "6", "7"}) {
        const std::string line = in_child([&] {
            unsetenv("TESSERA_HIP_LIBRARY");
            if (!dlopen((kStandin + major).c_str(), RTLD_NOW | RTLD_LOCAL)) return std::string(dlerror());
            return driver_of("hip:1");
        });
        EXPECT_EQ(line.rfind(std::string("libamdhip64.so.") + major + ", HIP " + major + ".", 0), 0u) << line;
    }
}

// A copy as in wheels: its file name and soname contain a hash.
TEST(Standin, LoadedCopyUnderAnotherName) {
    std::ifstream in(kStandin + "6", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const std::string soname = "libamdhip64.so.6", other = "libamdhip64-x.so";
    ASSERT_EQ(soname.size(), other.size());
    for (size_t at = 0; (at = bytes.find(soname, at)) != std::string::npos;) bytes.replace(at, other.size(), other);
    const auto file = std::filesystem::temp_directory_path() / ("tessera_" + std::to_string(getpid())) / other;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    const std::string line = in_child([&] {
        unsetenv("TESSERA_HIP_LIBRARY");
        if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return std::string(dlerror());
        return driver_of("hip:1");
    });
    std::filesystem::remove_all(file.parent_path());
    EXPECT_EQ(line.rfind(file.string() + ", HIP 6.", 0), 0u) << line;
}

TEST(Standin, FoundByTheLoader) {
    const std::string folder = std::filesystem::path(kStandin).parent_path();
    const std::string line = in_child([&] {
        unsetenv("TESSERA_HIP_LIBRARY");
        // The loader reads its path when a program starts: start another.
        setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
        execl("/proc/self/exe", "standin_test", "--gtest_filter=*Newest", "--gtest_also_run_disabled_tests", nullptr);
        return std::string("exec failed");
    });
    EXPECT_NE(line.find("found libamdhip64.so.7, HIP 7."), std::string::npos) << line;
}

// Run by the test above.
TEST(Standin, DISABLED_Newest) { printf("found %s\n", driver_of("hip:1").c_str()); }

class Simulated : public ::testing::Test {
  protected:
    explicit Simulated(const char *name = "sim:gfx942") {
        setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
        EXPECT_EQ(tessera_device_open(name, &device), TESSERA_SUCCESS) << tessera_last_error();
    }
    ~Simulated() override { tessera_device_close(device); }

    // An entry point of the runtime that the device is on.
    template <typename... Parameters> int hip(const char *name, Parameters... parameters) {
        void *const library = dlopen(TESSERA_SIM, RTLD_NOW | RTLD_NOLOAD);
        const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
        dlclose(library);
        return function ? function(parameters...) : -1;
    }

    tessera_device *device = nullptr;
};

TEST_F(Simulated, Facts) {
    const tessera_device_facts *const facts = tessera_device_get_facts(device);
    EXPECT_STREQ(tessera_device_name(device), "sim:gfx942");
    EXPECT_EQ(facts->targets, 1u << TESSERA_TARGET_GFX942);
    EXPECT_EQ(facts->compute_units, 304); // MI300X
    EXPECT_EQ(facts->l2_bytes, 4 << 20);
    EXPECT_EQ(facts->lds_bytes, 64 << 10);
    tessera_device *other = nullptr;
    ASSERT_EQ(tessera_device_open("sim:gfx950:sramecc+:xnack-", &other), TESSERA_SUCCESS);
    EXPECT_STREQ(tessera_device_name(other), "sim:gfx950");
    EXPECT_EQ(tessera_device_get_facts(other)->lds_bytes, 160 << 10);
    tessera_device_close(other);
}

TEST_F(Simulated, Memory) {
    void *memory = nullptr;
    std::vector<char> back(1000);
    ASSERT_EQ(tessera_device_malloc(device, back.size(), &memory), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(tessera_device_set(device, memory, 5, back.size()), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_to(device, memory, "begin", 5), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_from(device, back.data(), memory, back.size()), TESSERA_SUCCESS);
    EXPECT_EQ(std::string(back.data(), 7), "begin\5\5");
    EXPECT_EQ(back[999], 5);
    EXPECT_EQ(tessera_device_copy_to(device, static_cast<char *>(memory) + 999, "ab", 2), TESSERA_ERROR_DEVICE);
    EXPECT_EQ(tessera_device_free(device, memory), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_free(device, memory), TESSERA_ERROR_DEVICE) << "twice";
    EXPECT_NE(std::string(tessera_last_error()).find("sim:gfx942: hipFree failed with hipError"), std::string::npos)
        << tessera_last_error();
}

// One head and 64 queries that see a single key: o is v's row. On a GPU that every day's build has all code for.
class Captured : public Simulated {
  protected:
    static constexpr int kHdim = 64, kRows = 64;
    static constexpr size_t kBytes = kRows * kHdim * 2;

    Captured() : Simulated("sim:gfx90a") {
        traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = kHdim;
        traits.data_type = TESSERA_FMHA_FP16;
        args.batch = args.nhead_q = args.nhead_k = args.seqlen_k = 1;
        args.seqlen_q = args.max_seqlen_q = kRows;
        args.scale_s = 1;
        args.stride_q = args.stride_k = args.stride_v = args.stride_o = kHdim;
        for (size_t i = 0; i < 4; i++) EXPECT_EQ(tessera_device_malloc(device, kBytes, &memory[i]), TESSERA_SUCCESS);
        for (void *m : memory) EXPECT_EQ(tessera_device_set(device, m, 0x11, kBytes), TESSERA_SUCCESS);
        args.q_ptr = memory[0];
        args.k_ptr = memory[1];
        args.v_ptr = memory[2];
        args.o_ptr = memory[3];
        EXPECT_EQ(hip("hipSetDevice", 0), 0); // streams are made on the current one
        EXPECT_EQ(hip("hipStreamCreate", &stream), 0);
        EXPECT_EQ(hip("hipSetDevice", 1), 0);
    }
    ~Captured() override {
        hip("hipStreamDestroy", stream);
        for (void *m : memory) tessera_device_free(device, m);
    }

    bool is_served() {
        const tessera_fmha_fwd_instance *instance;
        return tessera_fmha_fwd_select(tessera_device_get_facts(device), &traits, &args, &instance) == TESSERA_SUCCESS;
    }

    bool output_is(char byte) {
        std::string o(kBytes, '\0');
        EXPECT_EQ(tessera_device_copy_from(device, o.data(), args.o_ptr, kBytes), TESSERA_SUCCESS);
        return o == std::string(kBytes, byte);
    }

    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args args = tessera_fmha_fwd_args_init();
    void *memory[4] = {}, *stream = nullptr;
};

TEST_F(Captured, Graph) {
    if (!is_served()) GTEST_SKIP() << tessera_last_error();
    ASSERT_EQ(tessera_device_set(device, memory[2], 0x33, kBytes), TESSERA_SUCCESS);
    void *graph = nullptr, *executable = nullptr;
    EXPECT_EQ(tessera_fmha_fwd_check_on(device, &traits, &args), TESSERA_SUCCESS) << tessera_last_error();

    ASSERT_EQ(hip("hipStreamBeginCapture", stream, 0), 0);
    EXPECT_EQ(tessera_fmha_fwd(device, &traits, &args, stream), TESSERA_ERROR_NOT_PREPARED);
    ASSERT_EQ(hip("hipStreamEndCapture", stream, &graph), 0) << "the capture is whole";
    EXPECT_EQ(hip("hipGraphDestroy", graph), 0);

    ASSERT_EQ(tessera_fmha_fwd_prepare(device, &traits, &args), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip("hipStreamBeginCapture", stream, 0), 0);
    EXPECT_EQ(tessera_fmha_fwd(device, &traits, &args, stream), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(hip("hipStreamEndCapture", stream, &graph), 0);
    EXPECT_TRUE(output_is(0x11)) << "nothing ran yet";

    ASSERT_EQ(hip("hipGraphInstantiate", &executable, graph, nullptr, nullptr, size_t{0}), 0);
    ASSERT_EQ(hip("hipGraphLaunch", executable, stream), 0);
    ASSERT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS);
    EXPECT_TRUE(output_is(0x33));
    hip("hipGraphExecDestroy", executable);
    hip("hipGraphDestroy", graph);
}

TEST_F(Captured, Clock) {
    if (!is_served()) GTEST_SKIP() << tessera_last_error();
    tessera_sim_timing timing;
    ASSERT_EQ(tessera_device_set_clock(device, TESSERA_SIM_CLOCK_ON), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(tessera_fmha_fwd(device, &traits, &args, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(tessera_device_take_timing(device, &timing), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(timing.launches, 1u);
    EXPECT_GT(timing.cycles, 0);
    EXPECT_GT(timing.matrix, 0);
    EXPECT_TRUE(output_is(0x11));
    ASSERT_EQ(tessera_device_set_clock(device, TESSERA_SIM_CLOCK_OFF), TESSERA_SUCCESS);
    ASSERT_EQ(tessera_fmha_fwd(device, &traits, &args, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(tessera_device_take_timing(device, &timing), TESSERA_SUCCESS);
    EXPECT_EQ(timing.launches, 0u);
    EXPECT_EQ(tessera_device_set_clock(device, TESSERA_SIM_CLOCK_COUNT), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "clock=3: accepted are 0 to 2");
    EXPECT_EQ(tessera_device_set_output(device, TESSERA_SIM_OUTPUT_COUNT, "x"), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "output=3: accepted are 0 to 2");
    EXPECT_EQ(tessera_device_take_timing(device, nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
}

TEST_F(Captured, ZeroesAndCopies) {
    void *graph = nullptr, *executable = nullptr;
    const std::vector<uint32_t> expected = {0, 0x01020304, 0xfffefdfc, 0x11111111};
    std::vector<uint32_t> words = {0x01020304, 0xfffefdfc}, back(4);
    char *const to = static_cast<char *>(memory[0]);
    ASSERT_EQ(hip("hipStreamBeginCapture", stream, 0), 0);
    EXPECT_EQ(inside(tessera_gpu_zero, device, to, 8, stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(inside(tessera_gpu_copy_small, device, to + 4, words.data(), 8, stream), TESSERA_SUCCESS)
        << tessera_last_error();
    ASSERT_EQ(hip("hipStreamEndCapture", stream, &graph), 0);
    words = {1, 2}; // the host may change them now
    ASSERT_EQ(hip("hipGraphInstantiate", &executable, graph, nullptr, nullptr, size_t{0}), 0);
    ASSERT_EQ(hip("hipGraphLaunch", executable, stream), 0);
    EXPECT_EQ(tessera_device_copy_from(device, back.data(), to, 16), TESSERA_SUCCESS);
    EXPECT_EQ(back, expected);
    hip("hipGraphExecDestroy", executable);
    hip("hipGraphDestroy", graph);

    words = {expected[1], expected[2]};
    ASSERT_EQ(tessera_device_set(device, to, 0x11, 16), TESSERA_SUCCESS);
    EXPECT_EQ(inside(tessera_gpu_zero, device, to, 8, stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(inside(tessera_gpu_copy_small, device, to + 4, words.data(), 8, stream), TESSERA_SUCCESS)
        << tessera_last_error();
    EXPECT_EQ(tessera_device_copy_from(device, back.data(), to, 16), TESSERA_SUCCESS);
    EXPECT_EQ(back, expected);
}

TEST_F(Captured, PreloadedDevicesLoadNothing) {
    if (!is_served()) GTEST_SKIP() << tessera_last_error();
    ASSERT_EQ(tessera_preload(device), TESSERA_SUCCESS) << tessera_last_error();
    void *graph = nullptr;
    ASSERT_EQ(hip("hipStreamBeginCapture", stream, 0), 0);
    for (const auto dtype : {TESSERA_FMHA_FP16, TESSERA_FMHA_BF16}) {
        traits.data_type = dtype;
        EXPECT_EQ(tessera_fmha_fwd(device, &traits, &args, stream), TESSERA_SUCCESS) << tessera_last_error();
    }
    ASSERT_EQ(hip("hipStreamEndCapture", stream, &graph), 0);
    hip("hipGraphDestroy", graph);
}

// Threads share the device, but each has its own stream and output.
TEST_F(Captured, Threads) {
    if (!is_served()) GTEST_SKIP() << tessera_last_error();
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(4);
    for (size_t t = 0; t < wrong.size(); t++)
        threads.emplace_back([&, t] {
            tessera_fmha_fwd_args mine = args;
            void *v = nullptr, *o = nullptr, *own = nullptr;
            std::string got(kBytes, '\0');
            const int byte = 0x20 + static_cast<int>(t);
            if (tessera_device_malloc(device, kBytes, &v) || tessera_device_malloc(device, kBytes, &o) ||
                tessera_device_set(device, v, byte, kBytes) || hip("hipSetDevice", 0) || hip("hipStreamCreate", &own))
                wrong[t] = "set-up: " + std::string(tessera_last_error());
            mine.v_ptr = v;
            mine.o_ptr = o;
            for (int i = 0; i < 10 && wrong[t].empty(); i++)
                if (tessera_device_set(device, o, 0, kBytes) || tessera_fmha_fwd(device, &traits, &mine, own) ||
                    hip("hipStreamSynchronize", own) || tessera_device_copy_from(device, got.data(), o, kBytes))
                    wrong[t] = tessera_last_error();
                else if (got != std::string(kBytes, static_cast<char>(byte)))
                    wrong[t] = "another result";
            hip("hipStreamDestroy", own);
            tessera_device_free(device, v);
            tessera_device_free(device, o);
        });
    for (auto &thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<std::string>(wrong.size()));
}

// The call that waits for a kernel reports its fault.
TEST_F(Captured, FaultsAreToldByTheDevice) {
    if (!is_served()) GTEST_SKIP() << tessera_last_error();
    args.v_ptr = reinterpret_cast<void *>(0x1000);
    const tessera_status launched = tessera_fmha_fwd(device, &traits, &args, stream);
    EXPECT_TRUE(launched != TESSERA_SUCCESS || tessera_device_synchronize(device) != TESSERA_SUCCESS);
    const std::string error = tessera_last_error();
    for (const char *part : {"sim:gfx90a: hip", "hipErrorIllegalAddress (700)", "out of bounds: loads ",
                             "kernel tessera_k_fmha_fwd_", "workgroup 0,0,0"})
        EXPECT_NE(error.find(part), std::string::npos) << error;
    args.v_ptr = memory[2]; // a fault is reported once
    EXPECT_NE(tessera_fmha_fwd(device, &traits, &args, stream), TESSERA_SUCCESS)
        << "the device stays broken, as a real one";
    EXPECT_EQ(std::string(tessera_last_error()).find("out of bounds"), std::string::npos) << tessera_last_error();
}

} // namespace
#endif
