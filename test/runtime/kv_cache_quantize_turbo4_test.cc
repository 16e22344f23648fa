// SPDX-License-Identifier: MIT
// What calls of kv_cache_quantize_turbo4 refuse, in which words, and that they write nothing then; and its names.
#include "tessera/kernel/kv_cache_quantize_turbo4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "inside.h"
#include "tessera/turbo4.h"

namespace {

// Three tokens of 2 heads, into 4 pages of 8 rows; slots are padded to 48 bytes.
enum { kK, kV, kKSlots, kVSlots, kKNorms, kVNorms, kCentroids, kMapping, kTensors };
struct Call {
    static constexpr size_t kBytes = 8192;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes + 64, 0x11);
    unsigned char *const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    tessera_kv_cache_quantize_turbo4_traits traits = tessera_kv_cache_quantize_turbo4_traits_init();
    tessera_kv_cache_quantize_turbo4_args args = tessera_kv_cache_quantize_turbo4_args_init();
    float *const centroids = static_cast<float *>(at(kCentroids));
    int64_t *const slots = static_cast<int64_t *>(at(kMapping));

    Call() {
        traits.hdim_q = traits.hdim_v = 64, traits.data_type = TESSERA_FMHA_FP16, traits.has_rotation = 1;
        args.knew_ptr = at(kK), args.vnew_ptr = at(kV), args.k_ptr = at(kKSlots), args.v_ptr = at(kVSlots);
        args.centroids_ptr = centroids, args.slot_mapping_ptr = slots;
        args.tokens = 3, args.nhead_k = 2, args.num_total_pages = 4, args.page_block_size = 8;
        args.stride_knew = args.stride_vnew = 128, args.nhead_stride_knew = args.nhead_stride_vnew = 64;
        args.stride_k = args.stride_v = 48, args.nhead_stride_k = args.nhead_stride_v = 384;
        args.batch_stride_k = args.batch_stride_v = 768;
        tessera_turbo4_codebook(64, centroids);
        slots[0] = 31, slots[1] = -1, slots[2] = 0;
    }
    void *at(size_t number) { return base + number * kBytes; }
};

void apart(Call &c) {
    c.args.k_norm_ptr = c.at(kKNorms), c.args.v_norm_ptr = c.at(kVNorms);
    c.args.stride_k_norm = c.args.stride_v_norm = 1, c.args.nhead_stride_k_norm = c.args.nhead_stride_v_norm = 8;
    c.args.batch_stride_k_norm = c.args.batch_stride_v_norm = 16;
}

class KvCacheQuantizeTurbo4 : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_status run(Call &c) { return tessera_kv_cache_quantize_turbo4(device, &c.traits, &c.args, nullptr); }
    tessera_device *device = nullptr;
};

