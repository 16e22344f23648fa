// SPDX-License-Identifier: MIT
// The launcher with instances that only record their tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "fmha_fwd_fixture.h"

namespace {

using Task = tessera_fmha_fwd_cpu_task;
using Problem = tessera_fmha_fwd_cpu_problem;

struct Combine {
    Task task;
    int32_t splits;
    int64_t stride;
    size_t parts_before; // partial tasks of its rows that had run by then
};

std::mutex mutex;
std::vector<Task> tasks;
std::vector<Combine> combines;
std::vector<const void *> scratches;
Problem problem;
tessera_fmha_fwd_args problem_args;

bool same_rows(const Task &a, const Task &b) {
    return std::tie(a.batch, a.head_k, a.row_begin, a.row_end) == std::tie(b.batch, b.head_k, b.row_begin, b.row_end);
}

void record_run(const Problem *p, const Task *task, void *scratch) {
    const std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back(*task);
    scratches.push_back(scratch);
    problem = *p;
    problem_args = *p->args;
    if (task->partial) std::fill_n(task->partial, (task->row_end - task->row_begin) * (p->args->hdim_v + 2), 1.0f);
}

void record_combine(const Problem *, const Task *task, int32_t splits, int64_t stride) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto before = std::count_if(tasks.begin(), tasks.end(), [&](const Task &t) { return same_rows(t, *task); });
    combines.push_back({*task, splits, stride, static_cast<size_t>(before)});
}

size_t scratch_bytes(int32_t hdim_q, int32_t hdim_v) { return static_cast<size_t>(hdim_q + hdim_v); }

class Launch : public ::testing::Test {
  protected:
    void SetUp() override {
        instance = make_instance("fake", TESSERA_TARGET_PORTABLE, &served, 64, 32);
        instance.run = record_run;
        instance.combine = record_combine;
        instance.scratch_bytes = scratch_bytes;
    }

    // Sizes of a large call; nothing touches its tensors.
    void sizes(int batch, int nhead_q, int nhead_k, int seqlen_q, int seqlen_k) {
        call.args.batch = batch;
        call.args.nhead_q = nhead_q;
        call.args.nhead_k = nhead_k;
        call.args.seqlen_q = call.args.max_seqlen_q = seqlen_q;
        call.args.seqlen_k = seqlen_k;
    }

    void mask(tessera_mask type, int left, int right) {
        call.traits.mask_type = call.args.mask_type = type;
        call.args.window_size_left = left;
        call.args.window_size_right = right;
    }

