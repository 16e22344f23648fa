// SPDX-License-Identifier: MIT
// How long LDS works on an access of a wave.
#pragma once

#include "decode/decode.h"

// What an access costs: the phases in which its lanes take turns, and the cycles that conflicts add, in which lanes of
// a phase ask a bank for different words.
struct sim_lds_cost {
    uint16_t phases, conflicts;
};

// `address` are the bytes of the lanes in `lanes`, of which each accesses `bytes`.
struct sim_lds_cost tessera_sim_lds_cost(enum sim_arch arch, bool store, unsigned bytes, uint64_t lanes,
                                         const uint32_t *address);