TEST_F(KvCacheQuantizeTurbo4, Refuses) {
    const struct {
        std::function<void(Call &)> spoil;
        const char *says;
    } all[] = {
        {[](Call &c) { c.traits.data_type = TESSERA_FMHA_FP8; }, "data_type is 3: fp32, fp16 or bf16"},
        {[](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(-1); }, "data_type is -1"},
        {[](Call &c) { c.traits.has_rotation = 2; }, "has_rotation is 2: 0 or 1"},
        {[](Call &c) { c.traits.has_rotation = -1; }, "has_rotation is -1: 0 or 1"},
        {[](Call &c) { c.traits.hdim_q = 96; }, "hdim_q is 96: with has_rotation 64, 128 or 256"},
        {[](Call &c) { c.traits.hdim_v = 32; }, "hdim_v is 32: with has_rotation 64, 128 or 256"},
        {[](Call &c) { c.traits.has_rotation = 0, c.traits.hdim_q = 63; }, "hdim_q is 63: even, 2 to 512"},
        {[](Call &c) { c.traits.has_rotation = 0, c.traits.hdim_q = 514; }, "hdim_q is 514: even, 2 to 512"},
        {[](Call &c) { c.traits.has_rotation = 0, c.traits.hdim_v = 0; }, "hdim_v is 0: even, 2 to 512"},
        {[](Call &c) { c.args.tokens = -1; }, "tokens is -1: 0 or more"},
        {[](Call &c) { c.args.nhead_k = 0; }, "nhead_k is 0: 1 or more"},
        {[](Call &c) { c.args.num_total_pages = -1; }, "num_total_pages is -1: 0 or more"},
        {[](Call &c) { c.args.page_block_size = 0; }, "page_block_size is 0: 1 or more"},
        {[](Call &c) { apart(c), c.args.v_norm_ptr = nullptr; }, "norms lie apart for both or neither"},
        // Nothing overflows before it is checked.
        {[](Call &c) { apart(c), c.args.batch_stride_k_norm = INT64_MAX; }, "k_norm_ptr: its sizes and strides reach"},
        {[](Call &c) { apart(c), c.args.nhead_stride_v_norm = INT64_MIN; }, "nhead_stride_v_norm is -9223372036"},
        {[](Call &c) { c.args.k_ptr = reinterpret_cast<void *>(~uintptr_t{7}); }, "k_ptr: its sizes and strides reach"},
        {[](Call &c) { apart(c), c.args.k_norm_ptr = nullptr; }, "norms lie apart for both or neither"},
        {[](Call &c) { c.args.knew_ptr = nullptr; }, "knew_ptr is NULL"},
        {[](Call &c) { c.args.vnew_ptr = nullptr; }, "vnew_ptr is NULL"},
        {[](Call &c) { c.args.k_ptr = nullptr; }, "k_ptr is NULL"},
        {[](Call &c) { c.args.v_ptr = nullptr; }, "v_ptr is NULL"},
        {[](Call &c) { c.args.centroids_ptr = nullptr; }, "centroids_ptr is NULL"},
        {[](Call &c) { c.args.slot_mapping_ptr = nullptr; }, "slot_mapping_ptr is NULL"},
        {[](Call &c) { c.args.stride_vnew = -1; }, "stride_vnew is -1"},
        {[](Call &c) { c.args.stride_k = 33; }, "stride_k"}, // 32 bytes of numbers and 2 of the norm
        {[](Call &c) { apart(c), c.args.stride_k_norm = 0; }, "stride_k_norm"},
        {[](Call &c) { c.args.v_ptr = static_cast<char *>(c.args.k_ptr) + 100; }, "overlaps"},
        {[](Call &c) { apart(c), c.args.v_norm_ptr = c.args.k_norm_ptr; }, "overlaps"},
        {[](Call &c) { c.args.k_ptr = c.slots; }, "overlaps"},
        {[](Call &c) { c.args.v_ptr = c.centroids; }, "overlaps"},
        {[](Call &c) { c.slots[2] = 32; }, "slot_mapping_ptr[2] is 32: a slot, up to 31, or below 0"},
        {[](Call &c) { c.centroids[4] = -9; }, "centroids_ptr[3] is"},
        {[](Call &c) { c.centroids[15] = NAN; }, "centroids_ptr[14] is"},
    };
    for (const auto &bad : all) {
        Call call;
        bad.spoil(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(run(call), TESSERA_ERROR_INVALID_ARGUMENT) << bad.says;
        EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
            << bad.says << "\nbut: " << tessera_last_error();
        EXPECT_EQ(call.memory, before) << bad.says;
    }
    const std::function<void(Call &)> good[] = {
        [](Call &) {},
        apart,
        [](Call &c) { apart(c), c.args.stride_k = 32, c.args.nhead_stride_k = 256; },
        [](Call &c) { c.traits.has_rotation = 0, c.traits.hdim_q = 2, c.traits.hdim_v = 30; },
    };
    for (const auto &change : good) {
        Call call;
        change(call);
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(run(call), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
    Call none;
    none.args.tokens = 0, none.args.knew_ptr = none.args.slot_mapping_ptr = nullptr;
    EXPECT_EQ(run(none), TESSERA_SUCCESS) << tessera_last_error();
}

TEST_F(KvCacheQuantizeTurbo4, Name) {
    Call call;
    const tessera_kv_cache_quantize_turbo4_instance *instance = nullptr;
    char text[256] = "";
    ASSERT_EQ(
        tessera_kv_cache_quantize_turbo4_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance),
        TESSERA_SUCCESS);
    tessera_kv_cache_quantize_turbo4_ck_name(instance, &call.traits, &call.args, text, sizeof text);
    EXPECT_STREQ(text, "kv_cache_quantize_turbo4_d64_fp16_rotation");
}

// ---- on a GPU

class KvCacheQuantizeTurbo4OnGpu : public testing::Test {
  protected:
    void SetUp() override {
#ifdef TESSERA_SIM
        setenv("TESSERA_SIM_LIBRARY", TESSERA_SIM, 1);
#endif
        if (tessera_device_open("sim:gfx942", &gpu) != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
        Call call;
        if (check(call) == TESSERA_ERROR_NO_INSTANCE) GTEST_SKIP() << "this build has no instance for gfx942";
    }
    void TearDown() override { tessera_device_close(gpu); }
    tessera_status check(const Call &c) { return tessera_kv_cache_quantize_turbo4_check_on(gpu, &c.traits, &c.args); }
    void refuses(const Call &c, const char *says) {
        EXPECT_EQ(check(c), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find(says), std::string::npos) << tessera_last_error();
    }
    // A call on a copy of its memory, which is got back.
    void run(Call &c) {
        void *memory = nullptr;
        ASSERT_EQ(tessera_device_malloc(gpu, c.memory.size(), &memory), TESSERA_SUCCESS);
        ASSERT_EQ(tessera_device_copy_to(gpu, memory, c.base, kTensors * Call::kBytes), TESSERA_SUCCESS);
        const auto there = [&](int tensor) { return static_cast<char *>(memory) + tensor * Call::kBytes; };
        tessera_kv_cache_quantize_turbo4_args &a = c.args;
        a.knew_ptr = there(kK), a.vnew_ptr = there(kV), a.k_ptr = there(kKSlots), a.v_ptr = there(kVSlots);
        a.centroids_ptr = there(kCentroids), a.slot_mapping_ptr = there(kMapping);
        ASSERT_EQ(tessera_kv_cache_quantize_turbo4(gpu, &c.traits, &a, nullptr), TESSERA_SUCCESS)
            << tessera_last_error();
        ASSERT_EQ(tessera_device_synchronize(gpu), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_device_copy_from(gpu, c.base, memory, kTensors * Call::kBytes), TESSERA_SUCCESS);
        ASSERT_EQ(tessera_device_free(gpu, memory), TESSERA_SUCCESS);
    }
    tessera_device *gpu = nullptr;
};

// Slots past the last page are as negative ones there: of three tokens the last has a slot, row 0 of page 0.
TEST_F(KvCacheQuantizeTurbo4OnGpu, LeavesOutWhatHasNoSlot) {
    for (const int64_t slot : {INT64_C(32), INT64_C(1) << 32, INT64_MAX, INT64_MIN}) {
        Call call;
        call.slots[0] = slot;
        const Call before = call;
        run(call);
        for (const int tensor : {kKSlots, kVSlots}) {
            unsigned char *const now = call.base + tensor * Call::kBytes;
            const unsigned char *const old = now - call.memory.data() + before.memory.data();
            for (const size_t head : {0, 384}) {
                EXPECT_FALSE(std::equal(now + head, now + head + 34, old + head));
                std::copy_n(old + head, 34, now + head);
            }
            EXPECT_TRUE(std::equal(now, now + Call::kBytes, old)) << slot;
        }
    }
}

TEST_F(KvCacheQuantizeTurbo4OnGpu, Refuses) {
    Call rows; // tokens share theirs
    rows.args.stride_knew = rows.args.stride_vnew = 0, rows.args.tokens = (1 << 23) + 1;
    refuses(rows, "there are 16777218 rows, of all tokens and heads: on a GPU at most 16777216");
    rows.args.tokens--;
    EXPECT_EQ(check(rows), TESSERA_SUCCESS) << tessera_last_error();

    Call pages;
    pages.args.num_total_pages = 1 << 16, pages.args.page_block_size = 1 << 15;
    pages.args.nhead_stride_k = pages.args.nhead_stride_v = INT64_C(48) << 15;
    pages.args.batch_stride_k = pages.args.batch_stride_v = INT64_C(96) << 15;
    pages.args.v_ptr = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(pages.args.v_ptr) + (UINT64_C(1) << 40));
    pages.args.k_ptr = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(pages.args.k_ptr) + (UINT64_C(2) << 40));
    refuses(pages, "pages have 2147483648 rows: on a GPU at most 2147483647");
    pages.args.num_total_pages--;
    EXPECT_EQ(check(pages), TESSERA_SUCCESS) << tessera_last_error();
}

// Rows that begin at multiples of 16 bytes, and slots at even ones, are read and written by vectors, others by numbers.
TEST_F(KvCacheQuantizeTurbo4OnGpu, VectorsNeedAlignment) {
    const auto name = [&](const std::function<void(Call &)> &change) {
        Call call;
        change(call);
        const tessera_kv_cache_quantize_turbo4_instance *instance = nullptr;
        EXPECT_EQ(
            tessera_kv_cache_quantize_turbo4_select(tessera_device_get_facts(gpu), &call.traits, &call.args, &instance),
            TESSERA_SUCCESS)
            << tessera_last_error();
        return instance ? std::string(instance->base.name) : "";
    };
    const std::string vectors = name([](Call &) {});
    const std::function<void(Call &)> spoils[] = {
        [](Call &c) { c.args.knew_ptr = static_cast<const char *>(c.args.knew_ptr) + 8; },
        [](Call &c) { c.args.vnew_ptr = static_cast<const char *>(c.args.vnew_ptr) + 8; },
        [](Call &c) { c.args.stride_knew = 132; },
        [](Call &c) { c.args.stride_vnew = 132; },
        [](Call &c) { c.args.nhead_stride_knew = 68; },
        [](Call &c) { c.args.nhead_stride_vnew = 68; },
        [](Call &c) { c.args.k_ptr = static_cast<char *>(c.args.k_ptr) + 1; },
        [](Call &c) { c.args.v_ptr = static_cast<char *>(c.args.v_ptr) + 1; },
        [](Call &c) { c.args.stride_k = 35; },
        [](Call &c) { c.args.stride_v = 35; },
        [](Call &c) { c.args.nhead_stride_k = 385; },
        [](Call &c) { c.args.nhead_stride_v = 385; },
        [](Call &c) { c.args.batch_stride_k = 801; },
        [](Call &c) { c.args.batch_stride_v = 801; },
    };
    for (const auto &spoil : spoils) EXPECT_NE(name(spoil), vectors) << &spoil - spoils;
    EXPECT_EQ(name([](Call &c) { c.args.stride_k = 34, c.args.stride_knew = 136; }), vectors);
}

} // namespace
