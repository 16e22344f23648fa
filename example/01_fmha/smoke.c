// SPDX-License-Identifier: MIT
// tile_example_fmha_fwd_smoke: the problems of CK's smoke_test_fwd.sh.
#include <stdio.h>

#include "fmha_fwd_runner.h"
#include "program.h"

#define run(smoke, ...) example_case(smoke, &fmha_fwd_program, __VA_ARGS__)
#define EACH EXAMPLE_EACH

// Runs the nine shapes; each %s is a place for the head dim that varies.
static void run_shapes(example_smoke *s, const char *hdim, const char *rest) {
    run(s, "-b=2 -h=2 -h_k=1 -d=16 -d_v=%s -s=55 -s_k=256 %s", hdim, rest);
    run(s, "-b=1 -h=3 -d=%s -s=100 -s_k=51 %s", hdim, rest);
    run(s, "-b=2 -h=1 -d=16 -d_v=%s -s=99 -s_k=256 -mask=1 %s", hdim, rest);
    run(s, "-b=1 -h=2 -h_k=1 -d=%s -s=1024 -s_k=256 -mask=2 %s", hdim, rest);
    run(s, "-b=2 -h=1 -d=%s -d_v=24 -s=3 -s_k=99 -mask=2 %s", hdim, rest);
    run(s, "-b=3 -h=2 -h_k=1 -d=%s -s=200 -s_k=520 -mask=t:128,30 %s", hdim, rest);
    run(s, "-b=2 -h=1 -d=%s -s=99 -s_k=32 -mask=b:4,35 %s", hdim, rest);
    run(s, "-b=1 -h=2 -h_k=1 -d=%s -s=33 -s_k=0 -mask=2 %s", hdim, rest);
    run(s, "-b=1 -h=2 -h_k=1 -d=%s -s=1 -s_k=10 -s_kpad=32 -mask=2 %s", hdim, rest);
}

static void run_fp16_bf16(example_smoke *s) {
    EACH(prec, "fp16", "bf16")
    EACH(mode, "1", "0")
    EACH(perm, "0", "1")
    EACH(hdim, "32", "64", "128", "256")
    EACH(lse, "0", "1")
    EACH(bias, "n", "e", "a")
    EACH(p_drop, "0.0", "0.2") {
        char rest[256];
        snprintf(rest, sizeof rest, "-prec=%s -mode=%s -bias=%s -p_drop=%s -lse=%s -iperm=%s -operm=%s", *prec, *mode,
                 *bias, *p_drop, *lse, *perm, *perm);
        run_shapes(s, *hdim, rest);
    }
}

static void run_padding(example_smoke *s) {
    EACH(lengths, "1024,960,992,896", "896,768,512,640", "512,384,256,320")
    run(s, "-prec=fp16 -mode=0 -b=4 -h=16 -d=128 -s=1024 -lse=1 -iperm=0 -operm=0 -q_eff_lens=%s -kv_eff_lens=%s",
        *lengths, *lengths);
    EACH(pads, "1152,896,576,320", "1536,1152,768,384", "2048,1536,1024,512")
    run(s,
        "-prec=fp16 -mode=1 -b=4 -h=16 -d=128 -s=1024,768,512,256 -s_k=1024,768,512,256 -iperm=0 -operm=0 -s_qpad=%s "
        "-s_kpad=%s",
        *pads, *pads);
}

static void run_padding_boundaries(example_smoke *s) {
    EACH(prec, "fp16", "bf16") {
        EACH(perm, "0", "1") {
            run(s,
                "-prec=%s -mode=1 -b=2 -h=2 -h_k=1 -d=16 -d_v=32 -s=55 -s_k=256 -s_qpad=64,60 -s_kpad=272,260 "
                "-iperm=%s -operm=%s",
                *prec, *perm, *perm);
            run(s,
                "-prec=%s -mode=1 -b=3 -h=2 -h_k=1 -d=64 -d_v=64 -s=50,60,40 -s_k=128,256,192 -s_qpad=64,64,64 "
                "-s_kpad=160,288,224 -lse=1 -iperm=%s -operm=%s",
                *prec, *perm, *perm);
            run(s,
                "-prec=%s -mode=1 -b=2 -h=2 -h_k=1 -d=32 -d_v=64 -s=55 -s_k=256 -s_kpad=272,260 -lse=1 -iperm=%s "
                "-operm=%s",
                *prec, *perm, *perm);
            run(s,
                "-prec=%s -mode=0 -b=4 -h=8 -h_k=8 -d=128 -s=3 -s_k=3 -q_eff_lens=1,2,1,2 -kv_eff_lens=1,2,1,2 -lse=1 "
                "-iperm=%s -operm=%s",
                *prec, *perm, *perm);
            run(s,
                "-prec=%s -mode=0 -b=2 -h=2 -h_k=1 -d=32 -d_v=64 -s=64 -s_k=256 -q_eff_lens=55,60 "
                "-kv_eff_lens=200,256 -iperm=%s -operm=%s",
                *prec, *perm, *perm);
        }
        run(s,
            "-prec=%s -mode=0 -b=4 -h=8 -d=64 -s=128 -s_k=128 -q_eff_lens=128,128,128,128 "
            "-kv_eff_lens=128,128,128,128 -lse=1",
            *prec);
        run(s,
            "-prec=%s -mode=0 -b=4 -h=8 -d=64 -s=128 -s_k=128 -q_eff_lens=10,20,30,40 -kv_eff_lens=40,30,20,10 -lse=1",
            *prec);
        run(s, "-prec=%s -mode=0 -b=4 -h=8 -d=64 -s=128 -s_k=128 -q_eff_lens=1,1,1,1 -kv_eff_lens=1,1,1,1 -lse=1",
            *prec);
        run(s, "-prec=%s -mode=1 -b=4 -h=4 -d=32 -s=1,127,3,65 -s_k=1,127,3,65 -s_kpad=128 -lse=1", *prec);
        run(s,
            "-prec=%s -mode=1 -b=2 -h=16 -h_k=4 -d=128 -s=256,129 -s_k=256,129 -s_kpad=256 -bias=a -mask=t -lse=1 "
            "-iperm=0 -operm=0",
            *prec);
    }
}

