// SPDX-License-Identifier: MIT
// Undefined values: bits of registers and memory that nothing has set, and the results that depend on them.
//
// Each bit has a shadow bit, which is set while the bit is undefined. An instruction with undefined bits in its sources
// is run again with other values in their place: the bits of its results that change are undefined. So moves, shifts,
// selections and masks are exact to the bit, and no instruction needs a rule of its own. Where an instruction carries
// or rounds, a bit may be found defined though it is not, if all tried values agree; the opposite does not happen.
//
// Programs may move undefined bits, compute with them and store them. A bit is reported where it decides an address, a
// branch, EXEC or the number of a register.
#pragma once

#include "machine/launch.h"

struct sim_shadow_memory;

// Set bits mark undefined bits of registers. When an operation is put off, the shadow is put aside with the registers.
struct sim_shadow {
    uint32_t sgpr[SIM_SGPRS];
    bool scc;
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));
};

// Executes instructions, and updates the shadows of registers and memory.
extern const struct sim_observer tessera_sim_shadow_check;

// An access of the instruction that ran, for other checks to read.
struct sim_touched {
    uint8_t *host, *undefined;
    int16_t lane;
    uint16_t bytes;
    uint16_t twin;      // the first access to this place
    uint8_t before[64]; // the bytes of the place before the instruction
};

// The accesses of the instruction that ran last.
const struct sim_touched *tessera_sim_touched(const struct sim_wave *wave, unsigned *count);
