// SPDX-License-Identifier: MIT
// What calls of paged_attention refuse, in which words, and that they write nothing then; and their names.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/kernel/fmha_fwd.h"
#include "tessera/kernel/paged_attention.h"
#include "tessera/turbo4.h"

namespace {

// Two sequences of 2 and 1 queries, 9 and 12 keys in pages of 8 rows; 4 and 2 heads of 32 and 16 elements.
enum { kQ, kK, kV, kKScale, kVScale, kSlopes, kCentroids, kO, kLse, kStartQ, kPages, kLengths, kWorkspace };
struct Call {
    static constexpr size_t kBytes = 8192, kTensors = kWorkspace + 64;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes + 64, 0x11);
    unsigned char *const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tessera_paged_attention_traits traits = tessera_paged_attention_traits_init();
    tessera_paged_attention_args args = tessera_paged_attention_args_init();
    int32_t *pages = ints(kPages), *lengths = ints(kLengths), *starts = ints(kStartQ);

    Call() {
        traits.hdim_q = args.hdim_q = 32, traits.hdim_v = args.hdim_v = 16;
        traits.data_type = TESSERA_FMHA_BF16;
        traits.kv_memory_layout = TESSERA_KV_LINEAR;
        traits.is_group_mode = traits.has_lse = 1;
        args.batch = 2, args.nhead_q = 4, args.nhead_k = 2, args.max_seqlen_q = 2, args.max_seqlen_k = 16;
        args.num_total_pages = 5, args.page_block_size = 8, args.batch_stride_block_table = 2;
        args.scale_s = 0.2F;
        args.stride_q = args.stride_k = 32, args.stride_v = args.stride_o = 16;
        args.nhead_stride_q = 96, args.nhead_stride_k = 256, args.nhead_stride_v = 128, args.nhead_stride_o = 48;
        args.batch_stride_k = 512, args.batch_stride_v = 256, args.nhead_stride_lse = 3;
        args.q_ptr = at(kQ), args.k_ptr = at(kK), args.v_ptr = at(kV), args.o_ptr = at(kO), args.lse_ptr = at(kLse);
        args.seqstart_q_ptr = starts, args.block_table_ptr = pages, args.seqlen_k_ptr = lengths;
        args.workspace_ptr = at(kWorkspace), args.workspace_size = 64 * kBytes;
        put({0, 2, 3}, starts), put({4, 0, 2, 1}, pages), put({9, 12}, lengths);
    }
    static void put(std::initializer_list<int32_t> values, int32_t *to) { std::copy(values.begin(), values.end(), to); }
    void *at(size_t number) { return base + number * kBytes; }
    int32_t *ints(size_t number) { return static_cast<int32_t *>(at(number)); }
    tessera_status run(const tessera_device *device) {
        return tessera_paged_attention(device, &traits, &args, nullptr);
    }
};

void in_int8(Call &c) {
    c.traits.kv_cache_dtype = TESSERA_KV_INT8;
    c.args.k_scale_ptr = c.at(kKScale), c.args.v_scale_ptr = c.at(kVScale);
    c.args.batch_stride_k_scale = c.args.batch_stride_v_scale = 16;
    c.args.nhead_stride_k_scale = c.args.nhead_stride_v_scale = 8;
    c.args.stride_k_scale = c.args.stride_v_scale = 1;
}
// Norms in the slots, whose rows have as many bytes as those of bf16, or apart.
void in_turbo4(Call &c) {
    c.traits.kv_cache_dtype = TESSERA_KV_TURBO4;
    c.args.centroids_ptr = c.at(kCentroids);
}
void in_turbo4_apart(Call &c) {
    in_turbo4(c);
    c.args.k_scale_ptr = c.at(kKScale), c.args.v_scale_ptr = c.at(kVScale);
    c.args.batch_stride_k_scale = c.args.batch_stride_v_scale = 16;
    c.args.nhead_stride_k_scale = c.args.nhead_stride_v_scale = 8;
    c.args.stride_k_scale = c.args.stride_v_scale = 1;
}
void with_alibi(Call &c) {
    c.traits.bias_type = TESSERA_BIAS_ALIBI;
    c.args.alibi_slopes_ptr = c.at(kSlopes);
}

class PagedAttention : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;
};

