// SPDX-License-Identifier: MIT
// Quantising to turbo4 and rotating, by every instance of this machine and on GPUs: against fp64, and against
// the theory of the error (Max 1960: 0.0095 of the variance); attention over what was quantised, beside that over fp8
// and int4.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "case.h"
#include "elements.h"
#include "tessera/kernel/hadamard_rotate.h"
#include "tessera/kernel/kv_cache_quantize_turbo4.h"
#include "tessera/paged_attention.h"
#include "tessera/turbo4.h"

namespace {

using Row = std::vector<double>;

constexpr double kMaxDistortion = 0.009501; // of 16 levels for N(0, 1), in scripts/turbo4_codebook.py

double square(double x) { return x * x; }
double square_of(const Row &x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }

Row rotated(const Row &x) {
    Row y(x.size());
    for (size_t i = 0; i < x.size(); i++)
        for (size_t j = 0; j < x.size(); j++) y[i] += std::bitset<16>(i & j).count() % 2 ? -x[j] : x[j];
    for (double &value : y) value /= std::sqrt(static_cast<double>(x.size()));
    return y;
}

tessera_type type_of(tessera_fmha_dtype dtype) { return fmha_fwd_input_element(dtype, TESSERA_FP8_NONE); }
size_t bytes_of(tessera_type type) { return static_cast<size_t>(element_bits(type)) / 8; }
// What rounding to a type may change, of the number's size.
double epsilon_of(tessera_type type) {
    return type == TESSERA_TYPE_FP32 ? 0x1p-24 : type == TESSERA_TYPE_FP16 ? 0x1p-11 : 0x1p-8;
}

Row load(tessera_type type, const void *base, int64_t at, int count) {
    Row row(static_cast<size_t>(count));
    for (int d = 0; d < count; d++) row[static_cast<size_t>(d)] = element_load(type, base, at + d);
    return row;
}

// ---- what is quantised and rotated

struct Quantised {
    tessera_fmha_dtype dtype = TESSERA_FMHA_BF16;
    int hdim_q = 128, hdim_v = 128, tokens = 5, heads = 2, page = 16, pages = 3, slack = 0;
    bool rotation = true, apart = false, rows_first = false; // [row, head, slot], not [head, row, slot]
    int slot_of(int hdim) const { return hdim / 2 + (apart ? 0 : 2) + slack; }
    int64_t rows() const { return static_cast<int64_t>(pages) * page * heads; }
    int64_t row_of(int64_t slot, int head) const {
        return rows_first ? slot * heads + head : (slot / page * heads + head) * page + slot % page;
    }
};

// Keys or values: new rows, slots, norms.
struct Side {
    Side(const Quantised &c, int hdim)
        : dims(hdim), from(static_cast<size_t>(c.tokens) * c.heads * hdim * bytes_of(type_of(c.dtype))),
          slots(static_cast<size_t>(c.rows()) * c.slot_of(hdim), 0x5a), norms(c.rows() * sizeof(uint16_t), 0x5a) {}
    const int dims;
    Guarded from, slots, norms;
};

struct Cache {
    Cache(const Quantised &of, std::vector<int64_t> mapping)
        : c(of), k(of, of.hdim_q), v(of, of.hdim_v), slot_mapping(std::move(mapping)) {
        tessera_turbo4_codebook(c.hdim_q, centroids);
    }
    template <typename Draw> void fill(Draw draw) {
        for (Side *side : {&k, &v})
            for (size_t i = 0; i < side->from.size() / bytes_of(type_of(c.dtype)); i++)
                element_store(type_of(c.dtype), side->from.as<void>(), static_cast<int64_t>(i), draw());
    }
    tessera_status quantise(Copies &to, const tessera_kv_cache_quantize_turbo4_instance *instance);
    Row row_of(const Side &side, int token, int head) const {
        return load(type_of(c.dtype), side.from.as<void>(), (static_cast<int64_t>(token) * c.heads + head) * side.dims,
                    side.dims);
    }
    const uint8_t *slot_of(const Side &side, int64_t slot, int head) const {
        return side.slots.as<uint8_t>() + c.row_of(slot, head) * c.slot_of(side.dims);
    }
    double norm_of(const Side &side, int64_t slot, int head) const {
        uint16_t half = 0;
        std::memcpy(&half,
                    c.apart ? side.norms.as<uint8_t>() + 2 * c.row_of(slot, head)
                            : slot_of(side, slot, head) + side.dims / 2,
                    sizeof half);
        return element_load(TESSERA_TYPE_FP16, &half, 0);
    }
    Row read(const Side &side, int64_t slot, int head) const {
        Row row(static_cast<size_t>(side.dims));
        for (int d = 0; d < side.dims; d++)
            row[static_cast<size_t>(d)] = norm_of(side, slot, head) * code(side, slot, head, d);
        return row;
    }
    double code(const Side &side, int64_t slot, int head, int d) const {
        return static_cast<double>(centroids[slot_of(side, slot, head)[d / 2] >> d % 2 * 4 & 15]);
    }
    const Quantised c;
    Side k, v;
    std::vector<int64_t> slot_mapping;
    float centroids[TESSERA_TURBO4_CENTROIDS] = {};
};

tessera_status Cache::quantise(Copies &to, const tessera_kv_cache_quantize_turbo4_instance *instance) {
    auto t = tessera_kv_cache_quantize_turbo4_traits_init();
    auto a = tessera_kv_cache_quantize_turbo4_args_init();
    t.hdim_q = c.hdim_q, t.hdim_v = c.hdim_v, t.data_type = c.dtype, t.has_rotation = c.rotation;
    a.knew_ptr = to.of(k.from), a.vnew_ptr = to.of(v.from);
    a.k_ptr = to.of(k.slots), a.v_ptr = to.of(v.slots);
    if (c.apart) a.k_norm_ptr = to.of(k.norms), a.v_norm_ptr = to.of(v.norms);
    a.centroids_ptr = to.of(centroids, sizeof centroids);
    a.slot_mapping_ptr = to.of(slot_mapping.data(), slot_mapping.size() * sizeof slot_mapping[0]);
    a.tokens = c.tokens, a.nhead_k = c.heads, a.num_total_pages = c.pages, a.page_block_size = c.page;
    a.nhead_stride_knew = c.hdim_q, a.stride_knew = static_cast<int64_t>(c.heads) * c.hdim_q;
    a.nhead_stride_vnew = c.hdim_v, a.stride_vnew = static_cast<int64_t>(c.heads) * c.hdim_v;
    const int64_t row = c.rows_first ? c.heads : 1, head = c.rows_first ? 1 : c.page, page = c.heads * c.page;
    a.stride_k_norm = a.stride_v_norm = row, a.nhead_stride_k_norm = a.nhead_stride_v_norm = head;
    a.batch_stride_k_norm = a.batch_stride_v_norm = page;
    const int slot_k = c.slot_of(c.hdim_q), slot_v = c.slot_of(c.hdim_v);
    a.stride_k = row * slot_k, a.nhead_stride_k = head * slot_k, a.batch_stride_k = page * slot_k;
    a.stride_v = row * slot_v, a.nhead_stride_v = head * slot_v, a.batch_stride_v = page * slot_v;
    a.instance = instance;
    return tessera_kv_cache_quantize_turbo4(to.device, &t, &a, nullptr);
}

struct Rotation {
    tessera_fmha_dtype dtype;
    int hdim, tokens, heads, row, token; // strides
    bool in_place;
};

struct Quality {
    double turbo4, fp8, int4, theory; // errors
    int bytes;                        // of turbo4's key and value of a token and head
};

class Turbo4 : public OnDevice {
  protected:
    bool has_instances() const override {
        return !instances_of<tessera_hadamard_rotate_instance>(tessera_hadamard_rotate_get_table()).empty();
    }
    // The rows of a table that this machine runs; on a GPU, whose rows are for one head dim, null: what is selected.
    template <typename Instance> std::vector<const Instance *> instances_of(const tessera_table *table) const {
        std::vector<const Instance *> all;
        for (uint32_t i = 0; i < table->row_count; i++)
            if (tessera_device_get_facts(device)->targets >> tessera_row(table, i)->target & 1)
                all.push_back(reinterpret_cast<const Instance *>(tessera_row(table, i)));
        if (is_gpu() && !all.empty()) return {nullptr};
        return all;
    }
    // Runs a call on copies of tensors, and gets those back that it writes.
    template <typename Call> void run(Call call, std::initializer_list<const Guarded *> written) {
        Copies to(device, is_gpu());
        ASSERT_EQ(call(to), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS) << tessera_last_error();
        for (const Guarded *tensor : written) to.get(*tensor);
        served++;
    }
    void quantise(Cache &x, const tessera_kv_cache_quantize_turbo4_instance *instance) {
        run([&](Copies &to) { return x.quantise(to, instance); }, {&x.k.slots, &x.k.norms, &x.v.slots, &x.v.norms});
    }
    void check_rotation(const Rotation &c, const tessera_hadamard_rotate_instance *instance);
    void measure(const std::function<double()> &draw, Quality *quality);
    std::mt19937 random{test_seed()};
    double gaussian() { return std::normal_distribution<double>()(random); }
    // Of a t distribution with 3 degrees of freedom: some numbers are far beyond the others.
    double heavy() { return std::student_t_distribution<double>(3)(random); }
    int pick(std::initializer_list<int> of) { return of.begin()[random() % of.size()]; }
};

// ---- rotations

void Turbo4::check_rotation(const Rotation &c, const tessera_hadamard_rotate_instance *instance) {
    const tessera_type type = type_of(c.dtype);
    const size_t count = c.tokens && c.heads ? (c.tokens - 1) * c.token + (c.heads - 1) * c.row + c.hdim : 0;
    Guarded x(count * bytes_of(type)), y(count * bytes_of(type), 0x5a);
    for (size_t i = 0; i < count; i++) element_store(type, x.as<void>(), static_cast<int64_t>(i), gaussian());
    const std::vector<unsigned char> before(x.as<unsigned char>(), x.as<unsigned char>() + x.size());
    auto traits = tessera_hadamard_rotate_traits_init();
    auto args = tessera_hadamard_rotate_args_init();
    const Guarded &to = c.in_place ? x : y;
    traits.hdim = c.hdim, traits.data_type = c.dtype;
    args.tokens = c.tokens, args.nhead = c.heads;
    args.stride_x = args.stride_y = c.token, args.nhead_stride_x = args.nhead_stride_y = c.row;
    args.instance = instance;
    run(
        [&](Copies &copies) {
            args.x_ptr = copies.of(x), args.y_ptr = copies.of(to);
            return tessera_hadamard_rotate(device, &traits, &args, nullptr);
        },
        {&to});
    if (HasFatalFailure()) return;
    std::vector<unsigned char> rest(to.as<unsigned char>(), to.as<unsigned char>() + to.size());
    for (int t = 0; t < c.tokens; t++)
        for (int h = 0; h < c.heads; h++) {
            const int64_t at = static_cast<int64_t>(t) * c.token + static_cast<int64_t>(h) * c.row;
            const Row from = load(type, before.data(), at, c.hdim), want = rotated(from);
            const double slack = 0x1p-20 * std::sqrt(square_of(from));
            for (int d = 0; d < c.hdim; d++) {
                const double got = element_load(type, to.as<void>(), at + d), is = want[static_cast<size_t>(d)];
                ASSERT_NEAR(got, is, slack + epsilon_of(type) * std::abs(is)) << c.hdim << " row " << t << " " << h;
            }
            std::fill_n(rest.begin() + at * static_cast<int64_t>(bytes_of(type)), c.hdim * bytes_of(type), 0);
        }
    for (size_t i = 0; i < rest.size(); i++) ASSERT_TRUE(rest[i] == 0 || rest[i] == (c.in_place ? before[i] : 0x5a));
}

TEST_P(Turbo4, RotationsAreThoseOfTheMatrix) {
    const auto instances = instances_of<tessera_hadamard_rotate_instance>(tessera_hadamard_rotate_get_table());
    ASSERT_FALSE(instances.empty());
    for (const auto *instance : instances)
        for (int n = 0; n < count(40, 400); n++) {
            Rotation c = {};
            c.dtype = static_cast<tessera_fmha_dtype>(random() % 3);
            c.hdim = pick({64, 128, 256});
            c.tokens = pick({0, 1, 3, 40}), c.heads = pick({1, 2, 8});
            c.row = c.hdim + pick({0, 0, 5}), c.token = c.heads * c.row + pick({0, 3});
            c.in_place = random() % 2;
            check_rotation(c, instance);
            if (HasFatalFailure()) return;
        }
}

TEST_P(Turbo4, ARotationIsItsOwnInverse) {
    constexpr int kHdim = 128;
    Guarded x(kHdim * sizeof(float)), y(x.size()), z(x.size());
    std::generate_n(x.as<float>(), kHdim, [&] { return static_cast<float>(gaussian()); });
    const auto rotate = [&](const Guarded &from, const Guarded &to) {
        auto traits = tessera_hadamard_rotate_traits_init();
        auto args = tessera_hadamard_rotate_args_init();
        traits.hdim = kHdim, traits.data_type = TESSERA_FMHA_FP32, args.tokens = args.nhead = 1;
        run(
            [&](Copies &copies) {
                args.x_ptr = copies.of(from), args.y_ptr = copies.of(to);
                return tessera_hadamard_rotate(device, &traits, &args, nullptr);
            },
            {&to});
    };
    rotate(x, y), rotate(y, z);
    EXPECT_NE(std::memcmp(x.as<float>(), y.as<float>(), x.size()), 0);
    for (int i = 0; i < kHdim; i++) EXPECT_NEAR(z.as<float>()[i], x.as<float>()[i], 1e-5);
}

// ---- quantised rows

// A row's norm to the last bit but one of fp16, its numbers those of the nearest centroids, where rounding in fp32 may
// decide for either of two.
void check_row(const Cache &x, const Side &side, int token, int head) {
    const Row from = x.row_of(side, token, head), row = x.c.rotation ? rotated(from) : from;
    const double norm = std::sqrt(square_of(row));
    const int64_t slot = x.slot_mapping[static_cast<size_t>(token)];
    ASSERT_NEAR(x.norm_of(side, slot, head), norm, norm * 0x1p-10 + 0x1p-24);
    for (int d = 0; d < side.dims; d++) {
        const double is = norm > 0 ? row[static_cast<size_t>(d)] / norm : 0;
        double least = 1e9;
        for (const float centroid : x.centroids) least = std::min(least, std::abs(is - static_cast<double>(centroid)));
        ASSERT_LE(std::abs(is - x.code(side, slot, head, d)), least + 1e-6) << "token " << token << " number " << d;
    }
}

// Nothing else is written.
void check_rest(Cache &x, Side &side) {
    for (size_t t = 0; t < x.slot_mapping.size(); t++)
        for (int head = 0; head < x.c.heads && x.slot_mapping[t] >= 0; head++) {
            const int64_t row = x.c.row_of(x.slot_mapping[t], head);
            const int bytes = side.dims / 2 + (x.c.apart ? 0 : 2);
            std::fill_n(side.slots.as<uint8_t>() + row * x.c.slot_of(side.dims), bytes, 0x5a);
            if (x.c.apart) std::fill_n(side.norms.as<uint8_t>() + 2 * row, 2, 0x5a);
        }
    const auto is_left = [](const Guarded &of) {
        return std::all_of(of.as<uint8_t>(), of.as<uint8_t>() + of.size(), [](uint8_t byte) { return byte == 0x5a; });
    };
    EXPECT_TRUE(is_left(side.slots));
    EXPECT_TRUE(is_left(side.norms));
}

std::vector<int64_t> draw_slots(const Quantised &c, std::mt19937 &random) {
    std::vector<int64_t> slots(static_cast<size_t>(c.pages) * c.page);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), random);
    slots.resize(static_cast<size_t>(c.tokens));
    for (int64_t &slot : slots)
        if (random() % 5 == 0) slot = -1 - static_cast<int64_t>(random() % 3);
    return slots;
}

