// SPDX-License-Identifier: MIT
// fmha_fwd_pagedkv against the reference: caches of every kind, and sequences that are skipped.
#include <gtest/gtest.h>

#include <algorithm>

#include "case.h"
#include "tessera/fmha_fwd_pagedkv.h"

namespace {

class Pagedkv : public OnDevice {
  protected:
    void run(const Tensors &x, int32_t skipped) {
        tessera_fmha_fwd_pagedkv_traits t = tessera_fmha_fwd_pagedkv_traits_init();
        tessera_fmha_fwd_pagedkv_args a = tessera_fmha_fwd_pagedkv_args_init();
        Copies to(device, is_gpu());
        put_cache(x, to, t, a);
        t.skip_min_seqlen_q = skipped > 0;
        a.min_seqlen_q = skipped;
        run_call(to, x, t, a, tessera_fmha_fwd_pagedkv_workspace_size, tessera_fmha_fwd_pagedkv);
    }
};

TEST_P(Pagedkv, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(100, 2000) && !HasFailure(); n++) {
        const Case c = fit(draw_case(random));
        const Tensors tensors(c, seed + static_cast<uint32_t>(n));
        run(tensors, 0);
        if (is_served) {
            EXPECT_EQ(wrong(tensors), "") << c.words() << ", seed " << seed;
        }
    }
}

// Of a cache, and of its table, nothing but the sequences' keys and their entries is touched.
TEST_P(Pagedkv, PagesApart) {
    const uint32_t seed = test_seed() + 1;
    std::mt19937 random(seed);
    if (!sees_touches()) GTEST_SKIP() << "it does not say what is touched";
    for (int n = 0; n < count(40, 1000) && !HasFailure(); n++) {
        Case c = draw_case(random);
        c.apart = true;
        c = fit(c);
        const Tensors tensors(c, seed + static_cast<uint32_t>(n));
        run(tensors, 0);
        if (is_served) {
            EXPECT_EQ(wrong(tensors), "") << c.words() << ", seed " << seed;
        }
    }
}

// Sequences with few queries stay as they are: NaN.
TEST_P(Pagedkv, SkipsShortSequences) {
    Case c;
    c.group = true;
    c.seqlen_q = {3, 5}, c.seqlen_k = {40, 50};
    const Tensors all(c, 1), some(c, 1);
    run(all, 0);
    run(some, 3);
    for (int h = 0; h < c.heads; h++)
        for (int i = 0; i < 8; i++)
            for (int d = 0; d < c.hdim_v; d++) {
                const int at = (h * 8 + i) * c.hdim_v + d;
                EXPECT_EQ(some.o.as<uint16_t>()[at], i < 3 ? 0xffff : all.o.as<uint16_t>()[at]);
            }
}

ON_DEVICES(Pagedkv);

} // namespace
