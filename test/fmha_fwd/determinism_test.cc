// SPDX-License-Identifier: MIT
// Results have the same bytes with any number of threads, in every repetition, on a host's threads in any order, and
// beside other callers. Problems of few rows and many keys are cut along the keys and combined.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "problem.h"

namespace {

const char *const shapes[] = {
    "-b=2 -h=4 -h_k=2 -s=300 -d=64 -mask=2",
    "-b=1 -h=1 -s=1 -s_k=3000 -d=128",                     // cut
    "-b=1 -h=4 -h_k=1 -s=2 -s_k=5000 -d=40 -mask=b",       // cut
    "-b=1 -h=2 -s=130 -s_k=2500 -d=32 -mask=t:-1,2000",    // cut
    "-mode=1 -b=3 -h=2 -s=1,70,3 -s_k=2500,90,1100 -d=32", // cut where long
};

const char *const traits[] = {
    "",
    "-lse=1",
    "-p_drop=0.3 -lse=1",
    "-init_sink=1 -lse=1",
    "-bias=a -lse=1",
    "-bias=e:1 -p_drop=0.2 -init_sink=1 -lse=1",
    "-logits_soft_cap=20",
};

std::vector<std::string> problems() {
    std::vector<std::string> all, every_kind = kinds(cpus, {"fp32"});
    every_kind.insert(every_kind.end(), {"-prec=bf16", "-prec=fp8bf16"}); // the best instance of each
    for (const std::string &kind : every_kind)
        for (const char *shape : shapes)
            for (const char *trait : traits) all.push_back(kind + " -init=nf -scale_s=0.1 " + shape + " " + trait);
    return all;
}

class Threads : public testing::Test {
  protected:
    ~Threads() override {
        tessera_set_num_threads(0);
        tessera_set_parallel_for(nullptr, nullptr);
    }
};

TEST_F(Threads, TheirNumberChangesNothing) {
    for (const std::string &arguments : problems()) {
        if (!is_due()) continue;
        SCOPED_TRACE(command(arguments));
        Problem p(arguments);
        tessera_set_num_threads(1);
        p.launch();
        const std::vector<uint8_t> want = p.outputs();
        p.expect_rows_match(p.rows(23));
        for (int threads : {2, 3, 5, 8}) {
            tessera_set_num_threads(threads);
            p.launch();
            EXPECT_EQ(p.outputs(), want) << threads << " threads";
        }
    }
}

TEST_F(Threads, RepeatedCallsGiveTheSame) {
    tessera_set_num_threads(4);
    for (const char *trait : traits) {
        const std::string arguments = std::string("-prec=bf16 -init=nf ") + shapes[2] + " " + trait;
        SCOPED_TRACE(command(arguments));
        Problem p(arguments);
        p.launch();
        const std::vector<uint8_t> want = p.outputs();
        for (int n = 0; n < 20; n++) {
            p.launch();
            ASSERT_EQ(p.outputs(), want) << "call " << n;
        }
    }
}

// ---- a host's loops

void backwards(void *, int64_t count, tessera_parallel_body body, void *context) {
    while (count-- > 0) body(context, count);
}

void a_thread_each(void *calls, int64_t count, tessera_parallel_body body, void *context) {
    ++*static_cast<int *>(calls);
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < count; i++) threads.emplace_back(body, context, (i + count / 2) % count);
    for (std::thread &thread : threads) thread.join();
}

TEST_F(Threads, AHostsLoopGivesTheSame) {
    tessera_set_num_threads(6);
    int calls = 0;
    for (const std::string &arguments : problems()) {
        if (!is_due()) continue;
        SCOPED_TRACE(command(arguments));
        tessera_set_parallel_for(nullptr, nullptr);
        Problem p(arguments);
        p.launch();
        const std::vector<uint8_t> want = p.outputs();
        tessera_set_parallel_for(backwards, nullptr);
        p.launch();
        EXPECT_EQ(p.outputs(), want) << "backwards";
        tessera_set_parallel_for(a_thread_each, &calls);
        p.launch();
        EXPECT_EQ(p.outputs(), want) << "a thread each";
    }
    EXPECT_GT(calls, 0);
}

// A sequence's bytes do not depend on the others in the call, unless its keys are cut.
TEST_F(Threads, NeighboursChangeNothing) {
    for (const std::string &kind : kinds(cpus, {"fp32", "bf16"})) {
        SCOPED_TRACE(kind);
        Problem alone(kind + " -init=nf -b=1 -h=2 -s=100 -d=64 -lse=1"),
            among(kind + " -init=nf -b=4 -h=2 -s=100 -d=64 -lse=1");
        alone.each('q', [&](int, int h, int i, int d) { return among.q(0, h, i, d); });
        alone.each('k', [&](int, int h, int i, int d) { return among.k(0, h, i, d); });
        alone.each('v', [&](int, int h, int i, int d) { return among.v(0, h, i, d); });
        alone.launch();
        among.launch();
        const std::vector<uint8_t> want = alone.outputs(), got = among.outputs();
        EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin()));
    }
}

// ---- independent callers

constexpr int callers = 16;

std::string problem_of(int caller) {
    static const char *const precs[] = {"fp32", "fp16", "bf16", "fp8bf16"};
    static const char *const shapes[] = {"-b=1 -h=1 -s=1 -s_k=2100", "-b=2 -h=4 -h_k=2 -s=130 -mask=2",
                                         "-mode=1 -b=2 -h=2 -s=70,3 -lse=1", "-b=1 -h=2 -s=90 -p_drop=0.3"};
    return std::string("-init=uf -d=") + std::to_string(16 + 8 * caller) + " -prec=" + precs[caller % 4] + " " +
           shapes[caller / 4];
}

TEST(Callers, SixteenAtOnce) {
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

// One caller fails all the time, which changes neither the results nor the error lines of others.
TEST(Callers, KeepTheirErrors) {
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

} // namespace
