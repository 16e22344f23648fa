// SPDX-License-Identifier: MIT
// The argument of an emitted CDNA kernel of fmha_fwd that merges heads and cuts keys into parts, which may lie in
// caches. Not for callers.
#ifndef TESSERA_KERNEL_FMHA_FWD_CDNA_H
#define TESSERA_KERNEL_FMHA_FWD_CDNA_H

#include "tessera/kernel/attention_pages.h"
#include "tessera/kernel/fmha_fwd_gpu.h"

// A workgroup computes bm0 rows, which are queries of all heads of a key head, row = query * group + head, over a part
// of their tiles of keys. Its x in the grid is the key head; y is part * call.blocks_q + block, where the last block of
// rows comes first; z is the sequence. But of 2^log_sequences sequences, or 2^log_parts parts, that follow one another
// the number there is in x, behind the key head. Hardware deals workgroups to dies in turns, x first: with as many as
// there are dies all key heads come to one, whose L2 brings a line once that has rows of several. The last ones of
// these may be outside.
//
// Sequences of more than `queries` queries are left alone.
//
// With parts > 1 results go to o_acc [batch, nhead_q, queries, parts, hdim_v] and the logarithms of their sums, base 2,
// to lse_acc [batch, nhead_q, queries, parts], where -inf says that there is no result. A part has `part_tiles` tiles,
// or a `parts`-th of a workgroup's where that is more.
struct tessera_fmha_fwd_cdna_args {
    struct tessera_fmha_fwd_gpu_args call; // the first member, which code that serves all kernels reads
    float *o_acc, *lse_acc;
    int32_t parts, part_tiles, queries;
    int32_t sequences, log_sequences, log_parts; // one of the logarithms is 0
    // Instances that find keys in caches: where they do, if `pages.table` is not NULL. A key past a sequence's last one
    // is never looked up. Where pages.begin is not NULL the list says how many keys a sequence has: `last`, unless it
    // is NULL, has the rows of its last page.
    struct tessera_attention_pages pages;
    const int32_t *last;
};

#endif
