// SPDX-License-Identifier: MIT
// The library in a process: many callers at once, fork, copies side by side, loading and unloading.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "problem.h"

#if defined(__SANITIZE_THREAD__)
// Children of a fork call the library, which starts threads.
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace {

constexpr int callers = 16;

std::string problem_of(int caller) {
    static const char *const precs[] = {"fp32", "fp16", "bf16", "fp8bf16"};
    static const char *const shapes[] = {"-b=1 -h=1 -s=1 -s_k=2100", "-b=2 -h=4 -h_k=2 -s=130 -mask=2",
                                         "-mode=1 -b=2 -h=2 -s=70,3 -lse=1", "-b=1 -h=2 -s=90 -p_drop=0.3"};
    return std::string("-init=uf -d=") + std::to_string(16 + 8 * caller) + " -prec=" + precs[caller % 4] + " " +
           shapes[caller / 4];
}

TEST(Process, SixteenCallersAtOnce) {
    std::vector<std::unique_ptr<Problem>> problems;
    for (int n = 0; n < callers; n++) problems.push_back(std::make_unique<Problem>(problem_of(n)));
    std::atomic<int> ready{0}, failures{0};
    std::vector<std::thread> threads;
    for (auto &problem : problems)
        threads.emplace_back([&] {
            for (ready++; ready < callers;) std::this_thread::yield();
            for (int round = 0; round < 20; round++) failures += problem->try_launch() != TESSERA_SUCCESS;
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    for (int n = 0; n < callers; n++) {
        SCOPED_TRACE(command(problem_of(n)));
        problems[static_cast<size_t>(n)]->expect_rows_match();
    }
}

// One caller fails all the time, the others do not notice: neither their results nor their error lines.
TEST(Process, ErrorsBelongToTheirCaller) {
    Problem good(problem_of(0));
    good.launch();
    const std::vector<uint8_t> want = good.outputs();
    std::atomic<bool> stop{false};
    std::thread bad([&] {
        Problem broken(problem_of(1));
        broken.args->q_ptr = nullptr;
        do EXPECT_EQ(broken.try_launch(), TESSERA_ERROR_INVALID_ARGUMENT);
        while (!stop);
        EXPECT_NE(std::string(tessera_last_error()).find("q_ptr"), std::string::npos);
    });
    const std::string before = tessera_last_error();
    for (int round = 0; round < 50; round++) good.launch();
    EXPECT_EQ(tessera_last_error(), before);
    stop = true;
    bad.join();
    EXPECT_EQ(good.outputs(), want);
}

TEST(Process, ForkedChildrenCompute) {
    Problem p("-prec=fp32 -b=1 -h=8 -s=200 -d=64");
    p.launch(); // the threads exist now
    const std::vector<uint8_t> want = p.outputs();
    for (int generation = 0; generation < 3; generation++) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60); // a child that hangs fails
            _exit(p.try_launch() == TESSERA_SUCCESS && p.outputs() == want ? 0 : 1);
        }
        int status;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
    }
    p.launch();
    EXPECT_EQ(p.outputs(), want);
}

// ---- copies of the shared library, each loaded by itself

std::string library_path() {
    Dl_info info;
    return dladdr(reinterpret_cast<const void *>(&tessera_fmha_fwd), &info) && info.dli_fname ? info.dli_fname : "";
}

class Copy {
  public:
    explicit Copy(const std::filesystem::path &file) : file(file) {
        std::filesystem::copy_file(library_path(), file, std::filesystem::copy_options::overwrite_existing);
        library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
    }
    ~Copy() {
        dlclose(library);
        std::filesystem::remove(file);
    }
    Copy(const Copy &) = delete;
    Copy &operator=(const Copy &) = delete;

    template <typename F> F *get(const char *name) const { return reinterpret_cast<F *>(dlsym(library, name)); }

    // Runs a problem that was launched before, with a device and instances of its own.
    tessera_status launch(const Problem &p) const {
        tessera_device *device;
        const tessera_status status = get<decltype(tessera_device_open)>("tessera_device_open")("cpu", &device);
        if (status != TESSERA_SUCCESS) return status;
        const tessera_status launched =
            get<decltype(tessera_fmha_fwd)>("tessera_fmha_fwd")(device, p.traits, p.args, nullptr);
        get<decltype(tessera_device_close)>("tessera_device_close")(device);
        return launched;
    }

  private:
    std::filesystem::path file;
    void *library;
};

class Copies : public testing::Test {
  protected:
    void SetUp() override {
        if (library_path().find(".so") == std::string::npos) GTEST_SKIP() << "the library is linked statically";
        directory = std::filesystem::temp_directory_path() / ("tessera_copies_" + std::to_string(getpid()));
        std::filesystem::create_directory(directory);
    }
    void TearDown() override {
        if (!directory.empty()) std::filesystem::remove_all(directory);
    }

    std::filesystem::path directory;
};

TEST_F(Copies, TwoInOneProcess) {
    Problem p("-prec=fp32 -b=1 -h=8 -s=200 -d=64");
    p.launch();
    const std::vector<uint8_t> want = p.outputs();
    const Copy first(directory / "libfirst.so"), second(directory / "libsecond.so");
    ASSERT_NE(first.get<decltype(tessera_fmha_fwd)>("tessera_fmha_fwd"),
              second.get<decltype(tessera_fmha_fwd)>("tessera_fmha_fwd"));

    // Each has its own settings, errors and threads.
    first.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(3);
    EXPECT_EQ(first.get<decltype(tessera_num_threads)>("tessera_num_threads")(), 3);
    EXPECT_EQ(second.get<decltype(tessera_num_threads)>("tessera_num_threads")(), tessera_num_threads());
    EXPECT_EQ(second.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(-1),
              TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(first.get<decltype(tessera_last_error)>("tessera_last_error")(), "");
    EXPECT_STRNE(second.get<decltype(tessera_last_error)>("tessera_last_error")(), "");
    first.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(tessera_num_threads());

    for (const Copy *copy : {&first, &second, &first}) {
        ASSERT_EQ(copy->launch(p), TESSERA_SUCCESS);
        EXPECT_EQ(p.outputs(), want);
    }
}

int threads_of_process() {
    int count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) count += entry.is_directory();
    return count;
}

bool is_mapped(const std::string &name) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(name) != std::string::npos) return true;
    return false;
}

TEST_F(Copies, UnloadingLeavesNothingBehind) {
    tessera_set_num_threads(4);
    Problem p("-prec=bf16 -b=1 -h=8 -s=200 -d=64");
    p.launch();
    const std::vector<uint8_t> want = p.outputs();
    const int threads = threads_of_process();
    for (int round = 0; round < 5; round++) {
        {
            const Copy copy(directory / "libunloaded.so");
            EXPECT_EQ(threads_of_process(), threads) << "loading started threads";
            copy.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(4);
            ASSERT_EQ(copy.launch(p), TESSERA_SUCCESS);
            EXPECT_EQ(p.outputs(), want);
        }
        EXPECT_FALSE(is_mapped("libunloaded.so")) << "still loaded";
        EXPECT_EQ(threads_of_process(), threads) << "threads outlived their library";
    }
    tessera_set_num_threads(0);
}

} // namespace
