// SPDX-License-Identifier: MIT
// Keys and values that lie in caches, put one sequence behind the other, as the reference of fmha_fwd reads them. Where
// each lies is the caller's to say, from the text of the operation's public header.
#ifndef FOUND_KEYS_H
#define FOUND_KEYS_H

#include "tessera/fmha_fwd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct found_keys {
    const int32_t *lengths; // keys of each sequence
    size_t bytes;           // of an element
    // The address of element d of key (is_v: value) j of head g of sequence b.
    const void *(*at)(const void *user, int is_v, int32_t b, int32_t g, int32_t j, int32_t d);
    const void *user;
} found_keys;

// Makes k, v, their strides, and the lengths of keys of args those of a copy: in group mode by seqstart_k, in batch
// mode by cu_seqlen_k. Scales of BLOCK with blocks of one key are in that order, too. Returns the memory, which the
// caller frees; NULL: there was none.
void *put_in_order(const found_keys *keys, const tessera_fmha_fwd_traits *traits, tessera_fmha_fwd_args *args);

#ifdef __cplusplus
}
#endif
#endif