TEST_P(Turbo4, RandomRows) {
    const auto instances =
        instances_of<tessera_kv_cache_quantize_turbo4_instance>(tessera_kv_cache_quantize_turbo4_get_table());
    ASSERT_FALSE(instances.empty());
    for (const auto *instance : instances)
        for (int n = 0; n < count(60, 600); n++) {
            Quantised c;
            c.dtype = static_cast<tessera_fmha_dtype>(random() % 3);
            c.rotation = random() % 2;
            const bool any = !c.rotation && !is_gpu();
            c.hdim_q = any ? pick({2, 16, 30, 34, 64, 96, 128, 500, 512}) : pick({64, 128, 256});
            c.hdim_v = any ? pick({2, 32, 62, 66, 80}) : is_gpu() ? c.hdim_q : pick({64, 128, 256});
            c.page = pick({1, 16, 128}), c.pages = pick({40, 64}), c.tokens = pick({0, 1, 7, 40}),
            c.heads = pick({1, 2, 8});
            c.slack = pick({0, 6, 1}), c.apart = random() % 2, c.rows_first = random() % 2;
            Cache x(c, draw_slots(c, random));
            const double size = std::exp2(pick({-30, -3, 0, 9}));
            x.fill([&] { return size * gaussian(); });
            if (c.tokens) std::memset(x.k.from.as<void>(), 0, c.hdim_q * bytes_of(type_of(c.dtype))); // a row of zeros
            quantise(x, instance);
            for (int token = 0; token < c.tokens; token++)
                for (int head = 0; head < c.heads && x.slot_mapping[static_cast<size_t>(token)] >= 0; head++) {
                    check_row(x, x.k, token, head), check_row(x, x.v, token, head);
                    if (HasFatalFailure()) return;
                }
            check_rest(x, x.k), check_rest(x, x.v);
        }
}

