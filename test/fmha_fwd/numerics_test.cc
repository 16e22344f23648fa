// SPDX-License-Identifier: MIT
// Accuracy beyond tolerances: FlashAttention's criterion (the greatest error is at most twice that of a plain
// computation in the same dtype), and inputs that are difficult for softmax.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "case.h"
#include "fmha_fwd_reference.h"
#include "problem.h"
#include "suite.h"
#include "tessera/kernel/fmha_fwd.h"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Rounds to the type of scores and probabilities in a plain computation: the inputs' type, or bf16 if that is narrower.
float rounded(tessera_fmha_dtype dtype, float value) {
    if (dtype == TESSERA_FMHA_FP32) return value;
    if (dtype == TESSERA_FMHA_FP16) return static_cast<float>(element_decode_fp16(element_encode_fp16(value)));
    return static_cast<float>(element_decode_bf16(element_encode_bf16(value)));
}

// Computes one row of attention as three operations, each rounded: scores, softmax, product with v. Sums are in fp32.
std::vector<float> plain_row(const Problem &p, const fmha_fwd_row &row) {
    const tessera_fmha_fwd_args &a = *p.args;
    const tessera_fmha_dtype dtype = p.traits->data_type;
    const int32_t g = row.head / (a.nhead_q / a.nhead_k);
    std::vector<float> s(static_cast<size_t>(a.seqlen_k), -infinity), o(static_cast<size_t>(a.hdim_v));
    float max = -infinity, sum = 0;
    for (int32_t j = 0; j < a.seqlen_k; j++) {
        if (!fmha_fwd_sees(&a, a.seqlen_q, a.seqlen_k, row.query, j)) continue;
        float dot = 0;
        for (int32_t d = 0; d < a.hdim_q; d++) dot += p.q(row.batch, row.head, row.query, d) * p.k(row.batch, g, j, d);
        s[j] = rounded(dtype, rounded(dtype, dot) * a.scale_s);
        max = std::max(max, s[j]);
    }
    for (float &x : s) sum += x = x == -infinity ? 0 : std::exp(x - max);
    for (float &x : s) x = sum > 0 ? rounded(dtype, x / sum) : 0;
    for (int32_t d = 0; d < a.hdim_v; d++) {
        for (int32_t j = 0; j < a.seqlen_k; j++) o[d] += s[j] * p.v(row.batch, g, j, d);
        o[d] = static_cast<float>(p.rounded_output(o[d]));
    }
    return o;
}

// Of several draws at once: of one it is chance whether what rounds worst is ours or theirs.
void expect_twice_as_good_as_plain(const std::string &arguments) {
    double ours = 0, plain = 0, magnitude = 0;
    for (const char *seed : {"1", "2", "3", "4"}) {
        SCOPED_TRACE(command(arguments + " -seed=" + seed));
        Problem p(arguments + " -seed=" + seed);
        p.launch();
        const auto rows = p.rows(p.args->seqlen_q < 8 ? 1 : 97);
        const auto want = p.reference(rows);
        for (size_t n = 0; n < rows.size(); n++) {
            const auto theirs = plain_row(p, rows[n]);
            for (int32_t d = 0; d < p.args->hdim_v; d++) {
                const double exact = want.o(n, d);
                ours = std::max(ours, std::fabs(p.o(rows[n], d) - exact));
                plain = std::max(plain, std::fabs(static_cast<double>(theirs[d]) - exact));
                magnitude = std::max(magnitude, std::fabs(exact));
            }
            EXPECT_NEAR(p.lse(rows[n]), want.lse(n), 1e-4 + 1e-6 * std::fabs(want.lse(n)));
        }
    }
    EXPECT_LE(ours, 2 * plain + 1e-6 * magnitude) << arguments;
    EXPECT_LT(plain, magnitude) << arguments << ": the criterion says nothing";
}

