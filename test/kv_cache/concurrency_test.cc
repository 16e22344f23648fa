// SPDX-License-Identifier: MIT
// Sequences of one cache in pages, each grown and attended to by a thread of its own at the same time: results are
// those of one thread after the other, byte by byte, and of attention in fp64. The thread sanitizer watches this.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "tessera/fmha_fwd_appendkv.h"
#include "tessera/paged_attention.h"

namespace {

constexpr int kSequences = 4, kKeys = 70, kPage = 8, kPages = (kKeys + kPage - 1) / kPage;
constexpr int kHeads = 4, kHeadsK = 2, kDim = 32, kRow = kHeadsK * kDim, kQuery = kHeads * kDim;

// Numbers between -1 and 1 that differ for every place.
std::vector<float> numbers(size_t count, uint32_t seed) {
    std::vector<float> all(count);
    for (float &x : all) {
        seed = seed * 1664525U + 1013904223U;
        x = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1.0F;
    }
    return all;
}

// A cache in whose memory the pages of sequences take turns, and what each sequence gets: a key and a query a step.
struct Cache {
    explicit Cache(tessera_device *device) : device(device) {
        for (int b = 0; b < kSequences; b++)
            for (int page = 0; page < kPages; page++) table.push_back(page * kSequences + (b + page) % kSequences);
    }

    // The key of step `at` joins sequence b.
    void append(int b, int at) {
        tessera_fmha_fwd_appendkv_traits t = tessera_fmha_fwd_appendkv_traits_init();
        t.hdim_q = t.hdim_v = kDim, t.is_v_rowmajor = 1, t.data_type = TESSERA_FMHA_FP32;
        tessera_fmha_fwd_appendkv_args a = tessera_fmha_fwd_appendkv_args_init();
        const int32_t length = at;
        a.k_ptr = k.data(), a.v_ptr = v.data();
        a.knew_ptr = &knew[(b * kKeys + at) * kRow], a.vnew_ptr = &vnew[(b * kKeys + at) * kRow];
        a.seqlen_k_ptr = &length, a.block_table_ptr = &table[b * kPages];
        a.seqlen_knew = a.batch = 1, a.hdim_q = a.hdim_v = kDim, a.nhead_q = kHeads, a.nhead_k = kHeadsK;
        a.max_seqlen_k = kKeys, a.cache_blocks = kSequences * kPages, a.page_block_size = kPage;
        a.batch_stride_block_table = kPages;
        a.stride_k = a.stride_v = a.stride_knew = a.stride_vnew = kRow;
        a.nhead_stride_k = a.nhead_stride_v = a.nhead_stride_knew = a.nhead_stride_vnew = kDim;
        a.batch_stride_k = a.batch_stride_v = kPage * kRow, a.batch_stride_knew = a.batch_stride_vnew = kRow;
        EXPECT_EQ(tessera_fmha_fwd_appendkv(device, &t, &a, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    }

    // The query of step `at` of sequence b attends to the keys that there are.
    void attend(int b, int at) {
        tessera_paged_attention_traits t = tessera_paged_attention_traits_init();
        t.hdim_q = t.hdim_v = kDim, t.data_type = TESSERA_FMHA_FP32, t.kv_memory_layout = TESSERA_KV_LINEAR;
        tessera_paged_attention_args a = tessera_paged_attention_args_init();
        const int32_t length = at + 1;
        a.q_ptr = &q[(b * kKeys + at) * kQuery], a.k_ptr = k.data(), a.v_ptr = v.data();
        a.o_ptr = &o[(b * kKeys + at) * kQuery];
        a.seqlen_k_ptr = &length, a.block_table_ptr = &table[b * kPages];
        a.batch = a.max_seqlen_q = 1, a.max_seqlen_k = kKeys;
        a.hdim_q = a.hdim_v = kDim, a.nhead_q = kHeads, a.nhead_k = kHeadsK, a.scale_s = kScale;
        a.num_total_pages = kSequences * kPages, a.page_block_size = kPage, a.batch_stride_block_table = kPages;
        a.stride_q = a.stride_o = a.batch_stride_q = a.batch_stride_o = kQuery;
        a.nhead_stride_q = a.nhead_stride_o = a.nhead_stride_k = a.nhead_stride_v = kDim;
        a.stride_k = a.stride_v = kRow, a.batch_stride_k = a.batch_stride_v = kPage * kRow;
        size_t bytes = 0;
        ASSERT_EQ(tessera_paged_attention_workspace_size(device, &t, &a, &bytes), TESSERA_SUCCESS);
        struct alignas(64) Line {
            char bytes[64];
        };
        std::vector<Line> workspace((bytes + 63) / 64);
        a.workspace_ptr = workspace.data(), a.workspace_size = bytes;
        EXPECT_EQ(tessera_paged_attention(device, &t, &a, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    }

    void grow(int b) {
        for (int at = 0; at < kKeys; at++) append(b, at), attend(b, at);
    }

    // Column d of head h of the query of step `at`.
    double want(int b, int at, int h, int d) const {
        const int g = h / (kHeads / kHeadsK);
        double sum = 0, of_v = 0;
        for (int j = 0; j <= at; j++) {
            const size_t key = (b * kKeys + j) * kRow + g * kDim;
            double s = 0;
            for (int x = 0; x < kDim; x++) s += double{q[(b * kKeys + at) * kQuery + h * kDim + x]} * knew[key + x];
            const double p = std::exp(s * kScale);
            sum += p, of_v += p * vnew[key + d];
        }
        return of_v / sum;
    }

    static constexpr float kScale = 0.25F;
    tessera_device *device;
    std::vector<int32_t> table;
    const std::vector<float> knew = numbers(size_t{kSequences} * kKeys * kRow, 1), vnew = numbers(knew.size(), 2);
    const std::vector<float> q = numbers(size_t{kSequences} * kKeys * kQuery, 3);
    std::vector<float> k = std::vector<float>(size_t{kSequences} * kPages * kPage * kRow, NAN), v = k;
    std::vector<float> o = std::vector<float>(q.size(), NAN);
};

TEST(Concurrency, SequencesOfACacheGrowAtTheSameTime) {
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS) << tessera_last_error();
    Cache together(device), alone(device);
    std::vector<std::thread> threads;
    for (int b = 0; b < kSequences; b++) threads.emplace_back([&, b] { together.grow(b); });
    for (std::thread &thread : threads) thread.join();
    for (int b = 0; b < kSequences; b++) alone.grow(b);
    EXPECT_EQ(together.o, alone.o);
    for (int b = 0; b < kSequences; b++)
        for (int at = 0; at < kKeys; at++)
            for (int n = 0; n < kQuery; n++)
                ASSERT_NEAR(alone.o[(b * kKeys + at) * kQuery + n], alone.want(b, at, n / kDim, n % kDim), 1e-4)
                    << "sequence " << b << ", step " << at << ", column " << n;
    tessera_device_close(device);
}

} // namespace
