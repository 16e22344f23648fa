// SPDX-License-Identifier: MIT
// Kernels of operations on rows on this CPU: stores past the caches, which only calls of many megabytes use, and
// outputs that are inputs, give what others give.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

extern "C" {
#include "device/device.h"
#include "tessera/kernel/add_rmsnorm2d_rdquant.h"
#include "tessera/kernel/layernorm2d_fwd.h"
#include "tessera/kernel/moe_smoothquant.h"
#include "tessera/kernel/rmsnorm2d_fwd.h"
#include "tessera/kernel/smoothquant.h"
}

namespace {

struct Table {
    const char *name;
    const tessera_table *(*get)();
    bool normalizes, quantizes; // whether it need not, or must
    const int32_t *expert = nullptr;
};
constexpr int32_t kExperts[] = {1, 0, 1};
const Table tables[] = {{"layernorm2d_fwd", tessera_layernorm2d_fwd_get_table, true, false},
                        {"rmsnorm2d_fwd", tessera_rmsnorm2d_fwd_get_table, true, false},
                        {"add_rmsnorm2d_rdquant", tessera_add_rmsnorm2d_rdquant_get_table, true, true},
                        {"smoothquant", tessera_smoothquant_get_table, false, true},
                        {"moe_smoothquant", tessera_moe_smoothquant_get_table, false, true, kExperts}};

constexpr int kRows = 3, kStride = 1216; // whole lines of each type

struct alignas(64) Line {
    unsigned char bytes[64];
    bool operator==(const Line &other) const { return memcmp(bytes, other.bytes, sizeof bytes) == 0; }
};

// A problem with all outputs, `shift` elements behind where a line begins.
struct Problem : tessera_rows_problem {
    std::vector<Line> memory[12];
    void *room(int number, int bytes) {
        memory[number].resize(kRows * kStride / 16 + 2);
        auto *const to = memory[number].data()->bytes;
        for (size_t i = 0; i < 16 * memory[number].size(); i++) { // bits of small numbers, of each type
            const uint32_t number_bits = bytes == 4 ? 0x3f000000 + 7919u * (i % 997) : 0x3c003c00 + 0x10001u * (i % 97);
            memcpy(to + 4 * i, &number_bits, 4);
        }
        return to + bytes * shift;
    }
    int shift;

    Problem(const Table &table, tessera_type type, bool quantized, int columns, int at)
        : tessera_rows_problem{}, shift(at) {
        const int bytes = type == TESSERA_TYPE_FP32 ? 4 : 2;
        x = room(0, bytes), y = room(1, quantized ? 1 : bytes);
        if (table.normalizes) {
            gamma = room(2, bytes), beta = room(3, bytes), residual = room(4, bytes), residual_out = room(5, bytes);
            mean = static_cast<float *>(room(6, 4)), inv = static_cast<float *>(room(7, 4));
        }
        if (table.normalizes && quantized) unquantized = room(8, bytes);
        if (quantized) smooth = static_cast<float *>(room(9, 4)), y_scale = static_cast<float *>(room(10, 4));
        x_stride = residual_stride = y_stride = residual_out_stride = kStride;
        m = kRows, n = columns, slots = 1, epsilon = 1e-5f;
        expert = table.expert, experts = 2;
        in = type, out = quantized ? TESSERA_TYPE_INT8 : type;
    }
};

// Each instance of this processor, each type, with columns that fill blocks and units or do not.
template <class Check> void for_each_problem(const Check &check) {
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS);
    for (const Table &table : tables)
        for (uint32_t i = 0; i < table.get()->row_count; i++) {
            const auto *const row = reinterpret_cast<const tessera_rows_instance *>(tessera_row(table.get(), i));
            if (!(device->facts.targets >> row->base.target & 1)) continue;
            for (const tessera_type type : {TESSERA_TYPE_FP32, TESSERA_TYPE_FP16, TESSERA_TYPE_BF16})
                for (const bool quantized : {false, true})
                    for (const int n : {1, 31, 64, 512, 1000, 1024, 1111})
                        for (const int shift : {0, 1, 5}) {
                            if (table.quantizes && !quantized) continue;
                            SCOPED_TRACE(testing::Message() << row->base.name << " type " << type << " quantized "
                                                            << quantized << " n " << n << " shift " << shift);
                            Problem one(table, type, quantized, n, shift), other(table, type, quantized, n, shift);
                            row->run(&one, 0, kRows);
                            check(table, row, &one, &other);
                            if (testing::Test::HasFailure()) return;
                        }
        }
    tessera_device_close(device);
}

TEST(RowsKernel, StoresPastCachesAreTheSame) {
    for_each_problem([](const Table &, const tessera_rows_instance *row, Problem *one, Problem *other) {
        other->past = 1;
        row->run(other, 0, kRows);
        for (int tensor = 0; tensor < 12; tensor++) EXPECT_TRUE(one->memory[tensor] == other->memory[tensor]) << tensor;
    });
}

TEST(RowsKernel, OutputsMayBeInputs) {
    for_each_problem([](const Table &table, const tessera_rows_instance *row, Problem *one, Problem *other) {
        if (!table.normalizes || other->y_scale) return;
        for (const int past : {0, 1}) {
            Problem fresh(table, static_cast<tessera_type>(other->in), false, other->n, other->shift);
            fresh.y = const_cast<void *>(fresh.x), fresh.residual_out = const_cast<void *>(fresh.residual);
            fresh.past = past;
            row->run(&fresh, 0, kRows);
            EXPECT_TRUE(fresh.memory[0] == one->memory[1]);
            EXPECT_TRUE(fresh.memory[4] == one->memory[5]);
        }
    });
}

} // namespace