TEST(Numerics, ErrorIsAtMostTwiceThatOfPlainAttention) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16", "fp8bf16", "fp8fp32"}))
        for (const char *shape : {"-d=64 -s=128 -s_k=300", "-d=128 -d_v=40 -s=200 -mask=2", "-d=256 -s=65 -s_k=1000",
                                  "-d=128 -s=2 -s_k=700"})
            for (const char *init : {"-init=nf", "-init=uf", "-init=ui"})
                if (is_due()) expect_twice_as_good_as_plain(kind + " -b=1 -h=2 -h_k=1 -lse=1 " + shape + " " + init);
}

// ---- difficult inputs: each test edits the inputs and compares every row with the reference

struct Hard {
    const char *name;
    const char *arguments;
    std::function<void(Problem &)> edit;
};

void PrintTo(const Hard &one, std::ostream *out) { *out << one.arguments; }

void fill(Problem &p, char tensor, float value) {
    p.each(tensor, [=](int, int, int, int) { return value; });
}

// Scores that rise by `step` of log2 every 256 keys, twice or three times as much for some rows.
void climb(Problem &p, float step) {
    const float hdim = static_cast<float>(p.args->hdim_q);
    p.args->scale_s = 1;
    p.each('q', [](int, int, int i, int) { return 1.f + i % 3; });
    p.each('k', [=](int, int, int j, int) { return (j / 256 * step + j * 29 % 64 / 64.f) * 0.6931f / hdim; });
}