// Numbers near the ends of fp32 and bf16, whose norm fp16 has or has not; and what is no number.
TEST_P(Turbo4, ExtremeRows) {
    Quantised c;
    c.dtype = TESSERA_FMHA_FP32, c.tokens = 4, c.heads = 1, c.rotation = false;
    for (const auto *instance :
         instances_of<tessera_kv_cache_quantize_turbo4_instance>(tessera_kv_cache_quantize_turbo4_get_table())) {
        Cache x(c, {0, 1, 2, 3});
        const float of_tokens[] = {1e-30F, 1e30F, 65504 / std::sqrt(128.0F), NAN};
        for (int t = 0; t < c.tokens; t++)
            for (Side *side : {&x.k, &x.v}) std::fill_n(side->from.as<float>() + t * 128, 128, of_tokens[t]);
        x.k.from.as<float>()[0] = -1e-30F;
        quantise(x, instance);
        EXPECT_EQ(x.norm_of(x.k, 0, 0), 0);
        EXPECT_LT(x.code(x.k, 0, 0, 0), 0); // numbers are those of the row, though its norm is nothing in fp16
        EXPECT_GT(x.code(x.k, 0, 0, 1), 0.08);
        EXPECT_TRUE(std::isinf(x.norm_of(x.k, 1, 0)));
        EXPECT_NEAR(x.norm_of(x.k, 2, 0), 65504, 64);
        EXPECT_TRUE(std::isnan(x.norm_of(x.k, 3, 0)));
    }
}

