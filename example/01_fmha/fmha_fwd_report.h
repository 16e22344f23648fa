// SPDX-License-Identifier: MIT
// Pieces of CK's line, and members of CK's JSON, that the programs of attention forward and backward share.
#ifndef EXAMPLE_FMHA_FWD_REPORT_H
#define EXAMPLE_FMHA_FWD_REPORT_H

#include "fmha_fwd_problem.h"

// "[type|mode|layout] b:..., h:..., s:...", where `room_k` also prints what K has room for, in brackets, where padded.
void fmha_fwd_print_shape(const fmha_fwd_problem *problem, int room_k, FILE *file);
void fmha_fwd_print_bias(const fmha_fwd_bias *bias, FILE *file);
void fmha_fwd_print_mask(const fmha_fwd_mask *mask, FILE *file);
void fmha_fwd_print_list(const char *name, const int32_t *values, int32_t count, FILE *file);

// "batch" to "nhead_k"; "seqlen_q" and "seqlen_k"; "bias".
void fmha_fwd_put_heads(const fmha_fwd_problem *problem, FILE *file);
void fmha_fwd_put_seqlens(const fmha_fwd_problem *problem, FILE *file);
void fmha_fwd_put_bias(const fmha_fwd_bias *bias, FILE *file);

#endif
