// SPDX-License-Identifier: MIT
// Numbers that products in narrow types find hard: of other magnitudes in each block and row, zeros, denormals, and no
// numbers at all.
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>

#include "case.h"
#include "elements.h"
#include "fmha_bwd_reference.h"

namespace {

using Edit = std::function<double(int64_t row, int64_t column, double value)>;

// A problem in batch mode whose inputs can be changed: they are copies, since those of the program are watched.
class Edited : public Problem {
  public:
    using Problem::Problem;

    // All numbers of q, k, v or, 'd', do.
    void edit(char tensor, const Edit &to) {
        const bool of_keys = tensor == 'k' || tensor == 'v', of_v = tensor == 'v' || tensor == 'd';
        const int64_t heads = of_keys ? args->nhead_k : args->nhead_q, rows = of_keys ? args->seqlen_k : args->seqlen_q;
        const int64_t columns = of_v ? args->hdim_v : args->hdim_q;
        switch (tensor) {
        case 'q':
            return edit(args->q_ptr, heads, rows, columns, args->nhead_stride_q, args->stride_q, to);
        case 'k':
            return edit(args->k_ptr, heads, rows, columns, args->nhead_stride_k, args->stride_k, to);
        case 'v':
            return edit(args->v_ptr, heads, rows, columns, args->nhead_stride_v, args->stride_v, to);
        default:
            return edit(args->do_ptr, heads, rows, columns, args->nhead_stride_do, args->stride_do, to);
        }
    }

    // Adds to lse of all queries.
    void add_to_lse(float what) {
        const int64_t count = (args->nhead_q - 1) * args->nhead_stride_lsed + args->seqlen_q;
        const float *const from = static_cast<const float *>(args->lse_ptr);
        sums.emplace_back(from, from + count);
        for (float &x : sums.back()) x += what;
        args->lse_ptr = sums.back().data();
    }

    // Which numbers of dq, dk and dv are.
    std::vector<bool> finite() const {
        std::vector<bool> all;
        add_finite(args->dq_ptr, args->seqlen_q, args->hdim_q, args->nhead_stride_dq, args->stride_dq, all);
        add_finite(args->dk_ptr, args->seqlen_k, args->hdim_q, args->nhead_stride_dk, args->stride_dk, all);
        add_finite(args->dv_ptr, args->seqlen_k, args->hdim_v, args->nhead_stride_dv, args->stride_dv, all);
        return all;
    }

  private:
    void add_finite(const void *base, int64_t rows, int64_t columns, int64_t nhead_stride, int64_t stride,
                    std::vector<bool> &all) const {
        for (int64_t head = 0; head < args->nhead_q; head++)
            for (int64_t row = 0; row < rows; row++)
                for (int64_t column = 0; column < columns; column++) {
                    const int64_t at = head * nhead_stride + row * stride + column;
                    all.push_back(std::isfinite(element_load(fmha_bwd_element(traits->data_type), base, at)));
                }
    }

    void edit(const void *&base, int64_t heads, int64_t rows, int64_t columns, int64_t nhead_stride, int64_t stride,
              const Edit &to) {
        const tessera_type type = fmha_bwd_element(traits->data_type);
        const int64_t elements = (heads - 1) * nhead_stride + (rows - 1) * stride + columns;
        copies.emplace_back(static_cast<size_t>(elements * element_bits(type) / 8));
        for (int64_t head = 0; head < heads; head++)
            for (int64_t row = 0; row < rows; row++)
                for (int64_t column = 0; column < columns; column++) {
                    const int64_t at = head * nhead_stride + row * stride + column;
                    element_store(type, copies.back().data(), at, to(row, column, element_load(type, base, at)));
                }
        base = copies.back().data();
    }

