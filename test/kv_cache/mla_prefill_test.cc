// SPDX-License-Identifier: MIT
// mla_prefill against the reference: keys in one piece, in two tensors, and with a rope that heads share; its refusals.
// AMD's GPUs serve fp8 alone, by kernels for static and for persistent grids.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "case.h"
#include "tessera/kernel/mla_prefill.h"

namespace {

enum Layout { kOnePiece, kApart, kShared, kLayouts };

// Both parts of the keys of a case in tensors of their own, whose last row ends where nobody may read.
struct Parts {
    Parts(const Tensors &x, Layout layout)
        : heads(layout == kShared ? 1 : x.c.heads_k), bytes(bytes_of(x)), rows(x.k.size() / (TESSERA_MLA_QK * bytes)),
          nope(rows * TESSERA_MLA_NOPE * bytes), rope(rows / x.c.heads_k * heads * TESSERA_MLA_ROPE * bytes) {
        for (int block = 0; block < x.blocks; block++)
            for (int g = 0; g < x.c.heads_k; g++)
                for (int r = 0; r < x.rows; r++) split(x, block, g, r);
    }
    static size_t bytes_of(const Tensors &x) { return x.c.dtype == TESSERA_FMHA_BF16 ? 2 : 1; }
    // Row r of head g of a block, [block, row, head] in nope and [block, head, row] in rope.
    void split(const Tensors &x, int block, int g, int r) const {
        unsigned char *const from =
            x.k.as<unsigned char>() +
            (block * x.k_stride[0] + g * x.k_stride[1] + r * x.k_stride[2]) * static_cast<int64_t>(bytes);
        const size_t row = (static_cast<size_t>(block) * x.rows + r) * x.c.heads_k + g;
        const size_t at = (static_cast<size_t>(block) * heads + g % heads) * x.rows + r;
        unsigned char *const to = rope.as<unsigned char>() + at * TESSERA_MLA_ROPE * bytes;
        std::memcpy(nope.as<unsigned char>() + row * TESSERA_MLA_NOPE * bytes, from, TESSERA_MLA_NOPE * bytes);
        if (g < heads)
            std::memcpy(to, from + TESSERA_MLA_NOPE * bytes, TESSERA_MLA_ROPE * bytes);
        else // the reference looks at x.k
            std::memcpy(from + TESSERA_MLA_NOPE * bytes, to, TESSERA_MLA_ROPE * bytes);
    }
    int heads;
    size_t bytes, rows;
    Guarded nope, rope;
};

struct Call {
    tessera_mla_prefill_traits t = tessera_mla_prefill_traits_init();
    tessera_mla_prefill_args a = tessera_mla_prefill_args_init();

