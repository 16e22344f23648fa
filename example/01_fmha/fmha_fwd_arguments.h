// SPDX-License-Identifier: MIT
// The command line of tile_example_fmha_fwd.
#ifndef FMHA_FWD_ARGUMENTS_H
#define FMHA_FWD_ARGUMENTS_H

#include "fmha_fwd_runner.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FMHA_FWD_LISTS = 6 };

typedef struct fmha_fwd_arguments {
    fmha_fwd_options options;
    int32_t help;
    int32_t kname; // 1: short name, 2: CK's name
    int32_t json, explain;
    const char *jsonfile, *timer;
    const char *pack;   // NULL: none
    int32_t num_splits; // 0 or 1, which mean the same here
    // CK's arguments of other operations: only their defaults are accepted.
    int32_t s_knew, rotary_dim, rotary_interleaved, page_block_size, cache_batch_idx, pack_gqa;

    int32_t warmup_given, repeat_given;
    int32_t *lists[FMHA_FWD_LISTS], list_sizes[FMHA_FWD_LISTS];
} fmha_fwd_arguments;

// Reads argv[1 .. argc). Returns 0, or -1 with one line in `message` that names argument, value and what is accepted.
// Texts are borrowed from argv; call fmha_fwd_free_arguments either way.
int fmha_fwd_read_arguments(int argc, char *const *argv, fmha_fwd_arguments *out, char *message, size_t size);
void fmha_fwd_free_arguments(fmha_fwd_arguments *arguments);

// Prints every argument with its default and meaning.
void fmha_fwd_print_help(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
