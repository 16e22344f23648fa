// SPDX-License-Identifier: MIT
#include "turbo4_reference.h"

#include <math.h>

tessera_type turbo4_type(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP32   ? TESSERA_TYPE_FP32
           : dtype == TESSERA_FMHA_FP16 ? TESSERA_TYPE_FP16
                                        : TESSERA_TYPE_BF16;
}

static int is_odd(uint32_t bits) {
    int ones = 0;
    for (; bits; bits >>= 1) ones ^= (int)(bits & 1);
    return ones;
}

static double length_of(const double *x, int32_t hdim) {
    double sum = 0;
    for (int32_t d = 0; d < hdim; d++) sum += x[d] * x[d];
    return sqrt(sum);
}

void hadamard_rotate_row(const double *x, int32_t hdim, double *y) {
    for (int32_t i = 0; i < hdim; i++) {
        y[i] = 0;
        for (int32_t j = 0; j < hdim; j++) y[i] += is_odd((uint32_t)(i & j)) ? -x[j] : x[j];
        y[i] /= sqrt(hdim);
    }
}

double hadamard_bound(tessera_type type, const double *x, int32_t hdim, double y) {
    const double rounding = type == TESSERA_TYPE_FP32 ? 0x1p-24 : type == TESSERA_TYPE_FP16 ? 0x1p-11 : 0x1p-8;
    const double least = type == TESSERA_TYPE_FP16 ? 0x1p-25 : 0; // half a step of subnormal numbers
    return 0x1p-20 * length_of(x, hdim) + rounding * fabs(y) + least;
}

const char *turbo4_wrong(const double *x, int32_t hdim, const float centroids[16], const uint8_t *numbers,
                         uint16_t norm) {
    const double length = length_of(x, hdim), stored = element_decode_fp16(norm);
    if (isinf(stored) ? length < 65520 * (1 - 0x1p-20) : !(fabs(stored - length) <= length * 0x1p-10 + 0x1p-24))
        return "a norm differs from the reference";
    for (int32_t d = 0; d < hdim; d++) {
        const double is = length > 0 ? x[d] / length : 0;
        double least = INFINITY;
        for (int c = 0; c < 16; c++) least = fmin(least, fabs(is - (double)centroids[c]));
        if (!(fabs(is - (double)centroids[numbers[d / 2] >> d % 2 * 4 & 15]) <= least + 1e-6))
            return "a number is not that of the nearest centroid";
    }
    return 0;
}