// ---- quality

// The mean of |x - what is read|^2 / |x|^2.
double distortion_of(const Cache &x) {
    double sum = 0;
    for (int t = 0; t < x.c.tokens; t++) {
        const Row from = x.row_of(x.k, t, 0), got = x.read(x.k, x.slot_mapping[static_cast<size_t>(t)], 0);
        const Row want = x.c.rotation ? rotated(from) : from;
        double error = 0;
        for (size_t d = 0; d < want.size(); d++) error += square(want[d] - got[d]);
        sum += error / square_of(from);
    }
    return sum / x.c.tokens;
}

TEST_P(Turbo4, ErrorIsThatOfTheTheory) {
    for (const int hdim : {64, 128, 256}) {
        Quantised c;
        c.dtype = TESSERA_FMHA_FP32, c.hdim_q = c.hdim_v = hdim, c.tokens = 512, c.heads = 1, c.pages = 32;
        std::vector<int64_t> slots(512);
        std::iota(slots.begin(), slots.end(), 0);
        Cache x(c, slots);
        x.fill([&] { return gaussian(); });
        quantise(x, nullptr);
        // Numbers of a row of length 1 are spread a little less than N(0, 1 / hdim).
        EXPECT_NEAR(distortion_of(x), kMaxDistortion, 0.06 * kMaxDistortion) << hdim;
        x.fill([&] { return heavy(); });
        quantise(x, nullptr);
        EXPECT_LT(distortion_of(x), 1.15 * kMaxDistortion) << hdim << ": heavy tails";
        c.rotation = false;
        Cache plain(c, slots);
        std::memcpy(plain.k.from.as<void>(), x.k.from.as<void>(), x.k.from.size());
        std::memset(plain.v.from.as<void>(), 0, plain.v.from.size());
        quantise(plain, nullptr);
        EXPECT_GT(distortion_of(plain), 2 * distortion_of(x)) << hdim << ": rotations are of use";
    }
}