const Hard hard[] = {
    {"AllEqual", "-s_k=257", [](Problem &p) { fill(p, 'q', 1), fill(p, 'k', 1), fill(p, 'v', 1); }},
    {"AllZero", "-s_k=257", [](Problem &p) { fill(p, 'q', 0), fill(p, 'k', 0), fill(p, 'v', 0); }},
    {"LargeScores", "-scale_s=8", [](Problem &) {}},
    {"LargeNegativeScores", "-s_k=300",
     [](Problem &p) { fill(p, 'q', 16), p.each('k', [](int, int, int j, int) { return -8.f - j % 3; }); }},
    {"OneHugeKey", "-s_k=300",
     [](Problem &p) { p.each('k', [](int, int, int j, int) { return j == 131 ? 64.f : 0.5f; }); }},
    {"HugeKeyFirst", "-s_k=300",
     [](Problem &p) { p.each('k', [](int, int, int j, int) { return j == 0 ? 64.f : 0.5f; }); }},
    {"RisingMaximum", "-s_k=700",
     [](Problem &p) { fill(p, 'q', 1), p.each('k', [](int, int, int j, int) { return j / 64.f; }); }},
    {"FallingMaximum", "-s_k=700",
     [](Problem &p) { fill(p, 'q', 1), p.each('k', [](int, int, int j, int) { return (700 - j) / 64.f; }); }},
    {"CreepingMaximum", "-s_k=1500",
     [](Problem &p) {
         p.args->scale_s = 1;
         p.each('q', [](int, int, int i, int) { return 1.f + i % 3; });
         p.each('k', [](int, int, int j, int) { return j / 256.f * 3 * 0.6931f / 32; });
     }},
    {"StepsBelow256", "-s_k=1500", [](Problem &p) { climb(p, 7.9f); }}, // 2^8, at which references change
    {"StepsAbove256", "-s_k=1500", [](Problem &p) { climb(p, 8.1f); }},
    {"StepsOf40", "-s_k=1500", [](Problem &p) { climb(p, 40.f); }},   // earlier terms vanish in sums of fp32
    {"StepsOf150", "-s_k=1500", [](Problem &p) { climb(p, 150.f); }}, // 2^150 exceeds fp32
    {"HugeScores", "-s_k=300",
     [](Problem &p) {
         for (char tensor : {'q', 'k'})
             p.each(tensor, [&p, tensor](int b, int h, int j, int d) { return p.at(tensor, b, h, j, d) * 200; });
         p.args->scale_s = 0x1p40f;
     }},
    {"GreatestOfFp16", "-s_k=300 -scale_s=0.125",
     [](Problem &p) {
         fill(p, 'q', 65504);
         p.each('k', [&p](int b, int h, int j, int d) { return p.k(b, h, j, d) * 0x1p-16f; });
         p.each('v', [](int, int, int j, int d) { return (j + d) % 3 ? 65504.f : -65504.f; });
     }},
    {"DenormalsOfFp16", "-s_k=300",
     [](Problem &p) {
         p.args->scale_s = 0x1p20f;
         p.each('q', [](int, int, int i, int d) { return ((i * 5 + d * 3) % 200 - 100) * 0x1p-24f; });
     }},
    {"TinyInputs", "-scale_s=1",
     [](Problem &p) { fill(p, 'q', 0x1p-9f), fill(p, 'k', 0x1p-9f), fill(p, 'v', 0x1p-9f); }},
    {"NegativeScale", "-scale_s=-0.3", [](Problem &) {}},
    {"GreatestScale", "-scale_s=18446744073709551616 -s_k=130", [](Problem &) {}},
    {"LeastScale", "-scale_s=-18446744073709551616 -s_k=130", [](Problem &) {}},
    {"ZeroScale", "-s_k=130", [](Problem &p) { p.args->scale_s = 0; }},
    {"TinySoftCap", "-logits_soft_cap=0.01 -s_k=130", [](Problem &) {}},
    {"HugeSoftCap", "-logits_soft_cap=10000 -s_k=130", [](Problem &) {}},
    {"SoftCapOfLargeScores", "-logits_soft_cap=30 -scale_s=100 -s_k=130", [](Problem &) {}},
    {"LargeBias", "-bias=e -s_k=200",
     [](Problem &p) { p.each_bias([](int i, int j) { return (i * 7 + j * 13) % 5 * 1000.f; }); }},
    {"BiasHidesKeys", "-bias=e -s_k=200",
     [](Problem &p) { p.each_bias([](int i, int j) { return (i + j) % 3 ? -infinity : 1.f; }); }},
    {"BiasHidesRows", "-bias=e -s_k=200",
     [](Problem &p) { p.each_bias([](int i, int j) { return i % 2 || j % 2 ? -infinity : 1.f; }); }},
    {"BiasHidesTheFirstBlocks", "-bias=e -s_k=600",
     [](Problem &p) { p.each_bias([](int, int j) { return j < 550 ? -infinity : 1.f; }); }},
    {"BiasHidesRowsOfSplitKeys", "-bias=e -s=3 -h=1 -s_k=4000",
     [](Problem &p) { p.each_bias([](int i, int j) { return i == 1 || j < 2000 ? -infinity : 1.f; }); }},
    {"FarSink", "-init_sink=1 -s_k=100", [](Problem &p) { std::fill_n(p.sinks(), p.args->nhead_q, 1e4f); }},
    {"SinkOfNothing", "-init_sink=1 -s_k=100", [](Problem &p) { std::fill_n(p.sinks(), p.args->nhead_q, -infinity); }},
    {"SinkAlone", "-init_sink=1 -s=9 -s_k=0", [](Problem &) {}},
    {"SteepAlibi", "-bias=a -s_k=600", [](Problem &p) { std::fill_n(p.slopes(), p.args->nhead_q, 50.f); }},
    {"NegativeAlibi", "-bias=a -s_k=600 -mask=t", [](Problem &p) { std::fill_n(p.slopes(), p.args->nhead_q, -0.5f); }},
};

class Inputs : public testing::TestWithParam<Hard> {};

TEST_P(Inputs, MatchTheReference) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16", "fp8bf16"}))
        for (const char *rows : {"-s=70 -mask=0", "-s=70 -mask=b:200,30", "-s=3 -mask=0"}) {
            const std::string arguments =
                kind + " -b=1 -h=2 -h_k=1 -d=32 -lse=1 -init=nf " + rows + " " + GetParam().arguments;
            SCOPED_TRACE(command(arguments));
            Problem p(arguments);
            GetParam().edit(p);
            p.launch();
            p.expect_rows_match();
        }
}

INSTANTIATE_TEST_SUITE_P(Hard, Inputs, testing::ValuesIn(hard), [](const auto &one) { return one.param.name; });

