// SPDX-License-Identifier: MIT
// What the row operations must compute (layernorm2d_fwd, rmsnorm2d_fwd, add_rmsnorm2d_rdquant, smoothquant,
// moe_smoothquant), accumulated in fp64, and whether a call computed it. Written from the text of their public headers
// and of tessera/rows.h alone: it shares no code with kernels or runtime.
//
// Every result is a range: the exact one, and around it what fp32 may make of it. The range's ends are rounded to the
// type of the output as the header says, so that a result is right when it lies between them; of most elements that is
// one number, and two where the exact one lies so near to a boundary of rounding that fp32 cannot tell. With u = 2^-24:
//
//   one operation   u of its result, and half of the least denormal number
//   a sum           u (c - 1) of the sum of magnitudes, c = min(n, n / 4 + 16): its longest chain of additions. A
//                   kernel has vectors of 4 or more accumulators
//   a mean          that of its sum, 2 u for the division
//   a variance      from deviations from the rounded mean (dm is its error): dm^2 and what its sum loses
//   1 / sqrt        4 u
//   a quotient      8 u, y_scale 3 u; what z and the greatest z have as a common factor cancels
//
// NaN and infinity go through the equations as IEEE has it. Where fp32 may or may not overflow, where a denominator may
// or may not be zero, and where a variance or y_scale is below fp32's least normal number, anything is right, and it is
// counted as unspecified.
#ifndef ROWS_REFERENCE_H
#define ROWS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "elements.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rows_statistics { ROWS_NONE, ROWS_MEAN, ROWS_SQUARE } rows_statistics; // MEAN: layernorm2d; SQUARE: rms

// A call of any of them: s = x + bias + residual, z = s normalized, times smooth, quantized.
typedef struct rows_call {
    rows_statistics statistics;
    int rounds_twice;     // use_model_sensitive_rmsnorm
    int quantized;        // y is z / y_scale
    tessera_type in, out; // of y; all else that is not float is of `in`
    int64_t m, n;         // rows of y
    float epsilon;

    const void *x, *residual;          // residual, bias, gamma and beta may be NULL
    const void *bias, *gamma, *beta;   // [n]
    const float *smooth;               // [n], or [experts, n]; may be NULL
    const int32_t *topk_ids;           // [tokens, topk], m = topk tokens; NULL: row i is of x's row i
    int64_t tokens, topk, experts;     // with topk_ids
    int64_t x_stride, residual_stride; // in elements
    int64_t y_stride, residual_out_stride;
    // What the call computed; NULL: it was not asked to, but for y.
    const void *y, *residual_out, *unquantized; // unquantized has y's stride
    const float *y_scale, *mean, *inv;          // [m]; inv: invstd or inv_rms
} rows_call;

// The row of x that row `row` of y is of; -1: its id is none of an expert, and nothing of it is written.
int64_t rows_source(const rows_call *call, int64_t row);

typedef struct rows_verdict {
    int64_t checked, wrong; // elements of all outputs
    int64_t unspecified;    // of those checked, anything was right
    char first[200];        // which one is wrong and why; "" where none is
} rows_verdict;

// Checks rows [begin, end) on so many threads. Returns 0, or -1 when memory ran out.
int rows_check(const rows_call *call, int64_t begin, int64_t end, int threads, rows_verdict *verdict);

// A result before it is rounded to its type.
typedef enum rows_kind { ROWS_NUMBER, ROWS_NAN, ROWS_ANYTHING } rows_kind;
typedef struct rows_range {
    double lo, hi;
    rows_kind kind;
} rows_range;

// The answer for a row that rows_source() has; arrays of n. y is in units of the output: what is rounded to its type.
typedef struct rows_answer {
    rows_range *s, *z, *y; // z before smoothing
    rows_range *work;      // contents lost
    rows_range mean, inv, y_scale;
} rows_answer;
void rows_answer_of(const rows_call *call, int64_t row, rows_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
