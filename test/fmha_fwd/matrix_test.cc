// SPDX-License-Identifier: MIT
// CK's test matrices of fmha_fwd and more of the kind, over every CPU instance that this machine runs.
#include <algorithm>

#include "case.h"
#include "suite.h"

namespace {

const Axis vlayouts{"-vlayout=r", "-vlayout=c"};
const Axis hdims{"-d=32", "-d=64", "-d=96 -d_v=128", "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"};

Axis query_edges() {
    Axis axis{"-mode=1 -b=2 -s=0,0", "-mode=1 -b=3 -s=0,7,0"};
    for (int n : edges(false, &tessera_fmha_fwd_tile::bm0)) {
        const std::string length = std::to_string(n);
        axis.push_back("-mode=0 -b=1 -s=" + length);
        axis.push_back("-mode=1 -b=3 -s=5," + length + ",0");
    }
    return axis;
}

Axis key_edges() {
    Axis axis{"-s_k=0", "-s_k=15", "-s_k=16", "-s_k=31", "-s_k=32", "-s_k=33"};
    for (int n : edges(false, &tessera_fmha_fwd_tile::bn0)) axis.push_back("-s_k=" + std::to_string(n));
    return axis;
}

std::vector<Suite> suites() {
    const Axis floats = kinds({"fp32", "fp16", "bf16"}), fp8 = kinds({"fp8", "fp8bf16", "fp8fp32"});
    const Axis mx = kinds({"mxfp8 -qscale=mx", "mxfp4 -qscale=mx"});
    const Axis most = kinds({"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32"});
    // One line an axis, as far as they are short:
    // clang-format off
    return {
        {"General",
         {floats, hdims, perms, modes,
          {"-b=2 -h=2 -h_k=1 -d=16 -s=55 -s_k=256", "-b=1 -h=3 -s=100 -s_k=51", "-b=2 -h=1 -d=16 -s=99 -s_k=256 -mask=1",
           "-b=1 -h=2 -h_k=1 -s=1024 -s_k=256 -mask=2", "-b=2 -h=1 -d_v=24 -s=3 -s_k=99 -mask=2",
           "-b=3 -h=2 -h_k=1 -s=200 -s_k=520 -mask=t:128,30", "-b=2 -h=1 -s=99 -s_k=32 -mask=b:4,35",
           "-b=1 -h=2 -h_k=1 -s=33 -s_k=0 -mask=2", "-b=1 -h=2 -h_k=1 -s=1 -s_k=10 -s_kpad=32 -mask=2"}},
         {lse, inits}},
        {"HDimPadding",
         {floats,
          {"-d=24 -d_v=48", "-d=120 -d_v=160", "-d=256 -d_v=108", "-d=40 -d_v=64", "-d=1", "-d=7 -d_v=9", "-d=33 -d_v=31",
           "-d=511 -d_v=2", "-d=2 -d_v=511", "-d=512", "-d=48", "-d=80 -d_v=96"},
          perms, modes,
          {"-b=1 -h=4 -h_k=2 -s=480", "-b=2 -h=2 -s=300 -s_k=400 -s_kpad=512 -mask=t:64,64",
           "-b=1 -h=4 -h_k=1 -s=512 -s_k=201 -s_kpad=256 -mask=1", "-b=1 -h=2 -s=900 -s_k=256",
           "-b=2 -h=1 -s=256 -s_k=256 -mask=1"}},
         {vlayouts, inits}},
        {"ElementwiseBias",
         {floats, hdims, perms, modes,
          {"-bias=e:0", "-bias=e:1", "-bias=e:2"},
          {"-b=1 -h=4 -h_k=2 -s=1024 -s_k=100", "-b=3 -h=2 -s=128 -s_k=256 -mask=2", "-b=2 -h=2 -s=130 -s_k=499 -mask=t:50,64"}},
         {inits}},
        {"Alibi",
         {floats, hdims, modes,
          {"-bias=a:0", "-bias=a:1"},
          {"-b=1 -h=3 -s=1024 -s_k=1000", "-b=3 -h=5 -s=128 -s_k=256", "-b=2 -h=8 -h_k=2 -s=300 -s_k=355"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:50,64", "-mask=b:32,40", "-mask=g:30,50"}},
         {inits}},
        {"Dropout",
         {floats, hdims, modes,
          {"-p_drop=0.123", "-p_drop=0.5"},
          {"-drop_seed=10 -drop_offset=123 -drop_prefs=0", "-drop_seed=34534564645 -drop_offset=7876878876864 -drop_prefs=1"},
          {"-b=2 -h=4 -h_k=2 -s=280 -s_k=512", "-b=3 -h=2 -s=256 -s_k=128 -mask=1", "-b=4 -h=3 -h_k=1 -s=100 -s_k=768 -mask=2"}},
         {lse, inits}},
        {"QuantScale",
         {fp8, modes, perms, vlayouts,
          {"-d=64", "-d=128", "-d=256", "-d=192 -d_v=128", "-d=40 -d_v=72"},
          {"-qscale=n", "-qscale=pt", "-qscale=bs"},
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=257 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=1500"}},
         {lse, {"-init=uf", "-init=nf", "-init=3"}}},
        {"BlockScale",
         {fp8, modes,
          {"-block_q=64 -block_kv=64", "-block_q=1 -block_kv=1", "-block_q=3 -block_kv=100", "-block_q=1000 -block_kv=31"},
          {"-odd_descales=0", "-odd_descales=1"},
          {"-b=1 -h=2 -h_k=1 -s=150 -s_k=260", "-b=2 -h=2 -s=128 -s_k=128 -mask=2", "-b=3 -h=2 -s=1 -s_k=1500"}},
         {{"-qscale=bs -init=3"}, lse, vlayouts, {"-d=64", "-d=40"}}},
        {"Microscaling",
         {mx, modes, perms, vlayouts,
          {"-d=128", "-d=256", "-d=64", "-d=30 -d_v=34", "-d=96 -d_v=128"},
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=256 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=1500"}},
         {lse, {"-init=uf", "-init=nf", "-init=3"}}},
        {"Mask",
         {floats, modes,
          masks,
          {"-s=1 -s_k=200", "-s=300 -s_k=40", "-s=129 -s_k=129", "-s=65 -s_k=400", "-s=200 -s_k=1", "-s=260 -s_k=257"}},
         {{"-bias=n", "-bias=e", "-bias=a"}, {"-b=2 -h=2 -init=nf"}, {"-d=32", "-d=72 -d_v=40"}}},
        {"Sink",
         {floats, modes,
          {"-mask=t:2,0,2", "-mask=t:0,3,2", "-mask=t:1,0,2", "-mask=t:4,3,4", "-mask=b:1,0,2", "-mask=b:10,20,64",
           "-mask=t:127,0,3", "-mask=b:15,0,200", "-mask=t:-1,0,4", "-mask=0", "-mask=t", "-mask=b"},
          {"-init_sink=0", "-init_sink=1"},
          {"-b=1 -h=2 -s=512 -s_k=512", "-b=2 -h=2 -h_k=1 -s=100 -s_k=300", "-b=1 -h=4 -h_k=2 -s=300 -s_k=100", "-b=1 -h=1 -s=1 -s_k=700"}},
         {lse, {"-d=64", "-d=128", "-d=40"}, {"-init=nf", "-init=uf"}}},
        {"Heads",
         {most, ratios, modes, {"-b=1 -s=65 -s_k=130", "-b=5 -s=7"}},
         {perms, {"-d=32", "-d=80"}, {"-mask=0", "-mask=b"}}},
        {"LengthOfQuery",
         {kinds({"fp32", "bf16"}), query_edges(), ratios},
         {{"-d=32 -lse=1 -init=nf"}, {"-s_k=70", "-s_k=130 -mask=t", "-s_k=65 -mask=b"}}},
        {"LengthOfKey",
         {kinds({"fp32", "fp16", "bf16", "fp8bf16"}), modes, key_edges(),
          {"-s=1", "-s=70 -mask=t", "-s=33 -mask=b", "-s=200 -mask=b:20,5"}},
         {{"-b=2 -h=2 -lse=1 -init=nf"}, {"-d=32", "-d=31 -d_v=33", "-d=65 -d_v=15"}, vlayouts}},
        {"GroupPadding",
         {floats,
          {"-mode=1 -h=9", "-mode=1 -h=9 -h_k=3", "-mode=1 -h=9 -h_k=1"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"},
          group_paddings},
         {perms, {"-lse=1 -init=nf"}, {"-d=64", "-d=72 -d_v=40"}, {"-cu_seqlen=0", "-cu_seqlen=1"}}},
        {"EffectiveLengths",
         {floats,
          {"-mode=0 -h=9", "-mode=0 -h=9 -h_k=3", "-mode=0 -h=9 -h_k=1"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"},
          effective_lengths},
         {perms, vlayouts, {"-lse=1 -init=nf"}, {"-d=64", "-d=72 -d_v=40"}, {"-bias=n", "-bias=e", "-bias=a"}}},
        {"SkipShortQueries",
         {floats, ratios,
          {"-mode=1 -min_seqlen_q=64", "-mode=1 -min_seqlen_q=1"},
          {"-b=3 -s=64,65,63 -s_k=100,64,1", "-b=2 -s=1,200 -s_k=50,100", "-b=1 -s=30 -s_k=40"}},
         {lse, {"-d=64"}}},
        {"Together", // every trait with every other
         {},
         {most, modes, vlayouts, lse, hdims, {"-init=nf", "-init=uf", "-init=ui"},
          {"-mask=0", "-mask=t", "-mask=b:40,30", "-mask=g:70,20"},
          {"-bias=n", "-bias=e:1", "-bias=a:1", "-logits_soft_cap=5"},
          {"-p_drop=0", "-p_drop=0.3"},
          {"-init_sink=0", "-init_sink=1"},
          {"-misalign=0", "-misalign=1"},
          {"-iperm=0 -operm=1", "-iperm=1 -operm=0"},
          {"-scale_s=0", "-scale_s=0.5", "-scale_s=-0.1"},
          {"-b=2 -h=4 -h_k=2 -s=77 -s_k=150", "-b=1 -h=3 -h_k=1 -s=200 -s_k=64", "-b=3 -h=1 -s=5 -s_k=300",
           "-b=2 -h=8 -h_k=1 -s=1 -s_k=1500"}}},
    };
    // clang-format on
}

class Absent : public testing::Test {
  public:
    void TestBody() override { GTEST_SKIP() << "this machine does not run it"; }
};

void register_absent_targets() {
    const std::vector<tessera_target> usable = usable_targets();
    for (tessera_target target : built_targets())
        if (std::find(usable.begin(), usable.end(), target) == usable.end())
            testing::RegisterTest("Target", test_name(tessera_target_string(target)).c_str(), nullptr, nullptr,
                                  __FILE__, __LINE__, []() -> Absent * { return new Absent; });
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const Suite &suite : suites()) register_suite(suite);
    register_absent_targets();
    return RUN_ALL_TESTS();
}
