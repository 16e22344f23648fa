// SPDX-License-Identifier: MIT
// What calls of fmha_batch_prefill refuse, in which words, and that they write nothing then; and their names.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tessera/kernel/fmha_batch_prefill.h"

namespace {

// Two sequences of 2 and 1 queries, 9 and 12 keys in pages of 8 rows; 4 and 2 heads of 32 and 16 elements.
enum { kQ, kK, kV, kO, kLse, kStartQ, kFirst, kPages, kLast, kLengths, kScales, kKScales, kVScales, kWorkspace };
struct Call {
    static constexpr size_t kBytes = 8192, kTensors = kWorkspace + 64;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes + 64, 0x11);
    unsigned char *const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tessera_fmha_batch_prefill_traits traits = tessera_fmha_batch_prefill_traits_init();
    tessera_fmha_batch_prefill_args args = tessera_fmha_batch_prefill_args_init();
    int32_t *first = ints(kFirst), *pages = ints(kPages), *last = ints(kLast), *lengths = ints(kLengths);

    Call() {
        traits.hdim_q = args.hdim_q = 32, traits.hdim_v = args.hdim_v = 16;
        traits.data_type = TESSERA_FMHA_BF16;
        traits.has_lse = 1;
        traits.kv_memory_layout = args.kv_memory_layout = TESSERA_KV_LINEAR;
        args.batch = 2, args.nhead_q = 4, args.nhead_k = 2, args.max_seqlen_q = 2, args.max_seqlen_k = 16;
        args.num_total_pages = 5, args.page_block_size = 8, args.batch_stride_block_table = 2;
        args.scale_s = 0.2F;
        args.stride_q = args.stride_k = 32, args.stride_v = args.stride_o = 16;
        args.nhead_stride_q = 96, args.nhead_stride_k = 256, args.nhead_stride_v = 128, args.nhead_stride_o = 48;
        args.batch_stride_k = 512, args.batch_stride_v = 256, args.nhead_stride_lse = 3;
        args.q_ptr = at(kQ), args.k_ptr = at(kK), args.v_ptr = at(kV), args.o_ptr = at(kO), args.lse_ptr = at(kLse);
        args.seqstart_q_ptr = at(kStartQ), args.kv_indptr = first, args.kv_page_indices = pages;
        args.kv_last_page_lens = last;
        args.workspace_ptr = at(kWorkspace), args.workspace_size = 64 * kBytes;
        put({0, 2, 3}, ints(kStartQ)), put({0, 2, 4}, first), put({4, 0, 2, 1}, pages), put({1, 4}, last);
        put({9, 12}, lengths);
    }
    static void put(std::initializer_list<int32_t> values, int32_t *to) { std::copy(values.begin(), values.end(), to); }
    void *at(size_t number) { return base + number * kBytes; }
    int32_t *ints(size_t number) { return static_cast<int32_t *>(at(number)); }
    tessera_status run(const tessera_device *device) {
        return tessera_fmha_batch_prefill(device, &traits, &args, nullptr);
    }
};

void in_table(Call &c) {
    c.traits.kv_lookup_table = c.args.kv_lookup_table = TESSERA_KV_VLLM_2D;
    c.args.seqlen_k_ptr = c.lengths;
    c.args.kv_indptr = c.args.kv_last_page_lens = nullptr;
}
void in_pieces(Call &c) {
    c.traits.kv_memory_layout = c.args.kv_memory_layout = TESSERA_KV_VECTORIZED;
    c.args.stride_k = c.args.stride_v = 0;
}
void in_fp8(Call &c, tessera_qscale scales) {
    c.traits.data_type = TESSERA_FMHA_FP8BF16;
    c.traits.qscale_type = scales;
    c.args.q_descale_ptr = c.at(kScales), c.args.k_descale_ptr = c.at(kKScales), c.args.v_descale_ptr = c.at(kVScales);
    c.args.nblock_stride_kv_block_descale = 2, c.args.nhead_stride_kv_block_descale = 1;
}
void in_fp8_pages(Call &c) { in_fp8(c, TESSERA_QSCALE_KV_BLOCK); }
void in_fp8_tokens(Call &c) { in_fp8(c, TESSERA_QSCALE_TOKEN_HEAD); }
void in_pages_of_one(Call &c) {
    c.args.page_block_size = 1, c.args.num_total_pages = 40;
    c.args.kv_last_page_lens = nullptr;
    c.args.nhead_stride_k = 32, c.args.nhead_stride_v = 16, c.args.batch_stride_k = 64, c.args.batch_stride_v = 32;
}

