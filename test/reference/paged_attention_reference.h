// SPDX-License-Identifier: MIT
// What tessera_paged_attention must compute, row by row in fp64. It was written only from the text of
// tessera/paged_attention.h; it walks tables and decodes caches by itself, and shares no code with the library.
#ifndef PAGED_ATTENTION_REFERENCE_H
#define PAGED_ATTENTION_REFERENCE_H

#include "fmha_fwd_reference.h"
#include "tessera/paged_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// Queries of a sequence; 0 where it has more than max_seqlen_q and is left alone.
int32_t paged_attention_queries(const tessera_paged_attention_traits *traits, const tessera_paged_attention_args *args,
                                int32_t sequence);

// Where the row's o and lse lie in the caller's buffers.
void *paged_attention_o_row(const tessera_paged_attention_traits *traits, const tessera_paged_attention_args *args,
                            const fmha_fwd_row *row);
float *paged_attention_lse_of(const tessera_paged_attention_traits *traits, const tessera_paged_attention_args *args,
                              const fmha_fwd_row *row);

// Calls `visit` for every row that the call computes, sequences in order, with the numbers of rows counted from 0; the
// answers have no `visible`. Returns the number of rows, or -1 when memory ran out. args must be valid.
int64_t paged_attention_reference(const tessera_paged_attention_traits *traits,
                                  const tessera_paged_attention_args *args, fmha_fwd_visit visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
