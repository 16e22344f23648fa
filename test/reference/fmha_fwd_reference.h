// SPDX-License-Identifier: MIT
// What tessera_fmha_fwd must compute, row by row, accumulated in fp64. It was written only from the text of
// tessera/fmha_fwd.h and shares no code with kernels or runtime, masks and Philox included. `fp8` is the format of the
// fp8 dtypes; TESSERA_FP8_NONE means OCP's.
#ifndef FMHA_FWD_REFERENCE_H
#define FMHA_FWD_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "elements.h"
#include "tessera/fmha_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fmha_fwd_row {
    int32_t batch, head, query; // query is below the sequence's logical length
} fmha_fwd_row;

// The answer for one row. Pointers are valid until the visitor returns.
typedef struct fmha_fwd_reference_row {
    const double *o; // [hdim_v], neither rounded nor saturated
    double lse;
    int32_t seqlen_k;       // logical
    const uint8_t *visible; // [seqlen_k]: 1 where the mask lets the query see the key
    const uint8_t *randval; // [seqlen_k]: the bytes of dropout; NULL without
    // Magnitudes that rounding errors are proportional to:
    const double *o_size; // [hdim_v]: sums of the magnitudes of what o is the sum of, weights times values
    double score_size;    // |q| |k| of the longest key + the magnitude of the greatest score
    double value_size;    // greatest magnitude of an element of v, over 1 - p_drop
    double score_lost;    // what products cut off of a score at most; 0 where they are not said to
    double score_gap;     // how far the greatest score (a sink is one) is above the next one; infinity if there is none
} fmha_fwd_reference_row;

// Called once for every row, in any order, from any of the threads; `index` counts rows as they were given.
typedef void (*fmha_fwd_visit)(void *user, int64_t index, const fmha_fwd_row *row,
                               const fmha_fwd_reference_row *answer);

// Whether products of scores cut bits off, as those of fp8 on tensor cores of NVIDIA do (tensor_cores.h).
int fmha_fwd_cuts_products(tessera_fmha_dtype dtype, const char *device);

// `cuts`: products of scores do. Rows sorted by batch and head are fastest. Returns 0, or -1 when memory or threads ran
// out. args must be valid.
int fmha_fwd_reference(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args, tessera_fp8_format fp8,
                       int cuts, const fmha_fwd_row *rows, int64_t count, int threads, fmha_fwd_visit visit,
                       void *user);

// Does the same into arrays, without cuts: o [count, hdim_v]; lse [count] and randval [count, randval_stride] may be
// NULL.
int fmha_fwd_reference_rows(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                            tessera_fp8_format fp8, const fmha_fwd_row *rows, int64_t count, int threads, double *o,
                            double *lse, uint8_t *randval, int64_t randval_stride);

// Lengths and places of sequence `batch`, as the header defines them.
typedef struct fmha_fwd_sequence {
    int32_t seqlen_q, seqlen_k; // logical
    int64_t token_q, token_k;   // group mode: the first token; batch mode: 0
    int32_t skipped;            // by min_seqlen_q
} fmha_fwd_sequence;
fmha_fwd_sequence fmha_fwd_sequence_of(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                       int32_t batch);

// Does query i see key j of a sequence with these lengths?
int fmha_fwd_sees(const tessera_fmha_fwd_args *args, int32_t seqlen_q, int32_t seqlen_k, int32_t i, int32_t j);
// How many keys does it see?
int32_t fmha_fwd_keys_seen(const tessera_fmha_fwd_args *args, int32_t seqlen_q, int32_t seqlen_k, int32_t i);

// What ALiBi with this slope adds to the score of query i and key j.
double fmha_fwd_alibi(const tessera_fmha_fwd_args *args, double slope, int64_t sq, int64_t sk, int64_t i, int64_t j);

// Where the row's o and lse lie in the caller's buffers.
const void *fmha_fwd_o_row(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args, fmha_fwd_row row);
const float *fmha_fwd_lse_of(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                             fmha_fwd_row row);

// The element types of the tensors of a dtype.
tessera_type fmha_fwd_input_element(tessera_fmha_dtype dtype, tessera_fp8_format fp8);
tessera_type fmha_fwd_output_element(tessera_fmha_dtype dtype, tessera_fp8_format fp8);
tessera_type fmha_fwd_bias_element(tessera_fmha_dtype dtype);

// How far an answer may be off:
//
//   o     the greater of rtol |o| + atol and half_step |o| + least + p_error o_size + p_floor seqlen_k value_size,
//         and what errors of scores make of it
//   lse   lse_atol (1 + |lse|) + e
//
// e = score_error score_size + score_lost is the rounding error of scores of that size. Scores that are off by at most
// e change each weight p_j by a factor of e^(-2e) to e^(2e), so that o changes by at most (e^(2e) - 1) sum p_j |v_j -
// o|. That sum is at most 2 o_size; it is also at most 4 value_size times the weights of all keys but that of the
// greatest score, which are at most seqlen_k e^(-score_gap); and o changes by no more than 2 value_size.
//
// score_error is 2^-23 in fp32, which every computation has; score_lost is what products of fp8 cut off besides. Tiles
// of CPUs take fp16 as sums of two bf16, the second one at most 2^-9 of the number, and leave out products of two
// second ones (split() of qr_tile): 2^-18 of a score's size, where `device` may have them, which plain "cpu" may.
//
// rtol and atol are CK's for fp32, fp16 and bf16. CK's for fp8 and mx inputs (an absolute 0.18 to 32) would let nearly
// anything pass: they are not used.
//
// half_step is the relative error of rounding to the output's type. least is half of the least number of fp8, and for
// other types 2^-116, for numbers that fp32 flushes to zero. The other terms are errors of rounding probabilities,
// which depend on the values that these weigh:
//
//   p in fp16 (GPUs)   is off by 2^-11 p, so each term of o is, and o by no more than 2^-11 o_size.
//   p in bf16          likewise, by 2^-8: CPUs round p so for all types of 16 bits and less but fp16.
//   p in e4m3 (GPUs)   has a mantissa of 3 bits, so p_error is 2^-4. Kernels store p, which is at most 1, times 2^8
//                      (OCP) or 2^7 (FNUZ), where the least steps are 2^-9 or 2^-10: what is smaller is off by half a
//                      step, 2^-18 of p. The sum that o is divided by is 1 at least, so p_floor is 2^-18 for each key.
typedef struct fmha_fwd_tolerance {
    double rtol, atol, lse_atol, half_step, least, p_error, p_floor, score_error;
} fmha_fwd_tolerance;
// `device` is a name such as tessera_device_name() returns.
fmha_fwd_tolerance fmha_fwd_tolerance_of(tessera_fmha_dtype dtype, const char *device);

// Compares n elements of the output's type with the reference (saturated, or infinite, where the type makes it so).
// Returns the greatest error over bound, <= 1 when valid, infinity where one is NaN; *max_error takes the greatest
// error unless it is greater already.
double fmha_fwd_compare_row(tessera_type output, const void *got, const fmha_fwd_reference_row *want, int32_t n,
                            const fmha_fwd_tolerance *tolerance, double *max_error);
double fmha_fwd_compare_lse(float got, const fmha_fwd_reference_row *want, const fmha_fwd_tolerance *tolerance,
                            double *max_error);

// Philox4x32-10, and the byte that it gives element (i, j) of head `head` = batch * nhead_q + h.
void fmha_fwd_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
uint8_t fmha_fwd_dropout_byte(uint64_t seed, uint64_t offset, uint32_t head, uint32_t i, uint32_t j);

#ifdef __cplusplus
}
#endif
#endif
