// SPDX-License-Identifier: MIT
// The sanitizer: what its checks keep of a workgroup and its waves. Each check is an observer of sanitized launches;
// they look on in this order:
//   deadlock  before an instruction
//   hazards   at its issue
//   waits     at its issue, where a memory operation may be put off
//   shadow    executes it, and sees what it touches
//   waits, races, deadlock  when it has done its work
#pragma once

#include "hazards.h"
#include "machine/launch.h"
#include "shadow.h"
#include "waits.h"

// Of a group.
struct sim_group_checks {
    uint32_t lds_loads; // in flight to LDS, of all waves
    uint64_t changes;   // of memory and LDS
    struct sim_shadow_memory *memory;
    struct sim_races *races;
    struct sim_kept_state *kept_states; // a wave's each
};

// Of one wave.
struct sim_checks {
    struct sim_group_checks *group;
    struct sim_waits waits;
    struct sim_hazards hazards;
    struct sim_shadow shadow;
    struct sim_shadow_memory *memory; // the group's
};

// What the checks keep; first of them all.
extern const struct sim_observer tessera_sim_sanitizer;

bool tessera_sim_is_sanitized(const struct sim_launch *launch);
