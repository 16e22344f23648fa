// SPDX-License-Identifier: MIT
// Mathematics, conversions and random bytes, written in the words of any CPU vocabulary. Include one of cpu_portable.h,
// cpu_avx2.h, cpu_avx512.h, cpu_avx512bf16.h, cpu_amx.h, cpu_neon.h first.
#ifndef TESSERA_ISA_CPU_COMMON_H
#define TESSERA_ISA_CPU_COMMON_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "tessera/types.h"

#define ALIGN64(bytes) (((size_t)(bytes) + 63) & ~(size_t)63)

// 2^x for x <= 126; 0 for x < -126, and 0 or 2^x between -126 and -125.5: never a denormal. NaN stays NaN. The relative
// error is 1.7e-7, and 2^0 is 1: 2^r is a minimax polynomial (in relative error) of degree 5 on [-1/2, 1/2].
INLINE vf v_exp2(vf x) {
    x = v_max(v_set1(-160.0f), x);
    vf n = v_round(x), r = v_sub(x, n);
    vf p = v_fma(v_set1(0x1.5b8da0p-10f), r, v_set1(0x1.3ceb2cp-7f));
    p = v_fma(p, r, v_set1(0x1.c6b752p-5f));
    p = v_fma(p, r, v_set1(0x1.ebf9b8p-3f));
    p = v_fma(p, r, v_set1(0x1.62e42ap-1f));
    p = v_fma(p, r, v_set1(1.0f));
    return v_scale2(p, n);
}

// tanh x = x P(x^2) / Q(x^2) with degrees 4 / 4, minimax in relative error (3.9e-7) on [-9, 9]; beyond, its value at
// +-9.
INLINE vf v_tanh(vf x) {
    x = v_min(v_set1(9.0f), v_max(v_set1(-9.0f), x));
    const vf u = v_mul(x, x);
    vf p = v_fma(v_set1(0x1.cadd02p-27f), u, v_set1(0x1.59c366p-16f));
    p = v_fma(p, u, v_set1(0x1.ca2c82p-9f));
    p = v_fma(p, u, v_set1(0x1.120b1ep-3f));
    p = v_fma(p, u, v_set1(1.0f));
    vf q = v_fma(v_set1(0x1.a18050p-21f), u, v_set1(0x1.588620p-12f));
    q = v_fma(q, u, v_set1(0x1.a7f7f2p-6f));
    q = v_fma(q, u, v_set1(0x1.de5ad8p-2f));
    q = v_fma(q, u, v_set1(1.0f));
    return v_quotient(v_mul(x, p), q);
}

// bfloat16
INLINE vf v_load_bf16(const uint16_t *p) { return v_as_f(v_shl_i(v_load_u16(p), 16)); }
INLINE void v_store_bf16(uint16_t *p, vf x) { // to nearest even; NaN stays NaN
    vi bits = v_as_i(x);
    vi odd = v_and_i(v_shr_i(bits, 16), v_set1_i(1));
    vi rounded = v_shr_i(v_add_i(bits, v_add_i(odd, v_set1_i(0x7fff))), 16);
    vi quiet = v_or_i(v_shr_i(bits, 16), v_set1_i(0x40));
    v_store_u16(p, v_as_i(v_if_equal(x, x, v_as_f(rounded), v_as_f(quiet))));
}

// 2 * LANES bf16 in order of memory, the even ones of them and the odd ones.
INLINE void v_load_bf16_split(const uint16_t *p, vf x[2]) {
    const vi words = v_load_i(p);
    x[0] = v_as_f(v_shl_i(words, 16));
    x[1] = v_as_f(v_and_i(words, v_set1_i((int32_t)0xffff0000)));
}
// To nearest even; NaN whose lower half is 0, as those of bf16, stays NaN.
INLINE vi v_rounded_up_bf16(vf x) { // in the upper half
    const vi bits = v_as_i(x), odd = v_and_i(v_shr_i(bits, 16), v_set1_i(1));
    return v_add_i(v_add_i(bits, v_set1_i(0x7fff)), odd);
}
INLINE vi v_to_bf16_split(const vf x[2]) {
    const vi odd = v_and_i(v_rounded_up_bf16(x[1]), v_set1_i((int32_t)0xffff0000));
    return v_or_i(v_shr_i(v_rounded_up_bf16(x[0]), 16), odd);
}

// The magnitude of a small format's number from its exponent and mantissa. Its denormals are computed as integers times
// a power of 2, so that no operand is a denormal of fp32: the host may have them flushed, and they are slow on many
// CPUs.
INLINE vf v_small_float(vi code, int mantissa_bits, int bias) {
    vf normal = v_as_f(v_add_i(v_shl_i(code, 23 - mantissa_bits), v_set1_i((127 - bias) << 23)));
    vf denormal = v_mul(v_to_f(code), v_as_f(v_set1_i((128 - bias - mantissa_bits) << 23)));
    return v_if_gt_i(v_set1_i(1 << mantissa_bits), code, denormal, normal);
}

