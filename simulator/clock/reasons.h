// SPDX-License-Identifier: MIT
// What keeps a wave from issuing its next instruction.
#pragma once

#include "tessera/clock.h"

enum sim_reason {
    SIM_REASON_START,        // it begins
    SIM_REASON_ISSUE,        // its last instruction has just issued
    SIM_REASON_OTHER,        // another wave's instruction has just gone to the same unit
    SIM_REASON_FETCH,        // code is on its way
    SIM_REASON_BRANCH,       // its last instruction was a taken branch
    SIM_REASON_STATES,       // s_nop or s_sleep
    SIM_REASON_PORT,         // the VALU port is held
    SIM_REASON_PIPE,         // the matrix pipe is
    SIM_REASON_DRAIN,        // packed fp32 behind a matrix instruction
    SIM_REASON_VMCNT,        // s_waitcnt
    SIM_REASON_LGKMCNT,      //
    SIM_REASON_MEMORY_QUEUE, // too many requests
    SIM_REASON_LDS_QUEUE,    //
    SIM_REASON_BARRIER,      //
    SIM_REASONS
};

struct sim_reason_row {
    const char *name;
    tessera_sim_cause cause; // to which a SIMD's cycles are counted
};

extern const struct sim_reason_row tessera_sim_reasons[SIM_REASONS];
