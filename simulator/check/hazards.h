// SPDX-License-Identifier: MIT
// Wait states that software must keep between two instructions.
#pragma once

#include "machine/launch.h"

// Finds the rules that an instruction may be the first or second one of; its other effects are known.
void tessera_sim_find_hazards(const struct sim_inst *inst, struct sim_effects *effects);

enum { SIM_MAX_ISSUED = 32 };

struct sim_issued {
    uint64_t time;
    uintptr_t pc;
    const struct sim_code *code;
};

// The last instructions that may be the first one of a rule.
struct sim_hazards {
    uint64_t time;                     // in wait states
    uint64_t matrix_time, matrix_free; // when the last matrix instruction was issued, and lets another one begin
    uint64_t dgemm_time;               // when the last one of doubles was
    uint32_t issued;
    struct sim_issued list[SIM_MAX_ISSUED];
};

// Two instructions of a wave, how many wait states are between them, and whether an MFMA of doubles is.
struct sim_pair {
    const struct sim_code *first, *second;
    unsigned between;
    bool behind_dgemm;
};

struct sim_wait {
    unsigned next; // the rule at which to go on; 0 at first
    unsigned states;
    const char *text;
    const char *spare; // why hardware does not need what compilers keep; NULL: it does
};

// Finds the next rule that asks for more wait states between two instructions; the spare ones come last.
bool tessera_sim_find_wait(const struct sim_wave *wave, const struct sim_pair *pair, struct sim_wait *wait);

// Wait states that an instruction takes.
unsigned tessera_sim_states_of(const struct sim_inst *inst);

// Reports an instruction at its issue that comes too early after another.
extern const struct sim_observer tessera_sim_hazard_check;
