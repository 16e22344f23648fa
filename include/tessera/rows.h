// SPDX-License-Identifier: MIT
// Kinds that traits of the row operations are made of, the normalizations and quantizations of rows. Spellings
// accepted by the ..._from_string functions are the numbers of CK's programs.
#ifndef TESSERA_ROWS_H
#define TESSERA_ROWS_H

#include "tessera/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// CK's -fadd: what is done with x_residual before all else.
typedef enum tessera_fused_add {
    TESSERA_FUSED_ADD_NONE = 0,
    TESSERA_FUSED_ADD_STORE = 1, // it is added, and the sum is stored to y_residual
    TESSERA_FUSED_ADD_ONLY = 2,  // it is added
    TESSERA_FUSED_ADD_COUNT
} tessera_fused_add;

// CK's -fquant: how the result becomes 8 bits.
typedef enum tessera_fused_quant {
    TESSERA_FUSED_QUANT_NONE = 0,
    TESSERA_FUSED_QUANT_SMOOTH = 1,  // times sm_scale[j], then as below
    TESSERA_FUSED_QUANT_DYNAMIC = 2, // divided by y_scale[i], which is found row by row
    TESSERA_FUSED_QUANT_COUNT
} tessera_fused_quant;

TESSERA_API tessera_status tessera_fused_add_from_string(const char *text, tessera_fused_add *out); // 0|1|2
TESSERA_API const char *tessera_fused_add_string(tessera_fused_add value);
TESSERA_API tessera_status tessera_fused_quant_from_string(const char *text, tessera_fused_quant *out); // 0|1|2
TESSERA_API const char *tessera_fused_quant_string(tessera_fused_quant value);

// One row of the generated tables of all of them; its definition is in tessera/kernel/rows.h.
typedef struct tessera_rows_instance tessera_rows_instance;

// What holds for all of them.
//
// Rows lie a stride of elements apart; columns are contiguous. Strides of inputs are 0 or more, those of outputs at
// least the columns; of a single row they do not matter. An output may be one of the inputs where both have the same
// type, pointer and stride; any other overlap of an output is refused. Alignment is that of the element: GPU instances
// that load vectors need rows that begin at multiples of 4 bytes and have a multiple of 4 columns (sm_90a: 16 bytes of
// the inputs' type, and of results of 8 bits as many columns as these hold), and others serve where they do not.
// Pointers that the traits do not ask for are ignored, and there may be no rows.
//
// Everything is computed in fp32. Dynamic quantization of a row z to 8 bits:
//
//   y_scale = max_j |z[j]| / q           q: 127 of int8, 448 of e4m3, 240 of e4m3fnuz
//   y[j]    = z[j] / y_scale             rounded to the nearest, of two the even one, and saturated to -q .. q
//
// A row that is all zeros has y_scale 0 and y 0; one whose y_scale is below 1.2e-38, the least normal number, may have
// y 0 as well. NaN and infinity go through the equations as IEEE arithmetic has it:
// the greatest of numbers with a NaN is NaN, and as int8 a NaN is 0. Sums are fp32: a row whose sum of squares passes
// 3.4e38 is one with an infinity.
//
// Rows are independent of each other, and results do not depend on the number of threads.

#ifdef __cplusplus
}
#endif
#endif
