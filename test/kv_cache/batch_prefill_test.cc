// SPDX-License-Identifier: MIT
// fmha_batch_prefill against the reference: both lookup tables, both layouts of pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "case.h"
#include "tessera/fmha_batch_prefill.h"

namespace {

int bytes_of(const Case &c) { return element_bits(c.input()) / 8; }

// Keys or values of pages in pieces, as far apart as linear ones: element d of a row of a head's part of a page goes to
// where `place` says. Whole pieces, which have so many numbers of so many rows, may be touched where pages are apart.
template <typename Place>
void pieces(const Tensors &x, const Guarded &from, const int64_t stride[3], int hdim, Guarded &to, Place place,
            int numbers, int of_rows) {
    const auto bytes = static_cast<size_t>(bytes_of(x.c));
    const auto at = [&](int64_t page, int64_t head, int64_t row, int64_t d) {
        return page * stride[0] + head * x.rows * hdim + place(row, d);
    };
    for (int b = 0; b < x.c.batch; b++)
        for (int j = 0; j < x.c.seqlen_k[b]; j++)
            for (int g = 0; g < x.c.heads_k; g++) {
                const int64_t page = x.block_of(b, j), row = x.row_of(b, j);
                const int64_t linear = page * stride[0] + g * stride[1] + row * stride[2];
                for (int d = 0; d < hdim; d++)
                    std::memcpy(to.as<char>() + static_cast<size_t>(at(page, g, row, d)) * bytes,
                                from.as<char>() + static_cast<size_t>(linear + d) * bytes, bytes);
            }
    if (x.c.apart) to.allow_only(x.parts_in_pieces(hdim, at, numbers, of_rows));
}

// Lists of pages one after the other, each as long as its sequence needs.
struct Lists {
    explicit Lists(const Tensors &x) : first{0} {
        for (int b = 0; b < x.c.batch; b++) {
            const int keys = x.c.seqlen_k[b], pages = (keys + x.c.page - 1) / x.c.page;
            first.push_back(first.back() + pages);
            last.push_back(pages ? keys - (pages - 1) * x.c.page : -5);
            for (int i = 0; i < pages; i++) all.push_back(x.table.as<int32_t>()[b * x.columns + i]);
        }
    }
    std::vector<int32_t> first, last, all;
};

class BatchPrefill : public OnDevice {
  protected:
    // stores: the bytes of dropout, which are compared.
    void run(const Tensors &x, tessera_kv_layout layout, tessera_kv_lookup lookup, bool stores = false) {
        const Case &c = x.c;
        tessera_fmha_batch_prefill_traits t = tessera_fmha_batch_prefill_traits_init();
        tessera_fmha_batch_prefill_args a = tessera_fmha_batch_prefill_args_init();
        Copies to(device, is_gpu());
        const int p = 16 / bytes_of(c), rows = x.rows;
        const size_t before_k = x.nobodys(x.k_stride), before_v = x.nobodys(x.v_stride);
        Guarded k(x.k.size(), c.nan(), before_k), v(x.v.size(), c.nan(), before_v);
        if (layout != TESSERA_KV_LINEAR) {
            const int p_v = layout == TESSERA_KV_VLLM ? rows : p;
            pieces(
                x, x.k, x.k_stride, c.hdim_q, k, [=](int64_t r, int64_t d) { return d / p * rows * p + r * p + d % p; },
                p, 1);
            pieces(
                x, x.v, x.v_stride, c.hdim_v, v,
                [=](int64_t r, int64_t d) { return r / p_v * c.hdim_v * p_v + d * p_v + r % p_v; }, 1, p);
            if (c.first_block) to.in_order(1 << 24);
            to.of_rest(k, before_k), to.of_rest(v, before_v);
        }
        x.put(to, t, a);
        if (c.scales != TESSERA_QSCALE_NONE) {
            t.qscale_type = c.scales;
            a.q_descale_ptr = to.of(x.q_scales), a.k_descale_ptr = to.of(x.k_scales),
            a.v_descale_ptr = to.of(x.v_scales);
            a.nblock_stride_kv_block_descale = c.heads_k, a.nhead_stride_kv_block_descale = 1;
        }
        t.has_dropout = c.drop > 0;
        a.p_drop = c.drop, a.drop_seed = kSeed, a.drop_offset = kOffset;
        const Guarded bytes(stores ? static_cast<size_t>(x.total_q) * c.heads * x.max_k : 1);
        if (stores) {
            a.s_randval = 1, a.rand_val_ptr = to.of(bytes);
            a.nhead_stride_randval = x.max_k, a.stride_randval = static_cast<int64_t>(c.heads) * x.max_k;
        }
        const Lists lists(x);
        const Guarded indices(std::max<size_t>(lists.all.size(), 1) * sizeof(int32_t));
        std::copy(lists.all.begin(), lists.all.end(), indices.as<int32_t>());
        t.kv_memory_layout = a.kv_memory_layout = layout;
        t.kv_lookup_table = a.kv_lookup_table = lookup;
        a.num_total_pages = x.blocks, a.page_block_size = c.page, a.max_seqlen_k = x.max_k;
        if (lookup == TESSERA_KV_SGLANG_1D) {
            a.kv_indptr = to.of(lists.first), a.kv_page_indices = to.of(indices);
            a.kv_last_page_lens = c.page == 1 ? nullptr : to.of(lists.last);
        } else {
            a.kv_page_indices = to.of(x.table), a.batch_stride_block_table = x.columns;
            a.seqlen_k_ptr = to.of(x.length_k);
        }
        if (layout != TESSERA_KV_LINEAR) {
            a.k_ptr = to.of_rest(k, before_k), a.v_ptr = to.of_rest(v, before_v);
            a.nhead_stride_k = static_cast<int64_t>(rows) * c.hdim_q;
            a.nhead_stride_v = static_cast<int64_t>(rows) * c.hdim_v;
            a.stride_k = a.stride_v = -1; // ignored
        }
        run_call(to, x, t, a, tessera_fmha_batch_prefill_workspace_size, tessera_fmha_batch_prefill);
        if (stores && is_served) {
            to.get(bytes);
            compare_bytes(x, bytes.as<uint8_t>());
        }
    }