    // Plans the call and returns the bytes of workspace that it needs.
    size_t plan_for(int threads, tessera_plan *plan) {
        tessera_fmha_fwd_call whole = call.whole();
        cpu.facts.compute_units = units;
        EXPECT_EQ(tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &cpu.facts, threads, plan),
                  TESSERA_SUCCESS);
        return tessera_plan_workspace(plan);
    }

    void run(int threads) {
        tasks.clear();
        combines.clear();
        scratches.clear();
        tessera_plan plan;
        const size_t bytes = plan_for(threads, &plan);
        const unsigned char guard = 0xa5;
        workspace.assign(bytes + 128, guard);
        const auto start = reinterpret_cast<uintptr_t>(workspace.data());
        unsigned char *const aligned = workspace.data() + (64 - start % 64) % 64;
        call.args.workspace_ptr = aligned;
        tessera_fmha_fwd_call ready = call.whole();
        ASSERT_EQ(tessera_run_call(&tessera_fmha_fwd_operation, &ready, &cpu, &plan, nullptr), TESSERA_SUCCESS);
        for (unsigned char *p = aligned + bytes; p < workspace.data() + workspace.size(); p++) ASSERT_EQ(*p, guard);
        for (const void *scratch : scratches) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0u);
            EXPECT_GE(scratch, static_cast<void *>(aligned));
            EXPECT_LE(static_cast<const unsigned char *>(scratch) + scratch_bytes(8, 16), aligned + bytes);
        }
    }

    // Whether query i of lengths sq, sk sees key j, by the definition in tessera/fmha_fwd.h.
    bool visible(int64_t i, int64_t j, int64_t sq, int64_t sk) const {
        const int64_t left = call.args.window_size_left, right = call.args.window_size_right;
        const int64_t far = int64_t(1) << 40;
        int64_t y = left < 0 ? far : left + 1, x = right < 0 ? far : right + 1;
        if (call.traits.mask_type == TESSERA_MASK_NONE) y = x = far;
        if (call.traits.mask_type == TESSERA_MASK_BOTTOM_RIGHT)
            y -= left < 0 ? 0 : sk - sq, x += right < 0 ? 0 : sk - sq;
        if (call.traits.mask_type == TESSERA_MASK_GENERIC) y -= left < 0 ? 0 : 1, x -= right < 0 ? 0 : 1;
        const bool sink = call.traits.has_sink && y < sq && i < sk && j < std::min<int64_t>(call.args.sink_size, i + x);
        return sink || (i - y < j && j < i + x);
    }

    // Every row of every sequence and head is in one tile; a tile's tasks contain each key that its rows see once; and
    // the tasks' mask agrees with that of the call.
    void expect_covered(const std::vector<std::pair<int, int>> &lengths) {
        std::map<std::tuple<int, int, int64_t>, std::vector<Task>> tiles;
        for (const Task &task : tasks) tiles[{task.batch, task.head_k, task.row_begin}].push_back(task);
        std::map<std::pair<int, int>, int64_t> rows;
        const int group = call.args.nhead_q / call.args.nhead_k;
        for (auto &[key, parts] : tiles) {
            auto &done = rows[{std::get<0>(key), std::get<1>(key)}];
            EXPECT_EQ(done, std::get<2>(key));
            std::sort(parts.begin(), parts.end(), [](auto &a, auto &b) { return a.kv_begin < b.kv_begin; });
            const Task &first = parts.front();
            const auto [sq, sk] = lengths[static_cast<size_t>(first.batch)];
            EXPECT_EQ(first.seqlen_q, sq);
            EXPECT_EQ(first.seqlen_k, sk);
            EXPECT_LE(first.row_end - first.row_begin, instance.tile.bm0);
            done = first.row_end;
            for (size_t p = 0; p < parts.size(); p++) {
                EXPECT_TRUE(same_rows(parts[p], first));
                EXPECT_EQ(parts[p].kv_begin % instance.tile.bn0, 0);
                EXPECT_EQ(parts[p].partial != nullptr, parts.size() > 1);
                EXPECT_EQ(parts[p].kv_begin, p ? parts[p - 1].kv_end : first.kv_begin);
            }
            for (int64_t row = first.row_begin; row < first.row_end; row += std::max<int64_t>(group, 1)) {
                const int64_t i = row / group;
                for (int64_t j = 0; j < sk; j++) {
                    const bool in_task = j >= first.kv_begin && j < parts.back().kv_end;
                    const bool sees = (i - first.mask_y < j && j < i + first.mask_x) ||
                                      (i < sk && j < std::min<int64_t>(first.sink, i + first.mask_x));
                    ASSERT_EQ(sees, visible(i, j, sq, sk)) << "query " << i << " key " << j;
                    ASSERT_TRUE(in_task || !sees) << "query " << i << " key " << j;
                }
            }
        }
        for (size_t b = 0; b < lengths.size(); b++)
            for (int head = 0; head < call.args.nhead_k; head++)
                EXPECT_EQ((rows[{static_cast<int>(b), head}]), int64_t(lengths[b].first) * group) << "sequence " << b;
        expect_combined();
    }

    void expect_combined() {
        std::set<std::tuple<int, int, int64_t>> cut;
        for (const Task &task : tasks)
            if (task.partial) cut.insert({task.batch, task.head_k, task.row_begin});
        EXPECT_EQ(combines.size(), cut.size());
        std::map<const float *, const float *> partials; // begin and end of each: apart from one another
        for (const Task &task : tasks)
            if (task.partial)
                partials[task.partial] = task.partial + (task.row_end - task.row_begin) * (call.args.hdim_v + 2);
        for (auto it = partials.begin(); it != partials.end() && std::next(it) != partials.end(); ++it)
            EXPECT_LE(it->second, std::next(it)->first);
        for (const Combine &c : combines) {
            EXPECT_EQ(c.parts_before, static_cast<size_t>(c.splits)); // none ran before its parts had
            for (const Task &task : tasks) {
                if (!same_rows(task, c.task)) continue;
                const int64_t part = (task.partial - c.task.partial) / c.stride;
                EXPECT_EQ(task.partial, c.task.partial + part * c.stride);
                EXPECT_GE(c.stride, (task.row_end - task.row_begin) * (call.args.hdim_v + 2));
                EXPECT_LT(part, c.splits);
            }
        }
    }

    std::set<std::tuple<int, int, int64_t, int, int>> cuts() const {
        std::set<std::tuple<int, int, int64_t, int, int>> all;
        for (const Task &t : tasks) all.insert({t.batch, t.head_k, t.row_begin, t.kv_begin, t.kv_end});
        EXPECT_EQ(all.size(), tasks.size());
        return all;
    }

    Call call;
    Served served;
    tessera_fmha_fwd_instance instance;
    int32_t units = 64; // of the device
    tessera_device cpu = {};
    std::vector<unsigned char> workspace;
};

