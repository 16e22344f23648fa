// SPDX-License-Identifier: MIT
// An instruction ready to run: its decoded form, the functions that execute it, and the registers that it reads and
// writes, by explicit and by implicit operands.
#pragma once

#include "decode/decode.h"

enum sim_file {
    SIM_FILE_VECTOR, // VGPRs from 0, AGPRs from SIM_VGPRS; tessera_sim_effect_first() knows where the wave has them
    SIM_FILE_SCALAR, // numbered as in struct sim_operand, with VCC, M0 and EXEC
    SIM_FILE_SCC,
    SIM_FILE_MODE,
};

enum sim_access {
    SIM_READS = 1,
    SIM_WRITES = 2,
    SIM_ALL_LANES = 4, // of vectors: the instruction touches all lanes, whatever EXEC says
    SIM_PARTLY = 8,    // of writes: some bits of the registers stay as they were
};

struct sim_effect {
    uint8_t slot;   // enum sim_slot of the operand; SIM_SLOTS for an implicit one
    uint8_t file;   // enum sim_file
    uint8_t access; // enum sim_access
    uint8_t count;  // registers
    uint16_t first;
};

// The units of a compute unit that run instructions.
enum sim_unit {
    SIM_UNIT_SCALAR, // the scalar ALU, branches, and instructions that steer a wave
    SIM_UNIT_SCALAR_MEMORY,
    SIM_UNIT_VALU,
    SIM_UNIT_MATRIX,
    SIM_UNIT_MEMORY, // MUBUF, MTBUF, GLOBAL, SCRATCH
    SIM_UNIT_FLAT,   // memory or LDS
    SIM_UNIT_LDS,
    SIM_UNITS
};

enum { SIM_MAX_EFFECTS = 14 };

struct sim_effects {
    uint8_t unit; // enum sim_unit
    uint8_t count;
    bool to_lds;                  // a load that goes to LDS and not to registers
    uint8_t passes;               // of a matrix instruction; 0 elsewhere
    uint64_t first_of, second_of; // bits: rules of check/hazards.c in which it can be first or second
    struct sim_effect list[SIM_MAX_EFFECTS];
};

struct sim_alu;
struct sim_code;
struct sim_wave;

typedef void (*sim_execute)(struct sim_wave *wave, const struct sim_code *code);
typedef void (*sim_lanes)(struct sim_alu *alu);

// An instruction ready to run.
struct sim_code {
    sim_execute execute;
    sim_lanes lanes;
    uint32_t detail;
    uint8_t size;
    uint8_t kind;               // enum sim_kind of clock/kinds.h
    uint8_t element[SIM_SLOTS]; // for each operand, the bits of an element; packed operands have several
    struct sim_inst inst;
    struct sim_effects effects;
};
