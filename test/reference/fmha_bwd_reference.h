// SPDX-License-Identifier: MIT
// What tessera_fmha_bwd must compute, in fp64, and how far an answer may be off. It was written only from the text of
// tessera/fmha_bwd.h; masks, alibi and bytes of dropout are those of the forward reference.
#ifndef FMHA_BWD_REFERENCE_H
#define FMHA_BWD_REFERENCE_H

#include "elements.h"
#include "tessera/fmha_bwd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fmha_bwd_tensor {
    FMHA_BWD_D,
    FMHA_BWD_DQ,
    FMHA_BWD_DK,
    FMHA_BWD_DV,
    FMHA_BWD_DBIAS,
    FMHA_BWD_RANDVAL,
    FMHA_BWD_TENSORS
} fmha_bwd_tensor;

// A row of an output: `count` numbers, and how far each may be off. Of dk and dv `head` counts heads of dk.
typedef struct fmha_bwd_row {
    fmha_bwd_tensor tensor;
    int32_t batch, head, row, count;
    const double *want, *bound;
} fmha_bwd_row;

// Called for every row of a unit, in any order, from any of the threads.
typedef void (*fmha_bwd_visit)(void *user, const fmha_bwd_row *row);

// A unit is what can be checked by itself: the query heads of one sequence that share a key head. units[n] is
// batch * nhead_k + key head. Returns 0, or -1 when memory ran out. args must be valid.
//
// The bound of an element is the sum of what roundings can do:
//
//   half a step of the output's type; p and dx rounded to bf16 where products are (2^-8 of each term; bf16 alone), and
//   to fp16 where fp16_least is not 0 (2^-11 of each term, but at least 2^-25 of p and fp16_least of dx: 2^-25, or
//   2^-14 where products take subnormal numbers for 0, as MFMA of CDNA 2 do, which then lose those of q, k, v and do,
//   too: what these add to scores, dp and gradients); fp32 errors of scores (2^-22 of the greatest magnitude of q k and
//   lse, for a term), of exp (for bf16 2^-13), of sums, which grow as the root of their terms; of the difference
//   dp - d, of the magnitudes of both; and of the soft cap, 2^-21 of it
//
// GPUs find tanh x as 1 - 2 / (1 + e), where e = exp(2 x) and its reciprocal are right to 2^-23 and the sum is to
// 2^-24: it is off by up to 2 / (1 + e) (2^-23 + 2^-24) + 2 e / (1 + e)^2 2^-23 + 2^-25, which is 3.25 2^-23 at most,
// however small tanh x is, and so is the score by that times the cap. CPUs are right to 3.9e-7 of tanh x, which is
// less.
int fmha_bwd_reference(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args, double fp16_least,
                       const int32_t *units, int64_t count, int threads, fmha_bwd_visit visit, void *user);

// d_sink of a head.
void fmha_bwd_reference_d_sink(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args, int32_t head,
                               double *want, double *bound);

// Logical lengths of a sequence, and its first tokens.
typedef struct fmha_bwd_sequence {
    int32_t seqlen_q, seqlen_k;
    int64_t token_q, token_k;
} fmha_bwd_sequence;
fmha_bwd_sequence fmha_bwd_sequence_of(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args,
                                       int32_t batch);
// Pairs of a query and a key that it sees.
int64_t fmha_bwd_pairs(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args, int32_t batch);

tessera_type fmha_bwd_element(tessera_fmha_dtype dtype);
// Where an output's row lies, and the type of its elements.
const void *fmha_bwd_row_at(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args,
                            fmha_bwd_tensor tensor, int32_t batch, int32_t head, int64_t row, tessera_type *type);

// The greatest error over its bound of a row, <= 1 when valid; infinity where one is NaN and the other not.
double fmha_bwd_compare(const tessera_fmha_bwd_traits *traits, const tessera_fmha_bwd_args *args,
                        const fmha_bwd_row *row, double *max_error);

#ifdef __cplusplus
}
#endif
#endif