TEST_F(Launch, CoversEveryRowOnce) {
    for (const auto &[q, k] : {std::pair{1, 1}, {63, 31}, {64, 32}, {65, 33}, {200, 300}, {7, 0}}) {
        for (const int heads : {4, 2, 1}) {
            sizes(3, 4, heads, q, k);
            run(4);
            expect_covered({{q, k}, {q, k}, {q, k}});
        }
    }
}

TEST_F(Launch, SplitsLongKeysOfFewTiles) {
    sizes(1, 2, 2, 3, 8192);
    run(4);
    expect_covered({{3, 8192}});
    EXPECT_EQ(combines.size(), 2u);
    EXPECT_EQ(tasks.size(), 32u); // 512 keys a part
    for (const Task &task : tasks) EXPECT_GE(task.kv_end - task.kv_begin, 512);
}

TEST_F(Launch, SplitsToAboutSixtyFourTasks) {
    sizes(1, 1, 1, 128, 1 << 16);
    run(2);
    EXPECT_EQ(tasks.size(), 64u);
    sizes(1, 1, 1, 64 * 40, 1 << 16); // 40 tiles are near enough
    run(2);
    EXPECT_EQ(tasks.size(), 40u);
    EXPECT_TRUE(combines.empty());
}

TEST_F(Launch, SplitsToAboutEightTasksOfAComputeUnit) {
    sizes(1, 1, 1, 128, 1 << 16);
    for (const int of_device : {1, 2, 3, 7}) {
        units = of_device;
        run(2);
        EXPECT_EQ(tasks.size(), 8u * static_cast<size_t>(units));
    }
    units = 2;
    sizes(1, 1, 1, 64 * 9, 1 << 16); // nine tiles are near enough
    run(2);
    EXPECT_TRUE(combines.empty());
}

TEST_F(Launch, DoesNotSplitBelowTwoParts) {
    sizes(1, 1, 1, 4, 1023);
    run(2);
    EXPECT_EQ(tasks.size(), 1u);
    EXPECT_EQ(tasks[0].partial, nullptr);
    sizes(1, 1, 1, 4, 1024);
    run(2);
    EXPECT_EQ(tasks.size(), 2u);
}

