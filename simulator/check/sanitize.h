// SPDX-License-Identifier: MIT
// The sanitizer: the state that its checks keep for a workgroup and for its waves. Each check is an observer of
// sanitized launches; their hooks are called in this order:
//   deadlock  before an instruction
//   hazards   at its issue
//   waits     at its issue; may put a memory operation off
//   shadow    executes it, and notes its accesses
//   waits, races, deadlock  when it has done its work
#pragma once

#include "hazards.h"
#include "machine/launch.h"
#include "shadow.h"
#include "waits.h"

// The state of a workgroup.
struct sim_group_checks {
    uint32_t lds_loads; // loads to LDS in flight, of all waves
    uint64_t changes;   // how often memory and LDS have changed
    struct sim_shadow_memory *memory;
    struct sim_races *races;
    struct sim_kept_state *kept_states; // one for each wave
};

// The state of one wave.
struct sim_checks {
    struct sim_group_checks *group;
    struct sim_waits waits;
    struct sim_hazards hazards;
    struct sim_shadow shadow;
    struct sim_shadow_memory *memory; // the group's
};

// Opens and closes that state; it comes before all checks.
extern const struct sim_observer tessera_sim_sanitizer;

bool tessera_sim_is_sanitized(const struct sim_launch *launch);
