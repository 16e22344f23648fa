// SPDX-License-Identifier: MIT
// What the files of FLAT, GLOBAL, SCRATCH, MUBUF and MTBUF share: each lane's place, and the one way to its bytes.
#pragma once

#include "machine/access.h"
#include "operands.h"

enum sim_space { SIM_MEMORY, SIM_LDS, SIM_PRIVATE };

// One lane's access.
struct sim_place {
    enum sim_space space;
    uint64_t address;   // in LDS and scratch: the offset
    uint32_t reachable; // bytes within the buffer's bounds; others load as 0 and are not stored
    uint64_t second;    // where the bytes of the next word are that do not follow the first's; else 0
};

// Where each lane's access of `bytes` goes (vector_address.c); false after a fault.
bool tessera_sim_find_places(struct sim_wave *wave, const struct sim_inst *inst, uint32_t bytes,
                             struct sim_place *places);

// The instruction's buffer descriptor: four SGPRs; NULL after a fault.
const uint32_t *tessera_sim_buffer_descriptor(struct sim_wave *wave, const struct sim_inst *inst);

// Loads or stores one lane's bytes; false after a fault. All accesses of a wave that are looked at go through here, and
// then through tessera_sim_lds() or tessera_sim_touch(); others take a shorter way where all lanes are in range.
bool tessera_sim_copy(struct sim_wave *wave, int lane, const struct sim_place *place, uint8_t *bytes, uint32_t count,
                      bool store);

// Loads that pass registers by put lane i's bytes to this address of LDS plus i times their size.
uint32_t tessera_sim_lds_target(const struct sim_wave *wave, const struct sim_inst *inst);

// The address of LDS that M0 holds (lds.c).
uint32_t tessera_sim_m0_address(const struct sim_wave *wave);
