// SPDX-License-Identifier: MIT
// What the reference leaves open or takes for granted: ties, saturation, the same bytes whatever runs them; and that
// the tests would notice what goes wrong.
#include <cmath>
#include <cstring>
#include <limits>

#include "case.h"

namespace {

// A problem on each device, with the arguments behind.
void on_all_devices(const Operation &op, const std::string &arguments,
                    const std::function<void(Problem &problem)> &check) {
    for (const Place &on : {cpus(op), gpus(op)})
        for (const std::string &device : devices(on, op)) {
            const std::string all = device + " " + arguments;
            SCOPED_TRACE(command(op.tested, op.spelled(all)));
            Problem p(op, all);
            check(p);
        }
}

const Operation &smoothquant() { return operations()[3]; }

// z and y_scale are exact here, and so are quotients, however they are computed.
TEST(Numerics, TiesGoToEven) {
    for (const char *type : {"-prec_i=fp32", "-prec_i=fp16", "-prec_i=bf16"})
        on_all_devices(smoothquant(), std::string(type) + " -prec_o=int8 -m=2 -n=256", [](Problem &p) {
            p.each(ROWS_SMOOTH, [](int64_t, int64_t) { return 1.0; });
            p.each(ROWS_X, [](int64_t row, int64_t j) { // of both signs
                return j == 7 ? 127 : (row ? -1 : 1) * (static_cast<double>(j % 126) + 0.5);
            });
            p.launch();
            for (int64_t row = 0; row < 2; row++) {
                ASSERT_EQ(p.at(ROWS_Y_SCALE, row, 0), 1);
                for (int64_t j = 0; j < 256; j++)
                    ASSERT_EQ(p.at(ROWS_Y, row, j), std::nearbyint(p.at(ROWS_X, row, j))) << "column " << j;
            }
        });
}

// y_scale is a denormal number of one digit: quotients are 190 and are saturated, or 95, or they are taken without
// y_scale and are 123 and 127. Where denormal numbers are taken for zeros, so is the row. Nothing wraps.
TEST(Numerics, Saturates) {
    on_all_devices(smoothquant(), "-prec_i=fp32 -prec_o=int8 -m=2 -n=200", [](Problem &p) {
        p.each(ROWS_SMOOTH, [](int64_t, int64_t) { return 1.0; });
        p.each(ROWS_X, [](int64_t row, int64_t j) { return std::ldexp(row ? -190 : 190, -149) * (j % 2 ? 1 : 0.97); });
        p.launch();
        for (int64_t row = 0; row < 2; row++)
            for (int64_t j = 0; j < 200; j++) {
                const double y = p.at(ROWS_Y, row, j) * (row ? -1 : 1);
                ASSERT_TRUE(y == 0 || (y >= 92 && y <= 95) || (y >= 123 && y <= 127)) << y;
            }
    });
}

// A NaN is 0 as int8, and makes the whole row so; the other rows do not notice.
TEST(Numerics, NanAsInt8) {
    on_all_devices(smoothquant(), "-prec_i=bf16 -prec_o=int8 -m=3 -n=100", [](Problem &p) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        p.each(ROWS_X,
               [=](int64_t row, int64_t j) { return row == 1 && j == 61 ? nan : 1 + static_cast<double>(j % 3); });
        p.launch();
        EXPECT_TRUE(std::isnan(p.at(ROWS_Y_SCALE, 1, 0)));
        for (int64_t j = 0; j < 100; j++) EXPECT_EQ(p.at(ROWS_Y, 1, j), 0);
        p.expect_right();
    });
}

// Squares that are less than fp32 has make 1 / RMS infinite, and all of the row: not NaN, which 0 in place of columns
// past its end would make of it.
TEST(Numerics, InfiniteScale) {
    on_all_devices(operations()[1], "-prec_i=fp32 -fquant=2 -prec_o=int8 -save_rms=1 -e=0 -m=1 -n=33", [](Problem &p) {
        p.each(ROWS_X, [](int64_t, int64_t) { return 0x1p-100; });
        p.each(ROWS_GAMMA, [](int64_t, int64_t) { return 1.0; });
        p.launch();
        EXPECT_EQ(p.at(ROWS_SAVED_INV, 0, 0), std::numeric_limits<double>::infinity());
        EXPECT_EQ(p.at(ROWS_Y_SCALE, 0, 0), std::numeric_limits<double>::infinity());
        p.expect_right();
    });
}

// Columns of a lane whose mean is so far from the row's that its square is infinite: 1 / deviation is 0, not NaN, also
// where a row is taken piece by piece.
TEST(Numerics, FarColumns) {
    on_all_devices(operations()[0], "-prec_i=bf16 -save_mv=1 -m=1 -n=9001", [](Problem &p) {
        p.each(ROWS_X, [](int64_t, int64_t j) { return j % 2 ? 0x1p66 : -0x1p66; });
        p.launch();
        EXPECT_EQ(p.at(ROWS_SAVED_INV, 0, 0), 0);
        p.expect_right();
    });
}

// Outputs of more bytes than caches hold take another way: of one operation and type each day.
TEST(Numerics, ManyBytes) {
    const Operation &op = operations()[test_seed() % operations().size()];
    const Axis all = kinds(cpus(op), op);
    const std::string extra = op.name == "MoeSmoothquant" ? " -e=4 -k=1" : "";
    expect_valid(op.tested,
                 op.spelled(all[test_seed() / operations().size() % all.size()] + " -m=1801 -n=5003 -pad=1" + extra));
}

