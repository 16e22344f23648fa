// SPDX-License-Identifier: MIT
// The kinds of instructions that take time in different ways.
#pragma once

#include "machine/code.h"

enum sim_kind {
    SIM_KIND_SCALAR,
    SIM_KIND_SCALAR_MEMORY,
    SIM_KIND_VALU,
    SIM_KIND_PACKED, // what does not run beside a matrix instruction
    SIM_KIND_MULTIPLY,
    SIM_KIND_CONVERT,
    SIM_KIND_TRANSCENDENTAL,
    SIM_KIND_MATRIX,
    SIM_KIND_LDS,
    SIM_KIND_LOAD,
    SIM_KIND_STORE,
    SIM_KIND_WAIT,  // s_waitcnt
    SIM_KIND_SLEEP, // s_nop and s_sleep
    SIM_KIND_PRIORITY,
    SIM_KIND_BARRIER,
    SIM_KIND_END,
    SIM_KINDS
};

// Sets code->kind; its effects must be known.
void tessera_sim_find_kind(struct sim_code *code);

// One letter for an instruction: | matrix, T transcendental, P packed fp32, c conversion, v other VALU, d LDS, m
// memory, w wait, n s_nop, b branch, B barrier, s other scalar.
char tessera_sim_letter(const struct sim_code *code);
