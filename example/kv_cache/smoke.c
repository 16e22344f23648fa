// SPDX-License-Identifier: MIT
// CK's smoke matrix of appendkv (smoke_test_fwd.sh -a: run_fp16_appendkv_tests) over the append alone, and edges that
// it lacks.
#include "program.h"

extern const example_program appendkv_program;

// Types, head dims, groups of heads, layouts, pages of any size, rows that begin anywhere.
static void run_more(example_smoke *smoke) {
    EXAMPLE_EACH(prec, "fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32")
    EXAMPLE_EACH(heads, "-h=6 -h_k=2 -d=96 -d_v=80", "-h=4 -h_k=1 -d=128 -iperm=0", "-h=5 -d=40 -d_v=33 -iperm=0",
                 "-h=2 -d=512")
    EXAMPLE_EACH(cache, "", "-page_block_size=1", "-page_block_size=16", "-page_block_size=24 -causal=1",
                 "-page_block_size=256")
    EXAMPLE_EACH(rotary, "", "-rotary_dim=32", "-rotary_dim=32 -rotary_interleaved=0")
    EXAMPLE_EACH(place, "", "-pad=8", "-pad=1 -misalign=1") {
        if (**rotary && (*prec)[2] == '8') continue;               // fp8 is not rotated
        const char *const keys = **place ? "-s_k=50" : "-s_k=599"; // emulators run what has 599 (scripts/test.sh)
        example_case(smoke, &appendkv_program, "-prec=%s -b=4 -s=3 %s -s_knew=17 %s %s %s %s", *prec, keys, *heads,
                     *cache, *rotary, *place);
    }
}

static void run_all(example_smoke *smoke) {
    example_smoke_of_appendkv(smoke, &appendkv_program);
    run_more(smoke);
}

int main(int argc, char **argv) { return example_smoke_main("tile_example_kv_cache_smoke", run_all, argc, argv); }
