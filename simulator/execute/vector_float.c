// SPDX-License-Identifier: MIT
// Floating-point arithmetic of the vector ALU in 16, 32 and 64 bits, and the steps of division.
#include "semantics.h"
#include "vector.h"

#include <fenv.h>
#include <float.h>

#define ONE(name, value) SIM_LANES1(name, sim_f32, sim_f32, value)
#define TWO(name, value) SIM_LANES2(name, sim_f32, sim_f32, sim_f32, value)
#define THREE(name, value) SIM_LANES3(name, sim_f32, sim_f32, sim_f32, sim_f32, value)
#define ONE64(name, value) SIM_LANES1(name, sim_f64, sim_f64, value)
#define TWO64(name, value) SIM_LANES2(name, sim_f64, sim_f64, sim_f64, value)

static inline float h2f(uint32_t half) { return sim_half_to_float(half); }
static inline uint32_t f2h(float value) { return sim_float_to_half(value); }

// Arithmetic on halves: an expression over floats x, y, z. The result of +, * and the like is right after it is rounded
// once more. Each instruction has a loop for MODE's defaults and one for all settings, which also govern the rounding
// of the floats.
#define BY_MODE(name)                                                                                                  \
    __attribute__((unused)) static void name(struct sim_alu *alu) {                                                    \
        (alu->special_halves ? name##_special : name##_plain)(alu);                                                    \
    }
#define F2H_MODE(value) sim_float_to_half_mode(value, alu->half_mode)
#define ONE16(name, value)                                                                                             \
    static inline float name##_of(float x) { return (float)(value); }                                                  \
    SIM_LANES1(name##_plain, sim_u32, sim_u32, f2h(name##_of(h2f(a))))                                                 \
    SIM_LANES1(name##_special, sim_u32, sim_u32, F2H_MODE(name##_of(h2f(a))))                                          \
    BY_MODE(name)
#define HALVES2(name, convert, of)                                                                                     \
    SIM_LANES2(name, sim_u32, sim_u32, sim_u32, convert(of(h2f(a), h2f(b))))                                           \
    SIM_LANES2(pk_##name, sim_u32, sim_u32, sim_u32,                                                                   \
               convert(of(h2f(a), h2f(b))) | convert(of(h2f(a >> 16), h2f(b >> 16))) << 16)
#define TWO16(name, value)                                                                                             \
    static inline float name##_of(float x, float y) { return (float)(value); }                                         \
    HALVES2(name##_plain, f2h, name##_of)                                                                              \
    HALVES2(name##_special, F2H_MODE, name##_of)                                                                       \
    BY_MODE(name)                                                                                                      \
    BY_MODE(pk_##name)
#define PACKED3(name, of)                                                                                              \
    SIM_LANES3(name, sim_u32, sim_u32, sim_u32, sim_u32,                                                               \
               of(a & 0xffff, b & 0xffff, c & 0xffff) | of(a >> 16, b >> 16, c >> 16) << 16)

// ---- minimum and maximum: of a number and a NaN, the number; -0 is below +0

static inline float min_f32(float x, float y) {
    const float ordered = x < y ? x : y < x ? y : sim_float(sim_bits(x) | sim_bits(y));
    return x != x ? y : y != y ? x : ordered;
}
static inline float max_f32(float x, float y) {
    const float ordered = x > y ? x : y > x ? y : sim_float(sim_bits(x) & sim_bits(y));
    return x != x ? y : y != y ? x : ordered;
}
static inline double min_f64(double x, double y) {
    const double ordered = x < y ? x : y < x ? y : sim_double(sim_bits64(x) | sim_bits64(y));
    return x != x ? y : y != y ? x : ordered;
}
static inline double max_f64(double x, double y) {
    const double ordered = x > y ? x : y > x ? y : sim_double(sim_bits64(x) & sim_bits64(y));
    return x != x ? y : y != y ? x : ordered;
}
// Minimum and maximum on bits. With MODE's IEEE a signaling NaN comes out quiet: then `quiet` is the highest bit of the
// mantissa, else 0.
#define QUIETING(name, T, U, of_bits, bits_of, magnitude, infinity)                                                    \
    static inline U name##_bits(U x, U y, U quiet) {                                                                   \
        const bool signals_x = (quiet != 0) & ((x & (magnitude)) > (infinity)) & ((x & quiet) == 0);                   \
        const bool signals_y = (quiet != 0) & ((y & (magnitude)) > (infinity)) & ((y & quiet) == 0);                   \
        const U number = bits_of(name(of_bits(x), of_bits(y)));                                                        \
        const U settled = signals_y ? y | quiet : number;                                                              \
        return signals_x ? x | quiet : settled;                                                                        \
    }
QUIETING(min_f32, float, uint32_t, sim_float, sim_bits, 0x7fffffffu, 0x7f800000u)
QUIETING(max_f32, float, uint32_t, sim_float, sim_bits, 0x7fffffffu, 0x7f800000u)
QUIETING(min_f64, double, uint64_t, sim_double, sim_bits64, UINT64_MAX >> 1, UINT64_C(0x7ff0000000000000))
QUIETING(max_f64, double, uint64_t, sim_double, sim_bits64, UINT64_MAX >> 1, UINT64_C(0x7ff0000000000000))
// Halves compare as their floats do; a NaN keeps its bits.
static inline uint32_t min_half(uint32_t x, uint32_t y) {
    const float fx = h2f(x), fy = h2f(y);
    const uint32_t ordered = fx < fy ? x : fy < fx ? y : x | y;
    return fx != fx ? y : fy != fy ? x : ordered;
}
static inline uint32_t max_half(uint32_t x, uint32_t y) {
    const float fx = h2f(x), fy = h2f(y);
    const uint32_t ordered = fx > fy ? x : fy > fx ? y : x & y;
    return fx != fx ? y : fy != fy ? x : ordered;
}
QUIETING(min_half, uint32_t, uint32_t, , , 0x7fffu, 0x7c00u)
QUIETING(max_half, uint32_t, uint32_t, , , 0x7fffu, 0x7c00u)
// The median of three; if a NaN is among them, the least.
#define MED3(type, infinity, magnitude)                                                                                \
    static inline uint32_t med3_##type##_bits(uint32_t x, uint32_t y, uint32_t z, uint32_t quiet) {                    \
        const uint32_t least = min_##type##_bits(min_##type##_bits(x, y, quiet), z, quiet);                            \
        const uint32_t low = min_##type(x, y), high = max_##type(x, y), middle = max_##type(low, min_##type(high, z)); \
        const bool nan =                                                                                               \
            ((x & (magnitude)) > (infinity)) | ((y & (magnitude)) > (infinity)) | ((z & (magnitude)) > (infinity));    \
        return nan ? least : middle;                                                                                   \
    }
static inline uint32_t min_single(uint32_t x, uint32_t y) { return sim_bits(min_f32(sim_float(x), sim_float(y))); }
static inline uint32_t max_single(uint32_t x, uint32_t y) { return sim_bits(max_f32(sim_float(x), sim_float(y))); }
#define min_single_bits min_f32_bits
MED3(single, 0x7f800000u, 0x7fffffffu)
MED3(half, 0x7c00u, 0x7fffu)
// IEEE 754-2019: the result is a quiet NaN if either is NaN.
static inline float minimum(float x, float y) { return ((x != x) | (y != y)) ? x + y : min_f32(x, y); }
static inline float maximum(float x, float y) { return ((x != x) | (y != y)) ? x + y : max_f32(x, y); }

// One loop for MODE's IEEE, one without it.
#define BY_IEEE(name)                                                                                                  \
    static void name(struct sim_alu *alu) { (alu->wave->mode & SIM_MODE_IEEE ? name##_ieee : name##_other)(alu); }
#define ORDER2(name, U, of, quiet)                                                                                     \
    SIM_LANES2(name##_ieee, U, U, U, of(a, b, quiet))                                                                  \
    SIM_LANES2(name##_other, U, U, U, of(a, b, 0))                                                                     \
    BY_IEEE(name)
// Operations on three sources in two loops, which vectorise where a single loop does not.
#define TWICE(name, of, quiet, mask)                                                                                   \
    static void name(struct sim_alu *alu) {                                                                            \
        const sim_u32 *restrict pa = alu->src[0], *restrict pb = alu->src[1], *restrict pc = alu->src[2];              \
        sim_u32 *restrict pd = alu->dst;                                                                               \
        uint32_t first[SIM_LANES];                                                                                     \
        for (int i = 0; i < SIM_LANES; i++) first[i] = of(pa[i] & (mask), pb[i] & (mask), quiet);                      \
        for (int i = 0; i < SIM_LANES; i++) pd[i] = of(first[i], pc[i] & (mask), quiet);                               \
    }
#define ORDER3(name, of, quiet, mask)                                                                                  \
    TWICE(name##_ieee, of, quiet, mask)                                                                                \
    TWICE(name##_other, of, 0, mask)                                                                                   \
    BY_IEEE(name)
#define MEDIAN(name, of, quiet, mask)                                                                                  \
    SIM_LANES3(name##_ieee, sim_u32, sim_u32, sim_u32, sim_u32, of(a &(mask), b &(mask), c &(mask), quiet))            \
    SIM_LANES3(name##_other, sim_u32, sim_u32, sim_u32, sim_u32, of(a &(mask), b &(mask), c &(mask), 0))               \
    BY_IEEE(name)
enum { QUIET32 = 0x00400000, QUIET16 = 0x200 };
ORDER2(min_f32_lanes, sim_u32, min_f32_bits, QUIET32)
ORDER2(max_f32_lanes, sim_u32, max_f32_bits, QUIET32)
ORDER2(min_f64_lanes, sim_u64, min_f64_bits, UINT64_C(1) << 51)
ORDER2(max_f64_lanes, sim_u64, max_f64_bits, UINT64_C(1) << 51)
ORDER3(min3_f32, min_f32_bits, QUIET32, UINT32_MAX)
ORDER3(max3_f32, max_f32_bits, QUIET32, UINT32_MAX)
MEDIAN(med3_f32_lanes, med3_single_bits, QUIET32, UINT32_MAX)
static inline uint32_t min_halves(uint32_t a, uint32_t b, uint32_t quiet) {
    return min_half_bits(a & 0xffff, b & 0xffff, quiet) | min_half_bits(a >> 16, b >> 16, quiet) << 16;
}
static inline uint32_t max_halves(uint32_t a, uint32_t b, uint32_t quiet) {
    return max_half_bits(a & 0xffff, b & 0xffff, quiet) | max_half_bits(a >> 16, b >> 16, quiet) << 16;
}
static inline uint32_t min_low(uint32_t a, uint32_t b, uint32_t quiet) {
    return min_half_bits(a & 0xffff, b & 0xffff, quiet);
}
static inline uint32_t max_low(uint32_t a, uint32_t b, uint32_t quiet) {
    return max_half_bits(a & 0xffff, b & 0xffff, quiet);
}
ORDER2(min_f16, sim_u32, min_low, QUIET16)
ORDER2(max_f16, sim_u32, max_low, QUIET16)
ORDER2(pk_min_f16, sim_u32, min_halves, QUIET16)
ORDER2(pk_max_f16, sim_u32, max_halves, QUIET16)
ORDER3(min3_f16, min_half_bits, QUIET16, 0xffff)
ORDER3(max3_f16, max_half_bits, QUIET16, 0xffff)
MEDIAN(med3_f16, med3_half_bits, QUIET16, 0xffff)
static inline uint32_t minimum3_half(uint32_t a, uint32_t b, uint32_t c) {
    return f2h(minimum(minimum(h2f(a), h2f(b)), h2f(c)));
}
static inline uint32_t maximum3_half(uint32_t a, uint32_t b, uint32_t c) {
    return f2h(maximum(maximum(h2f(a), h2f(b)), h2f(c)));
}
PACKED3(pk_minimum3_f16, minimum3_half)
PACKED3(pk_maximum3_f16, maximum3_half)

// ---- 32 bits

TWO(add_f32, a + b)
TWO(sub_f32, a - b)
TWO(subrev_f32, b - a)
TWO(mul_f32, a *b)
TWO(mul_legacy_f32, a == 0 || b == 0 ? 0 : a * b) // 0 times anything is 0
THREE(minimum3_f32, minimum(minimum(a, b), c))
THREE(maximum3_f32, maximum(maximum(a, b), c))
THREE(fma_f32, fmaf(a, b, c))
THREE(fmamk_f32, fmaf(a, c, b)) // the constant K is the third source: a * K + b
// Transcendental and unfused instructions flush denormals of sources and results, whatever MODE says: LLVM's
// SIISelLowering.cpp uses v_mad only where denormals are flushed (isFMADLegal), and scales operands of the others.
static inline float no_denorm(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }
// Not fused: the product is rounded.
static inline float mad_f32_of(float a, float b, float c) {
    volatile float product = no_denorm(no_denorm(a) * no_denorm(b));
    return no_denorm(product + no_denorm(c));
}
THREE(mad_f32, mad_f32_of(a, b, c))
THREE(madmk_f32, mad_f32_of(a, c, b))
THREE(mad_legacy_f32, no_denorm(a) == 0 || no_denorm(b) == 0 ? no_denorm(c) : mad_f32_of(a, b, c))
ONE(trunc_f32, truncf(a))
ONE(ceil_f32, ceilf(a))
ONE(floor_f32, floorf(a))
ONE(rndne_f32, rintf(a))
// The fraction stays below 1 even where the difference rounds up to 1.
static inline float fract_f32_of(float v) {
    const float fraction = v - floorf(v); // NaN for NaN and for infinity
    return fraction >= 1 ? 0x1.fffffep-1f : fraction;
}
ONE(fract_f32, fract_f32_of(a))

// Transcendental results are the nearest floats.
ONE(exp_f32, no_denorm((float)exp2((double)no_denorm(a))))
ONE(log_f32, (float)log2((double)no_denorm(a)))
ONE(rcp_f32, no_denorm((float)(1.0 / (double)no_denorm(a))))
ONE(rsq_f32, (float)(1.0 / sqrt((double)no_denorm(a))))
ONE(sqrt_f32, sqrtf(no_denorm(a)))
// Sine and cosine take revolutions; beyond +-256 the result is that of 0. Denormals are supported, zeros are exact, and
// -0 stays.
static inline double turns(double v) { return fabs(v) > 256 ? 0 : v == rint(v) ? copysign(0, v) : v - rint(v); }
static inline double sine(double v) {
    const double turn = turns(v);
    return isinf(v) ? (double)NAN : fabs(turn) == 0.5 ? 0 : sin(6.283185307179586476925 * turn);
}
static inline double cosine(double v) {
    const double turn = turns(v);
    return isinf(v) ? (double)NAN : fabs(turn) == 0.25 ? 0 : cos(6.283185307179586476925 * turn);
}
ONE(sin_f32, (float)sine((double)a))
ONE(cos_f32, (float)cosine((double)a))

static inline float mantissa_f32(float v) {
    int exponent;
    return isfinite(v) ? frexpf(v, &exponent) : v;
}
static inline int exponent_f32(float v) {
    int exponent = 0;
    if (isfinite(v)) frexpf(v, &exponent);
    return exponent;
}
ONE(frexp_mant_f32, mantissa_f32(a))
SIM_LANES1(frexp_exp_f32, sim_i32, sim_f32, exponent_f32(a))
SIM_LANES2(ldexp_f32, sim_f32, sim_f32, sim_i32, ldexpf(a, b))

// ---- faces of a cube: the face of the longest of x, y, z; the last of equal ones

static inline unsigned cube_axis(float x, float y, float z) {
    return fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y) ? 2 : fabsf(y) >= fabsf(x) ? 1 : 0;
}
static inline float cube_major(float x, float y, float z) {
    const unsigned axis = cube_axis(x, y, z);
    return axis == 2 ? z : axis == 1 ? y : x;
}
static inline float cube_s(float x, float y, float z) {
    const unsigned axis = cube_axis(x, y, z);
    return axis == 2 ? (z < 0 ? -x : x) : axis == 1 ? x : x < 0 ? z : -z;
}
static inline float cube_t(float x, float y, float z) { return cube_axis(x, y, z) == 1 ? (y < 0 ? -z : z) : -y; }
THREE(cubeid_f32, (float)(2 * cube_axis(a, b, c)) + (cube_major(a, b, c) < 0))
THREE(cubema_f32, 2 * cube_major(a, b, c))
THREE(cubesc_f32, cube_s(a, b, c))
THREE(cubetc_f32, cube_t(a, b, c))

// ---- 64 bits

TWO64(add_f64, a + b)
TWO64(mul_f64, a *b)
SIM_LANES3(fma_f64, sim_f64, sim_f64, sim_f64, sim_f64, fma(a, b, c))
ONE64(trunc_f64, trunc(a))
ONE64(ceil_f64, ceil(a))
ONE64(floor_f64, floor(a))
ONE64(rndne_f64, rint(a))
static inline double fract_f64_of(double v) {
    const double fraction = v - floor(v);
    return fraction >= 1 ? 0x1.fffffffffffffp-1 : fraction;
}
ONE64(fract_f64, fract_f64_of(a))
ONE64(rcp_f64, 1.0 / a)
ONE64(rsq_f64, 1.0 / sqrt(a))
ONE64(sqrt_f64, sqrt(a))
static inline double mantissa_f64(double v) {
    int exponent;
    return isfinite(v) ? frexp(v, &exponent) : v;
}
static inline int exponent_f64(double v) {
    int exponent = 0;
    if (isfinite(v)) frexp(v, &exponent);
    return exponent;
}
ONE64(frexp_mant_f64, mantissa_f64(a))
SIM_LANES1(frexp_exp_f64, sim_i32, sim_f64, exponent_f64(a))
SIM_LANES2(ldexp_f64, sim_f64, sim_f64, sim_i32, ldexp(a, b))

// v_trig_preop_f64: 53 bits of 2 / pi, at the place that b and the exponent of a choose.
static inline double trig_segment(double a, uint32_t segment) {
    // The bits of 2 / pi after the binary point.
    static const uint64_t two_over_pi[19] = {
        0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
        0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
        0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    };
    const int exponent = (int)(sim_bits64(a) >> 52 & 0x7ff);
    int shift = (int)(segment & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    const unsigned word = (unsigned)shift / 64, bit = (unsigned)shift % 64;
    if (word + 1 >= 19) return 0;
    uint64_t bits = two_over_pi[word] << bit;
    if (bit) bits |= two_over_pi[word + 1] >> (64 - bit);
    const int scale = (exponent >= 1968 ? 128 : 0) - 53 - shift;
    return ldexp((double)(bits >> 11), scale);
}
SIM_LANES2(trig_preop_f64, sim_f64, sim_f64, sim_u32, trig_segment(a, b))

// ---- 16 bits

TWO16(add_f16, x + y)
TWO16(sub_f16, x - y)
TWO16(subrev_f16, y - x)
TWO16(mul_f16, x *y)
// A fused multiply-add. With directed rounding, the roundings to float and to half go the same way.
static inline uint32_t half_fma(uint32_t a, uint32_t b, uint32_t c) { return sim_half_fma(a, b, c); }
static inline uint32_t half_fma_mode(uint32_t a, uint32_t b, uint32_t c, struct sim_half_mode mode) {
    const float sum = mode.rounding ? fmaf(h2f(a), h2f(b), h2f(c)) : sim_half_fma_odd(a, b, c);
    return sim_float_to_half_mode(sum, mode);
}
// Not fused: the product is rounded to a half.
static inline uint32_t half_mad(uint32_t a, uint32_t b, uint32_t c) { return f2h(h2f(f2h(h2f(a) * h2f(b))) + h2f(c)); }
static inline uint32_t half_mad_mode(uint32_t a, uint32_t b, uint32_t c, struct sim_half_mode mode) {
    const uint32_t product = sim_float_to_half_mode(h2f(a) * h2f(b), mode);
    return sim_float_to_half_mode(h2f(product) + h2f(c), mode);
}
#define SUM16(name, of)                                                                                                \
    SIM_LANES3(name##_plain, sim_u32, sim_u32, sim_u32, sim_u32, of(a & 0xffff, b & 0xffff, c & 0xffff))               \
    SIM_LANES3(name##_special, sim_u32, sim_u32, sim_u32, sim_u32,                                                     \
               of##_mode(a & 0xffff, b & 0xffff, c & 0xffff, alu->half_mode))                                          \
    BY_MODE(name)
SUM16(fma_f16, half_fma)
SUM16(mad_f16, half_mad)
PACKED3(pk_fma_f16_plain, half_fma)
#define HALF_FMA_MODE(a, b, c) half_fma_mode(a, b, c, alu->half_mode)
PACKED3(pk_fma_f16_special, HALF_FMA_MODE)
BY_MODE(pk_fma_f16)
// The constant K is the third source: a * K + b.
static void madmk_f16(struct sim_alu *alu) {
    const void *factor = alu->src[2];
    alu->src[2] = alu->src[1];
    alu->src[1] = factor;
    mad_f16(alu);
}
ONE16(trunc_f16, truncf(x))
ONE16(ceil_f16, ceilf(x))
ONE16(floor_f16, floorf(x))
ONE16(rndne_f16, rintf(x))
ONE16(fract_f16, x - floorf(x) > 0x1.ffcp-1f ? 0x1.ffcp-1f : x - floorf(x))
ONE16(exp_f16, exp2((double)x))
ONE16(log_f16, log2((double)x))
ONE16(rcp_f16, 1.0 / (double)x)
ONE16(rsq_f16, 1.0 / sqrt((double)x))
ONE16(sqrt_f16, sqrt((double)x))
ONE16(sin_f16, sine((double)x))
ONE16(cos_f16, cosine((double)x))
ONE16(frexp_mant_f16, mantissa_f32(x))
SIM_LANES1(frexp_exp_f16, sim_u32, sim_u32, (uint16_t)exponent_f32(h2f(a)))
SIM_LANES2(ldexp_f16_plain, sim_u32, sim_u32, sim_u32, f2h(ldexpf(h2f(a), (int16_t)b)))
SIM_LANES2(ldexp_f16_special, sim_u32, sim_u32, sim_u32, F2H_MODE(ldexpf(h2f(a), (int16_t)b)))
BY_MODE(ldexp_f16)

// ---- pairs of 32-bit words: first all lanes of one word, then all lanes of the other

#define PAIRS2(name, value)                                                                                            \
    static void name(struct sim_alu *alu) {                                                                            \
        const sim_f32 *restrict pa = alu->src[0], *restrict pb = alu->src[1];                                          \
        sim_f32 *restrict pd = alu->dst;                                                                               \
        for (int i = 0; i < 2 * SIM_LANES; i++) {                                                                      \
            const float a = pa[i], b = pb[i];                                                                          \
            pd[i] = (value);                                                                                           \
        }                                                                                                              \
    }
PAIRS2(pk_add_f32, a + b)
PAIRS2(pk_mul_f32, a *b)
static void pk_fma_f32(struct sim_alu *alu) {
    const sim_f32 *restrict pa = alu->src[0], *restrict pb = alu->src[1], *restrict pc = alu->src[2];
    sim_f32 *restrict pd = alu->dst;
    for (int i = 0; i < 2 * SIM_LANES; i++) pd[i] = fmaf(pa[i], pb[i], pc[i]);
}
// A word of a, then a word of b, each chosen by op_sel.
SIM_LANES2(pk_mov_b32, sim_u64, sim_u64, sim_u64, (a & UINT32_MAX) | b << 32)

// ---- sums of 16-bit products in 32 bits: products are exact, and added one after the other

static inline float flush_below(float value, float least) { return fabsf(value) < least ? copysignf(0, value) : value; }
static inline float flush_single(float value) { return flush_below(value, 0x1p-126f); }
static inline float flushed_half(uint32_t half) { return flush_below(h2f(half & 0xffff), 0x1p-14f); }
// Denormals of sources and of results become 0, whatever MODE says (AMD's documents, "Denormalized and Rounding
// Modes").
SIM_LANES3(dot2_f32_f16, sim_f32, sim_u32, sim_u32, sim_f32,
           flush_single(fmaf(flushed_half(a >> 16), flushed_half(b >> 16),
                             fmaf(flushed_half(a), flushed_half(b), flush_single(c)))))
static inline float low_bf16(uint32_t pair) { return flush_single(sim_bf16_to_float(pair & 0xffff)); }
static inline float high_bf16(uint32_t pair) { return flush_single(sim_bf16_to_float(pair >> 16)); }
// v_dot2_f32_bf16 adds the third source last, v_dot2c_f32_bf16 starts with it.
SIM_LANES3(dot2_f32_bf16, sim_f32, sim_u32, sim_u32, sim_f32,
           flush_single(fmaf(high_bf16(a), high_bf16(b), low_bf16(a) * low_bf16(b)) + flush_single(c)))
SIM_LANES3(dot2c_f32_bf16, sim_f32, sim_u32, sim_u32, sim_f32,
           flush_single(fmaf(high_bf16(a), high_bf16(b), fmaf(low_bf16(a), low_bf16(b), flush_single(c)))))

// v_fma_mix: each source is a float or, where op_sel_hi is set, the half that op_sel names. Denormals follow MODE's
// setting for the type of each source; the sum is rounded as floats are, and then, for a half, as halves are.
struct mix_mode {
    bool flush_float, flush_half, flush_result;
    int rounding;
    struct sim_half_mode half;
};
static struct mix_mode read_mix_mode(const struct sim_wave *wave, bool to_float) {
    static const int roundings[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    return (struct mix_mode){
        .flush_float = !(wave->mode >> 4 & 1),
        .flush_half = !(wave->mode >> 6 & 1),
        .flush_result = !(wave->mode >> (to_float ? 5 : 7) & 1),
        .rounding = roundings[wave->mode & 3],
        .half = {wave->mode >> 2 & 3, wave->mode & SIM_MODE_FP16_OVFL},
    };
}
static inline float mix_source(const struct sim_operand *operand, uint32_t word, const struct mix_mode *mode) {
    const bool half = operand->op_sel_hi;
    float value = half ? h2f(operand->op_sel ? word >> 16 : word & 0xffff) : sim_float(word);
    if (half ? mode->flush_half : mode->flush_float) value = flush_below(value, half ? 0x1p-14f : 0x1p-126f);
    if (operand->abs) value = fabsf(value);
    return operand->neg ? -value : value;
}
static inline float clamp_unit(const struct sim_wave *wave, float value) {
    if (value != value) return wave->mode & SIM_MODE_DX10_CLAMP ? 0 : value;
    return value > 0 ? (value < 1 ? value : 1) : 0;
}

static void mix(struct sim_wave *wave, const struct sim_code *code) {
    enum { TO_FLOAT, TO_LOW }; // else the result goes to the high half
    const struct sim_inst *inst = &code->inst;
    const bool to_float = code->detail == TO_FLOAT;
    const struct mix_mode mode = read_mix_mode(wave, to_float);
    uint32_t space[3][SIM_LANES], result[SIM_LANES], old_words[SIM_LANES];
    const uint32_t *words[3], *old = tessera_sim_read_vector(wave, &inst->op[SIM_DST], 0, old_words);
    for (int k = 0; k < 3; k++)
        if (!(words[k] = tessera_sim_read_vector(wave, &inst->op[SIM_SRC0 + k], 0, space[k]))) return;
    if (!old) return;
    if (wave->special_floats) fesetround(mode.rounding);
    for (int i = 0; i < SIM_LANES; i++) {
        float source[3];
        for (int k = 0; k < 3; k++) source[k] = mix_source(&inst->op[SIM_SRC0 + k], words[k][i], &mode);
        float value = fmaf(source[0], source[1], source[2]);
        if (inst->clamp) value = clamp_unit(wave, value);
        if (mode.flush_result) value = flush_below(value, to_float ? 0x1p-126f : 0x1p-14f);
        result[i] = sim_bits(value);
    }
    if (wave->special_floats) fesetround(FE_TONEAREST);
    for (int i = 0; i < SIM_LANES && !to_float; i++) {
        const uint32_t half = sim_float_to_half_mode(sim_float(result[i]), mode.half);
        result[i] = code->detail == TO_LOW ? (old[i] & 0xffff0000) | half : (old[i] & 0xffff) | half << 16;
    }
    tessera_sim_write_vector(wave, &inst->op[SIM_DST], 0, sim_exec(wave), result);
}

// ---- division

// Quotient a, denominator b, numerator c. v_div_scale scales denominator and numerator into a range in which Newton's
// method loses no precision, v_div_fmas undoes the scale, v_div_fixup corrects special cases.
#define DIVISION(suffix, T, U, bits_of, make, ldexp_of, fma_of, fabs_of, copysign_of, words, mantissa, bias, near_max, \
                 step, low_exponent, vanishes)                                                                         \
    static inline int exponent_of_##suffix(T v) { return (int)(bits_of(v) >> (mantissa) & (2 * (bias) + 1)); }         \
    static inline bool denormal_##suffix(T v) { return v != 0 && exponent_of_##suffix(v) == 0; }                       \
    static inline T scale_##suffix(T s, T b, T c, bool *scaled) {                                                      \
        *scaled = false;                                                                                               \
        if (c == 0 || b == 0) return NAN;                                                                              \
        const T inverse = (T)1 / b;                                                                                    \
        const bool tiny_inverse = denormal_##suffix(inverse), tiny_quotient = denormal_##suffix(c / b);                \
        if (exponent_of_##suffix(c) - exponent_of_##suffix(b) >= (near_max)) {                                         \
            *scaled = true;                                                                                            \
            return s == b ? ldexp_of(s, step) : s;                                                                     \
        }                                                                                                              \
        if (denormal_##suffix(b)) return ldexp_of(s, step);                                                            \
        if (tiny_inverse && tiny_quotient) {                                                                           \
            *scaled = true;                                                                                            \
            return s == b ? ldexp_of(s, -(step)) : s;                                                                  \
        }                                                                                                              \
        if (tiny_inverse) return ldexp_of(s, -(step));                                                                 \
        if (tiny_quotient) {                                                                                           \
            *scaled = true;                                                                                            \
            return s == c ? ldexp_of(s, step) : s;                                                                     \
        }                                                                                                              \
        return exponent_of_##suffix(c) <= (low_exponent) ? ldexp_of(s, step) : s;                                      \
    }                                                                                                                  \
    static void div_scale_##suffix(struct sim_alu *alu) {                                                              \
        const words *restrict pa = alu->src[0], *restrict pb = alu->src[1], *restrict pc = alu->src[2];                \
        words *restrict pd = alu->dst;                                                                                 \
        alu->mask = 0;                                                                                                 \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            bool scaled;                                                                                               \
            pd[i] = scale_##suffix(pa[i], pb[i], pc[i], &scaled);                                                      \
            alu->mask |= (uint64_t)scaled << i;                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static inline T fixup_##suffix(T a, T b, T c) {                                                                    \
        const U sign = (bits_of(b) ^ bits_of(c)) & (U)1 << (8 * sizeof(U) - 1);                                        \
        const T negative = make(sign | bits_of((T)0));                                                                 \
        if (c != c) return c + c;                                                                                      \
        if (b != b) return b + b;                                                                                      \
        if ((b == 0 && c == 0) || (isinf(b) && isinf(c))) return -(T)NAN;                                              \
        if (b == 0 || isinf(c)) return copysign_of((T)INFINITY, negative);                                             \
        if (isinf(b) || c == 0) return negative;                                                                       \
        if (exponent_of_##suffix(c) - exponent_of_##suffix(b) < (vanishes)) return negative;                           \
        if (a != a) return copysign_of((T)INFINITY, negative); /* the steps overflowed */                              \
        return copysign_of(a, negative);                                                                               \
    }

DIVISION(f32, float, uint32_t, sim_bits, sim_float, ldexpf, fmaf, fabsf, copysignf, sim_f32, 23, 127, 96, 64, 23, -150)
DIVISION(f64, double, uint64_t, sim_bits64, sim_double, ldexp, fma, fabs, copysign, sim_f64, 52, 1023, 768, 128, 53,
         -1075)
THREE(div_fixup_f32, fixup_f32(a, b, c))
SIM_LANES3(div_fixup_f64, sim_f64, sim_f64, sim_f64, sim_f64, fixup_f64(a, b, c))
SIM_LANES3(div_fixup_f16, sim_u32, sim_u32, sim_u32, sim_u32, f2h(fixup_f32(h2f(a), h2f(b), h2f(c))))

// scale * (a * b + c) with one rounding, also where the result is a denormal.
static float scaled_fma_f32(float a, float b, float c, float scale) {
    const double product = (double)a * (double)b, addend = (double)c; // exact
    const double sum = product + addend, shadow = sum - product;
    const double error = (product - (sum - shadow)) + (addend - shadow);
    uint64_t bits = sim_bits64(sum);
    if (isfinite(sum) && error != 0 && !(bits & 1)) bits = (error > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return (float)(sim_double(bits) * (double)scale);
}
// The side of `nearest` on which the exact a * b + c lies: -1, 0 or 1.
static int side_of_fma(double a, double b, double c, double nearest) {
    volatile double x = a, y = b, z = c; // volatile: must be computed while the rounding mode is changed
    fesetround(FE_DOWNWARD);
    volatile double below = fma(x, y, z);
    fesetround(FE_UPWARD);
    volatile double above = fma(x, y, z);
    fesetround(FE_TONEAREST);
    return below == above ? 0 : below == nearest ? 1 : -1;
}
static double scaled_fma_f64(double a, double b, double c, double scale) {
    const double nearest = fma(a, b, c), scaled = nearest * scale;
    if (!(fabs(scaled) <= DBL_MIN)) return scaled;
    const double cut = nearest - scaled / scale; // what rounding to a denormal has cut, exactly
    if (fabs(cut) != DBL_TRUE_MIN / scale / 2) return scaled;
    const int side = side_of_fma(a, b, c, nearest); // breaks a tie that the first rounding has made
    return side * cut > 0 ? scaled + copysign(DBL_TRUE_MIN, cut) : scaled;
}

static void div_fmas_f32(struct sim_alu *alu) {
    const uint64_t vcc = sim_get_sgpr64(alu->wave, SIM_VCC);
    const sim_f32 *pa = alu->src[0], *pb = alu->src[1], *pc = alu->src[2];
    sim_f32 *restrict pd = alu->dst;
    for (int i = 0; i < SIM_LANES; i++) {
        const float scale = exponent_of_f32(pc[i]) > 127 ? 0x1p64f : 0x1p-64f;
        pd[i] = vcc >> i & 1 ? scaled_fma_f32(pa[i], pb[i], pc[i], scale) : fmaf(pa[i], pb[i], pc[i]);
    }
}
static void div_fmas_f64(struct sim_alu *alu) {
    const uint64_t vcc = sim_get_sgpr64(alu->wave, SIM_VCC);
    const sim_f64 *pa = alu->src[0], *pb = alu->src[1], *pc = alu->src[2];
    sim_f64 *restrict pd = alu->dst;
    for (int i = 0; i < SIM_LANES; i++) {
        const double scale = exponent_of_f64(pc[i]) > 1023 ? 0x1p128 : 0x1p-128;
        pd[i] = vcc >> i & 1 ? scaled_fma_f64(pa[i], pb[i], pc[i], scale) : fma(pa[i], pb[i], pc[i]);
    }
}

#define ROW(op, lanes)                                                                                                 \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, 0 }
#define WITH(op, lanes, detail)                                                                                        \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, detail }
#define MIX(op, detail)                                                                                                \
    { SIM_OP_##op, mix, NULL, detail }
static const struct sim_semantics rows[] = {
    ROW(v_add_f32, add_f32),
    ROW(v_sub_f32, sub_f32),
    ROW(v_subrev_f32, subrev_f32),
    ROW(v_mul_f32, mul_f32),
    ROW(v_mul_legacy_f32, mul_legacy_f32),
    ROW(v_min_f32, min_f32_lanes),
    ROW(v_max_f32, max_f32_lanes),
    ROW(v_min3_f32, min3_f32),
    ROW(v_max3_f32, max3_f32),
    ROW(v_med3_f32, med3_f32_lanes),
    ROW(v_minimum3_f32, minimum3_f32),
    ROW(v_maximum3_f32, maximum3_f32),
    ROW(v_fma_f32, fma_f32),
    WITH(v_fmac_f32, fma_f32, SIM_ACCUMULATE),
    ROW(v_mad_f32, mad_f32),
    WITH(v_mac_f32, mad_f32, SIM_ACCUMULATE),
    ROW(v_mad_legacy_f32, mad_legacy_f32),
    ROW(v_fmamk_f32, fmamk_f32),
    ROW(v_fmaak_f32, fma_f32),
    ROW(v_madmk_f32, madmk_f32),
    ROW(v_madak_f32, mad_f32),
    ROW(v_cubeid_f32, cubeid_f32),
    ROW(v_cubema_f32, cubema_f32),
    ROW(v_cubesc_f32, cubesc_f32),
    ROW(v_cubetc_f32, cubetc_f32),
    ROW(v_trunc_f32, trunc_f32),
    ROW(v_ceil_f32, ceil_f32),
    ROW(v_floor_f32, floor_f32),
    ROW(v_rndne_f32, rndne_f32),
    ROW(v_fract_f32, fract_f32),
    ROW(v_exp_f32, exp_f32),
    ROW(v_exp_legacy_f32, exp_f32),
    ROW(v_log_f32, log_f32),
    ROW(v_log_legacy_f32, log_f32),
    ROW(v_rcp_f32, rcp_f32),
    ROW(v_rcp_iflag_f32, rcp_f32),
    ROW(v_rsq_f32, rsq_f32),
    ROW(v_sqrt_f32, sqrt_f32),
    ROW(v_sin_f32, sin_f32),
    ROW(v_cos_f32, cos_f32),
    ROW(v_frexp_mant_f32, frexp_mant_f32),
    ROW(v_frexp_exp_i32_f32, frexp_exp_f32),
    ROW(v_ldexp_f32, ldexp_f32),
    ROW(v_add_f64, add_f64),
    ROW(v_mul_f64, mul_f64),
    ROW(v_min_f64, min_f64_lanes),
    ROW(v_max_f64, max_f64_lanes),
    ROW(v_fma_f64, fma_f64),
    WITH(v_fmac_f64, fma_f64, SIM_ACCUMULATE),
    ROW(v_trunc_f64, trunc_f64),
    ROW(v_ceil_f64, ceil_f64),
    ROW(v_floor_f64, floor_f64),
    ROW(v_rndne_f64, rndne_f64),
    ROW(v_fract_f64, fract_f64),
    ROW(v_rcp_f64, rcp_f64),
    ROW(v_rsq_f64, rsq_f64),
    ROW(v_sqrt_f64, sqrt_f64),
    ROW(v_frexp_mant_f64, frexp_mant_f64),
    ROW(v_frexp_exp_i32_f64, frexp_exp_f64),
    ROW(v_ldexp_f64, ldexp_f64),
    ROW(v_trig_preop_f64, trig_preop_f64),
    ROW(v_add_f16, add_f16),
    ROW(v_sub_f16, sub_f16),
    ROW(v_subrev_f16, subrev_f16),
    ROW(v_mul_f16, mul_f16),
    ROW(v_min_f16, min_f16),
    ROW(v_max_f16, max_f16),
    ROW(v_min3_f16, min3_f16),
    ROW(v_max3_f16, max3_f16),
    ROW(v_med3_f16, med3_f16),
    WITH(v_fma_f16, fma_f16, SIM_KEEP_HIGH),
    ROW(v_fma_legacy_f16, fma_f16),
    WITH(v_mad_f16, mad_f16, SIM_KEEP_HIGH),
    ROW(v_mad_legacy_f16, mad_f16),
    WITH(v_mac_f16, mad_f16, SIM_ACCUMULATE),
    ROW(v_madak_f16, mad_f16),
    ROW(v_madmk_f16, madmk_f16),
    ROW(v_trunc_f16, trunc_f16),
    ROW(v_ceil_f16, ceil_f16),
    ROW(v_floor_f16, floor_f16),
    ROW(v_rndne_f16, rndne_f16),
    ROW(v_fract_f16, fract_f16),
    ROW(v_exp_f16, exp_f16),
    ROW(v_log_f16, log_f16),
    ROW(v_rcp_f16, rcp_f16),
    ROW(v_rsq_f16, rsq_f16),
    ROW(v_sqrt_f16, sqrt_f16),
    ROW(v_sin_f16, sin_f16),
    ROW(v_cos_f16, cos_f16),
    ROW(v_frexp_mant_f16, frexp_mant_f16),
    ROW(v_frexp_exp_i16_f16, frexp_exp_f16),
    ROW(v_ldexp_f16, ldexp_f16),
    ROW(v_pk_add_f16, pk_add_f16),
    ROW(v_pk_mul_f16, pk_mul_f16),
    ROW(v_pk_min_f16, pk_min_f16),
    ROW(v_pk_max_f16, pk_max_f16),
    ROW(v_pk_fma_f16, pk_fma_f16),
    ROW(v_pk_minimum3_f16, pk_minimum3_f16),
    ROW(v_pk_maximum3_f16, pk_maximum3_f16),
    WITH(v_pk_fmac_f16, pk_fma_f16, SIM_ACCUMULATE),
    ROW(v_pk_add_f32, pk_add_f32),
    ROW(v_pk_mul_f32, pk_mul_f32),
    ROW(v_pk_fma_f32, pk_fma_f32),
    ROW(v_pk_mov_b32, pk_mov_b32),
    ROW(v_dot2_f32_f16, dot2_f32_f16),
    ROW(v_dot2_f32_bf16, dot2_f32_bf16),
    WITH(v_dot2c_f32_f16, dot2_f32_f16, SIM_ACCUMULATE),
    WITH(v_dot2c_f32_bf16, dot2c_f32_bf16, SIM_ACCUMULATE),
    MIX(v_fma_mix_f32, 0),
    MIX(v_fma_mixlo_f16, 1),
    MIX(v_fma_mixhi_f16, 2),
    WITH(v_div_scale_f32, div_scale_f32, SIM_MASK_OUT),
    WITH(v_div_scale_f64, div_scale_f64, SIM_MASK_OUT),
    ROW(v_div_fmas_f32, div_fmas_f32),
    ROW(v_div_fmas_f64, div_fmas_f64),
    ROW(v_div_fixup_f32, div_fixup_f32),
    ROW(v_div_fixup_f64, div_fixup_f64),
    WITH(v_div_fixup_f16, div_fixup_f16, SIM_KEEP_HIGH),
    ROW(v_div_fixup_legacy_f16, div_fixup_f16),
};
const struct sim_semantics_list tessera_sim_vector_float = {rows, sizeof rows / sizeof *rows};
