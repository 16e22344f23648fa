// SPDX-License-Identifier: MIT
// The instances for AMD GPUs in the simulator, over what they serve; and what they do not serve, which is refused.
#include "case.h"
#include "suite.h"

namespace {

const Axis hdims{"-d=64", "-d=128"};
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
    return {
        {"CdnaGeneral",
         {halves, hdims, {"-mode=0", "-mode=1"}, perms, lengths},
         {lse, inits, {"-b=2 -h=2 -h_k=1", "-b=1 -h=3"}, {"-mask=0", "-mask=t", "-mask=b"}}},
        {"CdnaMask", {halves, modes, masks, lengths}, {{"-b=1 -h=2 -h_k=1 -init=nf -lse=1"}, hdims}},
        {"CdnaHeads",
         {halves, ratios, modes, {"-b=1 -s=65 -s_k=130", "-b=5 -s=7"}},
         {perms, hdims, {"-mask=0", "-mask=b"}}},
        {"CdnaLengths",
         {halves, edge_lengths(), {"-mask=0", "-mask=t", "-mask=b:20,5"}},
         {{"-b=1 -h=1 -lse=1 -init=nf"}, hdims}},
        {"CdnaGroupPadding",
         {halves, {"-mode=1 -h=2 -h_k=1"}, group_paddings, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, hdims, {"-cu_seqlen=0", "-cu_seqlen=1"}}},
        {"CdnaEffectiveLengths",
         {halves, {"-mode=0 -h=2 -h_k=1"}, effective_lengths, {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, hdims}},
        {"CdnaSkipShortQueries",
         {halves,
          {"-mode=1 -min_seqlen_q=64", "-mode=1 -min_seqlen_q=1"},
          {"-b=3 -s=64,65,63 -s_k=100,64,1", "-b=2 -s=1,200 -s_k=50,100", "-b=1 -s=30 -s_k=40"}},
         {lse, hdims}},
        {"CdnaScale",
         {halves, {"-scale_s=0", "-scale_s=0.5", "-scale_s=-0.1"}, {"-b=1 -h=2 -s=130 -s_k=150"}},
         {lse, hdims, {"-mask=0", "-mask=b"}, {"-init=nf"}}},
    };
}

// Refused by name: no instance, and nothing runs.
const Axis refusals{
    "-bias=e",    "-bias=a", "-logits_soft_cap=5", "-p_drop=0.2", "-init_sink=1",
    "-vlayout=c", "-d=96",   "-d=64 -d_v=128",     "-prec=fp32",  "-prec=fp8bf16",
};

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
