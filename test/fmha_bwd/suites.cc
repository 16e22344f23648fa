// SPDX-License-Identifier: MIT
#include "suites.h"

// clang-format off
std::vector<Suite> suites(const Place &on) {
    const Axis floats = kinds(on, {"fp32", "fp16", "bf16"}), few = kinds(on, {"fp32", "bf16"}), halves = kinds(on, {"fp16", "bf16"});
    const Axis perms{"-iperm=0 -operm=0", "-iperm=1 -operm=1"}, modes{"-mode=0", "-mode=1"};
    const Axis inits{"-init=uf", "-init=nf"}, heads{"-dkv_heads=q", "-dkv_heads=k"}, parts{"-deterministic=0", "-deterministic=1"};
    const Axis hdims{"-d=32", "-d=64", "-d=128", "-d=96"};
    const Axis paddings{"-b=2 -s=128,127 -s_k=128,127 -s_kpad=192,192", "-b=3 -s=250,25,100 -s_k=180,25,1 -s_qpad=256,64,128 -s_kpad=192,64,64 -mask=1",
                        "-b=2 -s=200,3 -s_k=128,200 -s_kpad=192,256 -mask=2", "-b=3 -s=0,128,5 -s_k=5,0,128 -s_qpad=64,128,64 -s_kpad=64,64,128",
                        "-b=3 -s=100,0,0 -s_k=0,100,0", "-b=3 -s=80,100,65 -s_k=100,80,66 -s_qpad=128,128,128 -s_kpad=128,128,128 -mask=t:20,10"};
    return {
        {"General",
         {floats, hdims, modes,
          {"-b=1 -h=4 -h_k=2 -s=129", "-b=2 -h=2 -s=116 -s_k=253", "-b=1 -h=4 -h_k=1 -s=200 -s_k=151 -mask=1", "-b=1 -h=2 -s=300 -s_k=158 -mask=2",
           "-b=2 -h=1 -s=187 -s_k=119 -mask=t:28,30", "-b=2 -h=3 -h_k=1 -s=144 -s_k=199 -mask=b:4,35", "-b=1 -h=1 -s=1 -s_k=300", "-b=1 -h=1 -s=300 -s_k=1"}},
         {perms, inits, heads, parts}},
        {"HDimPadding",
         {floats, {"-d=24 -d_v=48", "-d=48", "-d=120 -d_v=160", "-d=72", "-d=8", "-d=256 -d_v=108", "-d=40 -d_v=64", "-d=192 -d_v=128", "-d=1", "-d=7 -d_v=33", "-d=512 -d_v=3"},
          {"-b=1 -h=2 -h_k=1 -s=98", "-b=2 -h=1 -s=70 -s_k=135 -mask=t:15,11", "-b=1 -h=1 -s=90 -s_k=33 -mask=2"}},
         {perms, modes, heads, parts, {"-init=nf"}}},
        {"ElementwiseBias",
         {floats, {"-bias=e:0", "-bias=e:1", "-bias=e:2"}, {"-dbias=0", "-dbias=1"},
          {"-b=1 -h=4 -h_k=2 -s=124 -s_k=100", "-b=3 -h=2 -s=65 -s_k=130 -mask=b", "-b=2 -h=2 -s=130 -s_k=199 -mask=t:50,64"}},
         {perms, modes, {"-d=32", "-d=40"}, inits, parts}},
        {"Alibi",
         {floats, {"-bias=a:0", "-bias=a:1"}, {"-b=1 -h=3 -s=124 -s_k=180", "-b=2 -h=5 -s=128 -s_k=46"},
          {"-mask=0", "-mask=t", "-mask=b", "-mask=t:50,64", "-mask=b:32,40", "-mask=g:30,50"}},
         {modes, {"-d=32"}, inits}},
        {"Dropout",
         {floats, {"-p_drop=0.123", "-p_drop=0.5"}, {"-drop_seed=10 -drop_offset=123", "-drop_seed=34534564645 -drop_offset=7876878876864 -drop_prefs=1"},
          {"-b=2 -h=4 -h_k=2 -s=80 -s_k=131", "-b=3 -h=2 -s=156 -s_k=68 -mask=1", "-b=2 -h=3 -h_k=1 -s=100 -s_k=168 -mask=2"}},
         {modes, {"-d=32", "-d=64"}, parts, heads}},
        {"SoftCap",
         {few, {"-logits_soft_cap=2", "-logits_soft_cap=50"}, {"-b=1 -h=2 -s=100 -s_k=130 -mask=b", "-b=2 -h=1 -s=130 -s_k=60"}},
         {modes, {"-d=32"}, inits, {"-p_drop=0", "-p_drop=0.2"}}},
        {"Sink",
         {floats, {"-sink_grad=0", "-sink_grad=1"}, {"-mask=0", "-mask=t:20,10,4", "-mask=b:2,0,2", "-mask=b:9,30,70", "-mask=t"},
          {"-b=2 -h=2 -h_k=1 -s=100 -s_k=130", "-b=1 -h=3 -s=130 -s_k=90"}},
         {modes, {"-d=32"}, parts, inits}},
        {"Padding",
         {floats, paddings, {"-h=2", "-h=4 -h_k=2"}, parts, heads},
         {{"-mode=1 -d=64 -init=nf", "-mode=1 -d=40 -d_v=24 -init=nf"}, perms, {"-cu_seqlen=0", "-cu_seqlen=1"}, {"-bias=n", "-bias=e:2 -dbias=1", "-p_drop=0.2"}}},
        {"BasicKVPadding", // these two are CK's
         {halves, {"-d=64", "-d=128"},
          {"-b=2 -h=2 -h_k=2 -s=128 -s_k=127 -s_kpad=128", "-b=3 -h=4 -h_k=2 -s=256 -s_k=250 -s_kpad=256", "-b=2 -h=2 -h_k=1 -s=256 -s_k=180 -s_kpad=192",
           "-b=3 -h=3 -h_k=3 -s=512 -s_k=350 -s_kpad=384 -mask=1", "-b=2 -h=4 -h_k=2 -s=256 -s_k=128 -s_kpad=192", "-b=2 -h=2 -h_k=2 -s=512 -s_k=200 -s_kpad=256 -mask=2"}},
         {{"-mode=1 -init=nf"}, perms, parts}},
        {"ZeroLengthPadding",
         {halves, {"-d=64", "-d=128"},
          {"-b=3 -h=2 -h_k=2 -s=0,0,0 -s_k=128 -s_qpad=64 -s_kpad=128", "-b=3 -h=2 -h_k=1 -s=100,0,64 -s_k=128 -s_qpad=128 -s_kpad=192",
           "-b=3 -h=3 -h_k=3 -s=150 -s_k=200,0,64 -s_qpad=192 -s_kpad=256", "-b=3 -h=2 -h_k=2 -s=128 -s_k=0 -s_qpad=128 -s_kpad=64",
           "-b=4 -h=2 -h_k=2 -s=80,0,80,0 -s_k=100,100,0,0 -s_qpad=128 -s_kpad=128"}},
         {{"-mode=1 -init=nf"}, perms, parts}},
        {"EffectiveLengths",
         {floats, {"-b=2 -s=128 -q_eff_lens=128,64 -kv_eff_lens=128,64", "-b=3 -s=100 -s_k=200 -q_eff_lens=1,100,50 -kv_eff_lens=200,1,0", "-b=2 -s=129 -q_eff_lens=0,129"}, parts, heads},
         {{"-h=2 -h_k=1 -d=32 -init=nf"}, perms, {"-mask=0", "-mask=b", "-mask=t:20,10"}}},
        {"Together",
         {},
         {few, modes, perms, heads, parts, {"-d=64", "-d=33 -d_v=65"}, inits, {"-mask=0", "-mask=t", "-mask=b:40,30", "-mask=g:70,20"},
          {"-bias=n", "-bias=e:1 -dbias=1", "-bias=a", "-logits_soft_cap=5"}, {"-p_drop=0", "-p_drop=0.3"}, {"-sink_grad=0", "-sink_grad=1"},
          on.pick({"-misalign=0", "-misalign=1"}, {"-misalign=0"}), {"-scale=0", "-scale=0.5", "-scale=-0.1"}, {"-b=2 -h=4 -h_k=2 -s=77 -s_k=150", "-b=1 -h=3 -h_k=1 -s=200 -s_k=64"}}},
    };
}
// clang-format on