// Memory past a logical length, between rows, or before the first key that any row sees does not influence results.
void expect_no_leak(const std::string &kind) {
    for (int32_t visible : {0, 1, 31, 64, 101}) {
        const std::string arguments =
            kind + " -b=1 -h=2 -s=20 -s_k=136 -lse=1 -init=nf" + " -kv_eff_lens=" + std::to_string(visible);
        SCOPED_TRACE(command(arguments));
        Problem p(arguments);
        for (float poison : {nan, infinity, -infinity}) {
            for (char tensor : {'k', 'v'})
                p.each(tensor,
                       [&](int b, int h, int j, int d) { return j < visible ? p.at(tensor, b, h, j, d) : poison; });
            p.launch();
            p.expect_rows_match();
        }
    }
}

TEST(Numerics, HiddenMemoryDoesNotLeak) {
    const std::vector<std::string> precs{"fp32", "fp16", "bf16"}, layouts{"-d=40 -vlayout=r", "-d=40 -vlayout=c"};
    for (const std::string &kind : kinds(cpus, precs))
        for (const std::string &layout : layouts) expect_no_leak(kind + " " + layout);
    for (const std::string &kind : kinds(gpus, precs, layouts)) expect_no_leak(kind);
    for (const std::string &kind : kinds(gpus, {"fp8bf16"}, {"-d=48", "-d=48 -vlayout=c -pad_columns=1"}))
        expect_no_leak(kind);
}

// Nor do scales there, whose byte 255 is NaN.
void expect_no_leak_of_scales(const std::string &kind) {
    for (int32_t visible : {1, 31, 64, 101}) {
        const std::string arguments =
            kind + " -b=1 -h=2 -s=20 -s_k=160 -lse=1 -init=nf -kv_eff_lens=" + std::to_string(visible);
        SCOPED_TRACE(command(arguments));
        Problem p(arguments);
        const tessera_fmha_fwd_args &a = *p.args;
        auto *const k = static_cast<uint8_t *>(const_cast<void *>(a.k_descale_ptr));
        auto *const v = static_cast<uint8_t *>(const_cast<void *>(a.v_descale_ptr));
        for (int32_t h = 0; h < a.nhead_k; h++) {
            for (int32_t j = visible; j < a.seqlen_k; j++)
                for (int32_t n = 0; n < (a.hdim_q + 31) / 32; n++)
                    k[h * a.nhead_stride_k_descale + j * a.stride_k_descale + n] = 255;
            for (int32_t d = 0; d < a.hdim_v; d++)
                for (int32_t n = (visible + 31) / 32; n < (a.seqlen_k + 31) / 32; n++)
                    v[h * a.nhead_stride_v_descale + d * a.stride_v_descale + n] = 255;
        }
        p.launch();
        p.expect_rows_match();
    }
}

