// SPDX-License-Identifier: MIT
#include "suites.h"

#include <algorithm>

#include "tessera/kernel/fmha_fwd.h"

// Short axes stand on one line each:
// clang-format off

const Axis precs{"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};
const Axis kernel_hdims{"-d=32",  "-d=48",           "-d=64",  "-d=80 -d_v=96", "-d=96 -d_v=128",
                        "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"};
const Axis vlayouts{"-vlayout=r", "-vlayout=c -pad_columns=1"};

namespace {

const Axis fp8{"fp8", "fp8bf16", "fp8fp32"}, mx{"mxfp8 -qscale=mx", "mxfp4 -qscale=mx"};

// CPUs serve all of these. GPUs serve multiples of the elements in 16 bytes: 4 of fp32, 8 of 16 bits, 16 of fp8, 32 of
// fp4; others are refused.
const Axis any_hdims{"-d=24 -d_v=48", "-d=120 -d_v=160", "-d=256 -d_v=108", "-d=40 -d_v=64", "-d=1", "-d=7 -d_v=9", "-d=33 -d_v=31",
                     "-d=511 -d_v=2", "-d=2 -d_v=511", "-d=512", "-d=48", "-d=80 -d_v=96"};
const Axis padded_hdims{"-d=8", "-d=24 -d_v=40", "-d=40 -d_v=72", "-d=120 -d_v=112", "-d=72 -d_v=16", "-d=136 -d_v=120", "-d=152 -d_v=136",
                        "-d=248 -d_v=200", "-d=16 -d_v=256", "-d=4", "-d=100 -d_v=60", "-d=12 -d_v=252", "-d=112 -d_v=48", "-d=160 -d_v=224"};

const Axis perms{"-iperm=0 -operm=0", "-iperm=1 -operm=1"};
const Axis modes{"-mode=0", "-mode=1"};
const Axis lse{"-lse=0", "-lse=1"};
const Axis inits{"-init=uf", "-init=nf", "-init=ni", "-init=ui", "-init=tf"}, descaled_inits{"-init=uf", "-init=nf", "-init=3"};
const Axis ratios{"-h=1", "-h=3 -h_k=1", "-h=4 -h_k=2", "-h=8 -h_k=1", "-h=12 -h_k=4", "-h=7"};
const Axis odd_descales{"-odd_descales=0", "-odd_descales=1"};
const Axis biases{"-bias=n", "-bias=e:1", "-bias=a:1", "-logits_soft_cap=5", "-bias=a -logits_soft_cap=5"};

const Axis masks{"-mask=0",      "-mask=n",      "-mask=1",       "-mask=2",       "-mask=t",          "-mask=b",
                 "-mask=t:-1,0", "-mask=b:-1,0", "-mask=t:3,5",   "-mask=b:10,11", "-mask=t:0,0",      "-mask=b:0,0",
                 "-mask=t:5,-1", "-mask=b:5,-1", "-mask=t:-1,-1", "-mask=xt:-1",   "-mask=xb:-1",      "-mask=xt:4",
                 "-mask=xb:16",  "-mask=g:16,8", "-mask=g:1,64",  "-mask=g:200,1", "-mask=t:1000,1000"};

// Problems of CK's tests of group mode with padding, and of effective lengths in batch mode.
const Axis group_paddings{"-b=1 -s=64 -s_qpad=64",
                          "-b=1 -s=32 -s_qpad=64",
                          "-b=2 -s=128,64 -s_k=128,64 -s_qpad=256,128",
                          "-b=2 -s=128,64 -s_k=128,64 -s_kpad=256,128",
                          "-b=3 -s=1,64,100 -s_k=50,1,128 -s_qpad=64,64,128 -s_kpad=64,64,128",
                          "-b=4 -s=0,5,0,128 -s_k=64,0,0,128 -s_qpad=16,16,16,128 -s_kpad=64,16,1,128",
                          "-b=2 -s=1,1 -s_k=1,1 -s_qpad=128,128 -s_kpad=128,128",
                          "-b=2 -s=255,256 -s_k=256,255 -s_qpad=256,256 -s_kpad=256,256",
                          "-b=1 -s=1 -s_k=256 -s_qpad=1 -s_kpad=257"};
const Axis effective_lengths{"-b=1 -s=64 -q_eff_lens=32",
                             "-b=1 -s=64 -kv_eff_lens=32",
                             "-b=2 -s=128 -q_eff_lens=128,64 -kv_eff_lens=128,64",
                             "-b=3 -s=100 -s_k=200 -q_eff_lens=1,100,50 -kv_eff_lens=200,1,0",
                             "-b=2 -s=256 -q_eff_lens=0,256",
                             "-b=2 -s=64 -s_k=256 -q_eff_lens=1,1 -kv_eff_lens=1,1",
                             "-b=2 -s=64 -s_k=256 -q_eff_lens=0,0 -kv_eff_lens=0,0",
                             "-b=2 -s=129 -s_k=129 -q_eff_lens=128,127 -kv_eff_lens=127,128"};

// clang-format on

// Lengths at the edges of every tile of the place's instances in this build: `tile` is its rows or its keys.
std::vector<int> edges(const Place &on, uint16_t tessera_fmha_fwd_tile::*tile) {
    std::vector<int> lengths{1, 2, 17};
    const tessera_table *table = tessera_fmha_fwd_get_table();
    const std::vector<Device> usable = devices(on, table);
    for (uint32_t i = 0; i < table->row_count; i++) {
        const auto *row = reinterpret_cast<const tessera_fmha_fwd_instance *>(tessera_row(table, i));
        if (std::any_of(usable.begin(), usable.end(),
                        [=](const Device &device) { return device.target == row->base.target; }))
            for (int near : {-1, 0, 1}) lengths.push_back(row->tile.*tile + near);
    }
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    return lengths;
}

Axis edge_lengths(const Place &on, const char *argument, uint16_t tessera_fmha_fwd_tile::*tile) {
    Axis axis;
    for (int length : edges(on, tile)) axis.push_back(argument + std::to_string(length));
    return axis;
}

Axis query_edges(const Place &on) {
    Axis axis{"-mode=1 -b=2 -s=0,0", "-mode=1 -b=3 -s=0,7,0"};
    for (int n : edges(on, &tessera_fmha_fwd_tile::bm0)) {
        const std::string length = std::to_string(n);
        axis.push_back("-mode=0 -b=1 -s=" + length);
        axis.push_back("-mode=1 -b=3 -s=5," + length + ",0");
    }
    return axis;
}

Axis key_edges(const Place &on) {
    Axis axis = edge_lengths(on, "-s_k=", &tessera_fmha_fwd_tile::bn0);
    for (const char *more : {"-s_k=0", "-s_k=15", "-s_k=16", "-s_k=31", "-s_k=32", "-s_k=33"})
        if (std::find(axis.begin(), axis.end(), more) == axis.end()) axis.push_back(more);
    return axis;
}

} // namespace

std::vector<Suite> suites(const Place &on) {
    // Data types and devices. On GPUs the order of v is added, since the combinations served depend on both.
    const Axis layouts = on.pick({"-vlayout=r", "-vlayout=c"}, {""}), along = on.pick({""}, vlayouts);
    const Axis floats = kinds(on, on.pick({"fp32", "fp16", "bf16"}, precs), along);
    const Axis most = kinds(on, on.pick({"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32"}, precs), along);
    const Axis few = kinds(on, on.pick({"fp32", "bf16"}, precs), along);
    const Axis hdims =
        on.pick({"-d=32", "-d=64", "-d=96 -d_v=128", "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"}, kernel_hdims);
    const Axis usual_hdims = on.pick({"-d=32", "-d=72 -d_v=40", "-d=64"}, {"-d=64", "-d=128"});
    // clang-format off
    std::vector<Suite> all{
        {"General",
         {floats, hdims, perms, modes,
          on.pick({"-b=2 -h=2 -h_k=1 -d=16 -s=55 -s_k=256", "-b=1 -h=3 -s=100 -s_k=51", "-b=2 -h=1 -d=16 -s=99 -s_k=256 -mask=1",
                   "-b=1 -h=2 -h_k=1 -s=1024 -s_k=256 -mask=2", "-b=2 -h=1 -d_v=24 -s=3 -s_k=99 -mask=2",
                   "-b=3 -h=2 -h_k=1 -s=200 -s_k=520 -mask=t:128,30", "-b=2 -h=1 -s=99 -s_k=32 -mask=b:4,35",
                   "-b=1 -h=2 -h_k=1 -s=33 -s_k=0 -mask=2", "-b=1 -h=2 -h_k=1 -s=1 -s_k=10 -s_kpad=32 -mask=2"},
                  {"-s=256 -s_k=256", "-s=100 -s_k=300", "-s=300 -s_k=40", "-s=1 -s_k=700"})},
         {lse, inits, {"-b=2 -h=2 -h_k=1", "-b=1 -h=3"}, {"-mask=0", "-mask=t", "-mask=b"}}},
        {"HDimPadding",
         {floats, on.pick(any_hdims, padded_hdims), perms, modes,
          on.pick({"-b=1 -h=4 -h_k=2 -s=480", "-b=2 -h=2 -s=300 -s_k=400 -s_kpad=512 -mask=t:64,64",
                   "-b=1 -h=4 -h_k=1 -s=512 -s_k=201 -s_kpad=256 -mask=1", "-b=1 -h=2 -s=900 -s_k=256", "-b=2 -h=1 -s=256 -s_k=256 -mask=1"},
                  {"-b=1 -h=2 -h_k=1 -s=100", "-b=2 -h=1 -s=70 -s_k=130 -mask=b", "-b=1 -h=1 -s=130 -s_k=65 -mask=t:20,10"})},
         {lse, layouts, on.pick(inits, {"-init=nf"})}},
        {"ElementwiseBias",
         {floats, hdims, perms, modes, {"-bias=e:0", "-bias=e:1", "-bias=e:2"},
          {"-b=1 -h=4 -h_k=2 -s=1024|260 -s_k=100", "-b=3 -h=2 -s=128 -s_k=256|257 -mask=b", "-b=2 -h=2 -s=130 -s_k=499 -mask=t:50,64"}},
         {lse, on.pick(inits, {"-init=nf"})}},
        {"Alibi",
         {floats, hdims, modes, {"-bias=a:0", "-bias=a:1"},
          {"-b=1 -h=3 -s=1024|300 -s_k=1000|200", "-b=3|2 -h=5 -s=128 -s_k=256", "-b=2|1 -h=8 -h_k=2 -s=300|100 -s_k=355|155"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:50,64", "-mask=b:32,40", "-mask=g:30,50"}},
         {on.pick(inits, {"-init=nf"}), {"-lse=1"}}},
        {"SoftCap",
         {floats, hdims, modes, {"-logits_soft_cap=5", "-logits_soft_cap=128"},
          {"-b=1 -h=3 -s=300 -s_k=200", "-b=2 -h=4 -h_k=2 -s=100 -s_k=155"}, {"-mask=0", "-mask=b", "-mask=t:50,64"}},
         {{"-scale_s=0.5", "-scale_s=-0.1"}, {"-init=nf -lse=1"}}},
        {"GreatScores",
         {floats, {"-scale_s=1e6", "-scale_s=1e10", "-scale_s=18446744073709551616", "-scale_s=-18446744073709551616"}},
         {{"-b=1 -h=2 -h_k=1 -s=70 -s_k=300 -lse=1 -init=nf", "-b=2 -h=1 -s=1 -s_k=130 -mask=b -init=uf"}, usual_hdims}},
        {"Dropout",
         {floats, hdims, modes, {"-p_drop=0.123", "-p_drop=0.5"},
          {"-drop_seed=10 -drop_offset=123 -drop_prefs=0", "-drop_seed=34534564645 -drop_offset=7876878876864 -drop_prefs=1"},
          {"-b=2 -h=4 -h_k=2 -s=280|140 -s_k=512|201", "-b=3 -h=2 -s=256 -s_k=128 -mask=1", "-b=4|2 -h=3 -h_k=1 -s=100 -s_k=768|300 -mask=2"}},
         {lse, on.pick(inits, {"-init=nf"})}},
        {"QuantScale",
         {kinds(on, fp8, times({"-qscale=n", "-qscale=pt", "-qscale=bs"}, along)),
          on.pick({"-d=64", "-d=128", "-d=256", "-d=192 -d_v=128", "-d=40 -d_v=72"}, kernel_hdims), modes, layouts,
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=257 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=1500|700", "-b=2 -h=2 -s=70 -s_k=200 -init_sink=1", "-b=1 -h=2 -s=100 -s_k=90 -p_drop=0.2"}},
         {lse, perms, descaled_inits, odd_descales, biases}},
        {"BlockScale",
         {kinds(on, fp8, times({"-qscale=bs"}, along)), modes, odd_descales,
          {"-block_q=128 -block_kv=128", "-block_q=64 -block_kv=64", "-block_q=1 -block_kv=1", "-block_q=3 -block_kv=100",
           "-block_q=100 -block_kv=3", "-block_q=1000 -block_kv=31", "-block_q=32 -block_kv=256"},
          {"-b=1 -h=2 -h_k=1 -s=150 -s_k=260", "-b=2 -h=2 -s=128 -s_k=128 -mask=2", "-b=1 -h=1 -s=40 -s_k=300 -mask=b:50,20",
           "-b=3 -h=2|1 -s=1 -s_k=1500|63"}},
         {{"-init=3"}, lse, perms, layouts, on.pick({"-d=64", "-d=40"}, usual_hdims)}},
        {"Microscaling",
         {kinds(on, mx, along), modes, perms, layouts,
          on.pick({"-d=128", "-d=256", "-d=64", "-d=30 -d_v=34", "-d=96 -d_v=128"}, kernel_hdims),
          {"-b=1 -h=2 -s=128", "-b=2 -h=4 -h_k=2 -s=300 -s_k=256 -mask=2", "-b=2 -h=3 -h_k=1 -s=129 -s_k=640 -mask=t:100,20",
           "-b=1 -h=8 -h_k=1 -s=1 -s_k=1500|700", "-b=1 -h=1 -s=70 -s_k=33", "-b=2 -h=1 -s=33 -s_k=31"}},
         {lse, descaled_inits, odd_descales}},
        {"Mask",
         {floats, modes, masks,
          {"-s=1 -s_k=200|700", "-s=300 -s_k=40", "-s=129|256 -s_k=129|256", "-s=65|100 -s_k=400|300", "-s=200 -s_k=1", "-s=260|33 -s_k=257"}},
         {{"-bias=n", "-bias=e", "-bias=a"}, {"-b=2|1 -h=2 -h_k=2|1 -init=nf -lse=1"}, usual_hdims}},
        {"Sink",
         {floats, modes,
          {"-mask=t:2,0,2", "-mask=t:0,3,2", "-mask=t:1,0,2", "-mask=t:4,3,4", "-mask=b:1,0,2", "-mask=b:10,20,64",
           "-mask=t:127,0,3", "-mask=b:15,0,200", "-mask=t:-1,0,4", "-mask=0", "-mask=t", "-mask=b"},
          {"-init_sink=0", "-init_sink=1"},
          {"-b=1 -h=2 -s=512|400 -s_k=512|400", "-b=2 -h=2 -h_k=1 -s=100 -s_k=300", "-b=1 -h=4 -h_k=2 -s=300 -s_k=100", "-b=1 -h=1 -s=1 -s_k=700"}},
         {lse, on.pick({"-d=64", "-d=128", "-d=40"}, usual_hdims), {"-init=nf", "-init=uf"}}},
        {"Heads",
         {most, ratios, modes, {"-b=1 -s=65 -s_k=130", "-b=5 -s=7"}},
         {perms, on.pick({"-d=32", "-d=80"}, usual_hdims), {"-mask=0", "-mask=b"}}},
        {"NoLength",
         {floats, {"-mode=1 -b=3 -s=0,7,0 -s_k=5,0,0", "-mode=0 -s=33 -s_k=0", "-mode=1 -b=2 -s=0,0 -s_k=64,3",
                   "-mode=1 -b=1 -h=2 -s=33 -s_k=0"}, {"-mask=0", "-mask=b"}},
         {{"-h=1 -lse=1"}, usual_hdims, {"-init_sink=0", "-init_sink=1"}, {"-p_drop=0", "-p_drop=0.2"}}},
        {"GroupPadding",
         {floats, on.pick({"-mode=1 -h=9", "-mode=1 -h=9 -h_k=3", "-mode=1 -h=9 -h_k=1"}, {"-mode=1 -h=2 -h_k=1"}), group_paddings,
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, {"-lse=1 -init=nf"}, usual_hdims, {"-cu_seqlen=0", "-cu_seqlen=1"}}},
        {"EffectiveLengths",
         {floats, on.pick({"-mode=0 -h=9", "-mode=0 -h=9 -h_k=3", "-mode=0 -h=9 -h_k=1"}, {"-mode=0 -h=2 -h_k=1"}), effective_lengths,
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:20,10"}},
         {perms, layouts, {"-lse=1 -init=nf"}, usual_hdims, {"-bias=n", "-bias=e", "-bias=a"}, {"-p_drop=0", "-p_drop=0.2"}}},
        {"SkipShortQueries",
         {floats, on.pick(ratios, {"-h=2"}), {"-mode=1 -min_seqlen_q=64", "-mode=1 -min_seqlen_q=1"},
          {"-b=3 -s=64,65,63 -s_k=100,64,1", "-b=2 -s=1,200 -s_k=50,100", "-b=1 -s=30 -s_k=40"}},
         {lse, on.pick({"-d=64"}, usual_hdims)}},
        {"Together", // every trait with every other
         {},
         {most, modes, layouts, lse, hdims, {"-init=nf", "-init=uf", "-init=ui"},
          {"-mask=0", "-mask=t", "-mask=b:40,30", "-mask=g:70,20"},
          biases, {"-p_drop=0", "-p_drop=0.3"},
          {"-init_sink=0", "-init_sink=1"},
          on.pick({"-misalign=0", "-misalign=1"}, {""}),
          {"-iperm=0 -operm=1", "-iperm=1 -operm=0"},
          {"-scale_s=0", "-scale_s=0.5", "-scale_s=-0.1"},
          {"-b=2 -h=4 -h_k=2 -s=77 -s_k=150", "-b=1 -h=3 -h_k=1 -s=200 -s_k=64", "-b=3 -h=1 -s=5 -s_k=300",
           "-b=2 -h=8 -h_k=1 -s=1 -s_k=1500|500"}}},
    };
    if (on.gpu) {
        all.push_back({"Lengths",
                       {floats, edge_lengths(on, "-s=", &tessera_fmha_fwd_tile::bm0), edge_lengths(on, "-s_k=", &tessera_fmha_fwd_tile::bn0),
                        {"-mask=0", "-mask=t", "-mask=b:20,5"}},
                       {{"-b=1 -h=1 -lse=1 -init=nf"}, usual_hdims, modes}});
    } else { // CPUs have more lengths, and are fast enough for each of them with all heads
        all.push_back({"LengthOfQuery",
                       {few, query_edges(on), ratios},
                       {{"-d=32 -lse=1 -init=nf"}, {"-s_k=70", "-s_k=130 -mask=t", "-s_k=65 -mask=b"}}});
        all.push_back({"LengthOfKey",
                       {kinds(on, {"fp32", "fp16", "bf16", "fp8bf16"}, along), modes, key_edges(on),
                        {"-s=1", "-s=70 -mask=t", "-s=33 -mask=b", "-s=200 -mask=b:20,5"}},
                       {{"-b=2 -h=2 -lse=1 -init=nf"}, {"-d=32", "-d=31 -d_v=33", "-d=65 -d_v=15"}, layouts}});
    }
    // clang-format on
    return all;
}
