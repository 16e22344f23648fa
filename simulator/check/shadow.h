// SPDX-License-Identifier: MIT
// Undefined values: which bits of registers and memory nothing has set, and what comes of them.
//
// Each bit has a shadow bit. What an instruction makes of undefined bits is found by running it again with other values
// in their place: the bits of its results that change are undefined. So moves, shifts, selections and masks are exact
// to the bit, and no instruction needs a rule of its own. What carries or rounds may be found less undefined than it
// is, where all tried values agree; never more.
//
// Undefined bits may be moved, computed with and stored. They are reported where they decide an address, a branch, EXEC
// or the number of a register.
#pragma once

#include "machine/launch.h"

struct sim_shadow_memory;

// Bits of registers that nothing has defined are set. Moves with its registers when an operation is put off.
struct sim_shadow {
    uint32_t sgpr[SIM_SGPRS];
    bool scc;
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));
};

// Executes instructions, and their registers' and memory's shadows with them.
extern const struct sim_observer tessera_sim_shadow_check;

// An access of the instruction that ran, for those who look on.
struct sim_touched {
    uint8_t *host, *undefined;
    int16_t lane;
    uint16_t bytes;
    uint16_t twin;      // the first access to this place
    uint8_t before[64]; // its bytes before the instruction
};

// Those of the instruction that ran last.
const struct sim_touched *tessera_sim_touched(const struct sim_wave *wave, unsigned *count);
