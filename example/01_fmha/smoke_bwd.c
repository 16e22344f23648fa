// SPDX-License-Identifier: MIT
// tile_example_fmha_bwd_smoke: the problems of CK's smoke_test_bwd.sh and smoke_test_bwd_sink.sh.
#include <stdio.h>

#include "fmha_bwd_runner.h"
#include "program.h"

#define run(smoke, ...) example_case(smoke, &fmha_bwd_program, __VA_ARGS__)
#define EACH EXAMPLE_EACH

static void run_shapes(example_smoke *s, const char *rest) {
    run(s, "-b=1 -h=4 -h_k=2 -s=259 %s", rest);
    run(s, "-b=2 -h=2 -s=516 -s_k=253 %s", rest);
    run(s, "-b=1 -h=4 -h_k=1 -s=500 -s_k=251 -mask=1 %s", rest);
    run(s, "-b=1 -h=2 -s=900 -s_k=258 -mask=2 %s", rest);
    run(s, "-b=2 -h=1 -s=987 -s_k=219 -mask=t:128,30 %s", rest);
    run(s, "-b=2 -h=3 -h_k=1 -s=244 -s_k=499 -mask=b:4,35 %s", rest);
}

static void run_traits(example_smoke *s, const char *prec, const char *perm, const char *hdim, const char *mode,
                       const char *bias, const char *p_drop, const char *more) {
    char rest[256];
    snprintf(rest, sizeof rest, "-prec=%s -d=%s -bias=%s -dbias=0 -p_drop=%s -iperm=%s -operm=%s -mode=%s%s", prec,
             hdim, bias, p_drop, perm, perm, mode, more);
    run_shapes(s, rest);
}

static void run_all(example_smoke *s) {
    static const char sink[] = " -sink_grad=1";
    EACH(prec, "fp16", "bf16")
    EACH(perm, "0", "1")
    EACH(hdim, "32", "64", "128", "256")
    EACH(mode, "0", "1")
    EACH(bias, "n", "a")
    EACH(p_drop, "0.0", "0.2") {
        run_traits(s, *prec, *perm, *hdim, *mode, *bias, *p_drop, "");
        if ((*hdim)[0] != '3') run_traits(s, *prec, *perm, *hdim, *mode, *bias, *p_drop, sink); // not 32
    }
    EACH(hdim, "40", "48", "72", "96") {
        run_traits(s, "fp16", "0", *hdim, "0", "n", "0", sink);
        run_traits(s, "fp16", "1", *hdim, "1", "a", "0.2", sink);
        run_traits(s, "bf16", "1", *hdim, "1", "n", "0", sink);
    }
}

int main(int argc, char **argv) { return example_smoke_main("tile_example_fmha_bwd_smoke", run_all, argc, argv); }
