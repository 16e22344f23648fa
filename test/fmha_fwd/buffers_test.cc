// SPDX-License-Identifier: MIT
// Memory: layouts that only strides can express, memory that a call must not change, and whether tests notice errors.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "problem.h"
#include "tessera/fmha_fwd_pagedkv.h"

namespace {

// q, k, v and o of the problem as views of one buffer, [batch, token, 4, head, hdim] and `spare` elements more per
// token.
class Packed {
  public:
    Packed(Problem &p, int64_t spare) : p(p), a(*p.args), row(4 * a.nhead_q * a.hdim_q + spare) {
        memory.assign(static_cast<size_t>(a.batch * a.seqlen_q * row), canary);
        for (int64_t i = 0; i < 3; i++) copy("qkv"[i], i * a.nhead_q * a.hdim_q);
        place(a.q_ptr, 0, a.stride_q, a.nhead_stride_q, a.batch_stride_q);
        place(a.k_ptr, 1, a.stride_k, a.nhead_stride_k, a.batch_stride_k);
        place(a.v_ptr, 2, a.stride_v, a.nhead_stride_v, a.batch_stride_v);
        const void *o;
        place(o, 3, a.stride_o, a.nhead_stride_o, a.batch_stride_o);
        a.o_ptr = const_cast<void *>(o);
        before = memory;
    }

    // Whether everything except o is as it was.
    bool rest_untouched() const {
        const int64_t o = 3 * a.nhead_q * a.hdim_q, end = 4 * a.nhead_q * a.hdim_q;
        for (size_t n = 0; n < memory.size(); n++) {
            const int64_t column = static_cast<int64_t>(n) % row;
            if ((column < o || column >= end) && memory[n] != before[n]) return false;
        }
        return true;
    }

  private:
    void copy(char tensor, int64_t column) {
        for (int32_t b = 0; b < a.batch; b++)
            for (int32_t i = 0; i < a.seqlen_q; i++)
                for (int32_t h = 0; h < a.nhead_q; h++)
                    for (int32_t d = 0; d < a.hdim_q; d++)
                        memory[static_cast<size_t>((b * a.seqlen_q + i) * row + column + h * a.hdim_q + d)] =
                            p.at(tensor, b, h, i, d);
    }

    void place(const void *&pointer, int64_t slot, int64_t &stride, int64_t &nhead_stride, int64_t &batch_stride) {
        pointer = memory.data() + slot * a.nhead_q * a.hdim_q;
        stride = row;
        nhead_stride = a.hdim_q;
        batch_stride = a.seqlen_q * row;
    }

    static constexpr float canary = 12345;
    Problem &p;
    tessera_fmha_fwd_args &a;
    const int64_t row;
    std::vector<float> memory, before;
};

TEST(Buffers, PackedViews) {
    for (const std::string &kind : kinds(cpus, {"fp32"}))
        for (int64_t spare : {0, 1, 7})
            for (const char *d : {"-d=64", "-d=33"}) {
                const std::string arguments = kind + " -b=2 -h=3 -s=130 -mask=t -init=uf " + d;
                SCOPED_TRACE(command(arguments));
                Problem p(arguments);
                Packed packed(p, spare);
                p.launch();
                p.expect_rows_match();
                EXPECT_TRUE(packed.rest_untouched());
            }
}

TEST(Buffers, BroadcastInputs) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16", "fp8bf16"})) {
        const std::string arguments = kind + " -b=2 -h=4 -s=70 -s_k=200 -d=40 -bias=e:2 -lse=1 -init=uf";
        for (const char *what : {"heads", "batches", "queries", "keys"}) {
            SCOPED_TRACE(command(arguments) + ", one for all " + what);
            Problem p(arguments);
            tessera_fmha_fwd_args &a = *p.args;
            if (!std::strcmp(what, "heads"))
                a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v = a.nhead_stride_bias = 0;
            if (!std::strcmp(what, "batches"))
                a.batch_stride_q = a.batch_stride_k = a.batch_stride_v = a.batch_stride_bias = 0;
            if (!std::strcmp(what, "queries")) a.stride_q = a.stride_bias = 0;
            if (!std::strcmp(what, "keys")) a.stride_k = a.stride_v = 0;
            p.launch();
            p.expect_rows_match();
        }
    }
}

// Traits and args are the caller's: a call reads them.
TEST(Buffers, CallsLeaveTraitsAndArgsAlone) {
    Problem p("-b=2 -h=4 -h_k=2 -s=70 -lse=1 -p_drop=0.2 -bias=e -mask=b:30,20,4 -init_sink=1");
    p.launch();
    const tessera_fmha_fwd_traits traits = *p.traits;
    const tessera_fmha_fwd_args args = *p.args;
    const tessera_fmha_fwd_instance *instance;
    size_t bytes;
    char text[256];
    EXPECT_EQ(tessera_fmha_fwd_check(p.traits, p.args), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_fmha_fwd_prepare(p.device, p.traits, p.args), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_fmha_fwd_workspace_size(p.device, p.traits, p.args, &bytes), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_fmha_fwd_select(tessera_device_get_facts(p.device), p.traits, p.args, &instance),
              TESSERA_SUCCESS);
    tessera_fmha_fwd_explain(tessera_device_get_facts(p.device), p.traits, p.args, TESSERA_EXPLAIN_REASONS, text,
                             sizeof text);
    tessera_fmha_fwd_ck_name(instance, p.traits, p.args, text, sizeof text);
    EXPECT_EQ(tessera_fmha_fwd(p.device, p.traits, p.args, nullptr), TESSERA_SUCCESS);
    EXPECT_EQ(std::memcmp(&traits, p.traits, sizeof traits), 0);
    EXPECT_EQ(std::memcmp(&args, p.args, sizeof args), 0);
}