TEST(Numerics, HiddenScalesDoNotLeak) {
    const std::vector<std::string> precs{"mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};
    const std::vector<std::string> layouts{"-d=64 -vlayout=r", "-d=64 -vlayout=c"};
    for (const std::string &kind : kinds(cpus, precs))
        for (const std::string &layout : layouts) expect_no_leak_of_scales(kind + " " + layout);
    for (const std::string &kind : kinds(gpus, precs, layouts)) expect_no_leak_of_scales(kind);
}

// Writes the E8M0 bytes of head 0: powers of two by row (of v: by column of o) and block of 32.
void each_scale(const Problem &p, char tensor, const std::function<int(int row, int block)> &power) {
    const tessera_fmha_fwd_args &a = *p.args;
    const bool q = tensor == 'q', v = tensor == 'v';
    const void *const base = q ? a.q_descale_ptr : v ? a.v_descale_ptr : a.k_descale_ptr;
    const int64_t stride = q ? a.stride_q_descale : v ? a.stride_v_descale : a.stride_k_descale;
    for (int32_t row = 0; row < (q ? a.seqlen_q : v ? a.hdim_v : a.seqlen_k); row++)
        for (int32_t block = 0; block < ((v ? a.seqlen_k : a.hdim_q) + 31) / 32; block++)
            static_cast<uint8_t *>(const_cast<void *>(base))[row * stride + block] =
                static_cast<uint8_t>(127 + power(row, block));
}

// MFMA distributes runs of 16 elements, along the dimension that a product sums over, to lanes. Of each such run all
// elements but one are zeros: in v another one for each column of o, in k for each key. Neighbouring blocks of 32 have
// other scales, so o and the scores show which scale a run got: by factors of 2, where P in bf16 is off by at most
// 2^-9.
constexpr int together = 16;

void expect_v_scales_at_their_keys(const std::string &kind) {
    SCOPED_TRACE(command(kind));
    Problem p(kind);
    const int length = p.args->seqlen_k, runs = (length + together - 1) / together;
    const auto power = [](int d, int block) { return 2 * block - 6 + d % 2; };
    p.each('q', [](int, int, int, int) { return 0.0f; });
    p.each('v', [=](int, int, int j, int d) { return j / together == d % runs ? 1.0f : 0.0f; });
    each_scale(p, 'v', power);
    p.launch();
    for (const fmha_fwd_row &row : p.rows())
        for (int32_t d = 0; d < p.args->hdim_v; d++) {
            const int run = d % runs, keys = std::min<int>(together, length - together * run);
            const double want = std::ldexp(static_cast<double>(keys) / length, power(d, together * run / 32));
            ASSERT_NEAR(p.o(row, d) / want, 1, 0x1p-9) << "query " << row.query << ", column " << d;
        }
}

void expect_q_and_k_scales_at_their_columns(const std::string &kind) {
    SCOPED_TRACE(command(kind));
    Problem p(kind);
    const int runs = p.args->hdim_q / together;
    const auto power_q = [](int i, int block) { return -((i + block) % 2); };
    const auto power_k = [=](int j, int block) { return -2 * ((j / runs + block) % 2); };
    p.each('q', [](int, int, int, int) { return 1.0f; });
    p.each('k', [=](int, int, int j, int d) { return d / together == j % runs ? 1.0f : 0.0f; });
    each_scale(p, 'q', power_q);
    each_scale(p, 'k', power_k);
    p.launch();
    for (const fmha_fwd_row &row : p.rows()) {
        double sum = 0;
        for (int j = 0; j < p.args->seqlen_k; j++) {
            const int block = together * (j % runs) / 32;
            sum += std::exp(p.args->scale_s * std::ldexp(together, power_q(row.query, block) + power_k(j, block)));
        }
        ASSERT_NEAR(p.lse(row), std::log(sum), 1e-4) << "query " << row.query;
    }
}

TEST(Numerics, ScalesCoverTheir32) {
    const std::vector<std::string> precs{"mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};
    std::vector<std::string> shapes;
    for (const char *hdim : {"-d=48", "-d=64", "-d=128"})
        for (const char *layout : {" -vlayout=r", " -vlayout=c -pad_columns=1"})
            shapes.push_back(std::string(hdim) + layout);
    std::vector<std::string> all = instances(gpus, precs, shapes);
    for (const std::string &kind : kinds(cpus, precs))
        for (const std::string &shape : shapes) all.push_back(kind + " " + shape);
    for (const std::string &one : all) {
        const std::string arguments = one + " -b=1 -h=1 -s=40 -s_k=210 -scale_s=0.125 -lse=1";
        expect_v_scales_at_their_keys(arguments);
        expect_q_and_k_scales_at_their_columns(arguments);
    }
}

// Denormals of fp16 in v reach o, which the tolerances would not show.
TEST(Numerics, DenormalsReachTheOutput) {
    for (const std::string &kind : kinds(cpus, {"fp16"}))
        for (int numerator : {1, 3, 500, 1023}) {
            const std::string arguments = kind + " -b=1 -h=1 -d=40 -s=20 -s_k=100 -init=nf";
            SCOPED_TRACE(command(arguments));
            Problem p(arguments);
            fill(p, 'v', static_cast<float>(numerator) * 0x1p-24f);
            p.launch();
            for (const fmha_fwd_row &row : p.rows())
                for (int32_t d = 0; d < p.args->hdim_v; d++)
                    ASSERT_NEAR(p.o(row, d) * 0x1p24, numerator, numerator * 0x1p-11);
        }
}

// ---- NaN and infinity

// All CPU targets, and on GPUs an instance of each pipeline that a data type has there, on simulated ones of a third of
// them; other ones every day.
Axis kinds_of_each_pipeline(const Axis &precs, const Axis &gpu_hdims) {
    std::map<std::string, Axis> alike; // by device, data type and pipeline
    const tessera_table *table = tessera_fmha_fwd_get_table();
    for (const std::string &one : instances(gpus, precs, gpu_hdims)) {
        const size_t device = one.find(" -device="), name = one.rfind('=') + 1;
        for (uint32_t i = 0; i < table->row_count; i++)
            if (one.substr(name) == tessera_row(table, i)->name)
                alike[one.substr(device, name - device) + one.substr(0, one.find(' ')) +
                      tessera_row(table, i)->pipeline]
                    .push_back(one);
    }
    Axis all = kinds(cpus, precs);
    unsigned number = 0;
    for (const auto &[what, some] : alike) {
        const unsigned days = what.find(" -device=sim:") == 0 && !test_all() ? 3 : 1;
        if ((test_seed() + number++) % days == 0) all.push_back(some[test_seed() / days % some.size()]);
    }
    return all;
}

// Head dims of the GPUs' kernels that these tests run.
const Axis hdims{"-d=40", "-d=64", "-d=128"};

// All on CPUs; on a simulated GPU one of them, another one every day and for another instance.
template <typename T> std::vector<T> some_of(const std::string &kind, const std::vector<T> &all) {
    if (kind.find("-device=sim:") == std::string::npos || test_all()) return all;
    return {all[(test_seed() + std::hash<std::string>()(kind)) % all.size()]};
}

// An infinity or NaN beside numbers that are sums of fewer and of more bf16.
TEST(Numerics, InfinitiesAndNanAreThoseOfTheReference) {
    for (const std::string &kind : kinds_of_each_pipeline({"fp32", "fp16", "bf16"}, hdims))
        for (const std::string &shape : some_of<std::string>(
                 kind, {"-s=70 -s_k=200 -init=nf", "-s=70 -s_k=200 -init=ni", "-s=70 -s_k=2 -init=ni"}))
            for (char tensor : {'q', 'k', 'v'})
                for (float poison : {infinity, -infinity, nan}) {
                    const std::string arguments = "-d=40 " + kind + " -b=1 -h=2 -lse=1 -scale_s=0.05 " + shape;
                    SCOPED_TRACE(command(arguments) + ", " + tensor + " has " + std::to_string(poison));
                    Problem p(arguments);
                    p.each(tensor, [&](int b, int h, int token, int d) {
                        return h == 1 && token == 1 && d == 9 ? poison : p.at(tensor, b, h, token, d);
                    });
                    p.launch();
                    p.expect_rows_match();
                }
}

// Whether the instance that a kind names serves a value of a trait; the CPUs' do.
bool serves(const std::string &kind, const std::string &trait, uint64_t value) {
    const tessera_table *table = tessera_fmha_fwd_get_table();
    const std::string name = kind.substr(kind.rfind('=') + 1);
    const tessera_trait *const end = table->schema->traits + table->schema->trait_count;
    const tessera_trait *const found =
        std::find_if(table->schema->traits, end, [&](const tessera_trait &one) { return one.name == trait; });
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *const row = tessera_row(table, i);
        if (name == row->name)
            return std::any_of(row->served, row->served + row->served_count, [=](const tessera_served &served) {
                return tessera_set_of(&served, found) >> value & 1;
            });
    }
    return true;
}

bool serves_mask(const std::string &kind, const std::string &arguments) {
    const bool masked = arguments.find("-mask=b") != std::string::npos;
    return serves(kind, "mask_type", masked ? TESSERA_MASK_BOTTOM_RIGHT : TESSERA_MASK_NONE);
}

// The kinds of each pipeline that do.
Axis kinds_that_serve(const std::string &trait, uint64_t value) {
    Axis kinds = kinds_of_each_pipeline({"fp32", "fp16", "bf16"}, hdims);
    kinds.erase(
        std::remove_if(kinds.begin(), kinds.end(), [&](const auto &kind) { return !serves(kind, trait, value); }),
        kinds.end());
    return kinds;
}

// Elements of the bias: NaN and infinity make the row NaN, and minus infinity hides the key.
TEST(Numerics, NoNumbersInTheBias) {
    for (const std::string &kind : kinds_that_serve("bias_type", TESSERA_BIAS_ELEMENTWISE))
        for (float poison : {infinity, -infinity, nan}) {
            const std::string arguments = "-d=40 " + kind + " -b=1 -h=1 -lse=1 -bias=e -s=70 -s_k=200 -init=nf";
            SCOPED_TRACE(command(arguments) + ", of " + std::to_string(poison));
            Problem p(arguments);
            p.each_bias([=](int i, int j) { return i % 5 == 1 && j == i + 100 ? poison : 0.5f; });
            p.launch();
            p.expect_rows_match();
        }
}

// Keys that the mask hides from a query are nothing to it, whatever their k is.
TEST(Numerics, HiddenKeysMayBeAnything) {
    for (const std::string &kind : kinds_that_serve("mask_type", TESSERA_MASK_TOP_LEFT))
        for (float poison : {infinity, -infinity, nan}) {
            const std::string arguments = "-d=40 " + kind + " -b=1 -h=1 -lse=1 -mask=t -s=200 -s_k=200 -init=nf";
            SCOPED_TRACE(command(arguments) + ", of " + std::to_string(poison));
            Problem p(arguments);
            p.each('k', [&](int b, int h, int j, int d) { return j == 130 ? poison : p.k(b, h, j, d); });
            p.launch();
            std::vector<fmha_fwd_row> before;
            for (const fmha_fwd_row &row : p.rows())
                if (row.query < 130) before.push_back(row);
            p.expect_rows_match(before);
        }
}

// A NaN in row `query` of q, in one head, makes that row's o and lse NaN, and no other's.
void expect_nan_in_its_row(Problem &p, int query) {
    const auto is_poisoned = [=](int b, int h, int i) { return b == 1 && h == 0 && i == query; };
    p.each('q', [&](int b, int h, int i, int d) { return is_poisoned(b, h, i) ? nan : p.at('q', b, h, i, d); });
    p.launch();
    const fmha_fwd_row poisoned{1, 0, query};
    for (int32_t d = 0; d < p.args->hdim_v; d++) EXPECT_TRUE(std::isnan(p.o(poisoned, d)));
    EXPECT_TRUE(std::isnan(p.lse(poisoned)));
    auto rows = p.rows();
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const fmha_fwd_row &row) { return is_poisoned(row.batch, row.head, row.query); }),
               rows.end());
    p.expect_rows_match(rows);
}