// Attention in fp64 of one query head over rows of keys and values.
Row attend(const Row &q, const std::vector<Row> &k, const std::vector<Row> &v) {
    Row p(k.size()), o(v[0].size());
    for (size_t j = 0; j < k.size(); j++)
        p[j] = std::exp(std::inner_product(q.begin(), q.end(), k[j].begin(), 0.0) / std::sqrt(128.0));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (size_t j = 0; j < k.size(); j++)
        for (size_t d = 0; d < o.size(); d++) o[d] += p[j] / sum * v[j][d];
    return o;
}

double error_of(const Row &got, const Row &want) {
    double error = 0;
    for (size_t d = 0; d < want.size(); d++) error += square(got[d] - want[d]);
    return std::sqrt(error / square_of(want));
}

double most_of(const Row &x) {
    double most = 0;
    for (const double value : x) most = std::max(most, std::abs(value));
    return most;
}

// Rows in fp8 with one scale of the tensor, which is greatest where it may be, and in int4 with one of each row, as
// caches have them.
std::vector<Row> in_fp8(std::vector<Row> x) {
    double most = 0;
    for (const Row &row : x) most = std::max(most, most_of(row));
    for (Row &row : x)
        for (double &value : row) {
            uint8_t code = 0;
            element_store(TESSERA_TYPE_E4M3, &code, 0, value / most * 448);
            value = element_load(TESSERA_TYPE_E4M3, &code, 0) * most / 448;
        }
    return x;
}
Row in_int4(const Row &x) {
    const double most = most_of(x);
    Row y;
    for (const double value : x) y.push_back(std::clamp(std::nearbyint(value / most * 7), -8.0, 7.0) * most / 7);
    return y;
}

