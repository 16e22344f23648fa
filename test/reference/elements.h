// SPDX-License-Identifier: MIT
// Elements of tensors, for references, for tests and for filling inputs: shares no code with the library. Decoding is
// exact; encoding rounds to nearest even, and 8 bits and fewer saturate.
#ifndef REFERENCE_ELEMENTS_H
#define REFERENCE_ELEMENTS_H

#include <stdint.h>

#include "tessera/types.h"

#ifdef __cplusplus
extern "C" {
#endif

double element_decode_fp16(uint16_t bits);
double element_decode_bf16(uint16_t bits);
double element_decode_e4m3(uint8_t bits);
double element_decode_e4m3fnuz(uint8_t bits);
double element_decode_e2m1(uint8_t nibble);
double element_decode_e8m0(uint8_t bits);
uint16_t element_encode_fp16(double value);
uint16_t element_encode_bf16(double value);
uint8_t element_encode_e4m3(double value);
uint8_t element_encode_e4m3fnuz(double value);
uint8_t element_encode_e2m1(double value); // a nibble
int8_t element_encode_int8(double value);  // -127 .. 127; 0 for NaN

// Single elements of a tensor of fp32, fp16, bf16, e4m3, e4m3fnuz, e2m1 or int8; others are 0, and not stored.
double element_load(tessera_type type, const void *base, int64_t index);
void element_store(tessera_type type, void *base, int64_t index, double value);
int32_t element_bits(tessera_type type);

#ifdef __cplusplus
}
#endif
#endif