// A host's loop that records how many workers a launch asks for, and lets the last one do all the work.
class Workers {
  public:
    Workers() { tessera_set_parallel_for(loop, this); }
    ~Workers() { tessera_set_parallel_for(nullptr, nullptr); }
    int64_t count = 1;

  private:
    static void loop(void *user, int64_t count, tessera_parallel_body body, void *context) {
        static_cast<Workers *>(user)->count = count;
        for (int64_t i = count; i-- > 0;) body(context, i);
    }
};

TEST_F(Launch, EachWorkerHasItsScratch) {
    Workers workers;
    sizes(1, 4, 4, 4096, 4096);
    for (const int threads : {2, 5, 256, 300}) {
        run(threads); // also checks where the scratch of the last worker lies
        EXPECT_EQ(workers.count, std::min(threads, 256));
        EXPECT_EQ(tasks.size(), 256u);
    }
}

TEST_F(Launch, SmallCallsWakeNobody) {
    Workers workers;
    sizes(1, 4, 4, 64, 64); // 4 tasks, 400,000 multiply-adds
    run(8);
    EXPECT_EQ(workers.count, 1);
    sizes(1, 4, 4, 192, 192); // 12 tasks, 3.4 * 2^20
    run(8);
    EXPECT_EQ(workers.count, 4);
}

TEST_F(Launch, WorkspaceHoldsPartialsOnlyWhereKeysMayBeCut) {
    const auto bytes = [&] {
        tessera_plan plan;
        return plan_for(1, &plan);
    };
    sizes(1, 2, 2, 3, 1023);
    const size_t uncut = bytes();
    EXPECT_LE(uncut, 512u);
    sizes(1, 2, 2, 3, 1024);
    EXPECT_EQ(bytes(), uncut + 64 * 64 * 4); // 64 parts of 3 rows of 18 floats, to 64 bytes
    sizes(1, 2, 1, 3, 1024);
    EXPECT_EQ(bytes(), uncut + 64 * 112 * 4); // 6 folded rows
    sizes(1, 2, 2, 300, 1024);
    EXPECT_EQ(bytes(), uncut + 64 * 64 * 18 * 4); // bm0 is 64
    call.group();
    call.args.max_seqlen_q = 3;
    EXPECT_EQ(bytes(), uncut + 64 * 64 * 4); // the keys are not known
    units = 2;
    EXPECT_EQ(bytes(), uncut + 16 * 64 * 4);
}

TEST_F(Launch, CutsDoNotDependOnThreads) {
    sizes(2, 4, 1, 100, 5000);
    mask(TESSERA_MASK_BOTTOM_RIGHT, -1, 0);
    run(1);
    const auto alone = cuts();
    for (const int threads : {2, 3, 16, 64}) {
        run(threads);
        EXPECT_EQ(cuts(), alone) << threads << " threads";
    }
    EXPECT_FALSE(combines.empty());
}

TEST_F(Launch, EveryMask) {
    const std::tuple<tessera_mask, int, int> masks[] = {
        {TESSERA_MASK_TOP_LEFT, -1, 0},    {TESSERA_MASK_TOP_LEFT, 20, 7},
        {TESSERA_MASK_TOP_LEFT, 0, -1},    {TESSERA_MASK_BOTTOM_RIGHT, -1, 0},
        {TESSERA_MASK_BOTTOM_RIGHT, 5, 9}, {TESSERA_MASK_BOTTOM_RIGHT, 3, -1},
        {TESSERA_MASK_GENERIC, 4, 6},      {TESSERA_MASK_GENERIC, -1, 3},
        {TESSERA_MASK_GENERIC, 0, 0},      {TESSERA_MASK_BOTTOM_RIGHT, INT32_MAX, INT32_MAX}};
    for (const auto &[type, left, right] : masks)
        for (const auto &[q, k] : {std::pair{70, 70}, {200, 40}, {40, 200}, {1, 90}, {90, 1}}) {
            for (const int sink : {0, 3}) {
                SCOPED_TRACE(testing::Message() << "mask " << type << ":" << left << "," << right << " q " << q << " k "
                                                << k << " sink " << sink);
                sizes(1, 2, 1, q, k);
                mask(type, left, right);
                call.traits.has_sink = sink > 0;
                call.args.sink_size = sink;
                run(3);
                expect_covered({{q, k}});
            }
        }
}

