// SPDX-License-Identifier: MIT
// One compute unit in time: when each instruction of the recorded workgroups issues.
//
// Four SIMDs; waves issue in order, and of those of a SIMD that can issue in the same cycle that of the highest
// priority goes first, then a matrix instruction, then the oldest wave. A wave issues one instruction in four cycles, a
// SIMD one of each unit in four cycles. VALU and matrix instructions share a port; a matrix instruction holds it for
// less time than the matrix pipe, so that VALU instructions run beside it.
#pragma once

#include "annotate.h"
#include "caches.h"
#include "kinds.h"
#include "timeline.h"

enum { SIM_SIMDS = 4 };

struct sim_replay {
    struct sim_profile *profile;             // NULL: instructions are not counted one by one
    struct sim_timeline *timeline;           // NULL: nothing is noted of them
    uint64_t cycles;                         // until the last workgroup ended
    uint64_t cause[TESSERA_SIM_CAUSE_COUNT]; // of all SIMDs; their sum is SIM_SIMDS times `cycles`
    uint64_t issued[SIM_KINDS];              // instructions of all waves
    uint64_t valu_cycles; // for which VALU instructions held a port, beside matrix instructions or not
    uint64_t wave_cycles; // in which waves were there
    uint64_t lds_cycles, lds_conflicts;
    uint64_t bytes[TESSERA_SIM_LEVEL_COUNT]; // that each level of memory delivered to loads
    uint64_t loaded;                         // lines that these asked for
    double groups;                           // workgroups, parts of them counted
};

// Runs workgroups that share a unit from their common begin. Where the unit gets others for those that end
// (`refilled`), all stops when the first has ended, since the last would be alone. `stays` gets the cycles that each
// takes, or would take if all went on as until then. False where there is no memory. `replay` must be zeros but for
// where it records.
bool tessera_sim_replay(const struct sim_parameters *page, const struct sim_neighbours *neighbours,
                        const struct sim_recording *const *groups, size_t count, bool refilled,
                        struct sim_replay *replay, double *stays);
