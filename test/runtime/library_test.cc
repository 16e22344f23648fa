// SPDX-License-Identifier: MIT
// The shared library as a host uses it: its exports, two copies in one process, unloading, fork, many threads at once.
// TESSERA_LIBRARY is its file.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tessera/fmha_fwd.h"

// Children of a process with threads start threads, which ThreadSanitizer reports as an error by default.
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }

namespace {

size_t threads_of_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// The number of threads without those of the library. A thread that was joined may be listed for a moment longer.
size_t threads_at_rest() {
    static const size_t at_start = threads_of_process();
    for (int i = 0; i < 200 && threads_of_process() > at_start; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return at_start;
}
const size_t kThreadsAtStart = threads_at_rest();

// The library opened by itself, apart from every other copy.
class Library {
  public:
    explicit Library(const std::string &path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!handle) throw std::runtime_error(dlerror());
    }
    ~Library() { dlclose(handle); }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    template <typename Function> Function *get(const char *name) const {
        return reinterpret_cast<Function *>(dlsym(handle, name));
    }
    std::string last_error() const { return get<decltype(tessera_last_error)>("tessera_last_error")(); }

  private:
    void *handle;
};

// A problem that is large enough for several tasks, and its result, computed by a plain loop.
class Problem {
  public:
    Problem() : q(kSize), k(kSize), v(kSize), o(kSize), expected(kSize) {
        unsigned state = 1;
        for (auto *tensor : {&q, &k, &v})
            for (float &x : *tensor) x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24);
        for (int h = 0; h < kHeads; h++)
            for (int i = 0; i < kLength; i++) reference(h, i);
    }

    // Runs on `threads` threads of a library; returns the error line if it fails.
    std::string run(const Library &library, int threads = 0) {
        std::fill(o.begin(), o.end(), NAN);
        tessera_device *device = nullptr;
        if (library.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(threads)) return "threads";
        if (library.get<decltype(tessera_device_open)>("tessera_device_open")("cpu", &device))
            return library.last_error();
        const std::string error = run_on(library, device);
        library.get<decltype(tessera_device_close)>("tessera_device_close")(device);
        return error;
    }

    const std::vector<float> &result() const { return o; }

  private:
    static constexpr int kHeads = 4, kLength = 200, kHdim = 32, kSize = kHeads * kLength * kHdim;

    void reference(int h, int i) {
        const float *const qi = &q[static_cast<size_t>((h * kLength + i) * kHdim)];
        std::vector<double> p(kLength), sum(kHdim);
        double total = 0;
        for (int j = 0; j < kLength; j++) {
            double s = 0;
            for (int d = 0; d < kHdim; d++) s += double(qi[d]) * k[static_cast<size_t>((h * kLength + j) * kHdim + d)];
            total += p[static_cast<size_t>(j)] = std::exp(s / 8);
        }
        for (int j = 0; j < kLength; j++)
            for (int d = 0; d < kHdim; d++)
                sum[static_cast<size_t>(d)] +=
                    p[static_cast<size_t>(j)] / total * v[static_cast<size_t>((h * kLength + j) * kHdim + d)];
        for (int d = 0; d < kHdim; d++)
            expected[static_cast<size_t>((h * kLength + i) * kHdim + d)] =
                static_cast<float>(sum[static_cast<size_t>(d)]);
    }

    std::string run_on(const Library &library, const tessera_device *device) {
        tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
        tessera_fmha_fwd_args args = TESSERA_FMHA_FWD_ARGS_INIT;
        traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = kHdim;
        args.q_ptr = q.data(), args.k_ptr = k.data(), args.v_ptr = v.data(), args.o_ptr = o.data();
        args.batch = 1;
        args.nhead_q = args.nhead_k = kHeads;
        args.seqlen_q = args.seqlen_k = args.max_seqlen_q = kLength;
        args.scale_s = 1.0f / 8;
        args.stride_q = args.stride_k = args.stride_v = args.stride_o = kHdim;
        args.nhead_stride_q = args.nhead_stride_k = args.nhead_stride_v = args.nhead_stride_o = kHdim * kLength;
        size_t bytes = 0;
        if (library.get<decltype(tessera_fmha_fwd_workspace_size)>("tessera_fmha_fwd_workspace_size")(device, &traits,
                                                                                                      &args, &bytes))
            return library.last_error();
        std::vector<unsigned char> workspace(bytes + 64);
        const auto start = reinterpret_cast<uintptr_t>(workspace.data());
        args.workspace_ptr = workspace.data() + (64 - start % 64) % 64;
        args.workspace_size = bytes;
        if (library.get<decltype(tessera_fmha_fwd)>("tessera_fmha_fwd")(device, &traits, &args, nullptr))
            return library.last_error();
        for (size_t i = 0; i < o.size(); i++)
            if (!(std::fabs(o[i] - expected[i]) < 1e-5f)) return "wrong at " + std::to_string(i);
        return "";
    }

    std::vector<float> q, k, v, o, expected;
};

// The symbols that the dynamic symbol table defines.
std::vector<std::string> exported_symbols(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto *const header = reinterpret_cast<const Elf64_Ehdr *>(bytes.data());
    const auto *const sections = reinterpret_cast<const Elf64_Shdr *>(bytes.data() + header->e_shoff);
    std::vector<std::string> names;
    for (int s = 0; s < header->e_shnum; s++) {
        if (sections[s].sh_type != SHT_DYNSYM) continue;
        const char *const text = bytes.data() + sections[sections[s].sh_link].sh_offset;
        const auto *const symbols = reinterpret_cast<const Elf64_Sym *>(bytes.data() + sections[s].sh_offset);
        for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); i++)
            if (symbols[i].st_shndx != SHN_UNDEF) names.emplace_back(text + symbols[i].st_name);
    }
    return names;
}