class BatchPrefill : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;
};

TEST_F(BatchPrefill, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.is_group_mode = 0; }, "is_group_mode is 0: 1"},
        {[](Call &c) { c.traits.is_v_rowmajor = 0; }, "is_v_rowmajor is 0: 1"},
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_MXFP8; }, "data_type is mxfp8: all but"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(99); }, "data_type is 99"},
        {[](Call &c) { c.traits.kv_memory_layout = static_cast<tessera_kv_layout>(3); },
         "kv_memory_layout is 3: 0 to 2"},
        {[](Call &c) { c.traits.kv_lookup_table = static_cast<tessera_kv_lookup>(2); }, "kv_lookup_table is 2: 0, 1"},
        {[](Call &c) { c.args.kv_memory_layout = TESSERA_KV_VECTORIZED; },
         "args->kv_memory_layout is 0: traits->kv_memory_layout is 1"},
        {[](Call &c) { c.args.kv_lookup_table = TESSERA_KV_VLLM_2D; },
         "args->kv_lookup_table is 1: traits->kv_lookup_table is 0"},
        {[](Call &c) { c.args.page_block_size = 24; }, "page_block_size is 24: a power of two"},
        {[](Call &c) { c.args.page_block_size = 0; }, "page_block_size is 0: a power of two"},
        {[](Call &c) { c.args.page_block_size = INT32_MIN; }, "page_block_size is -2147483648: a power of two"},
        {[](Call &c) { c.args.page_block_size = 1 << 17; }, "page_block_size is 131072: at most 65536"},
        {[](Call &c) { c.args.num_total_pages = -1; }, "num_total_pages is -1: 0 or more"},
        {[](Call &c) { c.args.max_seqlen_k = -1; }, "max_seqlen_k is -1: 0 to"},
        {[](Call &c) { c.args.max_seqlen_k = 1 << 30; }, "max_seqlen_k is 1073741824: 0 to 1073741823"},
        {[](Call &c) { in_pieces(c), c.args.page_block_size = 4; }, "page_block_size is 4: vectorized pages"},
        {[](Call &c) { in_pieces(c), c.traits.hdim_q = c.args.hdim_q = 30; }, "hdim_q is 30: in vectorized pages"},
        {[](Call &c) { in_pieces(c), c.traits.hdim_v = c.args.hdim_v = 12; }, "hdim_v is 12: in vectorized pages"},
        {[](Call &c) { c.args.kv_indptr = nullptr; }, "kv_indptr is NULL: the 1-D lookup table"},
        {[](Call &c) { c.args.kv_last_page_lens = nullptr; }, "kv_last_page_lens is NULL: pages of more than one row"},
        {[](Call &c) { in_table(c), c.args.seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL: the 2-D lookup table"},
        {[](Call &c) { c.args.kv_page_indices = nullptr; }, "kv_page_indices is NULL"},
        // Nothing overflows before it is checked.
        {[](Call &c) { in_fp8_pages(c), c.args.nblock_stride_kv_block_descale = int64_t{1} << 62; },
         "k_descale_ptr: its sizes and strides reach beyond the address space"},
        {[](Call &c) { in_fp8_pages(c), c.args.nhead_stride_kv_block_descale = INT64_MIN; },
         "nhead_stride_kv_block_descale is -9223372036854775808: 0 or more"},
        {[](Call &c) {
             in_fp8_tokens(c), c.args.batch = 1, c.args.nhead_q = c.args.nhead_k = 1 << 28;
             c.args.nhead_stride_k = c.args.nhead_stride_v = 0, c.args.batch_stride_k = c.args.batch_stride_v = 0;
             c.args.page_block_size = 1 << 16, c.args.num_total_pages = 1 << 20, c.args.max_seqlen_k = 0;
             c.args.kv_indptr = c.lengths, c.lengths[0] = c.lengths[1] = 0, c.args.stride_k = c.args.stride_v = 0;
         },
         "k_descale_ptr: its sizes and strides reach beyond the address space"},
        {[](Call &c) { in_fp8_pages(c), c.traits.data_type = TESSERA_FMHA_BF16; },
         "qscale_type kvbs with data_type 2: only fp8"},
        {[](Call &c) { in_fp8_tokens(c), c.traits.data_type = TESSERA_FMHA_MXFP8; },
         "qscale_type th with data_type 6: only fp8"},
        {[](Call &c) { in_fp8_pages(c), c.args.q_descale_ptr = nullptr; }, "q_descale_ptr is NULL"},
        {[](Call &c) { in_fp8_pages(c), c.args.k_descale_ptr = nullptr; }, "k_descale_ptr is NULL"},
        {[](Call &c) { in_fp8_tokens(c), c.args.v_descale_ptr = nullptr; }, "v_descale_ptr is NULL"},
        {[](Call &c) { in_fp8_pages(c), c.args.nblock_stride_kv_block_descale = -1; },
         "nblock_stride_kv_block_descale is -1"},
        {[](Call &c) { in_fp8_tokens(c), c.args.o_ptr = c.ints(kScales) + 11; }, "overlaps"},
        {[](Call &c) {
             c.put({-1, 1, 3}, c.first);
         },
         "kv_indptr[0] is -1: 0 or more"},
        {[](Call &c) { c.first[1] = 4, c.first[2] = 3, c.args.max_seqlen_k = 99; },
         "kv_indptr[2] is 3: at least the one before, 4"},
        {[](Call &c) { c.last[0] = 0; }, "kv_last_page_lens[0] is 0: 1 to page_block_size, 8"},
        {[](Call &c) { c.last[1] = 9, c.args.max_seqlen_k = 99; },
         "kv_last_page_lens[1] is 9: 1 to page_block_size, 8"},
        {[](Call &c) { c.args.max_seqlen_k = 11; }, "sequence 1 has 12 keys: 0 to its room of 11"},
        {[](Call &c) { c.pages[3] = 5; }, "kv_page_indices[1][1] is 5: a page, 0 to 4"},
        {[](Call &c) { in_table(c), c.pages[0] = -1; }, "kv_page_indices[0][0] is -1: a page, 0 to 4"},
        {[](Call &c) { c.args.o_ptr = c.pages + 3; }, "overlaps"},
        {[](Call &c) { c.args.o_ptr = const_cast<void *>(c.args.k_ptr); }, "overlaps"},
        {[](Call &c) { in_pieces(c), c.args.nhead_stride_k = 0, c.args.o_ptr = static_cast<char *>(c.at(kK)) + 500; },
         "overlaps"},
    };
    for (const auto &bad : all) {
        Call call;
        bad.spoil(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_ERROR_INVALID_ARGUMENT) << bad.says;
        EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
            << bad.says << "\nbut: " << tessera_last_error();
        EXPECT_EQ(call.memory, before) << bad.says;
    }
    const std::function<void(Call &)> good[] = {[](Call &) {},
                                                in_table,
                                                in_pieces,
                                                in_pages_of_one,
                                                in_fp8_pages,
                                                in_fp8_tokens,
                                                [](Call &c) { c.first[1] = 0, c.first[2] = 2, c.last[0] = -3; }};
    for (const auto &change : good) {
        Call call;
        change(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
}

TEST_F(BatchPrefill, NameOfCk) {
    Call call;
    const tessera_fmha_batch_prefill_instance *instance = nullptr;
    char text[256] = "";
    call.args.page_block_size = 16;
    ASSERT_EQ(tessera_fmha_batch_prefill_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
              TESSERA_SUCCESS);
    tessera_fmha_batch_prefill_ck_name(instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "fmha_batch_prefill_d32_bf16_group_ps16_b128x128x32x32x32x32_r4x1x1_r4x1x1_w32x32x16_w32x32x16_"
                       "qr_async_vr_psskddv_nlogits_nbias_nmask_lse_ndropout_nskip_nqscale_nsink_linear_sglang");
}

TEST(Words, OfPages) {
    tessera_kv_layout layout = TESSERA_KV_LAYOUT_COUNT;
    tessera_kv_lookup lookup = TESSERA_KV_LOOKUP_COUNT;
    for (const tessera_kv_layout value : {TESSERA_KV_VECTORIZED, TESSERA_KV_LINEAR, TESSERA_KV_VLLM}) {
        ASSERT_EQ(tessera_kv_layout_from_string(tessera_kv_layout_string(value), &layout), TESSERA_SUCCESS);
        EXPECT_EQ(layout, value);
    }
    for (const tessera_kv_lookup value : {TESSERA_KV_SGLANG_1D, TESSERA_KV_VLLM_2D}) {
        ASSERT_EQ(tessera_kv_lookup_from_string(tessera_kv_lookup_string(value), &lookup), TESSERA_SUCCESS);
        EXPECT_EQ(lookup, value);
    }
    EXPECT_EQ(tessera_kv_layout_string(TESSERA_KV_LAYOUT_COUNT), nullptr);
    EXPECT_EQ(tessera_kv_lookup_from_string("1D", &lookup), TESSERA_ERROR_INVALID_ARGUMENT);
}

} // namespace
