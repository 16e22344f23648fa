// SPDX-License-Identifier: MIT
// tile_example_fmha_fwd as a problem of the harness (example/common/problem.h), which the program, its smoke matrix and
// the tests build, launch and verify.
#ifndef FMHA_FWD_RUNNER_H
#define FMHA_FWD_RUNNER_H

#include "problem.h"
#include "tessera/fmha_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

// Options of a problem. Fields are the program's arguments, under their names; texts are spelled as on the command
// line.
typedef struct fmha_fwd_options {
    example_options common; // v 1, 2: sampled above 2^37 FLOP; 3: every row
    int32_t mode;           // 0: batch, 1: group
    int32_t b, h, h_k;
    int32_t s, s_k, s_qpad, s_kpad; // for every sequence; group mode: s and s_k are means, lengths are drawn
    int32_t d, d_v;
    float scale_s; // 0: 1 / sqrt(d)
    const char *qscale;
    float logits_soft_cap; // 0: none
    int32_t iperm, operm;
    const char *bias, *prec, *mask, *vlayout, *init;
    int32_t lse;
    float p_drop;
    uint64_t drop_seed, drop_offset;
    int32_t drop_prefs;
    int32_t init_sink;
    const char *api;    // CK's words; NULL, "": as CK chooses
    int32_t num_splits; // 0: the library's choice; of fmha_fwd 1 is, too; -1: CK's
    int32_t page_block_size, cache_batch_idx;
    int32_t s_knew; // new keys, of s_k, that are appended first; -1: 1 to s by the seed
    int32_t rotary_dim, rotary_interleaved;

    // Lists of b values, or NULL. The first four take the place of the numbers of the same name.
    const int32_t *s_list, *s_k_list, *s_qpad_list, *s_kpad_list;
    const int32_t *q_eff_lens, *kv_eff_lens; // batch mode

    // Options for tests, which the command line lacks.
    int32_t min_seqlen_q;        // > 0: sequences with seqlen_q <= min_seqlen_q must be left untouched
    int32_t cu_seqlen;           // 1: group mode with pads gives logical lengths by cu_seqlen_*_ptr, not seqlen_*_ptr
    int32_t misalign;            // example_problem.misalign
    int32_t block_scale_size_q;  // -qscale=bs: tokens of a block; 0: 128
    int32_t block_scale_size_kv; // the same for k and v
    int32_t odd_descales;        // 1: descales are also 0, negative, tiny and huge
    int32_t pad_columns;         // 1: -vlayout=c: a row of v takes a multiple of 64 bytes
    double rtol, atol, lse_atol; // < 0: as README.md says
} fmha_fwd_options;

// The program, whose problems are made from fmha_fwd_options.
extern const example_program fmha_fwd_program;

#ifdef __cplusplus
}
#endif
#endif
