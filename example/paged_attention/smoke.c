// SPDX-License-Identifier: MIT
// AITER's lists for its paged decode (op_tests/test_pa_v1.py, test_pa.py, test_pa_mtp.py), with fewer sequences, and
// what they lack.
#include "program.h"

extern const example_program paged_attention_program;

static void run_v1(example_smoke *smoke) {
    EXAMPLE_EACH(ctx, "1", "26", "128", "4097")
    EXAMPLE_EACH(b, "1", "3")
    EXAMPLE_EACH(heads, "-h=8 -h_k=1", "-h=4 -h_k=2", "-h=32 -h_k=4")
    EXAMPLE_EACH(d, "64", "128")
    EXAMPLE_EACH(page, "1", "16", "32")
    EXAMPLE_EACH(prec, "fp16", "bf16")
    EXAMPLE_EACH(layout, "nhd", "hnd")
    EXAMPLE_EACH(scores, "", "-alibi=1", "-softcap=30", "-alibi=1 -softcap=30")
    EXAMPLE_EACH(window, "0", "10")
    example_case(smoke, &paged_attention_program,
                 "-ctx=%s -b=%s %s -d=%s -block_size=%s -prec=%s -kv_layout=%s %s -window=%s", *ctx, *b, *heads, *d,
                 *page, *prec, *layout, *scores, *window);
}

static void run_quantised(example_smoke *smoke) {
    EXAMPLE_EACH(ctx, "7", "26", "57", "66", "109", "128", "257", "282", "4097")
    EXAMPLE_EACH(heads, "-h=4 -h_k=1", "-h=8 -h_k=1", "-h=32 -h_k=8")
    EXAMPLE_EACH(kv, "auto", "fp8_e4m3", "int8")
    EXAMPLE_EACH(scale, "none", "tensor", "page", "token")
    EXAMPLE_EACH(layout, "nhd", "hnd", "vllm", "vectorized")
    EXAMPLE_EACH(page, "16", "128") {
        if (**kv == 'a' && **scale != 'n') continue; // only quantised caches have scales
        example_case(smoke, &paged_attention_program,
                     "-b=3 -varlen=1 -ctx=%s %s -kv_cache_dtype=%s -kv_scale=%s -kv_layout=%s -block_size=%s", *ctx,
                     *heads, *kv, *scale, *layout, *page);
    }
}

static void run_turbo4(example_smoke *smoke) {
    EXAMPLE_EACH(ctx, "1", "16", "57", "128", "257", "4097")
    EXAMPLE_EACH(heads, "-h=8 -h_k=1", "-h=32 -h_k=8")
    EXAMPLE_EACH(d, "64", "128", "256")
    EXAMPLE_EACH(prec, "bf16", "fp16", "fp32")
    EXAMPLE_EACH(slot, "", "-slot=144", "-kv_scale=token", "-kv_layout=hnd")
    EXAMPLE_EACH(page, "16", "128")
    example_case(smoke, &paged_attention_program,
                 "-kv_cache_dtype=turbo4 -b=3 -varlen=1 -ctx=%s %s -d=%s -prec=%s %s -block_size=%s", *ctx, *heads, *d,
                 *prec, *slot, *page);
}

static void run_several_queries(example_smoke *smoke) {
    EXAMPLE_EACH(heads, "-h=5 -h_k=1", "-h=8 -h_k=1", "-h=10 -h_k=1")
    EXAMPLE_EACH(qlen, "1", "2", "3", "4", "8")
    EXAMPLE_EACH(ctx, "0", "3", "512", "3000")
    EXAMPLE_EACH(mixed, "0", "1")
    EXAMPLE_EACH(more, "", "-sink=1 -lse=1 -d_v=96", "-kv_cache_dtype=fp8_e4m3 -kv_scale=token -window=100",
                 "-prec=fp32", "-kv_cache_dtype=turbo4 -d=64 -window=33")
    example_case(smoke, &paged_attention_program, "-b=3 -varlen=1 %s -qlen=%s -ctx=%s -mixed=%s %s", *heads, *qlen,
                 *ctx, *mixed, *more);
}

static void run_all(example_smoke *smoke) {
    run_v1(smoke);
    run_quantised(smoke);
    run_turbo4(smoke);
    run_several_queries(smoke);
}

int main(int argc, char **argv) {
    return example_smoke_main("tile_example_paged_attention_smoke", run_all, argc, argv);
}
