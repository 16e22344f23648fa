// SPDX-License-Identifier: MIT
#include "atomics.h"

static uint32_t add_halves(uint32_t a, uint32_t b) {
    const uint32_t low = sim_float_to_half(sim_half_to_float(a & 0xffff) + sim_half_to_float(b & 0xffff));
    const uint32_t high = sim_float_to_half(sim_half_to_float(a >> 16) + sim_half_to_float(b >> 16));
    return low | high << 16;
}

static uint32_t add_bf16s(uint32_t a, uint32_t b) {
    const uint32_t low = sim_float_to_bf16(sim_bf16_to_float(a & 0xffff) + sim_bf16_to_float(b & 0xffff));
    const uint32_t high = sim_float_to_bf16(sim_bf16_to_float(a >> 16) + sim_bf16_to_float(b >> 16));
    return low | high << 16;
}

// Cases that read the same for words of both sizes.
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

uint32_t tessera_sim_atomic32(enum sim_atomic atomic, uint32_t old, uint32_t data, uint32_t compare) {
    const float x = sim_float(old), y = sim_float(data);
    switch (atomic) {
        INTEGER_CASES(int32_t)
    case SIM_ATOMIC_ADD_F:
        return sim_bits(x + y);
    case SIM_ATOMIC_MIN_F:
        return y < x ? data : old;
    case SIM_ATOMIC_MAX_F:
        return y > x ? data : old;
    case SIM_ATOMIC_CMPSWAP_F:
        return x == sim_float(compare) ? data : old;
    case SIM_ATOMIC_PK_ADD_F16:
        return add_halves(old, data);
    case SIM_ATOMIC_PK_ADD_BF16:
        return add_bf16s(old, data);
    }
    return old;
}

uint64_t tessera_sim_atomic64(enum sim_atomic atomic, uint64_t old, uint64_t data, uint64_t compare) {
    const double x = sim_double(old), y = sim_double(data);
    switch (atomic) {
        INTEGER_CASES(int64_t)
    case SIM_ATOMIC_ADD_F:
        return sim_bits64(x + y);
    case SIM_ATOMIC_MIN_F:
        return y < x ? data : old;
    case SIM_ATOMIC_MAX_F:
        return y > x ? data : old;
    case SIM_ATOMIC_CMPSWAP_F:
        return x == sim_double(compare) ? data : old;
    case SIM_ATOMIC_PK_ADD_F16:
    case SIM_ATOMIC_PK_ADD_BF16:
        break; // of 32 bits only
    }
    return old;
}
