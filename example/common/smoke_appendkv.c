// SPDX-License-Identifier: MIT
// CK's smoke matrix of appendkv (smoke_test_fwd.sh -a: run_fp16_appendkv_tests), without the cases that are twice in
// it.
#include "program.h"

// 63 to 65 queries, 65 and 129 keys, of which none, 64 or all are new.
void example_smoke_of_appendkv(example_smoke *smoke, const example_program *program) {
    EXAMPLE_EACH(prec, "fp16", "bf16")
    EXAMPLE_EACH(s, "-s=63", "-s=64", "-s=65")
    EXAMPLE_EACH(keys, "-s_k=65 -s_knew=0", "-s_k=65 -s_knew=64", "-s_k=65 -s_knew=65", "-s_k=129 -s_knew=0",
                 "-s_k=129 -s_knew=64", "-s_k=129 -s_knew=129")
    EXAMPLE_EACH(d, "32", "64", "128", "256")
    EXAMPLE_EACH(inter, "0", "1")
    EXAMPLE_EACH(rotary, "0", "16", "32", "all")
    EXAMPLE_EACH(cache, "", "-cache_batch_idx=1", "-page_block_size=128")
    example_case(smoke, program, "-prec=%s -b=3 -h=3 %s %s -d=%s -rotary_interleaved=%s -rotary_dim=%s %s", *prec, *s,
                 *keys, *d, *inter, **rotary == 'a' ? *d : *rotary, *cache);
}
