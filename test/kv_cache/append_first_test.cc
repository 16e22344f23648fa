// SPDX-License-Identifier: MIT
// Operations on caches that append first: the cache holds the new keys afterwards, and nothing else of it changes;
// attention is as the reference's, or as that of two calls where rotation comes first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "case.h"
#include "tessera/fmha_fwd_appendkv.h"
#include "tessera/fmha_fwd_pagedkv.h"
#include "tessera/fmha_fwd_splitkv.h"

namespace {

constexpr int kAnyRow = 7; // rows of the tables of angles behind the last position

size_t element_of(const Case &c) { return c.dtype == TESSERA_FMHA_FP32 ? 4 : c.dtype >= TESSERA_FMHA_FP8 ? 1 : 2; }

// The tensors of a case whose last keys, `added` of each sequence, are not in the cache yet: there is NaN there.
struct Growing {
    Growing(const Case &c, int added, uint32_t seed)
        : x(c, seed), knew(bytes_of(c, added, c.hdim_q)), vnew(bytes_of(c, added, c.hdim_v)) {
        for (int b = 0; b < c.batch; b++) {
            before.push_back(c.seqlen_k[b] - added);
            for (int j = 0; j < added; j++)
                for (int g = 0; g < c.heads_k; g++) {
                    const size_t row = (static_cast<size_t>(b) * added + j) * c.heads_k + g;
                    take(x.k, x.k_stride, b, before[b] + j, g, c.hdim_q, knew, row);
                    take(x.v, x.v_stride, b, before[b] + j, g, c.hdim_v, vnew, row);
                }
        }
    }
    static size_t bytes_of(const Case &c, int added, int hdim) {
        return static_cast<size_t>(c.batch) * added * c.heads_k * hdim * element_of(c);
    }
    void take(const Guarded &from, const int64_t *stride, int b, int j, int g, int hdim, const Guarded &to,
              size_t row) const {
        const size_t bytes = hdim * element_of(x.c);
        const int64_t at = x.block_of(b, j) * stride[0] + g * stride[1] + x.row_of(b, j) * stride[2];
        unsigned char *const found = from.as<unsigned char>() + at * element_of(x.c);
        std::memcpy(to.as<unsigned char>() + row * bytes, found, bytes);
        std::memset(found, x.c.nan(), bytes);
    }
    // The fields of new keys, as args of fmha_fwd_appendkv and of operations that append first have them.
    template <typename Args> void put(Copies &to, Args &a, int added) const {
        a.knew_ptr = to.of(knew), a.vnew_ptr = to.of(vnew);
        a.seqlen_knew = added;
        a.seqlen_k_ptr = to.of(before);
        a.nhead_stride_knew = x.c.hdim_q, a.stride_knew = x.c.heads_k * a.nhead_stride_knew;
        a.nhead_stride_vnew = x.c.hdim_v, a.stride_vnew = x.c.heads_k * a.nhead_stride_vnew;
        a.batch_stride_knew = added * a.stride_knew, a.batch_stride_vnew = added * a.stride_vnew;
    }
    // Of the cache and its table nothing but what new rows need may be touched.
    void allow_new_rows_alone() {
        x.k.allow_only(x.linear_parts(x.k_stride, x.c.hdim_q, before));
        x.v.allow_only(x.linear_parts(x.v_stride, x.c.hdim_v, before));
        x.table.allow_only(x.entries(before));
    }
    Tensors x;
    const Guarded knew, vnew;
    std::vector<int32_t> before;
};

// Cosines and sines of every position, in 16-bit types.
struct Angles {
    Angles(const Case &c, int dim, int positions)
        : rows(positions + kAnyRow), dim(dim), cos(static_cast<size_t>(rows) * dim), sin(cos.size()) {
        const tessera_type type = c.dtype == TESSERA_FMHA_BF16 ? TESSERA_TYPE_BF16 : TESSERA_TYPE_FP16;
        for (int at = 0; at < rows * dim / 2; at++) {
            element_store(type, cos.as<void>(), at, std::cos(0.7 * at));
            element_store(type, sin.as<void>(), at, std::sin(0.7 * at));
        }
    }
    template <typename Args> void put(Copies &to, Args &a) const {
        a.rotary_cos_ptr = to.of(cos), a.rotary_sin_ptr = to.of(sin);
        a.rotary_rows = rows, a.rotary_dim = dim;
    }
    const int rows, dim;
    const Guarded cos, sin;
};

// A random case in batch mode whose sequences have at least the new keys.
Case draw_growing(std::mt19937 &random, int added) {
    Case c = draw_case(random);
    c.group = false, c.lengths = true;
    if (c.keys == Keys::kTokens || c.keys == Keys::kGappy) c.keys = Keys::kPages;
    c.seqlen_q.assign(c.batch, *std::max_element(c.seqlen_q.begin(), c.seqlen_q.end()));
    for (int &keys : c.seqlen_k) keys = std::max(keys, added);
    return c;
}

class AppendFirst : public OnDevice {
  protected:
    // The case by fmha_fwd_splitkv, or by fmha_fwd_pagedkv where it has one split.
    template <typename More> void run(const Growing &g, More more) {
        const auto with = [&](auto t, auto a, auto size, auto call) {
            Copies to(device, is_gpu());
            put_cache(g.x, to, t, a);
            more(to, a);
            run_call(to, g.x, t, a, size, call);
            to.get_rest(g.x.k, g.x.nobodys(g.x.k_stride)), to.get_rest(g.x.v, g.x.nobodys(g.x.v_stride));
            to.get(g.x.q);
        };
        if (g.x.c.splits == 1)
            return with(tessera_fmha_fwd_pagedkv_traits_init(), tessera_fmha_fwd_pagedkv_args_init(),
                        tessera_fmha_fwd_pagedkv_workspace_size, tessera_fmha_fwd_pagedkv);
        tessera_fmha_fwd_splitkv_args args = tessera_fmha_fwd_splitkv_args_init();
        args.num_splits = g.x.c.splits;
        with(tessera_fmha_fwd_splitkv_traits_init(), args, tessera_fmha_fwd_splitkv_workspace_size,
             tessera_fmha_fwd_splitkv);
    }