    Call(const Tensors &x, Copies &to) {
        tessera_fmha_fwd_traits traits = tessera_fmha_fwd_traits_init();
        tessera_fmha_fwd_args args = tessera_fmha_fwd_args_init();
        x.put(to, traits, args);
        t.data_type = traits.data_type, t.is_group_mode = traits.is_group_mode, t.mask_type = traits.mask_type;
        t.has_lse = traits.has_lse, t.qscale_type = traits.qscale_type;
        a.q_ptr = args.q_ptr, a.k_ptr = args.k_ptr, a.v_ptr = args.v_ptr, a.o_ptr = args.o_ptr,
        a.lse_ptr = args.lse_ptr;
        a.q_descale_ptr = args.q_descale_ptr, a.k_descale_ptr = args.k_descale_ptr;
        a.v_descale_ptr = args.v_descale_ptr;
        a.seqstart_q_ptr = to.of(x.start_q), a.seqstart_k_ptr = to.of(x.start_k);
        a.seqlen_q = x.max_q, a.seqlen_k = x.max_k, a.max_seqlen_q = x.max_q;
        a.batch = args.batch, a.nhead_q = args.nhead_q, a.nhead_k = args.nhead_k, a.scale_s = args.scale_s;
        a.stride_q = args.stride_q, a.nhead_stride_q = args.nhead_stride_q, a.batch_stride_q = args.batch_stride_q;
        a.stride_k = args.stride_k, a.nhead_stride_k = args.nhead_stride_k, a.batch_stride_k = args.batch_stride_k;
        a.stride_v = args.stride_v, a.nhead_stride_v = args.nhead_stride_v, a.batch_stride_v = args.batch_stride_v;
        a.stride_o = args.stride_o, a.nhead_stride_o = args.nhead_stride_o, a.batch_stride_o = args.batch_stride_o;
        a.nhead_stride_lse = args.nhead_stride_lse, a.batch_stride_lse = args.batch_stride_lse;
        a.k_rope_ptr = static_cast<const unsigned char *>(a.k_ptr) + TESSERA_MLA_NOPE * Parts::bytes_of(x);
        a.stride_k_rope = a.stride_k, a.nhead_stride_k_rope = a.nhead_stride_k;
        a.batch_stride_k_rope = a.batch_stride_k;
    }
    void take(const Tensors &x, const Parts &parts, Copies &to) {
        a.k_ptr = to.of(parts.nope), a.k_rope_ptr = to.of(parts.rope);
        a.nhead_stride_k = TESSERA_MLA_NOPE, a.stride_k = x.c.heads_k * TESSERA_MLA_NOPE;
        a.batch_stride_k = x.rows * a.stride_k;
        a.stride_k_rope = TESSERA_MLA_ROPE;
        a.batch_stride_k_rope = static_cast<int64_t>(parts.heads) * x.rows * TESSERA_MLA_ROPE;
        a.nhead_stride_k_rope = parts.heads == 1 ? 0 : static_cast<int64_t>(x.rows) * TESSERA_MLA_ROPE;
    }
};

Case draw(std::mt19937 &random) {
    Case c = draw_case(random);
    c.lengths = false; // it has no seqlen_k_ptr beside seqstart_k
    c.dtype = random() % 2 ? TESSERA_FMHA_BF16 : TESSERA_FMHA_FP8BF16;
    c.keys = c.group ? Keys::kTokens : Keys::kSequences;
    c.hdim_q = TESSERA_MLA_QK, c.hdim_v = TESSERA_MLA_V;
    const tessera_mask masks[] = {TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT, TESSERA_MASK_BOTTOM_RIGHT};
    c.mask = masks[random() % 3];
    c.left = -1, c.right = c.mask == TESSERA_MASK_NONE ? -1 : 0;
    c.bias = TESSERA_BIAS_NONE, c.cap = c.sink = false, c.sink_size = 0, c.splits = 1, c.drop = 0;
    if (!c.group)
        std::fill(c.seqlen_k.begin(), c.seqlen_k.end(), *std::max_element(c.seqlen_k.begin(), c.seqlen_k.end()));
    return c;
}

class MlaPrefill : public OnDevice {
  protected:
    bool has_instances() const override { return !rows().empty(); }
    // Those that this device can take.
    std::vector<const tessera_mla_prefill_instance *> rows() const {
        const tessera_table *const table = tessera_mla_prefill_get_table();
        std::vector<const tessera_mla_prefill_instance *> found;
        for (uint32_t i = 0; i < table->row_count; i++)
            if (tessera_device_get_facts(device)->targets >> tessera_row(table, i)->target & 1)
                found.push_back(reinterpret_cast<const tessera_mla_prefill_instance *>(tessera_row(table, i)));
        return found;
    }
    void check(const Case &any, Layout layout, uint32_t seed, const tessera_mla_prefill_instance *row = nullptr) {
        Case c = fit(any);
        if (is_gpu()) c.dtype = TESSERA_FMHA_FP8BF16;
        const Tensors x(c, seed);
        const Parts parts(x, layout);
        Copies to(device, is_gpu());
        Call call(x, to);
        call.a.instance = row;
        if (layout != kOnePiece) call.take(x, parts, to);
        run_call(to, x, call.t, call.a, tessera_mla_prefill_workspace_size, tessera_mla_prefill);
        if (is_served) {
            EXPECT_EQ(x.wrong(GetParam()), "") << c.words() << ", layout " << layout << ", seed " << seed
                                               << (row ? tessera_mla_prefill_instance_name(row) : "");
        }
    }
};

TEST_P(MlaPrefill, RandomCases) {
    const uint32_t seed = test_seed();
    std::mt19937 random(seed);
    for (int n = 0; n < count(45, 1500) && !HasFailure(); n++)
        check(draw(random), static_cast<Layout>(n % kLayouts), seed + static_cast<uint32_t>(n));
}

Case edges(tessera_mask mask, int heads, int heads_k) {
    Case c;
    c.group = true, c.keys = Keys::kTokens;
    c.heads = heads, c.heads_k = heads_k, c.hdim_q = TESSERA_MLA_QK, c.hdim_v = TESSERA_MLA_V;
    c.mask = mask, c.right = mask == TESSERA_MASK_NONE ? -1 : 0;
    return c;
}
const tessera_mask kMasks[] = {TESSERA_MASK_NONE, TESSERA_MASK_TOP_LEFT, TESSERA_MASK_BOTTOM_RIGHT};

// Lengths around the kernels' blocks of 128 keys, a sequence without keys, one without queries.
TEST_P(MlaPrefill, Edges) {
    const int heads = is_gpu() ? 4 : 32;
    for (const tessera_fmha_dtype dtype : {TESSERA_FMHA_BF16, TESSERA_FMHA_FP8BF16})
        for (const tessera_mask mask : kMasks)
            for (const int heads_k : {heads, 1}) {
                if (is_gpu() && dtype == TESSERA_FMHA_BF16) continue;
                if (!is_due(2)) continue;
                Case c = edges(mask, heads, heads_k);
                c.dtype = dtype, c.batch = 7;
                c.seqlen_q = {2, 0, 1, 1, 3, 1, 2}, c.seqlen_k = {0, 3, 1, 127, 128, 129, 257};
                check(c, kShared, 1);
            }
}

// Lengths around a wave's 32 queries and a GPU's block of 256, by each instance; keys of more tiles than rings have.
TEST_P(MlaPrefill, Blocks) {
    for (const tessera_mla_prefill_instance *row : rows())
        for (const tessera_mask mask : kMasks) {
            if (!is_due(2)) continue;
            Case c = edges(mask, 2, 1);
            c.batch = 5;
            c.dtype = TESSERA_FMHA_FP8BF16;
            c.seqlen_q = {31, 33, 255, 257, 100}, c.seqlen_k = {640, 513, 384, 257, 30};
            check(c, kApart, 2, row);
        }
}

// A scale that is not positive, and scores so far apart that the maximum is subtracted before they are scaled.
TEST_P(MlaPrefill, Scales) {
    for (const float scale : {-0.1F, 0.0F, 1e-30F, 1e6F}) {
        Case c = edges(TESSERA_MASK_BOTTOM_RIGHT, 2, 2);
        c.batch = 1, c.dtype = TESSERA_FMHA_FP8BF16, c.seqlen_q = {70}, c.seqlen_k = {200}, c.scale = scale;
        check(c, kOnePiece, 5);
    }
}

// Tensors that lie so far apart that none overlaps another, however many rows they have: nothing is read.
void spread(tessera_mla_prefill_args &a) {
    uintptr_t at = 0;
    for (const void **p : {&a.q_ptr, &a.k_ptr, &a.k_rope_ptr, &a.v_ptr})
        *p = reinterpret_cast<const void *>(at += uintptr_t{1} << 44);
    for (void **p : {&a.o_ptr, &a.lse_ptr}) *p = reinterpret_cast<void *>(at += uintptr_t{1} << 44);
    a.nhead_stride_q = a.nhead_stride_o = a.nhead_stride_lse = int64_t{1} << (a.nhead_q > 2 ? 10 : 34);
    a.batch_stride_q = a.batch_stride_o = a.batch_stride_lse = int64_t{1} << (a.batch > 2 ? 24 : 36);
    if (a.batch > 2) a.nhead_stride_q = a.nhead_stride_o = a.nhead_stride_lse = 1 << 12;
}

// What GPUs alone refuse.
TEST_P(MlaPrefill, RefusalsOfGpus) {
    Case c = edges(TESSERA_MASK_NONE, 2, 2);
    c.dtype = TESSERA_FMHA_FP8BF16, c.group = false, c.keys = Keys::kSequences, c.seqlen_q = {3, 3},
    c.seqlen_k = {5, 5};
    const Tensors x(c, 1);
    const Parts parts(x, kApart);
    Copies to(device, is_gpu());
    const auto refusal = [&](auto change) {
        Call call(x, to);
        call.take(x, parts, to);
        change(call.a);
        const tessera_status status = tessera_mla_prefill_check_on(device, &call.t, &call.a);
        return std::string(status == TESSERA_SUCCESS ? "" : tessera_last_error());
    };
    using A = tessera_mla_prefill_args;
    served = 1; // nothing is run
    if (!is_gpu()) return;
    EXPECT_EQ(refusal([](A &) {}), "");
    for (const auto &bad : std::vector<std::pair<std::function<void(A &)>, const char *>>{
             {[](A &a) { a.stride_k_rope = 72; }, "stride_k_rope"},
             {[](A &a) { a.nhead_stride_k_rope += 8; }, "nhead_stride_k_rope"},
             {[](A &a) { a.batch_stride_k_rope += 8; }, "batch_stride_k_rope"},
             {[](A &a) { a.batch_stride_k += 8; }, "batch_stride_k"},
             {[](A &a) { a.stride_v = 136; }, "stride_v"},
             {[](A &a) { a.k_rope_ptr = static_cast<const char *>(a.k_rope_ptr) + 8; }, "k_rope_ptr"},
             {[](A &a) { a.stride_k_rope = INT32_MAX / 128 / 16 * 16 + 16, spread(a); },
              "stride_k_rope is 16777216: 0 to less than 16777215"},
             {[](A &a) { a.seqlen_q = 1 << 25, spread(a); }, "seqlen_q is 33554432: at most 16776960 on a GPU"},
             {[](A &a) { a.nhead_q = a.nhead_k = 1 << 17, spread(a); }, "nhead_q is 131072: at most 65535 on a GPU"},
             {[](A &a) { a.batch = 1 << 17, spread(a); }, "batch is 131072: at most 65535 on a GPU"}}) {
        EXPECT_NE(refusal(bad.first).find(bad.second), std::string::npos)
            << bad.second << "\nbut: " << refusal(bad.first);
    }
}
ON_DEVICES(MlaPrefill);

class MlaPrefillOnCpu : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;
};