TEST(Library, ExportsOnlyItsOwnNames) {
    const auto names = exported_symbols(TESSERA_LIBRARY);
    EXPECT_GE(names.size(), 20u);
    for (const std::string &name : names) {
        EXPECT_EQ(name.rfind("tessera_", 0), 0u) << name;
        EXPECT_NE(name.rfind("tessera_k_", 0), 0u) << name; // kernels are reached through the table
    }
}

TEST(Library, LoadingStartsNothing) {
    const size_t before = threads_at_rest();
    const Library library(TESSERA_LIBRARY);
    EXPECT_EQ(threads_of_process(), before);
    tessera_device *device = nullptr;
    ASSERT_EQ(library.get<decltype(tessera_device_open)>("tessera_device_open")("cpu", &device), TESSERA_SUCCESS);
    library.get<decltype(tessera_device_close)>("tessera_device_close")(device);
    EXPECT_EQ(threads_of_process(), before);
}

TEST(Library, PrepareStartsTheThreads) {
    const size_t before = threads_at_rest();
    const Library library(TESSERA_LIBRARY);
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args args = TESSERA_FMHA_FWD_ARGS_INIT;
    traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = 64;
    args.batch = args.nhead_q = args.nhead_k = args.seqlen_q = args.seqlen_k = 1;
    tessera_device *device = nullptr;
    ASSERT_EQ(library.get<decltype(tessera_device_open)>("tessera_device_open")("cpu", &device), TESSERA_SUCCESS);
    ASSERT_EQ(library.get<decltype(tessera_set_num_threads)>("tessera_set_num_threads")(4), TESSERA_SUCCESS);
    EXPECT_EQ(library.get<decltype(tessera_fmha_fwd_prepare)>("tessera_fmha_fwd_prepare")(device, &traits, &args),
              TESSERA_SUCCESS);
    EXPECT_EQ(threads_of_process(), before + 3);
    library.get<decltype(tessera_device_close)>("tessera_device_close")(device);
}

TEST(Library, RunsAndUnloads) {
    const size_t before = threads_at_rest();
    Problem problem;
    for (int i = 0; i < 5; i++) {
        {
            const Library library(TESSERA_LIBRARY);
            EXPECT_EQ(problem.run(library, 4), "");
            EXPECT_GT(threads_of_process(), before);
        }
        threads_at_rest();
        EXPECT_EQ(threads_of_process(), kThreadsAtStart);
    }
}

TEST(Library, TwoCopiesInOneProcess) {
    const auto folder = std::filesystem::temp_directory_path() / ("tessera_copies_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    for (const char *name : {"one.so", "two.so"}) std::filesystem::copy_file(TESSERA_LIBRARY, folder / name);
    {
        const Library one(folder / "one.so");
        Problem problem;
        {
            const Library two(folder / "two.so");
            ASSERT_NE(one.get<decltype(tessera_version)>("tessera_version"),
                      two.get<decltype(tessera_version)>("tessera_version"));
            EXPECT_EQ(problem.run(one, 2), "");
            EXPECT_EQ(problem.run(two, 3), "");
            // Each has its own state.
            EXPECT_EQ(one.get<decltype(tessera_num_threads)>("tessera_num_threads")(), 2);
            EXPECT_EQ(two.get<decltype(tessera_num_threads)>("tessera_num_threads")(), 3);
            tessera_mask mask;
            EXPECT_NE(one.get<decltype(tessera_mask_from_string)>("tessera_mask_from_string")("x", &mask), 0);
            EXPECT_NE(one.last_error(), "");
            EXPECT_EQ(two.last_error(), "");
            std::thread other([&] {
                Problem mine;
                for (int i = 0; i < 20; i++) EXPECT_EQ(mine.run(two, 3), "");
            });
            for (int i = 0; i < 20; i++) EXPECT_EQ(problem.run(one, 2), "");
            other.join();
        }
        EXPECT_EQ(problem.run(one, 2), "");
    }
    std::filesystem::remove_all(folder);
}

TEST(Library, SixteenThreadsAtOnce) {
    const Library library(TESSERA_LIBRARY);
    std::vector<std::thread> callers;
    for (int t = 0; t < 16; t++)
        callers.emplace_back([&] {
            Problem problem;
            for (int i = 0; i < 10; i++) EXPECT_EQ(problem.run(library, 4), "");
        });
    for (auto &caller : callers) caller.join();
}

TEST(Library, RunsInAChild) {
    const Library library(TESSERA_LIBRARY);
    Problem problem;
    EXPECT_EQ(problem.run(library, 4), "");
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(problem.run(library, 4).empty() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(problem.run(library, 4), "");
}

TEST(Library, SameBytesForAnyNumberOfThreads) {
    const Library library(TESSERA_LIBRARY);
    Problem one, many;
    EXPECT_EQ(one.run(library, 1), "");
    for (const int threads : {2, 3, 8}) {
        EXPECT_EQ(many.run(library, threads), "");
        EXPECT_EQ(memcmp(one.result().data(), many.result().data(), one.result().size() * sizeof(float)), 0);
    }
}

} // namespace
