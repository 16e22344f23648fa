// SPDX-License-Identifier: MIT
// The instances for AMD GPUs in the simulator. Covers are over the data types, head dims, orders of v and scales that
// the linked table serves on each; what one turns out to have no instance must be refused by name. Landed says what
// must be served.
#include <cstdio>

#include "suite.h"

namespace {

// Data types, with what they cannot be without.
const Axis fp8{"fp8", "fp8bf16", "fp8fp32"}, mx{"mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};
const Axis precs{"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};

Axis times(const Axis &first, const Axis &second) {
    Axis all;
    for (const std::string &one : first)
        for (const std::string &other : second) all.push_back(one + " " + other);
    return all;
}

// One line an axis, as far as they are short:
// clang-format off

const Axis hdims{"-d=32",  "-d=48",           "-d=64",  "-d=80 -d_v=96", "-d=96 -d_v=128",
                 "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"};
// Multiples of the elements of 16 bytes: 4 of fp32, 8 of 16 bits, 16 of fp8, 32 of fp4. Others are refused.
const Axis padded_hdims{"-d=8", "-d=24 -d_v=40", "-d=40 -d_v=72", "-d=120 -d_v=112", "-d=72 -d_v=16", "-d=136 -d_v=120", "-d=152 -d_v=136",
                        "-d=248 -d_v=200", "-d=16 -d_v=256", "-d=4", "-d=100 -d_v=60", "-d=12 -d_v=252", "-d=112 -d_v=48", "-d=160 -d_v=224"};
const Axis usual_hdims{"-d=64", "-d=128"};
const Axis lengths{"-s=256 -s_k=256", "-s=100 -s_k=300", "-s=300 -s_k=40", "-s=1 -s_k=700"};
const Axis vlayouts{"-vlayout=r", "-vlayout=c -pad_columns=1"}; // rows of v must begin at multiples of 16 bytes
const Axis biases{"-bias=n", "-bias=e:1", "-bias=a:1", "-logits_soft_cap=5"};

// clang-format on

Axis edge_lengths(const char *argument, uint16_t tessera_fmha_fwd_tile::*tile) {
    Axis axis;
    for (int length : edges(true, tile)) axis.push_back(argument + std::to_string(length));
    return axis;
}

std::vector<Suite> suites() {
    const Axis kinds = simulated_kinds(precs, vlayouts);
    const Axis query_edges = edge_lengths("-s=", &tessera_fmha_fwd_tile::bm0);
    const Axis key_edges = edge_lengths("-s_k=", &tessera_fmha_fwd_tile::bn0);
    // clang-format off
    std::vector<Suite> all{
        {"CdnaGeneral",
         {kinds, hdims, modes, perms, lengths},
         {lse, inits, {"-b=2 -h=2 -h_k=1", "-b=1 -h=3"}, {"-mask=0", "-mask=t", "-mask=b"}}},
        {"CdnaHDimPadding",
         {kinds, padded_hdims, perms, modes,
          {"-b=1 -h=2 -h_k=1 -s=100", "-b=2 -h=1 -s=70 -s_k=130 -mask=b", "-b=1 -h=1 -s=130 -s_k=65 -mask=t:20,10"}},
         {lse, {"-init=nf"}}},
        {"CdnaMask", {kinds, modes, masks, lengths}, {{"-b=1 -h=2 -h_k=1 -init=nf -lse=1"}, usual_hdims}},
        {"CdnaBias",
         {kinds, hdims, modes, {"-bias=e:0", "-bias=e:1", "-bias=e:2"}, perms,
          {"-b=1 -h=4 -h_k=2 -s=260 -s_k=100", "-b=3 -h=2 -s=128 -s_k=257 -mask=b", "-b=2 -h=2 -s=130 -s_k=499 -mask=t:50,64"}},
         {lse, {"-init=nf"}}},
        {"CdnaAlibi",
         {kinds, hdims, modes, {"-bias=a:0", "-bias=a:1"},
          {"-b=1 -h=3 -s=300 -s_k=200", "-b=2 -h=5 -s=128 -s_k=256", "-b=1 -h=8 -h_k=2 -s=100 -s_k=155"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:50,64", "-mask=b:32,40", "-mask=g:30,50"}},
         {{"-init=nf -lse=1"}}},
        {"CdnaSoftCap",
         {kinds, hdims, modes, {"-logits_soft_cap=5", "-logits_soft_cap=128"},
          {"-b=1 -h=3 -s=300 -s_k=200", "-b=2 -h=4 -h_k=2 -s=100 -s_k=155"}, {"-mask=0", "-mask=b", "-mask=t:50,64"}},
         {{"-scale_s=0.5", "-scale_s=-0.1"}, {"-init=nf -lse=1"}}},
        {"CdnaGreatScores",
         {kinds, {"-scale_s=1e6", "-scale_s=1e10", "-scale_s=18446744073709551616", "-scale_s=-18446744073709551616"}},
         {{"-b=1 -h=2 -h_k=1 -s=70 -s_k=300 -lse=1 -init=nf", "-b=2 -h=1 -s=1 -s_k=130 -mask=b -init=uf"}, usual_hdims}},
        {"CdnaDropout",
         {kinds, hdims, modes, {"-p_drop=0.123", "-p_drop=0.5"},
          {"-drop_seed=10 -drop_offset=123 -drop_prefs=0", "-drop_seed=34534564645 -drop_offset=7876878876864 -drop_prefs=1"},
          {"-b=2 -h=4 -h_k=2 -s=140 -s_k=201", "-b=3 -h=2 -s=256 -s_k=128 -mask=1", "-b=2 -h=3 -h_k=1 -s=100 -s_k=300 -mask=2"}},
         {lse, {"-init=nf"}}},
        {"CdnaSink",
         {kinds, modes,
          {"-mask=t:2,0,2", "-mask=t:0,3,2", "-mask=t:4,3,4", "-mask=b:1,0,2", "-mask=b:10,20,64", "-mask=t:127,0,3",
           "-mask=b:15,0,200", "-mask=t:-1,0,4", "-mask=0", "-mask=b"},
          {"-init_sink=0", "-init_sink=1"},
          {"-b=1 -h=2 -s=400 -s_k=400", "-b=2 -h=2 -h_k=1 -s=100 -s_k=300", "-b=1 -h=4 -h_k=2 -s=300 -s_k=100", "-b=1 -h=1 -s=1 -s_k=700"}},
         {usual_hdims, {"-lse=1 -init=nf"}}},
        {"CdnaHeads",
         {kinds, ratios, modes, {"-b=1 -s=65 -s_k=130", "-b=5 -s=7"}},
         {perms, usual_hdims, {"-mask=0", "-mask=b"}}},
        {"CdnaLengths",
         {kinds, query_edges, key_edges, {"-mask=0", "-mask=t", "-mask=b:20,5"}},
         {{"-b=1 -h=1 -lse=1 -init=nf"}, usual_hdims, modes}},
        {"CdnaNoLength",
         {kinds, {"-mode=1 -b=3 -s=0,7,0 -s_k=5,0,0", "-mode=0 -s=33 -s_k=0", "-mode=1 -b=2 -s=0,0 -s_k=64,3",
                  "-mode=1 -b=1 -h=2 -s=33 -s_k=0"}, {"-mask=0", "-mask=b"}},
         {{"-h=1 -lse=1"}, usual_hdims, {"-init_sink=0", "-init_sink=1"}, {"-p_drop=0", "-p_drop=0.2"}}},
        {"CdnaGroupPadding",
         {kinds, {"-mode=1 -h=2 -h_k=1"}, group_paddings, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, usual_hdims, {"-cu_seqlen=0", "-cu_seqlen=1"}}},
        {"CdnaEffectiveLengths",
         {kinds, {"-mode=0 -h=2 -h_k=1"}, effective_lengths, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, usual_hdims, {"-bias=n", "-bias=e", "-bias=a"}, {"-p_drop=0", "-p_drop=0.2"}}},
        {"CdnaSkipShortQueries",
         {kinds,
          {"-mode=1 -min_seqlen_q=64", "-mode=1 -min_seqlen_q=1"},
          {"-b=3 -s=64,65,63 -s_k=100,64,1", "-b=2 -s=1,200 -s_k=50,100", "-b=1 -s=30 -s_k=40"}},
         {lse, usual_hdims}},
        {"CdnaQuantScale",
         {simulated_kinds(fp8, {"-qscale=n", "-qscale=pt", "-qscale=bs"}), hdims, modes,
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=257 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=700", "-b=2 -h=2 -s=70 -s_k=200 -init_sink=1", "-b=1 -h=2 -s=100 -s_k=90 -p_drop=0.2"}},
         {lse, perms, {"-init=uf", "-init=nf", "-init=3"}, {"-odd_descales=0", "-odd_descales=1"}, biases}},
        {"CdnaBlockScale",
         {simulated_kinds(fp8, {"-qscale=bs"}), {"-block_q=128 -block_kv=128", "-block_q=64 -block_kv=64", "-block_q=1 -block_kv=1", "-block_q=3 -block_kv=100",
                   "-block_q=100 -block_kv=3", "-block_q=1000 -block_kv=31", "-block_q=32 -block_kv=256"},
          modes, {"-odd_descales=0", "-odd_descales=1"},
          {"-b=1 -h=2 -h_k=1 -s=150 -s_k=260", "-b=2 -h=2 -s=128 -s_k=128 -mask=2", "-b=1 -h=1 -s=40 -s_k=300 -mask=b:50,20",
           "-b=3 -h=1 -s=1 -s_k=63"}},
         {{"-init=3"}, lse, perms, usual_hdims}},
        {"CdnaMicroscaling",
         {simulated_kinds(mx, vlayouts), hdims, modes, perms,
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=256 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=700", "-b=1 -h=1 -s=70 -s_k=33", "-b=2 -h=1 -s=33 -s_k=31"}},
         {lse, {"-init=uf", "-init=nf", "-init=3"}, {"-odd_descales=0", "-odd_descales=1"}}},
        {"CdnaTogether",
         {},
         {kinds, hdims, modes, lse, {"-init=nf", "-init=uf", "-init=ui"},
          {"-mask=0", "-mask=t", "-mask=b:40,30", "-mask=g:70,20"},
          biases, {"-p_drop=0", "-p_drop=0.3"},
          {"-init_sink=0", "-init_sink=1"}, {"-iperm=0 -operm=1", "-iperm=1 -operm=0"},
          {"-scale_s=0", "-scale_s=0.5", "-scale_s=-0.1"},
          {"-b=2 -h=4 -h_k=2 -s=77 -s_k=150", "-b=1 -h=3 -h_k=1 -s=200 -s_k=64", "-b=3 -h=1 -s=5 -s_k=300",
           "-b=2 -h=8 -h_k=1 -s=1 -s_k=500"}}},
    };
    // clang-format on
    for (Suite &suite : all) suite.run = expect_valid_or_refused_by_any;
    return all;
}

// ---- every instance, whatever the ranking says

Suite instances_suite() {
    return {"CdnaInstances",
            {simulated_instances(precs, times(vlayouts, hdims)),
             {"-b=1 -h=2 -h_k=1 -s=150 -s_k=200 -mask=b", "-b=2 -h=1 -s=33 -s_k=129 -bias=e"}},
            {{"-lse=1 -init=nf"}}};
}

// ---- what must be served, however the covers are: every trait of every data type that is there

struct Landed {
    const char *target;
    Axis precs;
};
const Landed landed[] = {
    {"gfx90a", {"fp32", "fp16", "bf16"}},
    {"gfx942", {"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "fp8 -qscale=pt", "fp8bf16 -qscale=bs"}},
    {"gfx950", precs},
};
// clang-format off
const Axis traits{"-d=32", "-d=64", "-d=96 -d_v=128", "-d=192 -d_v=128", "-d=256", "-mode=1", "-mask=t", "-mask=b:9,9", "-bias=e", "-bias=a",
                  "-logits_soft_cap=5", "-lse=1", "-p_drop=0.2", "-init_sink=1", "-mode=1 -min_seqlen_q=64", "-iperm=0 -operm=0"};
// clang-format on

// Of targets that this build has instances for.
Suite landed_suite() {
    Axis kinds;
    for (const Landed &one : landed)
        for (const std::string &prec : one.precs)
            for (const std::string &built : simulated_kinds({"bf16"}))
                if (built.find(one.target) != std::string::npos) kinds.push_back(built + " -prec=" + prec);
    return {"CdnaLanded", {kinds, {"-b=1 -h=2 -s=64 -d=128"}, traits}, {}};
}

// ---- refused by name: no instance, and nothing runs

const Axis refusals{"-d=100", "-d=264", "-d=64 -d_v=260"};

class Refused : public testing::Test {
  public:
    explicit Refused(std::string arguments) : arguments(std::move(arguments)) {}
    void TestBody() override {
        SCOPED_TRACE(command(arguments));
        const Case one(arguments);
        example_result result;
        example_run(&fmha_fwd_program, &one.options(), &result);
        EXPECT_EQ(result.outcome, EXAMPLE_NO_INSTANCE) << result.message;
        EXPECT_NE(std::string(result.message).find("fmha_fwd"), std::string::npos) << result.message;
    }

  private:
    const std::string arguments;
};

int count_refused() {
    int count = 0;
    const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
    for (int s = 0; s < tests.total_test_suite_count(); s++)
        for (int n = 0; n < tests.GetTestSuite(s)->total_test_count(); n++)
            count += tests.GetTestSuite(s)->GetTestInfo(n)->result()->test_property_count() > 0;
    return count;
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    if (simulated_kinds({"bf16"}).empty()) {
        std::printf("this build has no GPU instances or no simulator\n");
        return 77;
    }
    for (const Suite &suite : suites()) register_suite(suite);
    register_suite(instances_suite());
    register_suite(landed_suite());
    for (const std::string &kind : simulated_kinds({"bf16"}))
        for (const std::string &refusal : refusals) {
            const std::string arguments = kind + " -b=1 -h=2 -s=64 -d=64 " + refusal;
            testing::RegisterTest("CdnaRefused", test_name(arguments).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                  [=]() -> Refused * { return new Refused(arguments); });
        }
    const int status = RUN_ALL_TESTS();
    std::printf("%d problems of the covers have no instance in this build and were refused by name\n", count_refused());
    return status;
}
