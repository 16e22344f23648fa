// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "device/cpu.h"
#include "internal.h"
}

// Children of a process with threads start threads, which ThreadSanitizer reports as an error by default.
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }

namespace {

using Body = std::function<void(int64_t)>;

void parallel(int64_t count, const Body &body) {
    tessera_parallel(
        count, [](void *context, int64_t index) { (*static_cast<const Body *>(context))(index); },
        const_cast<Body *>(&body));
}

void expect_each_once(int64_t count) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    parallel(count, [&](int64_t i) { calls[static_cast<size_t>(i)]++; });
    for (const auto &call : calls) EXPECT_EQ(call, 1);
}

// The exit status of `body` in a child process; 99 where it hangs for 20 s.
int in_child(const std::function<int()> &body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); // ends a child that hangs
        _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

class Threads : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_set_num_threads(4), TESSERA_SUCCESS); }
    ~Threads() override {
        tessera_set_num_threads(0);
        tessera_set_parallel_for(nullptr, nullptr);
    }
};

TEST_F(Threads, EachIndexOnce) {
    for (const int64_t count : {0, 1, 2, 3, 8, 1000}) expect_each_once(count);
}

// Runs `body` on two threads that are inside at the same time.
void on_two_threads(const std::function<void()> &body) {
    std::atomic<int> inside{0};
    parallel(2, [&](int64_t) {
        inside++;
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
        body();
    });
}

TEST_F(Threads, HelpersJoin) {
    std::set<std::thread::id> ids;
    std::mutex mutex;
    on_two_threads([&] {
        const std::lock_guard<std::mutex> lock(mutex);
        ids.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(ids.size(), 2u);
}

TEST_F(Threads, SixteenCallersAtOnce) {
    std::vector<std::thread> callers;
    for (int t = 0; t < 16; t++)
        callers.emplace_back([] {
            for (int i = 0; i < 200; i++) expect_each_once(5);
        });
    for (auto &caller : callers) caller.join();
}

TEST_F(Threads, NestedCallsRunInTheirThread) {
    std::atomic<int> calls{0}, elsewhere{0};
    parallel(4, [&](int64_t) {
        const auto self = std::this_thread::get_id();
        parallel(8, [&](int64_t) {
            calls++;
            elsewhere += std::this_thread::get_id() != self;
        });
    });
    EXPECT_EQ(calls, 32);
    EXPECT_EQ(elsewhere, 0);
}

// QEMU's user mode cannot start threads in the child of a process that has some.
#define SKIP_EMULATED()                                                                                                \
    if (getenv("TESSERA_TEST_EMULATED")) GTEST_SKIP() << "the emulator does not fork threads"

TEST_F(Threads, WorkAfterFork) {
    SKIP_EMULATED();
    expect_each_once(4); // threads exist in the parent
    EXPECT_EQ(in_child([] {
                  std::atomic<int> calls{0};
                  for (int i = 0; i < 10; i++) parallel(8, [&](int64_t) { calls++; });
                  return calls == 80 ? 0 : 1;
              }),
              0);
    expect_each_once(4);
}

TEST_F(Threads, WorkAfterForkDuringACall) {
    SKIP_EMULATED();
    std::atomic<bool> stop{false};
    std::thread caller([&] {
        while (!stop) expect_each_once(4);
    });
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(in_child([] {
                      std::atomic<int> calls{0};
                      parallel(8, [&](int64_t) { calls++; });
                      return calls == 8 ? 0 : 1;
                  }),
                  0);
    stop = true;
    caller.join();
}

TEST_F(Threads, ChildMayExit) {
    expect_each_once(4);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        exit(0); // runs the destructors, unlike _exit
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
}

TEST_F(Threads, SignalsStayWithTheHost) {
    const auto caller = std::this_thread::get_id();
    std::atomic<int> blocked_in_helper{0};
    on_two_threads([&] {
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        if (std::this_thread::get_id() != caller) blocked_in_helper += sigismember(&blocked, SIGUSR1);
    });
    EXPECT_EQ(blocked_in_helper, 1);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_FALSE(sigismember(&blocked, SIGUSR1));
}

TEST_F(Threads, NumberIsSet) {
    tessera_set_num_threads(0);
    const int before = tessera_num_threads();
    EXPECT_GE(before, 1);
    EXPECT_LE(before, std::max(1, tessera_cpu_count()));
    ASSERT_EQ(tessera_set_num_threads(7), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_num_threads(), 7);
    EXPECT_EQ(tessera_set_num_threads(-1), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "the number of threads is -1: 0 (the default) to 1024");
    EXPECT_EQ(tessera_set_num_threads(1025), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_num_threads(), 7);
    ASSERT_EQ(tessera_set_num_threads(0), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_num_threads(), before);
}

TEST_F(Threads, Environment) {
    expect_each_once(2); // from here on a fork forgets the default
    tessera_set_num_threads(0);
    const int cpus = tessera_cpu_count();
    const auto with = [](const char *text) {
        return in_child([=] {
            setenv("TESSERA_NUM_THREADS", text, 1);
            return tessera_num_threads();
        });
    };
    EXPECT_EQ(with("1"), 1);
    for (const char *text : {"100000", "", "0", "-3", "two", "2x"}) EXPECT_EQ(with(text), cpus) << text;
}

struct Host {
    int loops = 0;
    static void backwards(void *user, int64_t count, tessera_parallel_body body, void *context) {
        static_cast<Host *>(user)->loops++;
        for (int64_t i = count; i-- > 0;) body(context, i);
    }
};

TEST_F(Threads, HostsLoop) {
    Host host;
    tessera_set_parallel_for(Host::backwards, &host);
    expect_each_once(5);
    EXPECT_EQ(host.loops, 1);
    expect_each_once(1); // needs no loop
    EXPECT_EQ(host.loops, 1);
    tessera_set_parallel_for(nullptr, nullptr);
    expect_each_once(5);
    EXPECT_EQ(host.loops, 1);
}

} // namespace