TEST_F(PagedAttention, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8BF16; }, "data_type is 4: fp32, fp16 or bf16"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(-1); }, "data_type is -1"},
        {[](Call &c) { c.traits.kv_cache_dtype = TESSERA_KV_CACHE_DTYPE_COUNT; }, "kv_cache_dtype is"},
        {[](Call &c) { c.traits.kv_memory_layout = TESSERA_KV_LAYOUT_COUNT; }, "kv_memory_layout is 3: 0 to 2"},
        {[](Call &c) { c.traits.bias_type = TESSERA_BIAS_ELEMENTWISE; }, "bias_type is 1: none (0) or alibi (2)"},
        {[](Call &c) { c.args.v_scale_ptr = c.at(kVScale); }, "caches of auto have no scales"},
        {[](Call &c) { c.args.sliding_window = -1; }, "sliding_window is -1: 0 or more"},
        {[](Call &c) { c.args.num_splits = 129; }, "num_splits is 129: 1 to 128, or 0 for as many as pay"},
        {[](Call &c) { c.args.num_splits = -1; }, "num_splits is -1: 1 to 128, or 0 for as many as pay"},
        {[](Call &c) { c.traits.has_logits_soft_cap = 1; }, "logits_soft_cap is 0: above 0"},
        {[](Call &c) { with_alibi(c), c.args.alibi_slopes_ptr = nullptr; }, "alibi_slopes_ptr is NULL"},
        {[](Call &c) { c.args.page_block_size = 12; }, "page_block_size is 12: a power of two"},
        {[](Call &c) { c.args.num_total_pages = -1; }, "num_total_pages is -1: 0 or more"},
        {[](Call &c) { c.args.max_seqlen_k = -1; }, "max_seqlen_k is -1: 0 to"},
        {[](Call &c) { c.args.max_seqlen_k = 11; }, "sequence 1 has 12 keys: 0 to its room of 11"},
        {[](Call &c) { c.args.seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL"},
        {[](Call &c) { c.args.block_table_ptr = nullptr; }, "block_table_ptr is NULL"},
        {[](Call &c) { c.args.seqstart_q_ptr = nullptr; }, "seqstart_q_ptr is NULL"},
        {[](Call &c) { c.starts[1] = 4; }, "seqstart_q_ptr[2] is 3: at least the one before, 4"},
        {[](Call &c) { c.lengths[0] = -1; }, "sequence 0 has -1 keys"},
        {[](Call &c) { c.pages[3] = 5; }, "block_table_ptr[1][1] is 5: a page, 0 to 4"},
        {[](Call &c) { c.pages[0] = -1; }, "block_table_ptr[0][0] is -1: a page, 0 to 4"},
        {[](Call &c) { c.traits.kv_memory_layout = TESSERA_KV_VECTORIZED, c.traits.hdim_v = c.args.hdim_v = 12; },
         "hdim_v is 12: in vectorized pages a multiple of 8"},
        {[](Call &c) { c.traits.kv_memory_layout = TESSERA_KV_VLLM, c.traits.hdim_q = c.args.hdim_q = 30; },
         "hdim_q is 30: in vllm pages a multiple of 8"},
        {[](Call &c) { c.args.o_ptr = const_cast<void *>(c.args.k_ptr); }, "overlaps"},
        {[](Call &c) { in_int8(c), c.args.o_ptr = c.at(kVScale); }, "overlaps"},
        {[](Call &c) { in_int8(c), c.args.stride_k_scale = -1; }, "stride_k_scale is -1"},
        {[](Call &c) { in_turbo4(c), c.args.centroids_ptr = nullptr; },
         "centroids_ptr is NULL: turbo4 has [16] centroids"},
        {[](Call &c) { in_turbo4(c), c.args.o_ptr = const_cast<void *>(c.args.centroids_ptr); }, "overlaps"},
        {[](Call &c) { in_turbo4(c), c.traits.hdim_q = c.args.hdim_q = 31; },
         "hdim_q is 31: in caches of turbo4 a multiple of 2"},
        {[](Call &c) { in_turbo4(c), c.traits.hdim_v = c.args.hdim_v = 15; },
         "hdim_v is 15: in caches of turbo4 a multiple of 2"},
        {[](Call &c) { in_turbo4(c), c.traits.kv_memory_layout = TESSERA_KV_VLLM; },
         "kv_memory_layout is vllm: caches of turbo4 are linear"},
        {[](Call &c) { in_turbo4_apart(c), c.args.k_scale_ptr = nullptr; },
         "norms of turbo4 lie apart for both or neither"},
        {[](Call &c) { in_turbo4_apart(c), c.args.v_scale_ptr = nullptr; },
         "norms of turbo4 lie apart for both or neither"},
        {[](Call &c) { in_turbo4_apart(c), c.args.v_scale_ptr = static_cast<char *>(c.at(kVScale)) + 1; },
         "v_scale_ptr"},
        {[](Call &c) { in_int8(c), c.args.k_scale_ptr = static_cast<char *>(c.at(kKScale)) + 1; }, "k_scale_ptr"},
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
    const std::function<void(Call &)> good[] = {
        [](Call &) {},
        in_int8,
        in_turbo4,
        in_turbo4_apart,
        with_alibi,
        [](Call &c) { c.args.num_splits = 128; },
        [](Call &c) { with_alibi(c), c.traits.has_logits_soft_cap = 1, c.args.logits_soft_cap = 5; },
        [](Call &c) { c.traits.kv_memory_layout = TESSERA_KV_VLLM; },
        [](Call &c) { // a sequence in prefill
            c.starts[2] = 5, c.lengths[1] = -9, c.pages[2] = 99;
            c.args.nhead_stride_q = 160, c.args.nhead_stride_o = 80, c.args.nhead_stride_lse = 5;
        },
    };
    for (const auto &change : good) {
        Call call;
        change(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
}

// The instance of fmha_fwd that is named attends, or the call is refused by its name.
TEST_F(PagedAttention, NamesWhatAttends) {
    const tessera_table *const table = tessera_fmha_fwd_get_table();
    const uint32_t targets = tessera_device_get_facts(device)->targets;
    int served = 0;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const tessera_instance *const row = tessera_row(table, i);
        bool of_bf16 = false;
        for (uint32_t n = 0; n < row->served_count; n++)
            of_bf16 |= tessera_set_of(&row->served[n], &table->schema->traits[0]) >> TESSERA_FMHA_BF16 & 1;
        Call call;
        call.args.attends = reinterpret_cast<const tessera_fmha_fwd_instance *>(row);
        const std::vector<unsigned char> before = call.memory;
        if (of_bf16 && (targets >> row->target & 1)) {
            EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << row->name << ": " << tessera_last_error();
            EXPECT_NE(call.memory, before) << row->name;
            served++;
        } else {
            const std::string says = std::string(row->name) + " does not serve this call: ";
            EXPECT_NE(call.run(device), TESSERA_SUCCESS) << row->name;
            EXPECT_EQ(std::string(tessera_last_error()).compare(0, says.size(), says), 0) << tessera_last_error();
            EXPECT_EQ(call.memory, before) << row->name;
        }
    }
    EXPECT_GT(served, 0);
}

TEST_F(PagedAttention, Name) {
    Call call;
    const tessera_paged_attention_instance *instance = nullptr;
    char text[256] = "";
    in_int8(call);
    ASSERT_EQ(tessera_paged_attention_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
              TESSERA_SUCCESS);
    tessera_paged_attention_ck_name(instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "paged_attention_d32_bf16_int8_linear_group_p256_nlogits_nbias_lse_nsink");
}

TEST(Turbo4, Codebook) {
    float centroids[TESSERA_TURBO4_CENTROIDS] = {};
    EXPECT_EQ(tessera_turbo4_codebook(0, centroids), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "hdim is 0: 1 or more");
    EXPECT_EQ(tessera_turbo4_codebook(64, nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(centroids[15], 0);
    ASSERT_EQ(tessera_turbo4_codebook(64, centroids), TESSERA_SUCCESS);
    EXPECT_NEAR(centroids[15], 2.7326 / 8, 1e-5);
    for (int i = 0; i < TESSERA_TURBO4_CENTROIDS; i++) {
        EXPECT_EQ(centroids[i], -centroids[15 - i]);
        if (i > 0) {
            EXPECT_GT(centroids[i], centroids[i - 1]);
        }
    }
}

TEST(Words, OfCaches) {
    tessera_kv_cache_dtype dtype = TESSERA_KV_CACHE_DTYPE_COUNT;
    for (int value = 0; value < TESSERA_KV_CACHE_DTYPE_COUNT; value++) {
        const char *const word = tessera_kv_cache_dtype_string(static_cast<tessera_kv_cache_dtype>(value));
        ASSERT_EQ(tessera_kv_cache_dtype_from_string(word, &dtype), TESSERA_SUCCESS);
        EXPECT_EQ(dtype, value);
    }
    EXPECT_EQ(tessera_kv_cache_dtype_string(TESSERA_KV_CACHE_DTYPE_COUNT), nullptr);
    EXPECT_EQ(tessera_kv_cache_dtype_from_string("fp6", &dtype), TESSERA_ERROR_INVALID_ARGUMENT);
}

} // namespace
