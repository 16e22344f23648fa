// SPDX-License-Identifier: MIT
#include "atomics.h"

// ---- floats: "AMD Instinct MI300 Instruction Set Architecture", section "Float Memory Atomics"

static float flushed(float value, float least, unsigned flush) {
    return flush && fabsf(value) < least ? copysignf(0, value) : value;
}
static float source(float value, float least, unsigned flush) {
    return flushed(value, least, flush & SIM_FLUSH_SOURCES);
}
static float result(float value, float least, unsigned flush) {
    return flushed(value, least, flush & SIM_FLUSH_RESULT);
}

static uint32_t add_half(uint32_t a, uint32_t b, unsigned flush) {
    const float least = 0x1p-14f, x = source(sim_half_to_float(a & 0xffff), least, flush);
    const float sum = sim_half_to_float(sim_float_to_half(x + source(sim_half_to_float(b & 0xffff), least, flush)));
    return sim_float_to_half(result(sum, least, flush));
}
static uint32_t add_bf16(uint32_t a, uint32_t b, unsigned flush) {
    const float least = 0x1p-126f, x = source(sim_bf16_to_float(a & 0xffff), least, flush);
    const float sum = x + source(sim_bf16_to_float(b & 0xffff), least, flush);
    return sim_float_to_bf16(result(sim_bf16_to_float(sim_float_to_bf16(sum)), least, flush));
}
static uint32_t add_halves(uint32_t a, uint32_t b, unsigned flush) {
    return add_half(a, b, flush) | add_half(a >> 16, b >> 16, flush) << 16;
}
static uint32_t add_bf16s(uint32_t a, uint32_t b, unsigned flush) {
    return add_bf16(a, b, flush) | add_bf16(a >> 16, b >> 16, flush) << 16;
}

static float float_source(uint32_t bits, unsigned flush) { return source(sim_float(bits), 0x1p-126f, flush); }
static double double_source(uint64_t bits, unsigned flush) {
    const double value = sim_double(bits);
    return flush & SIM_FLUSH_SOURCES && fabs(value) < 0x1p-1022 ? copysign(0, value) : value;
}

// Whether the data replaces the old value, being greater (or less). A number replaces a quiet NaN.
static bool replaces(double old, double data, bool greater) {
    if (isnan(old) || isnan(data)) return !isnan(data);
    if (old == data) return greater ? signbit(old) && !signbit(data) : !signbit(old) && signbit(data);
    return greater ? data > old : data < old;
}
// Greater or lesser of two floats. A signaling NaN among them is the result, made quiet.
static uint32_t extreme32(uint32_t old, uint32_t data, bool greater, unsigned flush) {
    const uint32_t quiet = 1u << 22;
    const float x = float_source(old, flush), y = float_source(data, flush);
    if (isnan(x) && !(old & quiet)) return old | quiet;
    if (isnan(y) && !(data & quiet)) return data | quiet;
    return replaces((double)x, (double)y, greater) ? data : old;
}
static uint64_t extreme64(uint64_t old, uint64_t data, bool greater, unsigned flush) {
    const uint64_t quiet = UINT64_C(1) << 51;
    const double x = double_source(old, flush), y = double_source(data, flush);
    if (isnan(x) && !(old & quiet)) return old | quiet;
    if (isnan(y) && !(data & quiet)) return data | quiet;
    return replaces(x, y, greater) ? data : old;
}

// The cases of integers, written once for words of both sizes.
#define INTEGER_CASES(S)                                                                                               \
    case SIM_ATOMIC_SWAP:                                                                                              \
        return data;                                                                                                   \
    case SIM_ATOMIC_CMPSWAP:                                                                                           \
        return old == compare ? data : old;                                                                            \
    case SIM_ATOMIC_ADD:                                                                                               \
        return old + data;                                                                                             \
    case SIM_ATOMIC_SUB:                                                                                               \
        return old - data;                                                                                             \
    case SIM_ATOMIC_RSUB:                                                                                              \
        return data - old;                                                                                             \
    case SIM_ATOMIC_SMIN:                                                                                              \
        return (S)data < (S)old ? data : old;                                                                          \
    case SIM_ATOMIC_SMAX:                                                                                              \
        return (S)data > (S)old ? data : old;                                                                          \
    case SIM_ATOMIC_UMIN:                                                                                              \
        return data < old ? data : old;                                                                                \
    case SIM_ATOMIC_UMAX:                                                                                              \
        return data > old ? data : old;                                                                                \
    case SIM_ATOMIC_AND:                                                                                               \
        return old & data;                                                                                             \
    case SIM_ATOMIC_OR:                                                                                                \
        return old | data;                                                                                             \
    case SIM_ATOMIC_XOR:                                                                                               \
        return old ^ data;                                                                                             \
    case SIM_ATOMIC_MSKOR:                                                                                             \
        return (old & ~compare) | data;                                                                                \
    case SIM_ATOMIC_INC:                                                                                               \
        return old >= data ? 0 : old + 1;                                                                              \
    case SIM_ATOMIC_DEC:                                                                                               \
        return old == 0 || old > data ? data : old - 1;                                                                \
    case SIM_ATOMIC_WRAP:                                                                                              \
        return old >= compare ? old - compare : old + data;

uint32_t tessera_sim_atomic32(enum sim_atomic atomic, uint32_t old, uint32_t data, uint32_t compare, unsigned flush) {
    const float x = float_source(old, flush), y = float_source(data, flush);
    switch (atomic) {
        INTEGER_CASES(int32_t)
    case SIM_ATOMIC_ADD_F:
        return sim_bits(result(x + y, 0x1p-126f, flush));
    case SIM_ATOMIC_MIN_F:
        return extreme32(old, data, false, flush);
    case SIM_ATOMIC_MAX_F:
        return extreme32(old, data, true, flush);
    case SIM_ATOMIC_CMPSWAP_F:
        return x == float_source(compare, flush) ? data : old;
    case SIM_ATOMIC_PK_ADD_F16:
        return add_halves(old, data, flush);
    case SIM_ATOMIC_PK_ADD_BF16:
        return add_bf16s(old, data, flush);
    }
    return old;
}

uint64_t tessera_sim_atomic64(enum sim_atomic atomic, uint64_t old, uint64_t data, uint64_t compare, unsigned flush) {
    switch (atomic) {
        INTEGER_CASES(int64_t)
    case SIM_ATOMIC_ADD_F:
        return sim_bits64(sim_double(old) + sim_double(data)); // denormals stay on all architectures
    case SIM_ATOMIC_MIN_F:
        return extreme64(old, data, false, flush);
    case SIM_ATOMIC_MAX_F:
        return extreme64(old, data, true, flush);
    case SIM_ATOMIC_CMPSWAP_F:
        return double_source(old, flush) == double_source(compare, flush) ? data : old;
    case SIM_ATOMIC_PK_ADD_F16:
    case SIM_ATOMIC_PK_ADD_BF16:
        break; // these exist for 32 bits only
    }
    return old;
}