// ---- whatever runs them

class Threads : public testing::Test {
  protected:
    ~Threads() override { tessera_set_num_threads(0); }
};

TEST_F(Threads, TheirNumberChangesNothing) {
    for (const Operation &op : operations())
        for (const char *shape : {"-m=1 -n=20000", "-m=2 -n=513", "-m=37 -n=1000 -pad=3", "-m=1000 -n=33"})
            for (const std::string &kind : kinds(cpus(op), op)) {
                const std::string arguments = kind + " " + shape;
                SCOPED_TRACE(command(op.tested, op.spelled(arguments)));
                Problem p(op, arguments);
                tessera_set_num_threads(1);
                p.launch();
                const std::vector<uint8_t> want = p.outputs();
                for (const int threads : {2, 3, 8}) {
                    tessera_set_num_threads(threads);
                    p.launch();
                    EXPECT_EQ(p.outputs(), want) << threads << " threads";
                }
            }
}

// A row has the same bytes wherever it stands, beside whatever rows, and wherever a problem begins in memory.
TEST(Rows, AreIndependentOfEachOther) {
    for (const Operation &op : operations()) {
        if (op.name == "MoeSmoothquant") continue; // whose rows have scales of their own
        for (const char *arguments : {"-m=7 -n=1000", "-m=7 -n=1000 -pad=4 -misalign=8"})
            on_all_devices(op, std::string(arguments) + " -prec_i=fp16", [&](Problem &p) {
                p.each(ROWS_X, [](int64_t row, int64_t j) { return std::sin(static_cast<double>(row % 2 * 99 + j)); });
                if (p.rows()->shapes[ROWS_RESIDUAL].rows)
                    p.each(ROWS_RESIDUAL,
                           [](int64_t row, int64_t j) { return std::cos(static_cast<double>(row % 2 - j)); });
                p.launch();
                for (int64_t row = 2; row < 7; row++)
                    for (int64_t j = 0; j < 1000; j++)
                        ASSERT_EQ(p.at(ROWS_Y, row, j), p.at(ROWS_Y, row % 2, j)) << "row " << row << ", column " << j;
            });
    }
}

// ---- would the tests notice? One wrong element after the launch, and verification must fail.

struct Damage {
    const char *name, *arguments;
    rows_tensor tensor;
    int64_t row, column;
    const char *message;
};

void PrintTo(const Damage &one, std::ostream *out) { *out << one.arguments; }

const Damage damages[] = {
    {"AnElement", "-fquant=0", ROWS_Y, 3, 9, "y of row 3, column 9"},
    {"TheLastElement", "-fquant=2 -prec_o=int8", ROWS_Y, 4, 29, "y of row 4, column 29"},
    {"TheSum", "-fadd=1", ROWS_RESIDUAL_OUT, 0, 0, "y_residual of row 0"},
    {"TheMean", "-save_mv=1", ROWS_SAVED_MEAN, 2, 0, "mean of row 2"},
    {"TheDeviation", "-save_mv=1", ROWS_SAVED_INV, 2, 0, "inverse of row 2"},
    {"TheScale", "-fquant=2 -prec_o=int8", ROWS_Y_SCALE, 1, 0, "y_scale of row 1"},
    {"BehindARow", "-pad=3", ROWS_Y, 1, 30, "behind row 1"},
    {"AnInput", "", ROWS_X, 1, 2, "an input"},
    {"BehindARowOfAnInput", "-pad=3", ROWS_X, 1, 31, "an input"},
};

class Harness : public testing::TestWithParam<Damage> {};

TEST_P(Harness, NoticesDamage) {
    const Damage &damage = GetParam();
    Problem p(operations()[0], std::string("-device=cpu -prec_i=fp16 -m=5 -n=30 ") + damage.arguments);
    p.launch();
    const rows_shape &shape = p.rows()->shapes[damage.tensor];
    const int64_t index = damage.row * shape.stride + damage.column;
    void *const base = example_pointer(&p.rows()->base, damage.tensor);
    const double was = element_load(shape.type, base, index);
    element_store(shape.type, base, index, std::isnan(was) ? 0 : was * 1.05 + (was < 100 ? 2 : -2));
    EXPECT_NE(p.verify().find(damage.message), std::string::npos) << p.verify();
}

INSTANTIATE_TEST_SUITE_P(Damage, Harness, testing::ValuesIn(damages), [](const auto &one) { return one.param.name; });

TEST(Harness, NoticesRowsOfNoExpert) {
    Problem p(operations()[4], "-device=cpu -m=5 -n=30 -e=4 -k=2 -bad_ids=1");
    p.launch();
    const auto *const ids = static_cast<const int32_t *>(example_pointer(&p.rows()->base, ROWS_IDS));
    ASSERT_EQ(ids[1], -1); // of token 0 in slot 1
    element_store(TESSERA_TYPE_INT8, example_pointer(&p.rows()->base, ROWS_Y), 5 * 30 + 29, 1);
    EXPECT_NE(p.verify().find("row 5 of qy, which is of no expert"), std::string::npos) << p.verify();
}

} // namespace
