// SPDX-License-Identifier: MIT
// The reference against differences of the forward reference: the gradient of sum(o do) by each input.
#include <cmath>

#include "case.h"
#include "fmha_bwd_reference.h"
#include "fmha_fwd_reference.h"

namespace {

// A problem in fp32 and batch mode, whose o and lse are the forward reference's.
class Differences {
  public:
    explicit Differences(const std::string &arguments, float sink = 0)
        : p("-prec=fp32 -mode=0 -iperm=1 -operm=1 -init=nf " + arguments), forward(make_forward()) {
        for (int32_t h = 0; h < p.args->nhead_q && p.args->sink_ptr; h++) float_at(p.args->sink_ptr)[h] = sink;
        const std::vector<double> o = outputs();
        const size_t rows = o.size() / static_cast<size_t>(p.args->hdim_v);
        for (size_t n = 0; n < o.size(); n++) float_at(p.args->o_ptr)[n] = static_cast<float>(o[n]);
        for (size_t n = 0; n < rows; n++) float_at(p.args->lse_ptr)[n] = static_cast<float>(lse[n]);
        collect();
    }

    // The gradient by float number n of an input, by differences.
    double slope(const void *input, int64_t n) {
        float &x = float_at(input)[n];
        const float at = x, step = 0x1p-9f;
        x = at + step;
        const double above = loss();
        x = at - step;
        const double below = loss();
        x = at;
        return (above - below) / (2.0 * static_cast<double>(step));
    }

    // The reference's gradients lie as their inputs do.
    std::vector<double> dq, dk, dv, dbias;
    Problem p;

  private:
    static float *float_at(const void *memory) { return static_cast<float *>(const_cast<void *>(memory)); }

    tessera_fmha_fwd_args make_forward() {
        const tessera_fmha_bwd_args &a = *p.args;
        tessera_fmha_fwd_args f = tessera_fmha_fwd_args_init();
        f.q_ptr = a.q_ptr, f.k_ptr = a.k_ptr, f.v_ptr = a.v_ptr, f.bias_ptr = a.bias_ptr, f.sink_ptr = a.sink_ptr;
        f.seqlen_q = a.seqlen_q, f.seqlen_k = a.seqlen_k, f.batch = a.batch, f.hdim_q = a.hdim_q, f.hdim_v = a.hdim_v;
        f.nhead_q = a.nhead_q, f.nhead_k = a.nhead_k, f.scale_s = a.scale, f.logits_soft_cap = a.logits_soft_cap;
        f.batch_stride_q = a.batch_stride_q, f.nhead_stride_q = a.nhead_stride_q, f.stride_q = a.stride_q;
        f.batch_stride_k = a.batch_stride_k, f.nhead_stride_k = a.nhead_stride_k, f.stride_k = a.stride_k;
        f.batch_stride_v = a.batch_stride_v, f.nhead_stride_v = a.nhead_stride_v, f.stride_v = a.stride_v;
        f.batch_stride_bias = a.batch_stride_bias, f.nhead_stride_bias = a.nhead_stride_bias;
        f.stride_bias = a.stride_bias;
        f.window_size_left = a.window_size_left, f.window_size_right = a.window_size_right;
        f.sink_size = a.sink_size, f.mask_type = a.mask_type;
        f.p_drop = a.p_drop, f.drop_seed = a.drop_seed, f.drop_offset = a.drop_offset;
        forward_traits.hdim_q = a.hdim_q, forward_traits.hdim_v = a.hdim_v;
        forward_traits.mask_type = a.mask_type, forward_traits.bias_type = p.traits->bias_type;
        forward_traits.has_logits_soft_cap = p.traits->has_logits_soft_cap;
        forward_traits.has_dropout = p.traits->has_dropout, forward_traits.has_sink = a.sink_ptr || a.sink_size > 0;
        return f;
    }

    // o of all rows in the order of memory; sets lse.
    std::vector<double> outputs() {
        std::vector<fmha_fwd_row> rows;
        for (int32_t b = 0; b < forward.batch; b++)
            for (int32_t h = 0; h < forward.nhead_q; h++)
                for (int32_t i = 0; i < forward.seqlen_q; i++) rows.push_back({b, h, i});
        std::vector<double> o(rows.size() * static_cast<size_t>(forward.hdim_v));
        lse.resize(rows.size());
        EXPECT_EQ(fmha_fwd_reference_rows(&forward_traits, &forward, TESSERA_FP8_NONE, rows.data(),
                                          static_cast<int64_t>(rows.size()), 1, o.data(), lse.data(), nullptr, 0),
                  0);
        return o;
    }

    double loss() {
        const std::vector<double> o = outputs();
        double sum = 0;
        for (size_t n = 0; n < o.size(); n++) sum += o[n] * static_cast<double>(float_at(p.args->do_ptr)[n]);
        return sum;
    }