TEST_F(MlaPrefillOnCpu, Refusals) {
    Case c;
    c.dtype = TESSERA_FMHA_BF16, c.group = true, c.keys = Keys::kTokens;
    c.hdim_q = TESSERA_MLA_QK, c.hdim_v = TESSERA_MLA_V, c.seqlen_q = {3, 4}, c.seqlen_k = {5, 6};
    const Tensors x(c, 1);
    const Parts parts(x, kApart);
    Copies to(device, false);
    const auto refusal = [&](auto change) {
        Call call(x, to);
        call.take(x, parts, to);
        change(call.t, call.a);
        const std::string failed =
            run_with_workspace(to, call.t, call.a, tessera_mla_prefill_workspace_size, tessera_mla_prefill);
        const auto *const o = x.o.as<unsigned char>();
        EXPECT_TRUE(std::all_of(o, o + x.o.size(), [](unsigned char byte) { return byte == 0xff; })) << failed;
        return failed;
    };
    using T = tessera_mla_prefill_traits;
    using A = tessera_mla_prefill_args;
    EXPECT_EQ(refusal([](T &t, A &) { t.hdim_q = 128; }), "hdim_q is 128: 192");
    EXPECT_EQ(refusal([](T &t, A &) { t.hdim_v = 192; }), "hdim_v is 192: 128");
    EXPECT_EQ(refusal([](T &t, A &) { t.data_type = TESSERA_FMHA_FP16; }), "data_type is 1: bf16, fp8bf16");
    EXPECT_EQ(refusal([](T &t, A &) { t.mask_type = TESSERA_MASK_GENERIC; }),
              "mask_type is 3: no, top_left, bottom_right");
    EXPECT_EQ(refusal([](T &t, A &) { t.qscale_type = TESSERA_QSCALE_BLOCK; }), "qscale_type is 2: no, pt");
    EXPECT_EQ(refusal([](T &, A &a) { a.k_rope_ptr = nullptr; }), "k_rope_ptr is NULL: this call needs it");
    EXPECT_EQ(refusal([](T &, A &a) { a.stride_k_rope = -1; }), "stride_k_rope is -1: 0 or more");
    EXPECT_NE(refusal([](T &, A &a) { a.k_rope_ptr = a.o_ptr; }).find(") overlaps k_rope_ptr ["), std::string::npos);
    EXPECT_EQ(refusal([](T &, A &a) { a.nhead_k = 3; }), "nhead_q is 4: a multiple of nhead_k, which is 3");
    const std::vector<int32_t> starts = {0, 7, 6};
    EXPECT_EQ(refusal([&](T &, A &a) { a.seqstart_k_ptr = starts.data(); }).substr(0, 14), "seqstart_k_ptr");
}

TEST_F(MlaPrefillOnCpu, Names) {
    Case c;
    c.dtype = TESSERA_FMHA_BF16, c.hdim_q = TESSERA_MLA_QK, c.hdim_v = TESSERA_MLA_V;
    c.keys = Keys::kSequences, c.seqlen_q = {3, 3}, c.seqlen_k = {5, 5};
    const Tensors x(c, 1);
    Copies none(nullptr, false);
    Call call(x, none);
    const tessera_mla_prefill_instance *instance = nullptr;
    char text[256] = "";
    ASSERT_EQ(tessera_mla_prefill_select(tessera_device_get_facts(device), &call.t, &call.a, &instance),
              TESSERA_SUCCESS)
        << tessera_last_error();
    tessera_mla_prefill_ck_name(instance, &call.t, &call.a, text, sizeof text);
    EXPECT_STREQ(text, "mla_prefill_d192_bf16_batch_b128x128x32x128x32x192_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async_"
                       "psskddv_nmask_lse_nqscale");
}

} // namespace