// The heads of a key head are rows of one task, which reads its keys once; a causal mask of one query, which hides
// nothing, changes no task.
TEST_F(Launch, HeadsOfAKeyHeadAreRowsOfATaskUnderACausalMaskToo) {
    for (const int keys : {300, 5000}) {
        sizes(2, 8, 2, 1, keys);
        mask(TESSERA_MASK_NONE, -1, -1);
        run(2);
        const auto none = cuts();
        mask(TESSERA_MASK_BOTTOM_RIGHT, -1, 0);
        run(2);
        EXPECT_EQ(cuts(), none);
        int64_t of_all = 0; // keys that any task reads
        for (const Task &task : tasks) {
            EXPECT_EQ(task.row_begin, 0);
            EXPECT_EQ(task.row_end, 4);
            of_all += task.kv_end - task.kv_begin;
        }
        EXPECT_EQ(of_all, int64_t(2) * 2 * keys);
    }
}

TEST_F(Launch, CutsKeysThatNoRowSees) {
    sizes(1, 1, 1, 256, 256);
    mask(TESSERA_MASK_TOP_LEFT, -1, 0);
    run(1);
    for (const Task &task : tasks) EXPECT_EQ(task.kv_end, task.row_end);
    EXPECT_EQ(tasks.front().row_begin, 192); // heaviest first
    mask(TESSERA_MASK_TOP_LEFT, 10, 0);
    run(1);
    for (const Task &task : tasks) EXPECT_EQ(task.kv_begin, std::max<int64_t>(0, task.row_begin - 32));
    mask(TESSERA_MASK_TOP_LEFT, 32, 0); // row 64 sees key 32 and no earlier one
    run(1);
    for (const Task &task : tasks) EXPECT_EQ(task.kv_begin, std::max<int64_t>(0, task.row_begin - 32));
    call.args.sink_size = 1; // has_sink is 0
    run(1);
    for (const Task &task : tasks) EXPECT_EQ(task.sink, 0);
    call.args.s_randval = 1; // all of the bytes are asked for
    call.traits.has_dropout = 1;
    run(1);
    for (const Task &task : tasks) EXPECT_EQ(task.kv_end - task.kv_begin, 256);
}

TEST_F(Launch, GroupsLongestFirst) {
    call.group();
    const std::vector<std::pair<int, int>> lengths = {{5, 40}, {70, 3000}, {0, 9}, {130, 100}, {1, 0}};
    std::vector<int32_t> q{0}, k{0};
    for (const auto &[sq, sk] : lengths) q.push_back(q.back() + sq), k.push_back(k.back() + sk);
    call.args.seqstart_q_ptr = q.data();
    call.args.seqstart_k_ptr = k.data();
    call.args.batch = 5;
    call.args.max_seqlen_q = 130;
    run(4);
    expect_covered(lengths);
    for (const Task &task : tasks) {
        EXPECT_EQ(task.token_q, q[static_cast<size_t>(task.batch)]);
        EXPECT_EQ(task.token_k, k[static_cast<size_t>(task.batch)]);
    }
    run(1);
    EXPECT_EQ(tasks.front().batch, 1);
    EXPECT_EQ(tasks.back().batch, 4);
}

