// SPDX-License-Identifier: MIT
// fmha_fwd_splitkv against the reference: caches of every kind, whatever the number of splits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "case.h"
#include "tessera/fmha_fwd_splitkv.h"

namespace {

class Splitkv : public OnDevice {
  protected:
    // Runs a case; the result is in its tensors.
    void run(const Tensors &x) {
        tessera_fmha_fwd_splitkv_traits t = tessera_fmha_fwd_splitkv_traits_init();
        tessera_fmha_fwd_splitkv_args a = tessera_fmha_fwd_splitkv_args_init();
        Copies to(device, is_gpu());
        put_cache(x, to, t, a);
        a.num_splits = x.c.splits;
        run_call(to, x, t, a, tessera_fmha_fwd_splitkv_workspace_size, tessera_fmha_fwd_splitkv);
    }
    void check(const Case &any, uint32_t seed) {
        const Case c = fit(any);
        const Tensors tensors(c, seed);
        run(tensors);
        if (is_served) {
            EXPECT_EQ(wrong(tensors), "") << c.words() << ", seed " << seed;
        }
    }
};

TEST_P(Splitkv, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(150, 3000) && !HasFailure(); n++)
        check(draw_case(random), seed + static_cast<uint32_t>(n));
}

// Of a cache, and of its table, nothing but the sequences' keys and their entries is touched.
TEST_P(Splitkv, PagesApart) {
    const uint32_t seed = test_seed() + 1;
    std::mt19937 random(seed);
    if (!sees_touches()) GTEST_SKIP() << "it does not say what is touched";
    for (int n = 0; n < count(60, 1000) && !HasFailure(); n++) {
        Case c = draw_case(random);
        c.apart = true;
        check(c, seed + static_cast<uint32_t>(n));
    }
}

// Sinks count once, whatever the splits, of which some have no key; queries that see no key; no keys at all.
TEST_P(Splitkv, SinksAndSplits) {
    for (const int splits : {0, 1, 2, 5, 128})
        for (const int queries : {1, 7})
            for (const bool group : {false, true}) {
                if (!is_due(3)) continue;
                Case c;
                c.group = group;
                c.keys = Keys::kPages;
                c.batch = 3;
                c.heads = 8;
                c.seqlen_q = {queries, queries, queries};
                c.seqlen_k = {0, 1, 300};
                c.sink = true;
                c.splits = splits;
                check(c, 1);
                c.mask = TESSERA_MASK_BOTTOM_RIGHT, c.left = 20, c.right = 0;
                check(c, 2);
                c.sink = false;
                check(c, 3);
            }
}

// Decoding as it is done: one query, many heads of it to a key head, long caches.
TEST_P(Splitkv, Decodes) {
    for (const tessera_fmha_dtype dtype :
         {TESSERA_FMHA_BF16, TESSERA_FMHA_FP16, TESSERA_FMHA_FP8BF16, TESSERA_FMHA_FP32})
        for (const int page : {1, 16, 128}) {
            if (!is_due(2)) continue;
            Case c;
            c.dtype = dtype, c.page = page;
            c.heads = 16, c.heads_k = 2, c.hdim_q = c.hdim_v = 128;
            c.seqlen_q = {1, 1}, c.seqlen_k = {2100, 777};
            c.mask = TESSERA_MASK_BOTTOM_RIGHT, c.right = 0;
            for (const int splits : {0, 7}) {
                c.splits = splits;
                check(c, 4);
            }
        }
}

// Nothing past the last key makes NaN of its infinities, in caches of any kind, the last part, and windows.
TEST_P(Splitkv, InfiniteValuesOfTheLastKey) {
    for (const Keys keys : {Keys::kTokens, Keys::kSequences, Keys::kIndexed, Keys::kPages, Keys::kGappy})
        for (const int splits : {1, 3})
            for (const int left : {-1, 20}) {
                Case c;
                c.group = keys == Keys::kTokens || keys == Keys::kGappy;
                c.keys = keys, c.page = 24, c.splits = splits;
                c.seqlen_q = {1, 1}, c.seqlen_k = {135, 34};
                if (left >= 0) c.mask = TESSERA_MASK_BOTTOM_RIGHT, c.left = left, c.right = 0;
                const Tensors tensors(c, 12);
                tensors.make_last_keys_infinite();
                run(tensors);
                if (is_served) {
                    EXPECT_EQ(wrong(tensors), "") << c.words();
                }
            }
}

// Numbers of elements, and of bytes, that 32 bits do not hold, and of pages that 16 bits do not: in pages that are
// smaller and larger than a tile, and in sequences.
TEST_P(Splitkv, LargeCaches) {
    for (const Keys keys : {Keys::kPages, Keys::kGappy, Keys::kIndexed})
        for (const int page : {16, 128})
            for (const int queries : {1, 40})
                for (const int splits : {1, 3}) {
                    if (!is_due(4)) continue;
                    Case c;
                    c.group = keys == Keys::kGappy;
                    c.keys = keys, c.page = page, c.splits = splits, c.rows_first = splits == 1;
                    c.heads = 4, c.heads_k = 1, c.hdim_q = c.hdim_v = 128;
                    c.seqlen_q = {queries, queries}, c.seqlen_k = {300, 17};
                    const int elements = (keys == Keys::kIndexed ? 300 : page) * 128;
                    c.first_block = static_cast<int>((INT64_C(1) << 32) / elements) + 1;
                    check(c, 14);
                }
}

TEST_P(Splitkv, BitsDoNotDependOnThreads) {
    std::mt19937 random(5);
    for (int n = 0; n < (is_gpu() ? 4 : 20); n++) {
        const Case c = fit(draw_case(random));
        const Tensors first(c, 6), second(c, 6);
        setenv("TESSERA_NUM_THREADS", "1", 1);
        run(first);
        setenv("TESSERA_NUM_THREADS", "4", 1);
        run(second);
        unsetenv("TESSERA_NUM_THREADS");
        EXPECT_EQ(std::memcmp(first.o.as<void>(), second.o.as<void>(), first.o.size()), 0) << c.words();
        EXPECT_EQ(std::memcmp(first.lse.as<void>(), second.lse.as<void>(), first.lse.size()), 0) << c.words();
    }
}

ON_DEVICES(Splitkv);

} // namespace