    std::deque<std::vector<uint8_t>> copies;
    std::deque<std::vector<float>> sums;
};

// Blocks of queries have 96 rows, or in products of tiles up to 256, of keys 256.
const char *const shapes[] = {"-s=100 -s_k=270", "-s=210 -s_k=70 -mask=1", "-s=3 -s_k=40"};

// Every device, shape and data type: what `change` has made of the inputs is computed as the reference does, where few
// keys have most of the probability, and where it is spread.
void expect_valid_after(const Axis &precs, const std::function<void(Edited &)> &change) {
    for (const std::string &kind : kinds(cpus, precs))
        for (const char *init : {"nf", "uf"})
            for (const char *shape : shapes) {
                const std::string arguments = kind + " -b=1 -h=2 -h_k=1 -d=40 -d_v=64 -init=" + init + " " + shape;
                SCOPED_TRACE(command(fmha_bwd, arguments));
                Edited p(arguments);
                p.launch();
                change(p);
                p.launch(true);
            }
}

Edit times(double factor) {
    return [=](int64_t, int64_t, double x) { return x * factor; };
}

TEST(Numerics, MagnitudesOfTensors) { // products of q and k, of which lse is, stay
    for (int of_q : {-70, -41, 39, 50})
        for (int of_do : {-60, -30, 20, 50}) {
            if (!is_due()) continue;
            SCOPED_TRACE(testing::Message() << "q * 2^" << of_q << ", do * 2^" << of_do);
            expect_valid_after({"fp32", "bf16"}, [=](Edited &p) {
                p.edit('q', times(std::ldexp(1, of_q)));
                p.edit('k', times(std::ldexp(1, -of_q)));
                p.edit('d', times(std::ldexp(1, of_do)));
            });
        }
}

// Other powers of 2 in each row, and in blocks of 96 and 256 rows.
TEST(Numerics, MagnitudesOfRows) {
    for (char tensor : {'q', 'k', 'v', 'd'}) {
        SCOPED_TRACE(tensor);
        expect_valid_after({"fp32", "bf16"}, [=](Edited &p) {
            p.edit(tensor, [](int64_t row, int64_t, double x) {
                return std::ldexp(x, static_cast<int>(-(row % 5) * 2 - row / 96 * 20));
            });
        });
    }
}

TEST(Numerics, Zeros) {
    for (char tensor : {'q', 'k', 'v', 'd'})
        for (int64_t zeros : {96, 1000}) {
            SCOPED_TRACE(testing::Message() << tensor << " below row " << zeros);
            expect_valid_after({"fp32", "fp16", "bf16"}, [=](Edited &p) {
                p.edit(tensor, [=](int64_t row, int64_t, double x) { return row < zeros ? 0 : x; });
            });
        }
}

// Whole numbers: some are 0, and of a key, of few queries, one may have nearly all of P. Of what it meets a 0 of,
// gradients are as small as the others are.
TEST(Numerics, WholeNumbers) {
    for (const std::string &kind : kinds(cpus, {"fp16", "bf16"}))
        for (const char *shape : {"-s=2 -s_k=256", "-s=4 -s_k=256", "-s=98 -s_k=98 -mask=t:2,0"})
            for (const char *seed : {"1", "2", "3", "5", "12"}) {
                const std::string arguments = kind + " -init=ui -b=1 -h=2 -d=40 -seed=" + seed + " " + shape;
                SCOPED_TRACE(command(fmha_bwd, arguments));
                Problem p(arguments);
                p.launch(true);
            }
}

// One great number, beside which others are rounded or lost: by no more than what is allowed of that.
TEST(Numerics, OneGreatNumber) {
    for (char tensor : {'v', 'd'})
        expect_valid_after({"fp32", "fp16", "bf16"}, [=](Edited &p) {
            p.edit(tensor, [](int64_t row, int64_t column, double x) { return row + column ? x : x * 0x1p10; });
        });
}

// lse of more than these keys, as with a sink whose gradient nobody asks for: beside it the keys' P are small, however
// much one of them counts beside the others.
TEST(Numerics, SmallProbabilities) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16"}))
        for (const char *shape :
             {"-s=300 -s_k=600 -d=128", "-s=200 -s_k=520 -d=40 -d_v=64", "-s=200 -s_k=300 -d=64 -mask=t:150,9"})
            for (const char *seed : {"1", "2", "3"})
                for (float by : {3.0F, 12.0F, 40.0F}) {
                    if (!is_due()) continue;
                    const std::string arguments = kind + " -init=nf -b=1 -h=2 -h_k=1 -seed=" + seed + " " + shape;
                    SCOPED_TRACE(testing::Message() << command(fmha_bwd, arguments) << ", lse + " << by);
                    Edited p(arguments);
                    p.add_to_lse(by);
                    p.launch(true);
                }
}

TEST(Numerics, Denormals) {
    expect_valid_after({"fp16"}, [](Edited &p) { p.edit('d', times(0x1p-18)); });
    expect_valid_after({"bf16"}, [](Edited &p) { p.edit('d', times(0x1p-126)); });
}

// Where an output is no number, or not finite, it is so on all devices. Under a mask it depends on blocks, of which
// those that are hidden whole are not computed.
TEST(Numerics, NoNumbers) {
    for (const char *prec : {"fp16", "bf16"})
        for (char tensor : {'q', 'k', 'v', 'd'})
            for (double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
                for (const char *shape : {"-s=100 -s_k=270", "-s=3 -s_k=40"}) {
                    std::vector<bool> want;
                    for (const std::string &kind : kinds(cpus, {prec})) {
                        const std::string arguments = kind + " -init=nf -b=1 -h=2 -h_k=1 -d=40 -d_v=64 " + shape;
                        SCOPED_TRACE(testing::Message() << command(fmha_bwd, arguments) << ", " << tensor);
                        Edited p(arguments);
                        p.launch();
                        p.edit(tensor, [=](int64_t row, int64_t column, double x) {
                            return row == 2 && column == 5 ? value : x;
                        });
                        p.launch();
                        const std::vector<bool> finite = p.finite();
                        if (want.empty()) want = finite;
                        EXPECT_EQ(finite, want);
                        EXPECT_NE(std::count(finite.begin(), finite.end(), false), 0);
                    }
                }
}

} // namespace
