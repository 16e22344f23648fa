// SPDX-License-Identifier: MIT
// Types of a tensor's elements. The header of an operation says which of them it combines.
#ifndef TESSERA_TYPES_H
#define TESSERA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Values are part of the ABI. Two numbers of 4 bits share a byte, the first one in its low half.
typedef enum tessera_type {
    TESSERA_TYPE_FP32 = 0,
    TESSERA_TYPE_FP16 = 1, // IEEE half
    TESSERA_TYPE_BF16 = 2,
    TESSERA_TYPE_E4M3 = 3,     // OCP: bias 7, 0x7f and 0xff are NaN, at most 448
    TESSERA_TYPE_E2M1 = 4,     // OCP MX: 4 bits, at most 6
    TESSERA_TYPE_E5M2 = 5,     // OCP: bias 15, with infinity, at most 57344
    TESSERA_TYPE_E4M3FNUZ = 6, // bias 8, 0x80 is NaN (there is no -0), at most 240
    TESSERA_TYPE_E5M2FNUZ = 7, // bias 16, 0x80 is NaN, at most 57344
    TESSERA_TYPE_E8M0 = 8,     // OCP MX scale: 2^(byte - 127), 255 is NaN
    TESSERA_TYPE_INT8 = 9,
    TESSERA_TYPE_INT4 = 10,
    TESSERA_TYPE_INT32 = 11,
    TESSERA_TYPE_COUNT
} tessera_type;

// "fp32", "fp16", "bf16", "e4m3", "e2m1", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0", "int8", "int4", "int32".
TESSERA_API tessera_status tessera_type_from_string(const char *text, tessera_type *out);
TESSERA_API const char *tessera_type_string(tessera_type value); // NULL for other values
TESSERA_API int tessera_type_bits(tessera_type value);           // of an element; 0 for other values

// The format of fp8 in fp8, fp8bf16 and fp8fp32; tessera_device_fp8_format() says which one a device takes.
typedef enum tessera_fp8_format {
    TESSERA_FP8_NONE = 0, // gfx90a, which has no instances for these types
    TESSERA_E4M3FN = 1,   // OCP, on CPUs and gfx950: bias 7, 0x7f and 0xff are NaN, at most 448
    TESSERA_E4M3FNUZ = 2  // gfx942: bias 8, 0x80 is NaN (there is no -0), at most 240
} tessera_fp8_format;
#ifdef __cplusplus
}
#endif
#endif