    // All but the first bytes, or the parts that may be touched.
    static void expect_same(const Guarded &got, const Guarded &want, size_t but, const std::string &words) {
        const std::vector<Part> whole = {{but, want.size()}};
        for (const Part &part : got.is_restricted() ? got.parts() : whole)
            EXPECT_EQ(std::memcmp(got.as<char>() + part.first, want.as<char>() + part.first, part.end - part.first), 0)
                << words;
    }

    void check(const Case &any, int added, uint32_t seed) {
        const Case c = fit(any);
        const Tensors want(c, seed);
        const Growing grown(c, added, seed);
        run(grown, [&](Copies &to, auto &a) { grown.put(to, a, added); });
        if (!is_served) return;
        expect_same(grown.x.k, want.k, want.nobodys(want.k_stride), c.words());
        expect_same(grown.x.v, want.v, want.nobodys(want.v_stride), c.words());
        EXPECT_EQ(wrong(grown.x), "") << c.words() << ", " << added << " added, seed " << seed;
    }

    // One call, and fmha_fwd_appendkv in place and then the operation.
    void check_rotated(const Case &any, int added, int dim, tessera_rope rope, uint32_t seed) {
        const Case c = fit(any);
        const Growing one(c, added, seed), two(c, added, seed);
        const Tensors before(c, seed);
        const Angles angles(c, dim, one.x.max_k + one.x.max_q);
        run(one, [&](Copies &to, auto &a) {
            if (added) one.put(to, a, added);
            a.rope_type = rope;
            angles.put(to, a);
        });
        if (!is_served) return;
        append(two, added, angles, rope);
        run(two, [](Copies &, auto &) {});
        const std::string words = c.words() + ", " + std::to_string(added) + " added";
        EXPECT_EQ(std::memcmp(one.x.q.as<void>(), before.q.as<void>(), before.q.size()), 0) << words;
        const Guarded Tensors::*const outputs[] = {&Tensors::o, &Tensors::lse, &Tensors::k, &Tensors::v};
        for (const Guarded Tensors::*const x : outputs)
            EXPECT_EQ(std::memcmp((one.x.*x).as<void>(), (two.x.*x).as<void>(), (one.x.*x).size()), 0) << words;
    }

    void append(const Growing &g, int added, const Angles &angles, tessera_rope rope) {
        const Case &c = g.x.c;
        const bool pages = c.keys == Keys::kPages;
        Copies to(device, is_gpu());
        tessera_fmha_fwd_appendkv_traits t = tessera_fmha_fwd_appendkv_traits_init();
        tessera_fmha_fwd_appendkv_args a = tessera_fmha_fwd_appendkv_args_init();
        tessera_fmha_fwd_traits traits = tessera_fmha_fwd_traits_init();
        tessera_fmha_fwd_args args = tessera_fmha_fwd_args_init();
        g.x.put(to, traits, args);
        t.hdim_q = a.hdim_q = c.hdim_q, t.hdim_v = a.hdim_v = c.hdim_v;
        t.data_type = c.dtype, t.is_v_rowmajor = 1, t.rope_type = rope;
        g.put(to, a, added);
        angles.put(to, a);
        a.q_ptr = a.q_rotated_ptr = to.of(g.x.q), a.k_ptr = to.of(g.x.k), a.v_ptr = to.of(g.x.v);
        a.batch = c.batch, a.seqlen_q = g.x.max_q, a.nhead_q = c.heads, a.nhead_k = c.heads_k;
        a.has_mask = c.mask != TESSERA_MASK_NONE;
        a.max_seqlen_k = g.x.max_k, a.cache_blocks = g.x.blocks, a.page_block_size = c.page;
        if (pages) a.block_table_ptr = to.of(g.x.table), a.batch_stride_block_table = g.x.columns;
        if (c.keys == Keys::kIndexed) a.cache_batch_idx = to.of(g.x.index);
        a.stride_q = a.stride_q_rotated = args.stride_q, a.stride_k = args.stride_k, a.stride_v = args.stride_v;
        a.nhead_stride_q = a.nhead_stride_q_rotated = args.nhead_stride_q;
        a.batch_stride_q = a.batch_stride_q_rotated = args.batch_stride_q;
        a.nhead_stride_k = args.nhead_stride_k, a.nhead_stride_v = args.nhead_stride_v;
        a.batch_stride_k = args.batch_stride_k, a.batch_stride_v = args.batch_stride_v;
        run_call(to, g.x, t, a, tessera_fmha_fwd_appendkv_workspace_size, tessera_fmha_fwd_appendkv);
        to.get(g.x.q), to.get(g.x.k), to.get(g.x.v);
    }
};

TEST_P(AppendFirst, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(48, 1500) && !HasFailure(); n++) {
        const int added = static_cast<int>(1 + random() % (n % 3 ? 3 : 40));
        check(draw_growing(random, added), added, seed + static_cast<uint32_t>(n));
    }
}