// fp8 e4m3 of OCP: no infinity, 0x7f is NaN.
INLINE vf v_load_e4m3(const uint8_t *p) {
    vi byte = v_load_u8(p), magnitude = v_and_i(byte, v_set1_i(0x7f));
    vf value = v_small_float(magnitude, 3, 7);
    vf nan = v_as_f(v_set1_i(0x7fc00000));
    value = v_if_gt_i(magnitude, v_set1_i(0x7e), nan, value);
    return v_as_f(v_or_i(v_as_i(value), v_shl_i(v_and_i(byte, v_set1_i(0x80)), 24)));
}
INLINE vi v_code_e4m3(vf x) { // to nearest even; saturates at 448; NaN stays NaN
    const vi sign = v_and_i(v_shr_i(v_as_i(x), 24), v_set1_i(0x80));
    const vf a = v_min(v_abs(x), v_set1(448.0f));
    // 2^E <= a, or E = -6 for denormals. Adding 2^(E + 20) rounds to steps of 2^(E - 3), which the sum then counts: 8
    // for each E passed, and those of a.
    const vi power = v_max_i(v_and_i(v_as_i(a), v_set1_i(0x7f800000)), v_set1_i(121 << 23));
    const vi adder = v_add_i(power, v_set1_i(20 << 23));
    const vi steps = v_sub_i(v_as_i(v_add(a, v_as_f(adder))), adder);
    const vi value = v_add_i(steps, v_sub_i(v_shr_i(power, 20), v_set1_i(121 << 3)));
    const vi quiet = v_as_i(v_if_equal(x, x, v_as_f(value), v_as_f(v_set1_i(0x7f))));
    return v_or_i(sign, quiet);
}
INLINE void v_store_e4m3(uint8_t *p, vf x) { v_store_u8(p, v_code_e4m3(x)); }

// One IEEE half.
INLINE float f16_at(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
    uint32_t bits = magnitude << 13 | (magnitude >= 0x7c00 ? 0x7f800000u : 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (magnitude < 0x7c00) value *= 0x1p112f; // of the exponents
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// E8M0: 2^(byte - 127); 255 is NaN.
INLINE float e8m0(uint8_t byte) {
    uint32_t bits = byte == 0 ? 0x00400000u : byte == 255 ? 0x7fc00000u : (uint32_t)byte << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// fp4 e2m1: LANES numbers of LANES / 2 bytes, low nibble first.
INLINE vf v_load_e2m1(const uint8_t *p) {
    vi code = v_load_u4(p);
    vf value = v_small_float(v_and_i(code, v_set1_i(7)), 1, 1);
    return v_as_f(v_or_i(v_as_i(value), v_shl_i(v_and_i(code, v_set1_i(8)), 28)));
}

INLINE int64_t bytes_of(tessera_type storage, int64_t elements) {
    switch (storage) {
    case TESSERA_TYPE_FP32:
        return elements * 4;
    case TESSERA_TYPE_E4M3:
    case TESSERA_TYPE_INT8:
        return elements;
    case TESSERA_TYPE_E2M1:
        return elements / 2;
    default:
        return elements * 2;
    }
}

// LANES elements from p on, as fp32.
INLINE vf v_load_as(tessera_type storage, const void *p) {
    switch (storage) {
    case TESSERA_TYPE_FP16:
        return v_load_f16((const uint16_t *)p);
    case TESSERA_TYPE_BF16:
        return v_load_bf16((const uint16_t *)p);
    case TESSERA_TYPE_E4M3:
        return v_load_e4m3((const uint8_t *)p);
    case TESSERA_TYPE_E2M1:
        return v_load_e2m1((const uint8_t *)p);
    default:
        return v_load((const float *)p);
    }
}

// The rare cases of v_fetch(), kept out of line.
static RARE vf v_fetch_part(tessera_type storage, const void *base, int64_t at, int count) {
    uint8_t whole[LANES * sizeof(float)] = {0};
    const uint8_t *bytes = (const uint8_t *)base;
    if (storage == TESSERA_TYPE_E2M1)
        for (int i = 0; i < count; i++)
            whole[i / 2] |= (uint8_t)((bytes[(at + i) / 2] >> (at + i) % 2 * 4 & 15) << i % 2 * 4);
    else
        memcpy(whole, bytes + bytes_of(storage, at), (size_t)bytes_of(storage, count));
    return v_load_as(storage, whole);
}

// Reads `count` <= LANES elements from element `at` of a tensor on, and nothing else, as fp32; other lanes are 0.
INLINE vf v_fetch(tessera_type storage, const void *base, int64_t at, int count) {
    const int within_byte = storage == TESSERA_TYPE_E2M1 && at % 2;
    if (count < LANES || within_byte) return v_fetch_part(storage, base, at, count);
    return v_load_as(storage, (const uint8_t *)base + bytes_of(storage, at));
}

// Writes the first `count` lanes from element `at` on, and nothing else.
INLINE void v_put(tessera_type storage, void *base, int64_t at, int count, vf x) {
    uint8_t whole[LANES * sizeof(float)];
    void *p = (uint8_t *)base + bytes_of(storage, at), *to = count < LANES ? (void *)whole : p;
    switch (storage) {
    case TESSERA_TYPE_FP16:
        v_store_f16((uint16_t *)to, x);
        break;
    case TESSERA_TYPE_BF16:
        v_store_bf16((uint16_t *)to, x);
        break;
    case TESSERA_TYPE_E4M3:
        v_store_e4m3((uint8_t *)to, x);
        break;
    default:
        v_store((float *)to, x);
        break;
    }
    if (to != p) memcpy(p, whole, (size_t)bytes_of(storage, count));
}

// Philox4x32-10 (Salmon et al., 2011) on LANES counters at once; counter[] becomes the output.
INLINE void v_philox(vi counter[4], uint64_t seed) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        vi high0, low0, high1, low1;
        v_mul_wide(counter[0], 0xD2511F53u, &high0, &low0);
        v_mul_wide(counter[2], 0xCD9E8D57u, &high1, &low1);
        counter[0] = v_xor_i(v_xor_i(high1, counter[1]), v_set1_i((int32_t)key0));
        counter[2] = v_xor_i(v_xor_i(high0, counter[3]), v_set1_i((int32_t)key1));
        counter[1] = low1;
        counter[3] = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

#endif
