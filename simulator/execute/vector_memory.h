// SPDX-License-Identifier: MIT
// Shared by the files of FLAT, GLOBAL, SCRATCH, MUBUF and MTBUF: the place of each lane's access, and the functions
// that reach its bytes.
#pragma once

#include "machine/access.h"
#include "operands.h"

enum sim_space { SIM_MEMORY, SIM_LDS, SIM_PRIVATE };

// The place of one lane's access.
struct sim_place {
    enum sim_space space;
    uint64_t address;   // the address; for LDS and scratch, the offset in it
    uint32_t reachable; // bytes within the buffer's bounds; others load as 0 and are not stored
    uint64_t second;    // the address of the second word's bytes where they do not follow the first's; else 0
};

// Finds the place of each lane's access of `bytes` (vector_address.c); false after a fault.
bool tessera_sim_find_places(struct sim_wave *wave, const struct sim_inst *inst, uint32_t bytes,
                             struct sim_place *places);

// The instruction's buffer descriptor: four SGPRs; NULL after a fault.
const uint32_t *tessera_sim_buffer_descriptor(struct sim_wave *wave, const struct sim_inst *inst);

// Loads or stores one lane's bytes; false after a fault. All accesses of an observed wave go through here, and then
// through tessera_sim_lds() or tessera_sim_touch(); other waves take a shorter way if all lanes are in range.
bool tessera_sim_copy(struct sim_wave *wave, int lane, const struct sim_place *place, uint8_t *bytes, uint32_t count,
                      bool store);

// A load to LDS puts lane i's bytes at this address of LDS, plus i times their size.
uint32_t tessera_sim_lds_target(const struct sim_wave *wave, const struct sim_inst *inst);

// The address of LDS that M0 holds (lds.c).
uint32_t tessera_sim_m0_address(const struct sim_wave *wave);