TEST(Buffers, RefusedCallsWriteNothing) {
    const struct {
        const char *what;
        std::function<void(Problem &)> breaks;
        tessera_status status;
    } refused[] = {
        {"no workspace", [](Problem &p) { p.args->workspace_ptr = nullptr; }, TESSERA_ERROR_WORKSPACE},
        {"a workspace one byte short", [](Problem &p) { p.args->workspace_size--; }, TESSERA_ERROR_WORKSPACE},
        {"a workspace off by 4 bytes",
         [](Problem &p) { p.args->workspace_ptr = static_cast<char *>(p.args->workspace_ptr) + 4; },
         TESSERA_ERROR_WORKSPACE},
        {"no q", [](Problem &p) { p.args->q_ptr = nullptr; }, TESSERA_ERROR_INVALID_ARGUMENT},
        {"no lse", [](Problem &p) { p.args->lse_ptr = nullptr; }, TESSERA_ERROR_INVALID_ARGUMENT},
        {"o is q", [](Problem &p) { p.args->o_ptr = const_cast<void *>(p.args->q_ptr); },
         TESSERA_ERROR_INVALID_ARGUMENT},
        {"rows of o overlap", [](Problem &p) { p.args->stride_o = 1; }, TESSERA_ERROR_INVALID_ARGUMENT},
        {"scale_s is NaN", [](Problem &p) { p.args->scale_s = NAN; }, TESSERA_ERROR_INVALID_ARGUMENT},
        {"a dtype that is none", [](Problem &p) { p.traits->data_type = TESSERA_FMHA_DTYPE_COUNT; },
         TESSERA_ERROR_INVALID_ARGUMENT},
    };
    for (const auto &one : refused) {
        SCOPED_TRACE(one.what);
        Problem p("-prec=fp32 -b=1 -h=2 -s=50 -d=32 -lse=1");
        p.launch();
        float *o = static_cast<float *>(p.args->o_ptr), *lse = static_cast<float *>(p.args->lse_ptr);
        std::fill_n(o, 2 * 50 * 32, -77.f);
        std::fill_n(lse, 2 * 50, -77.f);
        const std::vector<uint8_t> before = p.outputs();
        const tessera_fmha_fwd_args whole = *p.args;
        one.breaks(p);
        EXPECT_EQ(tessera_fmha_fwd(p.device, p.traits, p.args, nullptr), one.status) << tessera_last_error();
        EXPECT_STRNE(tessera_last_error(), "");
        *p.args = whole;
        p.traits->data_type = TESSERA_FMHA_FP32;
        EXPECT_EQ(p.outputs(), before);
    }
}

TEST(Buffers, AStreamIsRefused) {
    Problem p("-prec=fp32 -b=1 -h=1 -s=5 -d=8");
    p.launch();
    int nothing = 0;
    EXPECT_EQ(tessera_fmha_fwd(p.device, p.traits, p.args, &nothing), TESSERA_ERROR_INVALID_ARGUMENT);
}

// ---- the runner notices errors: one wrong element after the launch makes verification fail

struct Damage {
    const char *name;
    const char *arguments;
    std::function<void(tessera_fmha_fwd_args &)> damage;
    const char *message;
    bool outside = false; // of the buffer, where AddressSanitizer forbids accesses
};

void PrintTo(const Damage &one, std::ostream *out) { *out << one.arguments; }

template <typename T> T *writable(const void *pointer) { return static_cast<T *>(const_cast<void *>(pointer)); }

