// SPDX-License-Identifier: MIT
// Floating-point formats of less than 32 bits, as bits, and their conversions, written so that compilers vectorise
// loops over them.
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
    const uint32_t top = magnitude > 0x7c00 ? 0x7fc00000 : magnitude == 0x7c00 ? 0x7f800000 : 0; // NaN becomes quiet
    return sim_float(sim_bits(sim_float(magnitude << 13) * 0x1p112f) | top | (half & 0x8000) << 16);
}

// Rounds to the nearest, ties to even.
static inline uint32_t sim_float_to_half(float value) {
    const uint32_t bits = sim_bits(value) & 0x7fffffff, sign = sim_bits(value) >> 16 & 0x8000;
    const uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t tiny = sim_bits(sim_float(bits) + 0.5f) - 0x3f000000;
    const uint32_t huge = bits > 0x7f800000 ? 0x7e00 | (bits >> 13 & 0x3ff) : 0x7c00;
    return sign | (bits >= 0x47800000 ? huge : bits < 0x38800000 ? tiny : normal);
}

// Rounds towards zero: finite values stay finite.
static inline uint32_t sim_float_to_half_rtz(float value) {
    const uint32_t bits = sim_bits(value) & 0x7fffffff, sign = sim_bits(value) >> 16 & 0x8000;
    if (bits > 0x7f800000) return sign | 0x7e00 | (bits >> 13 & 0x3ff);
    if (bits == 0x7f800000) return sign | 0x7c00;
    if (bits >= 0x47800000) return sign | 0x7bff;
    if (bits < 0x38800000) return sign | (uint32_t)(sim_float(bits) * 0x1p24f);
    return sign | (bits - (112u << 23)) >> 13;
}

// MODE's settings for halves: its rounding (0 nearest, 1 up, 2 down, 3 towards zero), and FP16_OVFL, with which finite
// values stay finite.
struct sim_half_mode {
    uint8_t rounding;
    bool finite;
};
static inline uint32_t sim_float_to_half_mode(float value, struct sim_half_mode mode) {
    uint32_t half = sim_float_to_half(value);
    if (mode.rounding) {
        half = sim_float_to_half_rtz(value);
        const bool inexact = value == value && !isinf(value) && sim_half_to_float(half) != value;
        if (inexact && ((mode.rounding == 1 && value > 0) || (mode.rounding == 2 && value < 0))) half++;
    }
    return mode.finite && (half & 0x7fff) == 0x7c00 && !isinf(value) ? half - 1 : half;
}

// A value on the same side of every half, and of every midpoint between halves, as the exact a * b + c.
static inline float sim_half_fma_odd(uint32_t a, uint32_t b, uint32_t c) {
    const double product = (double)sim_half_to_float(a) * (double)sim_half_to_float(b); // exact
    const double addend = (double)sim_half_to_float(c);
    const double sum = product + addend, shadow = sum - product;
    const double error = (product - (sum - shadow)) + (addend - shadow);
    // Rounds to odd twice: to a double, then to a float for the last step.
    uint64_t bits = sim_bits64(sum);
    const bool finite = (bits & UINT64_C(0x7ff0000000000000)) != UINT64_C(0x7ff0000000000000);
    const bool away = (error > 0) == (sum > 0);
    if (finite && error != 0 && !(bits & 1)) bits = away ? bits + 1 : bits - 1;
    const double odd = sim_double(bits);
    float rounded = (float)odd;
    uint32_t low = sim_bits(rounded);
    if (finite && (double)rounded != odd && !(low & 1)) low = fabs((double)rounded) < fabs(odd) ? low + 1 : low - 1;
    return sim_float(low);
}
static inline uint32_t sim_half_fma(uint32_t a, uint32_t b, uint32_t c) {
    return sim_float_to_half(sim_half_fma_odd(a, b, c));
}

// ---- bfloat16

static inline float sim_bf16_to_float(uint32_t bits) { return sim_float(bits << 16); }

