// SPDX-License-Identifier: MIT
// The instances for AMD GPUs in the simulator, over what they serve; and what they do not serve, which is refused.
#include "case.h"
#include "suite.h"

namespace {

const Axis hdims{"-d=32",  "-d=48",           "-d=64",  "-d=80 -d_v=96", "-d=96 -d_v=128",
                 "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"};
const Axis usual_hdims{"-d=64", "-d=128"};
const Axis lengths{"-s=256 -s_k=256", "-s=100 -s_k=300", "-s=300 -s_k=40", "-s=1 -s_k=700"};

Axis edge_lengths() {
    Axis axis{"-mode=1 -b=3 -s=0,7,0 -s_k=5,0,0", "-mode=0 -s=33 -s_k=0", "-mode=1 -b=2 -s=0,0 -s_k=64,3"};
    for (int q : edges(true, &tessera_fmha_fwd_tile::bm0))
        for (int k : edges(true, &tessera_fmha_fwd_tile::bn0))
            axis.push_back("-s=" + std::to_string(q) + " -s_k=" + std::to_string(k));
    return axis;
}

std::vector<Suite> suites() {
    const Axis halves = simulated_kinds({"fp16", "bf16"});
    // One line an axis, as far as they are short:
    // clang-format off
    return {
        {"CdnaGeneral",
         {halves, hdims, {"-mode=0", "-mode=1"}, perms, lengths},
         {lse, inits, {"-b=2 -h=2 -h_k=1", "-b=1 -h=3"}, {"-mask=0", "-mask=t", "-mask=b"}}},
        {"CdnaHDimPadding",
         {halves,
          {"-d=8", "-d=24 -d_v=40", "-d=40 -d_v=72", "-d=120 -d_v=112", "-d=72 -d_v=16", "-d=136 -d_v=120", "-d=152 -d_v=136",
           "-d=248 -d_v=200", "-d=16 -d_v=256"},
          perms, {"-mode=0", "-mode=1"},
          {"-b=1 -h=2 -h_k=1 -s=100", "-b=2 -h=1 -s=70 -s_k=130 -mask=b", "-b=1 -h=1 -s=130 -s_k=65 -mask=t:20,10"}},
         {lse, {"-init=nf"}}},
        {"CdnaMask", {halves, modes, masks, lengths}, {{"-b=1 -h=2 -h_k=1 -init=nf -lse=1"}, usual_hdims}},
        {"CdnaBias",
         {halves, {"-mode=0", "-mode=1"}, {"-bias=e:0", "-bias=e:1", "-bias=e:2"}, perms,
          {"-b=1 -h=4 -h_k=2 -s=260 -s_k=100", "-b=3 -h=2 -s=128 -s_k=257 -mask=b", "-b=2 -h=2 -s=130 -s_k=499 -mask=t:50,64"}},
         {hdims, lse, {"-init=nf"}}},
        {"CdnaAlibi",
         {halves, {"-mode=0", "-mode=1"}, {"-bias=a:0", "-bias=a:1"},
          {"-b=1 -h=3 -s=300 -s_k=200", "-b=2 -h=5 -s=128 -s_k=256", "-b=1 -h=8 -h_k=2 -s=100 -s_k=155"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:50,64", "-mask=b:32,40", "-mask=g:30,50"}},
         {hdims, {"-init=nf -lse=1"}}},
        {"CdnaSoftCap",
         {halves, {"-mode=0", "-mode=1"}, {"-logits_soft_cap=5", "-logits_soft_cap=30"},
          {"-b=1 -h=3 -s=300 -s_k=200", "-b=2 -h=4 -h_k=2 -s=100 -s_k=155"}, {"-mask=0", "-mask=b", "-mask=t:50,64"}},
         {hdims, {"-scale_s=0.5", "-scale_s=-0.1"}, {"-init=nf -lse=1"}}},
        {"CdnaDropout",
         {halves, {"-mode=0", "-mode=1"}, {"-p_drop=0.123", "-p_drop=0.5"},
          {"-drop_seed=10 -drop_offset=123 -drop_prefs=0", "-drop_seed=34534564645 -drop_offset=7876878876864 -drop_prefs=1"},
          {"-b=2 -h=4 -h_k=2 -s=140 -s_k=201", "-b=3 -h=2 -s=256 -s_k=128 -mask=1", "-b=2 -h=3 -h_k=1 -s=100 -s_k=300 -mask=2"}},
         {hdims, lse, {"-init=nf"}}},
        {"CdnaSink",
         {halves, {"-mode=0", "-mode=1"},
          {"-mask=t:2,0,2", "-mask=t:0,3,2", "-mask=t:4,3,4", "-mask=b:1,0,2", "-mask=b:10,20,64", "-mask=t:127,0,3",
           "-mask=b:15,0,200", "-mask=t:-1,0,4", "-mask=0", "-mask=b"},
          {"-init_sink=0", "-init_sink=1"},
          {"-b=1 -h=2 -s=400 -s_k=400", "-b=2 -h=2 -h_k=1 -s=100 -s_k=300", "-b=1 -h=4 -h_k=2 -s=300 -s_k=100", "-b=1 -h=1 -s=1 -s_k=700"}},
         {usual_hdims, {"-lse=1 -init=nf"}}},
        {"CdnaHeads",
         {halves, ratios, modes, {"-b=1 -s=65 -s_k=130", "-b=5 -s=7"}},
         {perms, usual_hdims, {"-mask=0", "-mask=b"}}},
        {"CdnaLengths",
         {halves, edge_lengths(), {"-mask=0", "-mask=t", "-mask=b:20,5"}},
         {{"-b=1 -h=1 -lse=1 -init=nf"}, usual_hdims}},
        {"CdnaGroupPadding",
         {halves, {"-mode=1 -h=2 -h_k=1"}, group_paddings, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, usual_hdims, {"-cu_seqlen=0", "-cu_seqlen=1"}}},
        {"CdnaEffectiveLengths",
         {halves, {"-mode=0 -h=2 -h_k=1"}, effective_lengths, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, usual_hdims, {"-bias=n", "-bias=e", "-bias=a"}}},
        {"CdnaSkipShortQueries",
         {halves,
          {"-mode=1 -min_seqlen_q=64", "-mode=1 -min_seqlen_q=1"},
          {"-b=3 -s=64,65,63 -s_k=100,64,1", "-b=2 -s=1,200 -s_k=50,100", "-b=1 -s=30 -s_k=40"}},
         {lse, usual_hdims}},
        {"CdnaTogether",
         {},
         {halves, modes, lse, hdims, {"-init=nf", "-init=uf", "-init=ui"},
          {"-mask=0", "-mask=t", "-mask=b:40,30", "-mask=g:70,20"},
          {"-bias=n", "-bias=e:1", "-bias=a:1", "-logits_soft_cap=5"}, {"-p_drop=0", "-p_drop=0.3"},
          {"-init_sink=0", "-init_sink=1"}, {"-iperm=0 -operm=1", "-iperm=1 -operm=0"},
          {"-scale_s=0", "-scale_s=0.5", "-scale_s=-0.1"},
          {"-b=2 -h=4 -h_k=2 -s=77 -s_k=150", "-b=1 -h=3 -h_k=1 -s=200 -s_k=64", "-b=3 -h=1 -s=5 -s_k=300",
           "-b=2 -h=8 -h_k=1 -s=1 -s_k=500"}}},
    };
    // clang-format on
}

// Refused by name: no instance, and nothing runs.
const Axis refusals{"-vlayout=c", "-d=100", "-d=264", "-d=64 -d_v=260", "-prec=fp32", "-prec=fp8bf16"};

class Refused : public testing::Test {
  public:
    explicit Refused(std::string arguments) : arguments(std::move(arguments)) {}
    void TestBody() override {
        SCOPED_TRACE(command(arguments));
        const Case one(arguments);
        fmha_fwd_result result;
        fmha_fwd_run(&one.options(), &result);
        EXPECT_EQ(result.outcome, FMHA_FWD_NO_INSTANCE) << result.message;
        EXPECT_NE(std::string(result.message).find("fmha_fwd"), std::string::npos) << result.message;
    }

  private:
    const std::string arguments;
};

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    if (simulated_kinds({"bf16"}).empty()) {
        std::printf("this build has no GPU instances or no simulator\n");
        return 77;
    }
    for (const Suite &suite : suites()) register_suite(suite);
    for (const std::string &kind : simulated_kinds({"bf16"}))
        for (const std::string &refusal : refusals) {
            const std::string arguments = kind + " -b=1 -h=2 -s=64 -d=64 " + refusal;
            testing::RegisterTest("CdnaRefused", test_name(arguments).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                  [=]() -> Refused * { return new Refused(arguments); });
        }
    return RUN_ALL_TESTS();
}