    void put(std::vector<double> &to, int64_t at, const fmha_bwd_row *row) {
        if (to.size() < static_cast<size_t>(at + row->count)) to.resize(static_cast<size_t>(at + row->count));
        for (int32_t n = 0; n < row->count; n++) to[static_cast<size_t>(at + n)] += row->want[n];
    }

    // Sums over what is shared: heads of a key head, and a bias that is broadcast.
    void collect() {
        std::vector<int32_t> units;
        for (int32_t n = 0; n < p.args->batch * p.args->nhead_k; n++) units.push_back(n);
        const auto visit = [](void *user, const fmha_bwd_row *row) {
            Differences &d = *static_cast<Differences *>(user);
            const tessera_fmha_bwd_args &a = *d.p.args;
            const int32_t group = d.p.traits->is_dkv_reduced ? 1 : a.nhead_q / a.nhead_k, g = row->head / group;
            if (row->tensor == FMHA_BWD_DQ)
                d.put(d.dq, row->batch * a.batch_stride_q + row->head * a.nhead_stride_q + row->row * a.stride_q, row);
            if (row->tensor == FMHA_BWD_DK)
                d.put(d.dk, row->batch * a.batch_stride_k + g * a.nhead_stride_k + row->row * a.stride_k, row);
            if (row->tensor == FMHA_BWD_DV)
                d.put(d.dv, row->batch * a.batch_stride_v + g * a.nhead_stride_v + row->row * a.stride_v, row);
            if (row->tensor == FMHA_BWD_DBIAS)
                d.put(d.dbias,
                      row->batch * a.batch_stride_bias + row->head * a.nhead_stride_bias + row->row * a.stride_bias,
                      row);
        };
        ASSERT_EQ(
            fmha_bwd_reference(p.traits, p.args, 0, units.data(), static_cast<int64_t>(units.size()), 1, visit, this),
            0);
    }

    tessera_fmha_fwd_traits forward_traits = tessera_fmha_fwd_traits_init();
    tessera_fmha_fwd_args forward;
    std::vector<double> lse;
};

void expect_slopes(Differences &d, const char *name, const void *input, const std::vector<double> &gradient) {
    double greatest = 0;
    for (double x : gradient) greatest = std::fmax(greatest, std::fabs(x));
    EXPECT_GT(greatest, 0) << name;
    for (size_t n = 0; n < gradient.size(); n += 1 + gradient.size() / 40)
        EXPECT_NEAR(gradient[n], d.slope(input, static_cast<int64_t>(n)), 2e-4 * greatest) << name << " " << n;
}

TEST(Reference, GradientsAreSlopes) {
    for (const char *arguments :
         {"-b=2 -h=2 -s=7 -s_k=9 -d=5 -d_v=6", "-b=1 -h=4 -h_k=2 -s=9 -s_k=6 -d=4 -mask=1",
          "-b=1 -h=4 -h_k=2 -s=5 -s_k=8 -d=4 -mask=b:3,1 -dkv_heads=k", "-b=2 -h=2 -s=7 -s_k=9 -d=5 -bias=e:0 -dbias=1",
          "-b=2 -h=2 -s=6 -s_k=9 -d=5 -bias=e:2 -dbias=1 -mask=2", "-b=1 -h=2 -s=6 -s_k=9 -d=5 -bias=a -mask=t:2,1",
          "-b=1 -h=2 -s=6 -s_k=12 -d=5 -p_drop=0.3", "-b=1 -h=2 -s=6 -s_k=9 -d=5 -logits_soft_cap=2",
          "-b=1 -h=2 -s=9 -s_k=9 -d=5 -mask=t:2,0,2"}) {
        SCOPED_TRACE(arguments);
        Differences d(arguments);
        expect_slopes(d, "dq", d.p.args->q_ptr, d.dq);
        expect_slopes(d, "dk", d.p.args->k_ptr, d.dk);
        expect_slopes(d, "dv", d.p.args->v_ptr, d.dv);
        if (d.p.args->dbias_ptr) expect_slopes(d, "dbias", d.p.args->bias_ptr, d.dbias);
    }
}

// Sinks of the program are so great that little else remains; here they are like scores.
TEST(Reference, GradientsOfSinksAreSlopes) {
    Differences d("-b=2 -h=3 -s=6 -s_k=9 -d=5 -sink_grad=1", 1.0f);
    expect_slopes(d, "dq", d.p.args->q_ptr, d.dq);
    for (int32_t h = 0; h < 3; h++) {
        double want, bound;
        fmha_bwd_reference_d_sink(d.p.traits, d.p.args, h, &want, &bound);
        EXPECT_NEAR(want, d.slope(d.p.args->sink_ptr, h), 1e-4) << h;
        EXPECT_GT(std::fabs(want), 1e-3);
    }
}

} // namespace