// One key has by far the greatest score and no value, as the first of a sequence often does: the result is all others',
// whose probabilities are 2^-16, or nearly nothing beside the greatest one in types of few bits.
TEST(Numerics, ManySmallProbabilitiesAreSummed) {
    for (const std::string &kind : kinds_of_each_pipeline({"fp32", "fp16", "bf16", "fp8bf16"}, hdims))
        for (const char *queries : {"-s=3", "-s=70"})
            for (const int great : some_of<int>(kind, {0, 3999})) {
                const std::string arguments = "-d=40 " + kind + " -b=1 -h=1 -lse=1 -scale_s=1 -s_k=4000 " + queries;
                SCOPED_TRACE(command(arguments) + ", key " + std::to_string(great));
                Problem p(arguments);
                p.each('q', [](int, int, int, int d) { return d == 0 ? 1.f : 0.f; });
                p.each('k', [=](int, int, int j, int d) { return j == great && d == 0 ? 11.f : 0.f; });
                p.each('v', [=](int, int, int j, int) { return j == great ? 0.f : 1.f; });
                p.launch();
                p.expect_rows_match();
            }
}

// Probabilities whose last bits are all ones add up to what one key outweighs: where each lost a little, the difference
// would show.
TEST(Numerics, ProbabilitiesAreNotTruncated) {
    const int others = 200;
    const double each = 0.5 + 0x1p-8 - 0x1p-22;
    const float coarse = rounded(TESSERA_FMHA_FP16, static_cast<float>(std::log(each)));
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16"})) {
        const std::string arguments =
            kind + " -d=32 -b=1 -h=1 -lse=1 -scale_s=1 -s=70 -s_k=" + std::to_string(others + 1);
        SCOPED_TRACE(command(arguments));
        Problem p(arguments);
        p.each('q', [](int, int, int, int d) { return d < 2 ? 1.f : 0.f; });
        p.each('k', [=](int, int, int j, int d) {
            const float rest = static_cast<float>(std::log(each) - static_cast<double>(coarse));
            return j == 0 || d > 1 ? 0.f : d == 0 ? coarse : rest;
        });
        p.each('v', [=](int, int, int j, int) { return j == 0 ? 256 * static_cast<float>(others * each) : -256.f; });
        p.launch();
        p.expect_rows_match();
    }
}