TEST_F(Launch, ManySequencesInOrder) {
    call.group();
    std::vector<int32_t> q{0}, k{0};
    std::vector<std::pair<int, int>> lengths;
    unsigned state = 1;
    for (int b = 0; b < 200; b++) {
        state = state * 1664525u + 1013904223u;
        lengths.emplace_back(1 + state % 3, (state >> 16) % 97);
        q.push_back(q.back() + lengths.back().first);
        k.push_back(k.back() + lengths.back().second);
    }
    call.args.seqstart_q_ptr = q.data();
    call.args.seqstart_k_ptr = k.data();
    call.args.batch = 200;
    call.args.max_seqlen_q = 3;
    run(1);
    expect_covered(lengths);
    for (size_t t = 1; t < tasks.size(); t++) EXPECT_LE(tasks[t].seqlen_k, tasks[t - 1].seqlen_k);
}

TEST_F(Launch, LogicalLengths) {
    call.group();
    call.args.seqlen_q_ptr = call.seqlen_q.data();
    call.args.cu_seqlen_k_ptr = call.cu_k.data();
    run(2);
    expect_covered({{5, 9}, {4, 7}});

    Call batch;
    call.args = batch.args;
    call.traits = batch.traits;
    call.args.cu_seqlen_q_ptr = call.cu_q.data();
    call.args.seqlen_k_ptr = call.seqlen_k.data(); // group mode's: ignored
    run(2);
    expect_covered({{5, 10}, {4, 10}});
}

TEST_F(Launch, SkipsShortSequences) {
    call.group();
    call.traits.skip_min_seqlen_q = 1;
    call.args.min_seqlen_q = 4;
    run(2);
    ASSERT_FALSE(tasks.empty());
    for (const Task &task : tasks) EXPECT_EQ(task.batch, 0);
}

TEST_F(Launch, AlibiZeroPoints) {
    sizes(1, 1, 1, 5, 12);
    run(1);
    EXPECT_EQ(tasks[0].alibi_shift, 7);
    EXPECT_EQ(tasks[0].alibi_vertical, 0);
    mask(TESSERA_MASK_TOP_LEFT, -1, 0);
    run(1);
    EXPECT_EQ(tasks[0].alibi_vertical, 1);
    mask(TESSERA_MASK_TOP_LEFT, 0, 0);
    run(1);
    EXPECT_EQ(tasks[0].alibi_vertical, 0);
    mask(TESSERA_MASK_TOP_LEFT, -1, 1);
    run(1);
    EXPECT_EQ(tasks[0].alibi_vertical, 0);
    EXPECT_EQ(tasks[0].alibi_shift, 0);
    mask(TESSERA_MASK_GENERIC, 3, 2);
    run(1);
    EXPECT_EQ(tasks[0].alibi_shift, 0);
    mask(TESSERA_MASK_BOTTOM_RIGHT, 3, 2);
    run(1);
    EXPECT_EQ(tasks[0].alibi_shift, 7);
}