static inline uint32_t sim_float_to_bf16(float value) {
    const uint32_t bits = sim_bits(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded;
}

// ---- other formats, described by numbers of bits

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
static const struct sim_small_format sim_e5m10 = {5, 10, 15, true, false, false};
static const struct sim_small_format sim_e8m7 = {8, 7, 127, true, false, false};

static inline unsigned sim_small_width(struct sim_small_format format) {
    return 1u + format.exponent_bits + format.mantissa_bits;
}

// Does not call the C library: a matrix instruction would make thousands of calls.
static inline double sim_power_of_two(int exponent) { // -1022 to 1023
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline float sim_small_to_float(struct sim_small_format format, uint32_t bits) {
    const unsigned width = sim_small_width(format);
    const uint32_t sign = bits >> (width - 1) & 1, magnitude = bits & ((1u << (width - 1)) - 1);
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const uint32_t exponent = magnitude >> format.mantissa_bits, top = (1u << format.exponent_bits) - 1;
    if (format.fnuz && sign && magnitude == 0) return NAN;
    if (format.top_is_nan && magnitude == (1u << (width - 1)) - 1) return sign ? -NAN : NAN;
    if (format.infinity && exponent == top) return copysignf(mantissa ? NAN : INFINITY, sign ? -1.0f : 1.0f);
    const double scaled = exponent ? mantissa | 1u << format.mantissa_bits : mantissa;
    const int power = (int)(exponent ? exponent : 1) - format.bias - format.mantissa_bits;
    const float value = (float)(scaled * sim_power_of_two(power));
    return sign ? -value : value;
}

// How a conversion rounds: to the nearest, ties to even; or stochastically: it adds the upper bits of `random` below
// the last place that stays, as many as the source's mantissa has there, and then cuts.
struct sim_small_rounding {
    bool stochastic;
    uint32_t random;
    unsigned source_mantissa_bits; // 23, 10 or 7
};

// The code, without its sign, of mantissa * 2^(exponent - 23), where bit 23 is the mantissa's leading bit. The result
// is beyond the largest code if the number is too large.
static inline uint32_t sim_small_code(struct sim_small_format format, uint32_t mantissa, int exponent,
                                      struct sim_small_rounding rounding) {
    enum { MANTISSA = 23, MOST = 25 };
    const int least = 1 - format.bias, lift = exponent < least ? least - exponent : 0;
    const uint32_t base = (uint32_t)(exponent + lift - least) << format.mantissa_bits;
    if (rounding.stochastic) {
        const unsigned kept = rounding.source_mantissa_bits, cut = kept - format.mantissa_bits;
        const uint32_t shifted = lift < 32 ? mantissa >> (MANTISSA - kept) >> lift : 0;
        return base + ((shifted + (rounding.random >> (32 - cut))) >> cut);
    }
    const unsigned cut = (unsigned)(MANTISSA - format.mantissa_bits + lift);
    if (cut > MOST) return 0;
    const uint32_t quotient = mantissa >> cut, rest = mantissa & ((1u << cut) - 1), half = 1u << (cut - 1);
    return base + quotient + (rest > half || (rest == half && quotient & 1));
}

// Converts value * 2^-scale. Infinity and values that are too large become infinity or NaN; the largest number where
// `saturate` is set or the format has neither of them.
static inline uint32_t sim_small_from_float(struct sim_small_format format, float value, int scale, bool saturate,
                                            struct sim_small_rounding rounding) {
    const uint32_t bits = sim_bits(value), magnitude = bits & 0x7fffffff;
    const uint32_t sign_bit = 1u << (sim_small_width(format) - 1), sign = bits >> 31 ? sign_bit : 0;
    const uint32_t all_ones = sign_bit - 1, top = all_ones & ~((1u << format.mantissa_bits) - 1);
    const uint32_t nan = format.fnuz         ? sign_bit
                         : format.infinity   ? sign | top | 1u << (format.mantissa_bits - 1)
                         : format.top_is_nan ? sign | all_ones
                                             : sign | all_ones; // without a NaN: the largest number
    const uint32_t largest = format.infinity ? top - 1 : format.top_is_nan ? all_ones - 1 : all_ones;
    const uint32_t beyond = format.infinity ? sign | top : nan;
    if (magnitude > 0x7f800000) return nan;
    if (magnitude == 0x7f800000) return saturate ? sign | largest : beyond;
    if (magnitude == 0) return format.fnuz ? 0 : sign;
    const int lead =
        __builtin_clz(magnitude | 1) - 8; // how far a denormal's leading bit is from bit 23; below 0 otherwise
    const bool denormal = magnitude < 0x00800000;
    const uint32_t mantissa = denormal ? magnitude << lead : (magnitude & 0x007fffff) | 0x00800000;
    const int exponent = (denormal ? -126 - lead : (int)(magnitude >> 23) - 127) - scale;
    const uint32_t code = sim_small_code(format, mantissa, exponent, rounding);
    if (code > largest) return saturate ? sign | largest : beyond;
    return code == 0 && format.fnuz ? 0 : sign | code;
}

static inline uint32_t sim_float_to_small(struct sim_small_format format, float value, bool saturate) {
    return sim_small_from_float(format, value, 0, saturate, (struct sim_small_rounding){.stochastic = false});
}
