// SPDX-License-Identifier: MIT
// The sanitizer: what is checked of a wave beside what its instructions do, and kept for it while it runs.
//
// sanitize.c runs waves with checks. An instruction passes, in this order:
//   issue    it is next in the program; memory operations may be put off (waits.c)
//   execute  its values are read, made and written: at issue, or later with the registers that it read at issue
//            back in place. wave->pc and wave->code are the instruction's own in both cases.
#pragma once

#include "internal.h"

// Bits of registers that nothing has defined are set. Moves with its registers when an operation is put off.
struct sim_shadow {
    uint32_t sgpr[SIM_SGPRS];
    bool scc;
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));
};

// Of one wave.
struct sim_checks {
    struct sim_shadow shadow;
};

// The checks of a group's waves; NULL when out of memory.
struct sim_checks *tessera_sim_open_checks(const struct sim_launch *launch);
void tessera_sim_close_checks(struct sim_checks *checks);

// Makes a wave's checks those of a wave that has run nothing; its registers are set.
void tessera_sim_start_checks(struct sim_wave *wave);

// tessera_sim_run_wave with checks.
void tessera_sim_run_checked(struct sim_wave *wave, uint64_t until);
