// SPDX-License-Identifier: MIT
// tile_example_fmha_fwd_cache_smoke: the problems of CK's smoke_test_fwd.sh -s, splits and caches by its nine shapes,
// and -a, attention after appends; and pages, sinks and decode steps that it lacks.
#include <string.h>

#include "fmha_fwd_runner.h"
#include "program.h"

#define run(smoke, ...) example_case(smoke, &fmha_fwd_program, __VA_ARGS__)

// CK's shapes, without the pad of the last one, which goes without splits.
static const char *const shapes[] = {
    "-b=2 -h=2 -h_k=1 -d=16 -d_v=%s -s=55 -s_k=256",  "-b=1 -h=3 -d=%s -s=100 -s_k=51",
    "-b=2 -h=1 -d=16 -d_v=%s -s=99 -s_k=256 -mask=1", "-b=1 -h=2 -h_k=1 -d=%s -s=1024 -s_k=256 -mask=2",
    "-b=2 -h=1 -d=%s -d_v=24 -s=3 -s_k=99 -mask=2",   "-b=3 -h=2 -h_k=1 -d=%s -s=200 -s_k=520 -mask=t:128,30",
    "-b=2 -h=1 -d=%s -s=99 -s_k=32 -mask=b:4,35",     "-b=1 -h=2 -h_k=1 -d=%s -s=33 -s_k=0 -mask=2",
    "-b=1 -h=2 -h_k=1 -d=%s -s=1 -s_k=10 -mask=2",
};

static void run_shapes(example_smoke *s, const char *hdim, const char *rest) {
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        char shape[128];
        snprintf(shape, sizeof shape, shapes[n], hdim);
        run(s, "%s %s", shape, rest);
    }
}

static void run_ck(example_smoke *s) {
    EXAMPLE_EACH(prec, "fp16", "bf16")
    EXAMPLE_EACH(mode, "1", "0")
    EXAMPLE_EACH(perm, "0", "1")
    EXAMPLE_EACH(hdim, "32", "64", "128", "256")
    EXAMPLE_EACH(lse, "0", "1")
    EXAMPLE_EACH(bias, "n", "e", "a")
    EXAMPLE_EACH(splits, "1", "2", "3")
    EXAMPLE_EACH(cache, "", "-page_block_size=128", "-cache_batch_idx=1") {
        char rest[160];
        if (strcmp(*splits, "1") == 0 && !**cache) continue;            // fmha_fwd
        if (strcmp(*mode, "1") == 0 && strstr(*cache, "idx")) continue; // indices are for batch mode
        snprintf(rest, sizeof rest, "-prec=%s -mode=%s -iperm=%s -operm=%s -lse=%s -bias=%s -num_splits=%s %s", *prec,
                 *mode, *perm, *perm, *lse, *bias, *splits, *cache);
        run_shapes(s, *hdim, rest);
    }
}

// Decoding by splits that may be empty, with sinks, by each operation; pages of any size.
static void run_more(example_smoke *s) {
    EXAMPLE_EACH(prec, "fp32", "fp16", "bf16", "fp8bf16 -qscale=pt", "fp8bf16 -qscale=kvbs", "fp8fp32 -qscale=th")
    EXAMPLE_EACH(mode, "0", "1")
    EXAMPLE_EACH(api, "-num_splits=0 -api=fwd_splitkv", "-num_splits=7 -lse=1", "-num_splits=128", "-num_splits=-1",
                 "-api=pagedkv_prefill", "-api=batch_prefill -p_drop=0.2")
    EXAMPLE_EACH(page, "1", "16", "24", "128")
    EXAMPLE_EACH(mask, "0", "b", "b:50,0,3 -init_sink=1", "0 -logits_soft_cap=9")
    EXAMPLE_EACH(sizes, "-h=8 -h_k=1 -s=1 -s_k=1500 -d=128", "-h=6 -h_k=2 -s=5 -s_k=99 -d=72 -d_v=40") {
        const int prefill = strstr(*api, "batch_prefill") != NULL;
        const int rows = strstr(*prec, "kvbs") || strstr(*prec, "th"); // have scales, as batch_prefill's alone may
        if (rows && !prefill) continue;
        if (prefill && (strcmp(*mode, "0") == 0 || strcmp(*page, "24") == 0)) continue;
        run(s, "-prec=%s -mode=%s -b=3 %s -page_block_size=%s -mask=%s %s", *prec, *mode, *sizes, *page, *mask, *api);
    }
}

// Appends of any size, rotated or not, in pages of any size, by each operation.
static void run_appends(example_smoke *s) {
    EXAMPLE_EACH(prec, "fp32", "fp16", "bf16", "fp8bf16 -qscale=pt")
    EXAMPLE_EACH(splits, "1", "0", "5")
    EXAMPLE_EACH(cache, "", "-cache_batch_idx=1", "-page_block_size=1", "-page_block_size=24", "-page_block_size=128")
    EXAMPLE_EACH(mask, "0", "b", "t:20,3")
    EXAMPLE_EACH(rotary, "", "-rotary_dim=32", "-rotary_dim=64 -rotary_interleaved=0")
    EXAMPLE_EACH(sizes, "-h=8 -h_k=1 -s=1 -s_k=700 -s_knew=1 -d=128",
                 "-h=6 -h_k=2 -s=5 -s_k=99 -s_knew=50 -d=72 -d_v=40",
                 "-h=4 -h_k=2 -s=3 -s_k=40 -s_knew=0 -d=64 -iperm=0") {
        if (**rotary && (*prec)[2] == '8') continue;            // fp8 is not rotated
        if (!**rotary && strstr(*sizes, "-s_knew=0")) continue; // nothing comes first
        run(s, "-prec=%s -b=3 %s -num_splits=%s -mask=%s %s %s", *prec, *sizes, *splits, *mask, *rotary, *cache);
    }
}

static void run_all(example_smoke *s) {
    run_ck(s);
    example_smoke_of_appendkv(s, &fmha_fwd_program);
    run_more(s);
    run_appends(s);
}

int main(int argc, char **argv) { return example_smoke_main("tile_example_fmha_fwd_cache_smoke", run_all, argc, argv); }
