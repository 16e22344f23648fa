// SPDX-License-Identifier: MIT
// How matrix instructions add the products of a row of D, in `size` columns at once.
//
// f32 follows gem5 and microsoft/MMA-Sim (arXiv 2511.10909), the rest follows MMA-Sim, which was compared with gfx90a
// and gfx942 bit for bit. The exponent of the value 0 is that of f32's denormals, whatever the format.
#pragma once

#include "float_formats.h"

enum { SIM_MAX_DEPTH = 128, SIM_MAX_COLUMNS = 32 };

// The factors of the products of a row of D. Exponents are those of sim_exponent().
struct sim_products {
    float a[SIM_MAX_DEPTH];
    int32_t a_exponents[SIM_MAX_DEPTH];
    const float *b[SIM_MAX_DEPTH];
    const int32_t *b_exponents[SIM_MAX_DEPTH];
};

#define SIM_SUMS static inline __attribute__((always_inline)) void

// ---- f32: one fused multiply-add after the other

SIM_SUMS sim_add_in_turn(const struct sim_products *products, float *sums, unsigned size, unsigned depth) {
    for (unsigned k = 0; k < depth; k++)
        for (unsigned j = 0; j < size; j++) sums[j] = fmaf(products->a[k], products->b[k][j], sums[j]);
}

// ---- gfx90a: 2 or 4 products are added as a tree, and the result to the sum; all denormals become zeros

static inline float sim_flush(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }

SIM_SUMS sim_add_trees(const struct sim_products *products, float *sums, unsigned size, unsigned depth,
                       unsigned group) {
    for (unsigned j = 0; j < size; j++) sums[j] = fabsf(sums[j]) < 0x1p-126f ? 0 : sums[j];
    for (unsigned k = 0; k < depth; k += group)
        for (unsigned j = 0; j < size; j++) {
            float tree[4];
            for (unsigned n = 0; n < group; n++)
                tree[n] = sim_flush(fmaf(products->a[k + n], products->b[k + n][j], 0));
            for (unsigned half = group / 2; half; half /= 2)
                for (unsigned n = 0; n < half; n++) tree[n] = sim_flush(tree[2 * n] + tree[2 * n + 1]);
            sums[j] = sim_flush(sums[j] + tree[0]);
        }
}

// ---- gfx942: a step's products are cut to 24 bits below their greatest exponent and added exactly. Their sum and the
// ---- sum so far are brought to the greater exponent of the two, rounding down, and added; the result is rounded

enum { SIM_ZERO_EXPONENT = -126 };