const Damage damages[] = {
    {"OneElementAfterO", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[40] = 1; },
     "guard zone next to o", true},
    {"OneElementBeforeO", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[-1] = 1; },
     "guard zone next to o", true},
    {"OneElementAfterLse", "-s=5 -d=8 -h=1 -lse=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.lse_ptr)[5] = 1; },
     "guard zone", true},
    {"OneByteAfterRandval", "-s=5 -d=8 -h=1 -p_drop=0.5",
     [](tessera_fmha_fwd_args &a) { writable<uint8_t>(a.rand_val_ptr)[25] ^= 1; }, "guard zone", true},
    {"OneElementOfQ", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.q_ptr)[7] += 1; }, "an input"},
    {"OneElementAfterV", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.v_ptr)[40] = 1; },
     "an input", true},
    {"OneByteAfterWorkspace", "-s=5 -d=8 -h=1",
     [](tessera_fmha_fwd_args &a) { writable<uint8_t>(a.workspace_ptr)[a.workspace_size] ^= 1; },
     "next to the workspace"},
    {"OneByteBeforeWorkspace", "-s=5 -d=8 -h=1",
     [](tessera_fmha_fwd_args &a) { writable<uint8_t>(a.workspace_ptr)[-1] ^= 1; }, "next to the workspace"},
    {"OneElementOfO", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[17] += 1e-3f; },
     "o of sequence 0, head 0, query 2"},
    {"OneNan", "-s=5 -d=8 -h=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[39] = NAN; },
     "o of sequence 0, head 0, query 4"},
    {"OneLse", "-s=5 -d=8 -h=1 -lse=1", [](tessera_fmha_fwd_args &a) { writable<float>(a.lse_ptr)[3] += 1e-3f; },
     "lse of sequence 0, head 0, query 3"},
    {"OneByteOfRandval", "-s=5 -d=8 -h=1 -p_drop=0.5",
     [](tessera_fmha_fwd_args &a) { writable<uint8_t>(a.rand_val_ptr)[11] ^= 1; },
     "rand_val of sequence 0, head 0, query 2"},
    {"ARowPastTheLength", "-s=5 -d=8 -h=1 -q_eff_lens=4",
     [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[32] = 0; }, "past the logical length"},
    {"ASkippedRow", "-mode=1 -s=5,9 -d=8 -h=1 -b=2 -min_seqlen_q=5",
     [](tessera_fmha_fwd_args &a) { writable<float>(a.o_ptr)[3] = 0; }, "to be skipped"},
};

class Runner : public testing::TestWithParam<Damage> {};

TEST_P(Runner, NoticesDamage) {
#if defined(__SANITIZE_ADDRESS__)
    if (GetParam().outside) GTEST_SKIP() << "AddressSanitizer would notice before the runner does";
#endif
    const Case one(fmha_fwd, std::string("-prec=fp32 -b=1 ") + GetParam().arguments);
    example_result result;
    example_problem *problem;
    ASSERT_EQ(example_build(&fmha_fwd_program, one.values(), &problem, &result), EXAMPLE_OK) << result.message;
    ASSERT_EQ(example_launch(problem, &result), EXAMPLE_OK) << result.message;
    GetParam().damage(*static_cast<tessera_fmha_fwd_args *>(problem->args));
    EXPECT_EQ(example_verify(problem, &result), EXAMPLE_WRONG_RESULT);
    EXPECT_EQ(result.verification, EXAMPLE_INVALID);
    EXPECT_NE(std::string(result.message).find(GetParam().message), std::string::npos) << result.message;
    example_destroy(problem);
}

// The cache is an output where keys are appended: old keys and new ones, and what lies behind them.
TEST(Appended, NoticesDamageOfTheCache) {
    const Case one(fmha_fwd, "-prec=fp32 -b=1 -h=1 -s=2 -s_k=9 -s_knew=3 -d=16 -rotary_dim=16 -page_block_size=4");
    for (const int at : {3, 15, 16 * 5, 16 * 8 + 2, 16 * 11}) {
        example_problem *problem;
        example_result result;
        if (example_build(&fmha_fwd_program, one.values(), &problem, &result) != EXAMPLE_OK)
            GTEST_SKIP() << result.message;
        ASSERT_EQ(example_launch(problem, &result), EXAMPLE_OK) << result.message;
        const auto *const a = static_cast<const tessera_fmha_fwd_pagedkv_args *>(problem->args);
        writable<float>(at % 2 ? a->k_ptr : a->v_ptr)[at] += 0.25F;
        EXPECT_EQ(example_verify(problem, &result), EXAMPLE_WRONG_RESULT) << at;
        EXPECT_NE(std::string(result.message).find("the cache after the append: "), std::string::npos)
            << result.message;
        example_destroy(problem);
    }
}

// A launch that leaves one byte otherwise than the first one did, or unwritten.
TEST(Repetition, NoticesOtherBytes) {
    const Case one(fmha_fwd, "-prec=fp32 -b=1 -h=1 -s=5 -d=8 -lse=1");
    example_problem *problem;
    example_result result;
    for (const bool damaged : {false, true}) {
        ASSERT_EQ(example_build(&fmha_fwd_program, one.values(), &problem, &result), EXAMPLE_OK) << result.message;
        ASSERT_EQ(example_launch(problem, &result), EXAMPLE_OK) << result.message;
        int launches = 0;
        const auto launch = [&](example_result *again) {
            example_launch(problem, again);
            if (damaged && ++launches == 2)
                writable<uint8_t>(static_cast<tessera_fmha_fwd_args *>(problem->args)->lse_ptr)[19] ^= 1;
        };
        EXPECT_EQ(repeat(problem, launch, &result), damaged ? EXAMPLE_WRONG_RESULT : EXAMPLE_OK);
        EXPECT_EQ(std::string(result.message).find("other bytes, from 179 of 180 on") != std::string::npos, damaged)
            << result.message;
        example_destroy(problem);
    }
}

INSTANTIATE_TEST_SUITE_P(Damage, Runner, testing::ValuesIn(damages), [](const auto &one) { return one.param.name; });

} // namespace