  private:
    static constexpr uint64_t kSeed = 7, kOffset = 9; // those of Tensors::wrong()

    // [token, head, key]; those past a sequence's last key are as they were.
    static void compare_bytes(const Tensors &x, const uint8_t *bytes) {
        const Case &c = x.c;
        for (int b = 0; b < c.batch; b++)
            for (int i = 0; i < c.seqlen_q[b]; i++)
                for (int h = 0; h < c.heads; h++)
                    for (int j = 0; j < x.max_k; j++) {
                        const int head = b * c.heads + h, token = x.start_q[b] + i;
                        const int want = j < c.seqlen_k[b] ? fmha_fwd_dropout_byte(kSeed, kOffset, head, i, j) : 0xff;
                        ASSERT_EQ(bytes[(static_cast<size_t>(token) * c.heads + h) * x.max_k + j], want)
                            << c.words() << ": sequence " << b << " query " << i << " head " << h << " key " << j;
                    }
    }
};

TEST_P(BatchPrefill, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(120, 2000) && !HasFailure(); n++) {
        Case c = fit(draw_case(random));
        c.group = true, c.keys = Keys::kPages;
        const auto layout = static_cast<tessera_kv_layout>(random() % TESSERA_KV_LAYOUT_COUNT);
        c.page = 1 << random() % 11;
        c.apart = sees_touches();
        c.drop = random() % 4 ? 0.0F : 0.3F;
        if (element_bits(c.input()) == 8)
            c.scales =
                std::array{TESSERA_QSCALE_NONE, TESSERA_QSCALE_KV_BLOCK, TESSERA_QSCALE_TOKEN_HEAD}[random() % 3];
        if (layout != TESSERA_KV_LINEAR) {
            c.page = std::max(c.page, 16);
            c.hdim_q = (c.hdim_q + 15) / 16 * 16, c.hdim_v = (c.hdim_v + 15) / 16 * 16;
        }
        const Tensors tensors(c, seed + static_cast<uint32_t>(n));
        const bool stores = c.drop > 0 && random() % 2;
        run(tensors, layout, random() % 2 ? TESSERA_KV_SGLANG_1D : TESSERA_KV_VLLM_2D, stores);
        if (is_served) {
            EXPECT_EQ(wrong(tensors), "") << c.words() << ", " << tessera_kv_layout_string(layout) << ", seed " << seed;
        }
    }
}