// The whole way: keys and values are rotated and quantised, the query is rotated, attention reads the pages, its result
// is rotated back. Against attention over what was never quantised.
void Turbo4::measure(const std::function<double()> &draw, Quality *quality) {
    constexpr int kKeys = 256, kHdim = 128;
    Quantised c;
    c.dtype = TESSERA_FMHA_FP32, c.tokens = kKeys, c.heads = 1, c.pages = kKeys / 16;
    std::vector<int64_t> slots(kKeys);
    std::iota(slots.begin(), slots.end(), 0);
    Cache x(c, slots);
    x.fill(draw);
    quantise(x, nullptr);
    std::vector<Row> k, v, k4, v4;
    for (int t = 0; t < kKeys; t++) {
        k.push_back(x.row_of(x.k, t, 0)), v.push_back(x.row_of(x.v, t, 0));
        k4.push_back(in_int4(k.back())), v4.push_back(in_int4(v.back()));
    }
    std::vector<float> q(kHdim), turned(kHdim), o(kHdim);
    std::generate(q.begin(), q.end(), [&] { return static_cast<float>(draw()); });
    auto rotation = tessera_hadamard_rotate_traits_init();
    auto rows = tessera_hadamard_rotate_args_init();
    rotation.hdim = kHdim, rotation.data_type = TESSERA_FMHA_FP32;
    rows.x_ptr = q.data(), rows.y_ptr = turned.data(), rows.tokens = rows.nhead = 1;
    ASSERT_EQ(tessera_hadamard_rotate(device, &rotation, &rows, nullptr), TESSERA_SUCCESS) << tessera_last_error();

    auto t = tessera_paged_attention_traits_init();
    auto a = tessera_paged_attention_args_init();
    std::vector<int32_t> table(kKeys / 16);
    std::iota(table.begin(), table.end(), 0);
    const int32_t length = kKeys;
    t.hdim_q = t.hdim_v = a.hdim_q = a.hdim_v = kHdim, t.data_type = TESSERA_FMHA_FP32;
    t.kv_cache_dtype = TESSERA_KV_TURBO4, t.kv_memory_layout = TESSERA_KV_LINEAR;
    a.q_ptr = turned.data(), a.o_ptr = o.data(), a.k_ptr = x.k.slots.as<void>(), a.v_ptr = x.v.slots.as<void>();
    a.centroids_ptr = x.centroids, a.block_table_ptr = table.data(), a.seqlen_k_ptr = &length;
    a.batch = a.nhead_q = a.nhead_k = a.max_seqlen_q = 1, a.max_seqlen_k = kKeys;
    a.num_total_pages = kKeys / 16, a.page_block_size = 16, a.batch_stride_block_table = kKeys / 16;
    a.stride_k = a.stride_v = 66, a.batch_stride_k = a.batch_stride_v = a.nhead_stride_k = a.nhead_stride_v = 16 * 66;
    a.scale_s = 1 / std::sqrt(128.0F);
    Copies here(device, false);
    ASSERT_EQ(run_with_workspace(here, t, a, tessera_paged_attention_workspace_size, tessera_paged_attention), "");
    rows.x_ptr = rows.y_ptr = o.data();
    ASSERT_EQ(tessera_hadamard_rotate(device, &rotation, &rows, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    const Row query(q.begin(), q.end()), want = attend(query, k, v);
    double squares = 0; // the mean of |q|^2 |k|^2
    for (const Row &key : k) squares += square_of(query) * square_of(key) / kKeys;
    quality->theory = std::sqrt(kMaxDistortion * (1 + squares / (kHdim * kHdim)));
    quality->bytes = c.slot_of(c.hdim_q) + c.slot_of(c.hdim_v);
    quality->turbo4 = error_of(Row(o.begin(), o.end()), want);
    quality->fp8 = error_of(attend(query, in_fp8(k), in_fp8(v)), want);
    quality->int4 = error_of(attend(query, k4, v4), want);
}

// Errors of logits are those of keys: of variance 0.0095 |q|^2 |k|^2 / 128^2. With those of values a result's error is,
// by first order, sqrt(0.0095 (1 + |q|^2 |k|^2 / 128^2)) of what values of its weights add up to.
TEST_P(Turbo4, QualityOfAttention) {
    if (is_gpu()) GTEST_SKIP() << "paged_attention has no fp32 there";
    for (const bool tails : {false, true}) {
        Quality mean = {};
        constexpr int kTimes = 64;
        for (int n = 0; n < kTimes; n++) {
            Quality one = {};
            measure([&] { return tails ? heavy() : gaussian(); }, &one);
            if (HasFatalFailure()) return;
            mean.turbo4 += one.turbo4 / kTimes, mean.fp8 += one.fp8 / kTimes, mean.int4 += one.int4 / kTimes;
            mean.theory += one.theory / kTimes, mean.bytes = one.bytes;
        }
        const std::string of = tails ? "heavy tails" : "gaussian";
        RecordProperty(of, "turbo4 " + std::to_string(mean.turbo4) + ", fp8 " + std::to_string(mean.fp8) + ", int4 " +
                               std::to_string(mean.int4));
        std::printf("error of attention, %s: turbo4 %.4f (%d bytes a token and head; by theory %.4f), fp8 %.4f (256), "
                    "int4 by rows %.4f (136); 16 bits take 512\n",
                    of.c_str(), mean.turbo4, mean.bytes, mean.theory, mean.fp8, mean.int4);
        EXPECT_EQ(mean.bytes, 132);
        EXPECT_LT(mean.turbo4, mean.int4) << of;
        EXPECT_LT(mean.fp8, mean.turbo4) << of;
        EXPECT_LT(mean.turbo4, 1.1 * mean.theory) << of;
    }
}

ON_DEVICES(Turbo4);

} // namespace
