// SPDX-License-Identifier: MIT
#include "elements.h"

#include <math.h>
#include <string.h>

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// A normal number: (1 + mantissa / 2^bits) 2^exponent.
static double normal(int negative, int exponent, unsigned mantissa, int bits) {
    return from_bits((uint64_t)negative << 63 | (uint64_t)(exponent + 1023) << 52 | (uint64_t)mantissa << (52 - bits));
}

double element_decode_fp16(uint16_t bits) {
    int negative = bits >> 15, exponent = (bits >> 10) & 31;
    unsigned mantissa = bits & 1023;
    if (exponent == 31) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
    if (exponent == 0) return (negative ? -0x1p-24 : 0x1p-24) * mantissa;
    return normal(negative, exponent - 15, mantissa, 10);
}

double element_decode_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

double element_decode_e4m3(uint8_t bits) {
    int negative = bits >> 7, exponent = (bits >> 3) & 15;
    unsigned mantissa = bits & 7;
    if (exponent == 15 && mantissa == 7) return NAN;
    if (exponent == 0) return (negative ? -0x1p-9 : 0x1p-9) * mantissa;
    return normal(negative, exponent - 7, mantissa, 3);
}

double element_decode_e4m3fnuz(uint8_t bits) {
    int negative = bits >> 7, exponent = (bits >> 3) & 15;
    unsigned mantissa = bits & 7;
    if (bits == 0x80) return NAN;
    if (exponent == 0) return (negative ? -0x1p-10 : 0x1p-10) * mantissa;
    return normal(negative, exponent - 8, mantissa, 3);
}

double element_decode_e2m1(uint8_t nibble) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    double value = magnitude[nibble & 7];
    return nibble & 8 ? -value : value;
}

double element_decode_e8m0(uint8_t bits) { return bits == 255 ? NAN : ldexp(1, bits - 127); }

// Code of |value| in a format with `bits` of mantissa whose least normal number is 2^least; ties go to even, and codes
// go on past the format's greatest. Infinity and NaN give the greatest codes of all.
static uint64_t encode(double value, int bits, int least) {
    uint64_t wide;
    memcpy(&wide, &value, sizeof wide);
    int exponent = (int)(wide >> 52 & 2047) - 1023;
    uint64_t mantissa = (wide & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int below = exponent < least ? least - exponent : 0;
    if (below > bits + 1) return 0;
    int drop = 52 - bits + below;
    uint64_t kept = mantissa >> drop, rest = mantissa & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && kept % 2);
    return below ? kept : kept + ((uint64_t)(exponent - least) << bits);
}

uint16_t element_encode_fp16(double value) {
    uint64_t sign = signbit(value) ? 0x8000 : 0, code = encode(value, 10, -14);
    return (uint16_t)(sign | (isnan(value) ? 0x7e00 : code < 0x7c00 ? code : 0x7c00));
}

uint16_t element_encode_bf16(double value) {
    uint64_t sign = signbit(value) ? 0x8000 : 0, code = encode(value, 7, -126);
    return (uint16_t)(sign | (isnan(value) ? 0x7fc0 : code < 0x7f80 ? code : 0x7f80));
}

uint8_t element_encode_e4m3(double value) {
    uint64_t sign = signbit(value) ? 0x80 : 0, code = encode(value, 3, -6);
    return (uint8_t)(sign | (isnan(value) ? 0x7f : code < 0x7e ? code : 0x7e));
}

uint8_t element_encode_e4m3fnuz(double value) {
    uint64_t code = encode(value, 3, -7);
    if (isnan(value)) return 0x80;
    if (code == 0) return 0; // has no sign
    return (uint8_t)((signbit(value) ? 0x80 : 0) | (code < 0x7f ? code : 0x7f));
}

uint8_t element_encode_e2m1(double value) {
    uint64_t sign = signbit(value) ? 8 : 0, code = encode(value, 1, 0);
    return (uint8_t)(sign | (code < 7 ? code : 7));
}

int8_t element_encode_int8(double value) {
    if (isnan(value)) return 0;
    return (int8_t)nearbyint(fmin(fmax(value, -127), 127)); // to even, as a program starts
}

int32_t element_bits(tessera_type type) {
    switch (type) {
    case TESSERA_TYPE_FP32:
        return 32;
    case TESSERA_TYPE_FP16:
    case TESSERA_TYPE_BF16:
        return 16;
    case TESSERA_TYPE_E2M1:
        return 4;
    default:
        return 8;
    }
}

double element_load(tessera_type type, const void *base, int64_t index) {
    switch (type) {
    case TESSERA_TYPE_FP32:
        return ((const float *)base)[index];
    case TESSERA_TYPE_FP16:
        return element_decode_fp16(((const uint16_t *)base)[index]);
    case TESSERA_TYPE_BF16:
        return element_decode_bf16(((const uint16_t *)base)[index]);
    case TESSERA_TYPE_E4M3:
        return element_decode_e4m3(((const uint8_t *)base)[index]);
    case TESSERA_TYPE_E4M3FNUZ:
        return element_decode_e4m3fnuz(((const uint8_t *)base)[index]);
    case TESSERA_TYPE_E2M1:
        return element_decode_e2m1(((const uint8_t *)base)[index / 2] >> (index % 2 * 4) & 15);
    case TESSERA_TYPE_INT8:
        return ((const int8_t *)base)[index];
    default:
        return 0;
    }
}

void element_store(tessera_type type, void *base, int64_t index, double value) {
    switch (type) {
    case TESSERA_TYPE_FP32:
        ((float *)base)[index] = (float)value;
        break;
    case TESSERA_TYPE_FP16:
        ((uint16_t *)base)[index] = element_encode_fp16(value);
        break;
    case TESSERA_TYPE_BF16:
        ((uint16_t *)base)[index] = element_encode_bf16(value);
        break;
    case TESSERA_TYPE_E4M3:
        ((uint8_t *)base)[index] = element_encode_e4m3(value);
        break;
    case TESSERA_TYPE_E4M3FNUZ:
        ((uint8_t *)base)[index] = element_encode_e4m3fnuz(value);
        break;
    case TESSERA_TYPE_E2M1: {
        uint8_t *byte = (uint8_t *)base + index / 2;
        int shift = index % 2 * 4;
        *byte = (uint8_t)((*byte & ~(15 << shift)) | element_encode_e2m1(value) << shift);
        break;
    }
    case TESSERA_TYPE_INT8:
        ((int8_t *)base)[index] = element_encode_int8(value);
        break;
    default:
        break;
    }
}
