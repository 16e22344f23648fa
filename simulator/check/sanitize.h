// SPDX-License-Identifier: MIT
// The sanitizer: what is checked of a wave beside what its instructions do, and kept for it while it runs.
//
// sanitize.c runs waves with checks. An instruction passes, in this order:
//   issue    it is next in the program; a memory operation may be put off (waits.c)
//   execute  its values are read, made and written: at issue, or later with the registers that it read at issue
//            back in place. wave->pc and wave->code are the instruction's own in both cases.
#pragma once

#include "deadlock.h"
#include "hazards.h"
#include "races.h"
#include "shadow.h"
#include "waits.h"

// Of a group.
struct sim_group_checks {
    uint32_t lds_loads; // in flight to LDS, of all waves
    uint64_t changes;   // of memory and LDS
};

// Of one wave.
struct sim_checks {
    struct sim_group_checks *group;
    struct sim_waits waits;
    struct sim_hazards hazards;
    struct sim_shadow shadow;
    struct sim_shadow_memory *memory;   // the group's
    struct sim_races *races;            // likewise
    struct sim_kept_state *kept_states; // of all waves
};

// The checks of a group's waves; NULL when out of memory.
struct sim_checks *tessera_sim_open_checks(const struct sim_launch *launch);
void tessera_sim_close_checks(struct sim_checks *checks);

// Makes a wave's checks those of a wave that has run nothing; its registers are set.
void tessera_sim_start_checks(struct sim_wave *wave);

// Runs a wave with checks until it has executed `until` instructions or cannot go on.
void tessera_sim_run_checked(struct sim_wave *wave, uint64_t until);

// Executes an instruction now, with the checks of its values.
void tessera_sim_execute_checked(struct sim_wave *wave, const struct sim_code *code);