// Scores that rise so far above those of the first keys that no type has room for their probabilities beside them: of
// all rows, and of one.
TEST(Numerics, FirstKeysMayHaveTheLeastScores) {
    for (const std::string &kind : kinds_of_each_pipeline({"fp32", "fp16", "bf16"}, hdims))
        for (const char *mask : {"-mask=0", "-mask=b:900,30"})
            for (int rising : some_of<int>(kind, {-1, 40})) {
                if (!serves_mask(kind, mask)) continue;
                const std::string arguments = "-d=40 " + kind + " -b=1 -h=2 -lse=1 -init=nf -s=150 -s_k=1100 " + mask;
                SCOPED_TRACE(command(arguments) + ", row " + std::to_string(rising));
                Problem p(arguments);
                climb(p, 150.f);
                const float hdim = static_cast<float>(p.args->hdim_q); // one product is the score, which has no sum
                p.each('q', [=](int, int, int i, int d) {
                    return d == 0 && (rising < 0 || i == rising) ? hdim * (1.f + i % 3) : 0.f;
                });
                p.launch();
                p.expect_rows_match();
            }
}

constexpr int lanes[] = {0, 1}; // the first of a vector, and another

TEST(Numerics, NanStaysInItsRow) {
    for (const std::string &kind :
         kinds_of_each_pipeline({"fp32", "fp16", "bf16", "fp8bf16", "mxfp8 -qscale=mx"}, hdims))
        for (const std::string &shape : some_of<std::string>(
                 kind, {"-s=70 -s_k=200", "-s=2 -s_k=200", "-s=2 -s_k=3000", "-s=70 -s_k=200 -mask=b"}))
            for (int query : lanes) {
                if (!serves_mask(kind, shape)) continue;
                const std::string arguments = "-d=40 " + kind + " -b=2 -h=2 -lse=1 -init=nf " + shape;
                SCOPED_TRACE(command(arguments) + ", query " + std::to_string(query));
                Problem p(arguments);
                expect_nan_in_its_row(p, query);
            }
}

// Another row's scores grow from block to block, so that its softmax reference has to change.
TEST(Numerics, NanHidesNoOtherRowsGrowth) {
    for (const std::string &kind : kinds_of_each_pipeline({"fp32", "fp16", "bf16"}, hdims))
        for (int query : some_of<int>(kind, {lanes[0], lanes[1]})) {
            const std::string arguments = "-d=40 " + kind + " -b=2 -h=2 -lse=1 -init=nf -s=70 -s_k=1500";
            SCOPED_TRACE(command(arguments) + ", query " + std::to_string(query));
            Problem p(arguments);
            climb(p, 40.f);
            p.each('q', [=](int, int, int i, int) { return i == query + 8; });
            expect_nan_in_its_row(p, query);
        }
}

} // namespace