// Types of 8 bits on GPUs in all layouts: tiles of keys that end anywhere, and scales of each kind. Pages have as many
// rows as a lane takes keys of a column, fewer than a tile has, and more.
TEST_P(BatchPrefill, EightBits) {
    uint32_t seed = 20;
    if (is_gpu() && !has_fp8()) GTEST_SKIP() << "it has no products of 8 bits";
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_FP8, TESSERA_FMHA_FP8BF16, TESSERA_FMHA_FP8FP32})
        for (const int hdim : {64, 128, 256})
            for (const int queries : {1, 70})
                for (int layout = 0; layout < TESSERA_KV_LAYOUT_COUNT; layout++)
                    for (const tessera_qscale scales :
                         {TESSERA_QSCALE_NONE, TESSERA_QSCALE_KV_BLOCK, TESSERA_QSCALE_TOKEN_HEAD}) {
                        seed++;
                        if (!is_due(4)) continue;
                        Case c;
                        c.dtype = dtype, c.group = true, c.page = 16 << seed % 4, c.scales = scales;
                        c.drop = seed / 3 % 2 ? 0.3F : 0.0F;
                        c.batch = 3, c.heads = 4, c.heads_k = 2, c.hdim_q = c.hdim_v = hdim;
                        c.seqlen_q = {queries, queries, 1}, c.seqlen_k = {1, 33, 164};
                        c = fit(c);
                        const Tensors tensors(c, seed);
                        run(tensors, static_cast<tessera_kv_layout>(layout),
                            seed % 2 ? TESSERA_KV_SGLANG_1D : TESSERA_KV_VLLM_2D, c.drop > 0);
                        if (is_served) {
                            EXPECT_EQ(wrong(tensors), "")
                                << c.words() << ", layout " << layout << ", scales " << static_cast<int>(scales);
                        }
                    }
}

// NaN of 8 bits, OCP's or FNUZ's, is NaN: for a query that sees such a key o and lse are, and the columns of o of such
// a value; others are numbers.
TEST_P(BatchPrefill, NanOfEightBits) {
    if (is_gpu() && !has_fp8()) GTEST_SKIP() << "it has no products of 8 bits";
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_FP8, TESSERA_FMHA_FP8BF16, TESSERA_FMHA_FP8FP32})
        for (const int hdim : {64, 128, 256})
            for (const int queries : {1, 70})
                for (int layout = 0; layout < TESSERA_KV_LAYOUT_COUNT; layout++) {
                    if (!is_due(4)) continue;
                    Case c;
                    c.dtype = dtype, c.group = true, c.page = 16;
                    c.batch = 3, c.heads = 4, c.heads_k = 2, c.hdim_q = c.hdim_v = hdim;
                    c.seqlen_q = {queries, 1, queries}, c.seqlen_k = {33, 150, 70};
                    c = fit(c);
                    const Tensors tensors(c, 16);
                    tensors.make_numbers_nan();
                    run(tensors, static_cast<tessera_kv_layout>(layout), TESSERA_KV_VLLM_2D);
                    if (is_served) {
                        EXPECT_EQ(wrong(tensors), "") << c.words() << ", layout " << layout;
                    }
                }
}

// Nothing past the last key makes NaN of its infinities: lengths are no multiples of a tile.
TEST_P(BatchPrefill, InfiniteValuesOfTheLastKey) {
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP16})
        for (const int hdim : {64, 128, 256})
            for (const int queries : {1, 40})
                for (int layout = 0; layout < TESSERA_KV_LAYOUT_COUNT; layout++)
                    for (const tessera_kv_lookup lookup : {TESSERA_KV_SGLANG_1D, TESSERA_KV_VLLM_2D}) {
                        if (!is_due(7)) continue;
                        Case c;
                        c.dtype = dtype, c.group = true, c.page = 16;
                        c.batch = 3, c.heads = 2, c.heads_k = 1, c.hdim_q = c.hdim_v = hdim;
                        c.seqlen_q = {queries, queries, queries}, c.seqlen_k = {1, 33, 100};
                        const Tensors tensors(c, 11);
                        tensors.make_last_keys_infinite();
                        run(tensors, static_cast<tessera_kv_layout>(layout), lookup);
                        if (is_served) {
                            EXPECT_EQ(wrong(tensors), "") << c.words() << ", layout " << layout;
                        }
                    }
}

// Numbers of elements, and of bytes, that 32 bits do not hold, and of pages that 16 bits do not.
TEST_P(BatchPrefill, LargeCaches) {
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP8BF16})
        for (int layout = 0; layout < TESSERA_KV_LAYOUT_COUNT; layout++)
            for (const int queries : {1, 40}) {
                Case c;
                c.dtype = dtype, c.group = true, c.page = 16;
                c.batch = 3, c.heads = 4, c.heads_k = 1, c.hdim_q = c.hdim_v = 128; // 2048 elements in a page
                c.seqlen_q = {queries, 1, queries}, c.seqlen_k = {100, 0, 17};
                c.first_block = (1 << 21) + 1;
                c = fit(c);
                const Tensors tensors(c, 13);
                run(tensors, static_cast<tessera_kv_layout>(layout),
                    layout % 2 ? TESSERA_KV_SGLANG_1D : TESSERA_KV_VLLM_2D);
                if (is_served) {
                    EXPECT_EQ(wrong(tensors), "") << c.words() << ", layout " << layout;
                }
            }
}

ON_DEVICES(BatchPrefill);

} // namespace