static void run_fp8(example_smoke *s) {
    EACH(perm, "0", "1")
    EACH(batch, "1", "2") {
        EACH(hdim, "64", "128", "256")
        EACH(qscale, "1", "2")
        run(s, "-prec=fp8bf16 -init=3 -b=%s -h=1 -d=%s -s=128 -iperm=%s -operm=%s -qscale=%s", *batch, *hdim, *perm,
            *perm, *qscale);
        run(s, "-prec=fp8fp32 -init=3 -b=%s -h=1 -d=128 -s=128 -iperm=%s -operm=%s -qscale=1", *batch, *perm, *perm);
    }
}

// CK's lines also set -page_block_size=128, which its plain forward pass ignores and we refuse.
static void run_sinks(example_smoke *s) {
    run(s, "-prec=fp16 -mode=0 -b=1 -h=1 -d=128 -s=512 -iperm=0 -operm=0 -mask=t:2,0,2");
    run(s, "-prec=bf16 -mode=0 -b=2 -h=2 -d=128 -s=512 -mask=t:2,0,2");
    run(s, "-prec=fp16 -mode=0 -b=1 -h=1 -d=128 -s=1024 -iperm=0 -operm=0 -mask=t:0,3,2");
    run(s, "-prec=bf16 -mode=1 -b=2 -h=2 -d=128 -s=1024 -mask=t:0,3,2");
    run(s, "-prec=fp16 -mode=0 -b=1 -h=1 -d=128 -s=4096 -iperm=0 -operm=0 -mask=b:1,0,2");
    run(s, "-prec=bf16 -mode=0 -b=2 -h=4 -d=64 -s=2048 -iperm=0 -operm=0 -mask=b:1,0,2");
    run(s, "-prec=fp16 -mode=1 -b=1 -h=1 -d=128 -s=8192 -iperm=0 -operm=0 -mask=b:2,0,2");
    run(s, "-prec=bf16 -mode=1 -b=2 -h=2 -d=128 -s=4096 -mask=b:2,0,2");
    run(s, "-prec=fp16 -mode=1 -b=1 -h=1 -d=128 -s=16384 -iperm=0 -operm=0 -mask=b:-1,1,2");
    run(s, "-prec=bf16 -mode=1 -b=1 -h=2 -d=128 -s=8192 -iperm=0 -operm=0 -mask=b:-1,1,2");
    EACH(prec, "fp16", "bf16")
    EACH(hdim, "64", "128", "256")
    EACH(mode, "0", "1")
    EACH(mask, "0", "1") {
        run(s, "-prec=%s -mode=%s -b=1 -h=2 -d=%s -s=512 -iperm=0 -operm=0 -init_sink=1 -mask=%s", *prec, *mode, *hdim,
            *mask);
        run(s, "-prec=%s -mode=%s -b=2 -h=4 -d=%s -s=1024 -init_sink=1 -mask=%s", *prec, *mode, *hdim, *mask);
        run(s, "-prec=%s -mode=%s -b=1 -h=2 -d=%s -s=4096 -iperm=0 -operm=0 -init_sink=1", *prec, *mode, *hdim);
    }
}

static void run_all(example_smoke *s) {
    run_fp16_bf16(s);
    run_padding(s);
    run_padding_boundaries(s);
    run_fp8(s);
    run_sinks(s);
}

int main(int argc, char **argv) { return example_smoke_main("tile_example_fmha_fwd_smoke", run_all, argc, argv); }