// Of a cache, and of its table, nothing but the sequences' keys and their entries is touched.
TEST_P(AppendFirst, PagesApart) {
    const uint32_t seed = test_seed() + 2;
    std::mt19937 random(seed);
    if (!sees_touches()) GTEST_SKIP() << "it does not say what is touched";
    for (int n = 0; n < count(30, 1000) && !HasFailure(); n++) {
        const int added = static_cast<int>(1 + random() % (n % 3 ? 3 : 40));
        Case c = draw_growing(random, added);
        c.apart = true;
        check(c, added, seed + static_cast<uint32_t>(n));
    }
}

// fmha_fwd_appendkv touches new rows alone, and their entries of the table.
TEST_P(AppendFirst, AppendsNewRowsAlone) {
    const uint32_t seed = test_seed() + 3;
    std::mt19937 random(seed);
    if (!sees_touches()) GTEST_SKIP() << "it does not say what is touched";
    for (int n = 0; n < count(60, 1000) && !HasFailure(); n++) {
        const int added = static_cast<int>(1 + random() % (n % 3 ? 3 : 40));
        Case c = draw_growing(random, added);
        c.apart = true;
        c = fit(c);
        const uint32_t of_case = seed + static_cast<uint32_t>(n);
        const Tensors want(c, of_case);
        Growing grown(c, added, of_case);
        grown.allow_new_rows_alone();
        append(grown, added, Angles(c, 16, 1), TESSERA_ROPE_NONE);
        if (!is_served) continue;
        expect_same(grown.x.k, want.k, 0, c.words());
        expect_same(grown.x.v, want.v, 0, c.words());
    }
}

// Rotated, with and without new keys, in 16 bits; head dims that rope divides.
TEST_P(AppendFirst, RotatesAsTwoCallsDo) {
    std::mt19937 random(test_seed() + 1);
    for (int n = 0; n < count(60, 600) && !HasFailure(); n++) {
        const int added = n % 4 ? static_cast<int>(1 + random() % 20) : 0;
        Case c = draw_growing(random, added);
        c.dtype = n % 2 ? TESSERA_FMHA_FP16 : TESSERA_FMHA_BF16;
        c.hdim_q = c.hdim_q > 1 ? c.hdim_q : 16;
        const int dim = random() % 2 ? c.hdim_q / 16 * 16 : 16;
        check_rotated(c, added, dim, n % 3 ? TESSERA_ROPE_HALF : TESSERA_ROPE_INTERLEAVED, test_seed());
    }
}

// A decode step: one query and one new key, which begins a page, ends one, or is a sequence's first.
TEST_P(AppendFirst, DecodeSteps) {
    for (const int splits : {0, 1, 5})
        for (const int page : {1, 16, 128}) {
            if (!is_due(4)) continue;
            Case c;
            c.page = page, c.splits = splits;
            c.batch = 4, c.heads = 8, c.heads_k = 2, c.hdim_q = c.hdim_v = 128;
            c.seqlen_q = {1, 1, 1, 1}, c.seqlen_k = {1, page, page + 1, 700};
            check(c, 1, 3);
            check_rotated(c, 1, 128, TESSERA_ROPE_HALF, 4);
        }
}

// Numbers of elements, and of bytes, that 32 bits do not hold, and of pages that 16 bits do not.
TEST_P(AppendFirst, LargeCaches) {
    if (is_gpu() && !is_cuda()) GTEST_SKIP() << "the addresses of both caches, for which there is no memory, overlap";
    for (const Keys keys : {Keys::kPages, Keys::kIndexed})
        for (const int added : {1, 20}) {
            Case c;
            c.keys = keys, c.heads = 4, c.heads_k = 1, c.hdim_q = c.hdim_v = 128; // 2048 elements in a page
            c.seqlen_q = {1, 1}, c.seqlen_k = {300, 33};
            c.first_block = keys == Keys::kPages ? (1 << 21) + 1 : (1 << 25) / 300 + 1;
            check(c, added, 15);
        }
}

ON_DEVICES(AppendFirst);

} // namespace
