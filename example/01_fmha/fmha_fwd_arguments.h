// SPDX-License-Identifier: MIT
// The command line of tile_example_fmha_fwd.
#ifndef FMHA_FWD_ARGUMENTS_H
#define FMHA_FWD_ARGUMENTS_H

#include "fmha_fwd_runner.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fmha_fwd_arguments {
    fmha_fwd_options options;
    const char *timer;
    int32_t num_splits;
    // CK's argument of another branch: only its default is accepted.
    int32_t pack_gqa;
    example_list s, s_k, s_qpad, s_kpad, q_eff_lens, kv_eff_lens;
} fmha_fwd_arguments;

extern const example_arguments fmha_fwd_arguments_table;

#ifdef __cplusplus
}
#endif
#endif
