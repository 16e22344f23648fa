// SPDX-License-Identifier: MIT
// Into how many splits CK's example cuts keys where it is not told: see tessera/fmha_fwd_splitkv.h.
#include <math.h>

#include "ops/fmha_fwd_internal.h"

enum { CK_BLOCK_ROWS = 64, CK_BLOCKS_OF_UNIT = 2 };

// Blocks of queries. Heads of one key head are one block's rows where one query has neither mask nor bias.
static int64_t count_blocks(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool merges = call->queries == 1 && a->nhead_k < a->nhead_q && call->traits.mask_type == TESSERA_MASK_NONE &&
                        call->traits.bias_type == TESSERA_BIAS_NONE;
    const int64_t heads = merges ? a->nhead_k : a->nhead_q;
    const int64_t rows = merges ? a->nhead_q / a->nhead_k : call->queries;
    return a->batch * heads * tessera_ceil_div(rows, CK_BLOCK_ROWS);
}

// The share of the places for blocks that are taken, on average over the rounds that n splits take.
static double efficiency(int64_t blocks, int32_t n, int64_t places) {
    const double rounds = (double)(blocks * n) / (double)places;
    return rounds / ceil(rounds);
}

int32_t tessera_fmha_fwd_ck_splits(const struct tessera_fmha_fwd_call *call, int32_t units) {
    const int64_t blocks = count_blocks(call), places = (int64_t)units * CK_BLOCKS_OF_UNIT;
    const int32_t most = (int32_t)tessera_min(TESSERA_FMHA_FWD_MOST_SPLITS, places);
    double best = 0;
    if (blocks == 0 || (double)blocks >= 0.8 * (double)places) return 1;
    for (int32_t n = 1; n <= most; n++) best = fmax(best, efficiency(blocks, n, places));
    for (int32_t n = 1; n < most; n++)
        if (efficiency(blocks, n, places) >= 0.85 * best) return n;
    return most;
}