TEST_F(Launch, ProblemOfEveryKind) {
    const std::tuple<tessera_fmha_dtype, tessera_qscale, tessera_type, tessera_type, tessera_type> kinds[] = {
        {TESSERA_FMHA_FP32, TESSERA_QSCALE_NONE, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
        {TESSERA_FMHA_FP16, TESSERA_QSCALE_NONE, TESSERA_TYPE_FP16, TESSERA_TYPE_FP16, TESSERA_TYPE_FP16},
        {TESSERA_FMHA_BF16, TESSERA_QSCALE_NONE, TESSERA_TYPE_BF16, TESSERA_TYPE_BF16, TESSERA_TYPE_BF16},
        {TESSERA_FMHA_FP8, TESSERA_QSCALE_NONE, TESSERA_TYPE_E4M3, TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32},
        {TESSERA_FMHA_FP8BF16, TESSERA_QSCALE_BLOCK, TESSERA_TYPE_E4M3, TESSERA_TYPE_BF16, TESSERA_TYPE_FP32},
        {TESSERA_FMHA_FP8FP32, TESSERA_QSCALE_NONE, TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
        {TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX, TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
        {TESSERA_FMHA_MXFP4, TESSERA_QSCALE_MX, TESSERA_TYPE_E2M1, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32}};
    for (const auto &[dtype, qscale, qkv, o, bias] : kinds) {
        call.dtype(dtype, qscale);
        run(1);
        EXPECT_EQ(problem.qkv_storage, qkv);
        EXPECT_EQ(problem.o_storage, o);
        EXPECT_EQ(problem.bias_storage, bias);
        EXPECT_EQ(problem.group, 2);
        EXPECT_EQ(problem.scale_s, 0.5f);
        EXPECT_EQ(problem.scale_o, 1.0f);
    }
}

TEST_F(Launch, PerTensorDescales) {
    call.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_PER_TENSOR);
    const float q = 2, k = 3, v = 5;
    call.args.q_descale_ptr = &q;
    call.args.k_descale_ptr = &k;
    call.args.v_descale_ptr = &v;
    run(1);
    EXPECT_EQ(problem.scale_s, 3.0f);
    EXPECT_EQ(problem.scale_o, 5.0f);
}

TEST_F(Launch, DropoutByValueAndByPointer) {
    call.traits.has_dropout = 1;
    call.args.p_drop = 0.2f;
    call.args.drop_seed = 11;
    call.args.drop_offset = 12;
    run(1);
    EXPECT_EQ(problem.drop_seed, 11u);
    EXPECT_EQ(problem.drop_offset, 12u);
    EXPECT_EQ(problem.keep_below, 204u);
    EXPECT_EQ(problem.keep_scale, 1.0f / 0.8f);
    const uint64_t seed = 21, offset = 22;
    call.args.drop_prefs = 1;
    call.args.drop_seed_ptr = &seed;
    call.args.drop_offset_ptr = &offset;
    call.args.p_drop = 0;
    run(1);
    EXPECT_EQ(problem.drop_seed, 21u);
    EXPECT_EQ(problem.drop_offset, 22u);
    EXPECT_EQ(problem.keep_below, 255u);
}

TEST_F(Launch, KernelsSeeOnlyWhatTraitsAskFor) {
    call.traits.has_dropout = 1;
    run(1);
    EXPECT_EQ(problem_args.rand_val_ptr, nullptr);
    call.traits.has_dropout = 0;
    call.args.s_randval = 1;
    run(1);
    EXPECT_EQ(problem_args.bias_ptr, nullptr);
    EXPECT_EQ(problem_args.lse_ptr, nullptr);
    EXPECT_EQ(problem_args.sink_ptr, nullptr);
    EXPECT_EQ(problem_args.rand_val_ptr, nullptr);
    EXPECT_EQ(problem_args.q_descale_ptr, nullptr);
    EXPECT_NE(problem_args.batch_stride_q, 0);
    call.traits.bias_type = TESSERA_BIAS_ALIBI;
    call.traits.has_lse = call.traits.has_sink = call.traits.has_dropout = 1;
    call.args.s_randval = 1;
    call.group();
    call.args.stride_bias = 4;
    run(1);
    EXPECT_NE(problem_args.bias_ptr, nullptr);
    EXPECT_NE(problem_args.lse_ptr, nullptr);
    EXPECT_NE(problem_args.sink_ptr, nullptr);
    EXPECT_NE(problem_args.rand_val_ptr, nullptr);
    EXPECT_EQ(problem_args.batch_stride_q, 0);
    EXPECT_EQ(problem_args.batch_stride_lse, 0);
    EXPECT_EQ(problem_args.stride_bias, 4);
}

TEST_F(Launch, HugeSizesStayWithinInt64) {
    sizes(1, 1, 1, 1, TESSERA_ATTENTION_MAX_SEQLEN);
    mask(TESSERA_MASK_BOTTOM_RIGHT, -1, 0);
    run(2);
    int64_t keys = 0;
    for (const Task &task : tasks) keys += task.kv_end - task.kv_begin;
    EXPECT_EQ(keys, TESSERA_ATTENTION_MAX_SEQLEN);
}

} // namespace
