// SPDX-License-Identifier: MIT
// Where tensors lie that the program places in one way. Those of more than 2^31 elements, in mappings of which few
// pages exist: gradients are those of the same problem in little memory. And a sink for each sequence and head.
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>

#include "case.h"

namespace {

// A tensor of args: where it is, and how many heads and rows of how many elements it has.
struct Tensor {
    void **pointer;
    std::vector<int64_t *> strides; // of batches, heads and perhaps rows
    int64_t heads, rows, columns, element_bytes;
};

void **place_of(const void *&pointer) { return const_cast<void **>(&pointer); }

std::vector<Tensor> tensors_of(const Problem &p) {
    tessera_fmha_bwd_args &a = *p.args;
    const int64_t size = p.traits->data_type == TESSERA_FMHA_FP32 ? 4 : 2;
    const int64_t q = a.seqlen_q, k = a.seqlen_k, columns = p.traits->is_group_mode ? a.max_seqlen_k : k;
    const int64_t heads = a.nhead_q, heads_k = a.nhead_k, heads_dk = p.traits->is_dkv_reduced ? heads_k : heads;
#define STRIDES(x)                                                                                                     \
    { &a.batch_stride_##x, &a.nhead_stride_##x, &a.stride_##x }
    return {{place_of(a.q_ptr), STRIDES(q), heads, q, a.hdim_q, size},
            {place_of(a.k_ptr), STRIDES(k), heads_k, k, a.hdim_q, size},
            {place_of(a.v_ptr), STRIDES(v), heads_k, k, a.hdim_v, size},
            {place_of(a.o_ptr), STRIDES(o), heads, q, a.hdim_v, size},
            {place_of(a.do_ptr), STRIDES(do), heads, q, a.hdim_v, size},
            {place_of(a.bias_ptr), STRIDES(bias), heads, q, columns, size},
            {&a.dq_ptr, STRIDES(dq), heads, q, a.hdim_q, size},
            {&a.dk_ptr, STRIDES(dk), heads_dk, k, a.hdim_q, size},
            {&a.dv_ptr, STRIDES(dv), heads_dk, k, a.hdim_v, size},
            {&a.dbias_ptr, STRIDES(dbias), heads, q, columns, size},
            {&a.rand_val_ptr, STRIDES(randval), heads, q, columns, 1},
            {place_of(a.lse_ptr), {&a.batch_stride_lsed, &a.nhead_stride_lsed}, heads, 1, q, 4},
            {&a.d_ptr, {&a.batch_stride_lsed, &a.nhead_stride_lsed}, heads, 1, q, 4}};
#undef STRIDES
}

// A tensor in two places: where it was, and one where rows, heads and batches each span more than 2^31 elements.
class Far {
  public:
    Far(const Tensor &of, int64_t batches) : of(of), batches(batches), near(*of.pointer) {
        for (const int64_t *stride : of.strides) near_strides.push_back(*stride);
        const int64_t row = of.rows > 1 ? (int64_t{1} << 31) / (of.rows - 1) + 1 : 0;
        const int64_t head = (int64_t{1} << 31) + of.rows * row + of.columns;
        far_strides = {of.heads * head, head, row};
        near_strides.resize(3);
        bytes = static_cast<size_t>(batches * of.heads * head * of.element_bytes);
        far = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (far == MAP_FAILED) throw std::bad_alloc();
    }
    ~Far() { munmap(far, bytes); }
    Far(const Far &) = delete;
    Far &operator=(const Far &) = delete;

    void go() { move(near, near_strides, far, far_strides); }
    void come_back() { move(far, far_strides, near, near_strides); }

  private:
    using Strides = std::vector<int64_t>;

    // Copies all rows; args name their new place.
    void move(const void *from, const Strides &before, void *to, const Strides &after) {
        for (int64_t b = 0; b < batches; b++)
            for (int64_t h = 0; h < of.heads; h++)
                for (int64_t r = 0; r < of.rows; r++)
                    std::memcpy(static_cast<char *>(to) + at(after, b, h, r),
                                static_cast<const char *>(from) + at(before, b, h, r),
                                static_cast<size_t>(of.columns * of.element_bytes));
        *of.pointer = to;
        for (size_t n = 0; n < of.strides.size(); n++) *of.strides[n] = after[n];
    }
    int64_t at(const Strides &s, int64_t b, int64_t h, int64_t r) const {
        return of.element_bytes * (b * s[0] + h * s[1] + r * s[2]);
    }

    const Tensor of;
    const int64_t batches;
    void *const near;
    void *far;
    size_t bytes;
    Strides near_strides, far_strides;
};

TEST(Buffers, MoreThan2To31Elements) {
    for (const std::string &kind : kinds(cpus, {"fp32", "bf16"}))
        for (const char *shape : {"-b=2 -h=4 -h_k=2 -s=35 -s_k=150 -d=40 -d_v=24 -mask=b:50,9 -bias=e:2 -dbias=1",
                                  "-b=2 -h=2 -s=40 -s_k=33 -d=32 -p_drop=0.2 -deterministic=1",
                                  "-mode=1 -b=2 -h=2 -h_k=1 -s=20,9 -s_k=30,11 -d=32 -dkv_heads=k"}) {
            const std::string arguments = kind + " -init=nf " + shape;
            SCOPED_TRACE(command(fmha_bwd, arguments));
            Problem p(arguments);
            p.launch(true);
            const std::vector<uint8_t> want = p.outputs();
            p.poison();
            std::vector<std::unique_ptr<Far>> all;
            for (const Tensor &one : tensors_of(p))
                if (*one.pointer)
                    all.push_back(std::make_unique<Far>(one, p.traits->is_group_mode ? 1 : p.args->batch));
            for (const std::unique_ptr<Far> &one : all) one->go();
            ASSERT_EQ(tessera_fmha_bwd(p.device, p.traits, p.args, nullptr), TESSERA_SUCCESS) << tessera_last_error();
            for (const std::unique_ptr<Far> &one : all) one->come_back();
            EXPECT_EQ(p.outputs(), want);
        }
}

// The gradient takes lse as it is, whatever sink that had.
TEST(Buffers, SinksOfEachSequence) {
    for (const std::string &kind : kinds(cpus, {"fp32", "bf16"})) {
        const std::string arguments = kind + " -init=nf -b=3 -h=2 -s=40 -s_k=50 -d=32 -sink_grad=2";
        SCOPED_TRACE(command(fmha_bwd, arguments));
        const std::vector<float> sinks{-1, 0.5F, NAN, 1, 2, NAN, -2, 0.25F, NAN}; // two, and room behind them
        Problem p(arguments);
        p.launch(true);
        const std::vector<uint8_t> shared = p.outputs();
        p.args->sink_ptr = sinks.data(), p.args->batch_stride_sink = 3;
        p.launch(true);
        EXPECT_NE(p.outputs(), shared);
    }
}

// A sink of -inf is none: nothing flows to it, whatever flows to those of other heads.
TEST(Buffers, SinksOfNeutralHeads) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16"})) {
        const std::string arguments = kind + " -init=nf -b=2 -h=4 -h_k=2 -s=70 -s_k=50 -d=40 -d_v=88 -sink_grad=2";
        SCOPED_TRACE(command(fmha_bwd, arguments));
        const std::vector<float> sinks{-INFINITY, 0.5F, -INFINITY, -1};
        Problem p(arguments);
        p.args->sink_ptr = sinks.data();
        p.launch(true);
        for (size_t head = 0; head < sinks.size(); head++)
            EXPECT_EQ(static_cast<const float *>(p.args->d_sink_ptr)[head] == 0, std::isinf(sinks[head])) << head;
    }
}

} // namespace
