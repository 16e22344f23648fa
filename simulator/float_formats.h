// SPDX-License-Identifier: MIT
// Floating-point formats below 32 bits, as bits, and their conversions. Written so that loops over them vectorise.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t sim_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float sim_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint64_t sim_bits64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline double sim_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// ---- IEEE half

static inline float sim_half_to_float(uint32_t half) {
    const uint32_t magnitude = half & 0x7fff;
    const uint32_t bits = sim_bits(sim_float(magnitude << 13) * 0x1p112f) | (magnitude >= 0x7c00 ? 0x7f800000 : 0);
    return sim_float(bits | (half & 0x8000) << 16);
}

// To the nearest, ties to even.
static inline uint32_t sim_float_to_half(float value) {
    const uint32_t bits = sim_bits(value) & 0x7fffffff, sign = sim_bits(value) >> 16 & 0x8000;
    const uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t tiny = sim_bits(sim_float(bits) + 0.5f) - 0x3f000000;
    const uint32_t huge = bits > 0x7f800000 ? 0x7e00 | (bits >> 13 & 0x3ff) : 0x7c00;
    return sign | (bits >= 0x47800000 ? huge : bits < 0x38800000 ? tiny : normal);
}

// Towards zero: finite values stay finite.
static inline uint32_t sim_float_to_half_rtz(float value) {
    const uint32_t bits = sim_bits(value) & 0x7fffffff, sign = sim_bits(value) >> 16 & 0x8000;
    if (bits > 0x7f800000) return sign | 0x7e00 | (bits >> 13 & 0x3ff);
    if (bits == 0x7f800000) return sign | 0x7c00;
    if (bits >= 0x47800000) return sign | 0x7bff;
    if (bits < 0x38800000) return sign | (uint32_t)(sim_float(bits) * 0x1p24f);
    return sign | (bits - (112u << 23)) >> 13;
}

// A double that lies on the same side of every half, and of every midpoint between halves, as a * b + c does.
static inline uint32_t sim_half_fma(uint32_t a, uint32_t b, uint32_t c) {
    const double product = (double)sim_half_to_float(a) * (double)sim_half_to_float(b); // exact
    const double addend = (double)sim_half_to_float(c);
    const double sum = product + addend, shadow = sum - product;
    const double error = (product - (sum - shadow)) + (addend - shadow);
    // Rounded to odd twice: into the double, and into a float for the last step.
    uint64_t bits = sim_bits64(sum);
    const bool finite = (bits & UINT64_C(0x7ff0000000000000)) != UINT64_C(0x7ff0000000000000);
    const bool away = (error > 0) == (sum > 0);
    if (finite && error != 0 && !(bits & 1)) bits = away ? bits + 1 : bits - 1;
    const double odd = sim_double(bits);
    float rounded = (float)odd;
    uint32_t low = sim_bits(rounded);
    if (finite && (double)rounded != odd && !(low & 1)) low = fabs((double)rounded) < fabs(odd) ? low + 1 : low - 1;
    return sim_float_to_half(sim_float(low));
}

// ---- bfloat16

static inline float sim_bf16_to_float(uint32_t bits) { return sim_float(bits << 16); }

static inline uint32_t sim_float_to_bf16(float value) {
    const uint32_t bits = sim_bits(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded;
}

// ---- formats of 8 bits and less

struct sim_small_format {
    uint8_t exponent_bits, mantissa_bits, bias;
    bool infinity;   // IEEE-like: the top exponent holds infinity and NaN
    bool fnuz;       // no -0, NaN is 0x80
    bool top_is_nan; // only all ones is NaN (OCP e4m3)
};

static const struct sim_small_format sim_e4m3_fnuz = {4, 3, 8, false, true, false};
static const struct sim_small_format sim_e5m2_fnuz = {5, 2, 16, false, true, false};
static const struct sim_small_format sim_e4m3_ocp = {4, 3, 7, false, false, true};
static const struct sim_small_format sim_e5m2_ocp = {5, 2, 15, true, false, false};
static const struct sim_small_format sim_e2m3 = {2, 3, 1, false, false, false};
static const struct sim_small_format sim_e3m2 = {3, 2, 3, false, false, false};
static const struct sim_small_format sim_e2m1 = {2, 1, 1, false, false, false};

static inline float sim_small_to_float(struct sim_small_format format, uint32_t bits) {
    const unsigned width = 1u + format.exponent_bits + format.mantissa_bits;
    const uint32_t sign = bits >> (width - 1) & 1, magnitude = bits & ((1u << (width - 1)) - 1);
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const uint32_t exponent = magnitude >> format.mantissa_bits, top = (1u << format.exponent_bits) - 1;
    if (format.fnuz && sign && magnitude == 0) return NAN;
    if (format.top_is_nan && magnitude == (1u << (width - 1)) - 1) return NAN;
    if (format.infinity && exponent == top) return mantissa ? NAN : sign ? -INFINITY : INFINITY;
    const float scaled = exponent ? (float)(mantissa | 1u << format.mantissa_bits) : (float)mantissa;
    const float value = ldexpf(scaled, (int)(exponent ? exponent : 1) - format.bias - format.mantissa_bits);
    return sign ? -value : value;
}

// To the nearest, ties to even; too large values become infinity or NaN, or the largest number where `saturate`.
static inline uint32_t sim_float_to_small(struct sim_small_format format, float value, bool saturate) {
    const unsigned width = 1u + format.exponent_bits + format.mantissa_bits;
    const uint32_t all_ones = (1u << (width - 1)) - 1, top = all_ones & ~((1u << format.mantissa_bits) - 1);
    const uint32_t nan = format.fnuz ? 1u << (width - 1) : all_ones;
    const uint32_t largest = format.infinity ? top - 1 : format.top_is_nan ? all_ones - 1 : all_ones;
    const uint32_t sign = signbit(value) ? 1u << (width - 1) : 0;
    const bool has_nan = format.fnuz || format.infinity || format.top_is_nan;
    if (value != value) return has_nan ? nan : largest;
    uint32_t bits = all_ones + 1;
    if (!isinf(value) && value != 0) {
        int exponent = ilogbf(value);
        if (exponent < 1 - format.bias) exponent = 1 - format.bias;
        const double quanta = rint(ldexp(fabs((double)value), format.mantissa_bits - exponent));
        const double code = ldexp(exponent + format.bias - 1, format.mantissa_bits) + quanta;
        if (code <= largest) bits = (uint32_t)code;
    } else if (value == 0) {
        bits = 0;
    }
    if (bits > largest) bits = saturate || !has_nan ? largest : format.infinity ? top : nan & all_ones ? nan : 0;
    if (bits == 0 && format.fnuz) return value == 0 || (!isinf(value) && fabsf(value) < 1) || saturate ? 0 : nan;
    return sign | bits;
}