static inline int32_t sim_greater(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t sim_lesser(int32_t a, int32_t b) { return a < b ? a : b; }

// `least`: the exponent of the format's denormals.
static inline int32_t sim_exponent(float value, int32_t least) {
    const int32_t exponent = (int32_t)(sim_bits(value) >> 23 & 0xff) - 127;
    return value == 0 ? SIM_ZERO_EXPONENT : sim_greater(exponent, least);
}

// A sum of products, in units of 2^(exponent - 24).
struct sim_fixed {
    double of[SIM_MAX_COLUMNS];
    int32_t exponent[SIM_MAX_COLUMNS];
};

// Products are exact as floats if each one other than 0 is at least 2^SIM_LEAST_PRODUCT, and none is beyond a float.
enum { SIM_LEAST_PRODUCT = -100, SIM_GREATEST_PRODUCT = 126 };

SIM_SUMS sim_find_greatest(const struct sim_products *products, unsigned first, unsigned end, unsigned stride,
                           unsigned size, int32_t *greatest) {
    for (unsigned j = 0; j < size; j++) greatest[j] = 2 * SIM_ZERO_EXPONENT;
    for (unsigned k = first; k < end; k += stride) {
        const int32_t a = products->a_exponents[k], *b = products->b_exponents[k];
        for (unsigned j = 0; j < size; j++) greatest[j] = sim_greater(greatest[j], a + b[j]);
    }
}

// Adds each `stride`-th product from `first` on, where all are exact as floats.
SIM_SUMS sim_cut_floats(const struct sim_products *products, unsigned first, unsigned end, unsigned stride,
                        unsigned size, struct sim_fixed *to) {
    float scale[SIM_MAX_COLUMNS];
    int32_t sum[SIM_MAX_COLUMNS];
    sim_find_greatest(products, first, end, stride, size, to->exponent);
    for (unsigned j = 0; j < size; j++) { // if all products are 0, any scale is right
        sum[j] = 0;
        scale[j] = sim_float((uint32_t)(127 + 24 - sim_greater(to->exponent[j], SIM_LEAST_PRODUCT)) << 23);
    }
    for (unsigned k = first; k < end; k += stride)
        for (unsigned j = 0; j < size; j++) sum[j] += (int32_t)(products->a[k] * products->b[k][j] * scale[j]);
    for (unsigned j = 0; j < size; j++) to->of[j] = sum[j];
}

// The same for any products. Those beyond the range of floats go to `beyond`, as infinities.
SIM_SUMS sim_cut_products(const struct sim_products *products, unsigned first, unsigned end, unsigned stride,
                          unsigned size, struct sim_fixed *to, double *beyond) {
    double scale[SIM_MAX_COLUMNS];
    sim_find_greatest(products, first, end, stride, size, to->exponent);
    for (unsigned j = 0; j < size; j++) {
        to->of[j] = 0;
        scale[j] = sim_power_of_two(24 - to->exponent[j]);
    }
    for (unsigned k = first; k < end; k += stride)
        for (unsigned j = 0; j < size; j++) {
            const double product = (double)products->a[k] * (double)products->b[k][j];
            to->of[j] += trunc(product * scale[j]);
            beyond[j] += fabs(product) >= 0x1p128 ? copysign(INFINITY, product) : 0;
        }
}

// Joins the sums of even and of odd products of 8-bit values, which are cut separately.
SIM_SUMS sim_add_halves(struct sim_fixed *even, const struct sim_fixed *odd, unsigned size) {
    for (unsigned j = 0; j < size; j++) {
        const int32_t exponent = sim_greater(even->exponent[j], odd->exponent[j]);
        even->of[j] = floor(even->of[j] * sim_power_of_two(even->exponent[j] - exponent)) +
                      floor(odd->of[j] * sim_power_of_two(odd->exponent[j] - exponent));
        even->exponent[j] = exponent;
    }
}

// Adds a step to the sums so far. With 8-bit values (`small`) a sum wholly below the last bit is dropped; else a
// negative one would count as that bit, because it is rounded down.
SIM_SUMS sim_join(const struct sim_fixed *step, float *sums, unsigned size, bool small) {
    for (unsigned j = 0; j < size; j++) {
        const int32_t of_sum = sim_greater((int32_t)(sim_bits(sums[j]) >> 23 & 0xff) - 127, SIM_ZERO_EXPONENT);
        const int32_t exponent = sim_greater(of_sum, step->exponent[j]);
        const double added = floor(step->of[j] * sim_power_of_two(step->exponent[j] - exponent + 7));
        const double sum = floor((double)sums[j] * sim_power_of_two(24 - exponent));
        const double counted = small && of_sum < exponent - 25 ? 0 : sum * 128;
        sums[j] = (float)((added + counted) * sim_power_of_two(exponent - 31));
    }
}

// `floats`: all products are exact as floats. Products beyond floats make the sum infinite, unless operands or the sum
// so far already do.
SIM_SUMS sim_add_fused(const struct sim_products *products, float *sums, unsigned size, unsigned depth, unsigned step,
                       bool small, bool floats) {
    for (unsigned k = 0; k < depth; k += step) {
        const unsigned end = k + step < depth ? k + step : depth, halves = small ? 2 : 1;
        struct sim_fixed of[2];
        double beyond[SIM_MAX_COLUMNS] = {0};
        for (unsigned half = 0; half < halves; half++) {
            if (floats)
                sim_cut_floats(products, k + half, end, halves, size, &of[half]);
            else
                sim_cut_products(products, k + half, end, halves, size, &of[half], beyond);
        }
        if (small) sim_add_halves(&of[0], &of[1], size);
        for (unsigned j = 0; !floats && j < size; j++)
            if (isfinite(of[0].of[j]) && isfinite(sums[j]) && beyond[j] != 0) of[0].of[j] = beyond[j];
        sim_join(&of[0], sums, size, small);
    }
}
