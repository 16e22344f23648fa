// SPDX-License-Identifier: MIT
// Wait states that software must keep between two instructions.
#pragma once

#include "machine/launch.h"

// Finds the rules in which an instruction can be the first or the second one. Its other effects must be known already.
void tessera_sim_find_hazards(const struct sim_inst *inst, struct sim_effects *effects);

enum { SIM_MAX_ISSUED = 32 };

struct sim_issued {
    uint64_t time;
    uintptr_t pc;
    const struct sim_code *code;
};

// A wave's latest instructions that can be the first one of a rule.
struct sim_hazards {
    uint64_t time;                     // in wait states
    uint64_t matrix_time, matrix_free; // when the last matrix instruction was issued, and when another can begin
    uint64_t dgemm_time;               // when the last one on doubles was issued
    uint32_t issued;
    struct sim_issued list[SIM_MAX_ISSUED];
};

// Two instructions of a wave, the number of wait states between them, and whether an MFMA on doubles lies between.
struct sim_pair {
    const struct sim_code *first, *second;
    unsigned between;
    bool behind_dgemm;
};

struct sim_wait {
    unsigned next; // the rule at which to go on; 0 at first
    unsigned states;
    const char *text;
    const char *spare; // why hardware does not need the rule that compilers keep; NULL: it needs it
};

// Finds the next rule that asks for more wait states than the pair has; spare rules come last.
bool tessera_sim_find_wait(const struct sim_wave *wave, const struct sim_pair *pair, struct sim_wait *wait);

// The number of wait states that an instruction takes.
unsigned tessera_sim_states_of(const struct sim_inst *inst);

// Reports an instruction that is issued too early after another one.
extern const struct sim_observer tessera_sim_hazard_check;
