// SPDX-License-Identifier: MIT
// Memory operations in flight, and instructions that use their registers, or the LDS that they load to, before an
// s_waitcnt covers them.
#pragma once

#include "machine/launch.h"

enum {
    SIM_MAX_MEMORY_OPS = 64, // the most that vmcnt can count
    SIM_MAX_LDS_OPS = 16,    // lgkmcnt likewise
    SIM_MAX_LOOSE_OPS = 16,
    SIM_KEPT_VECTORS = 6, // VGPRs that a memory operation reads at most: an address and two 64-bit operands
    SIM_KEPT_SCALARS = 16,
};

// Registers of a wave that are put aside.
struct sim_kept {
    uint8_t vectors, scalars; // how many
    uint8_t scalar_index[SIM_KEPT_SCALARS];
    uint16_t vector_index[SIM_KEPT_VECTORS];
    uint32_t scalar[SIM_KEPT_SCALARS], scalar_shadow[SIM_KEPT_SCALARS];
    sim_vgpr vector[SIM_KEPT_VECTORS] __attribute__((aligned(64)));
    sim_vgpr vector_shadow[SIM_KEPT_VECTORS];
};

struct sim_operation {
    const struct sim_code *code;
    uintptr_t pc;
    uint64_t lanes;
    uint8_t counters;  // enum sim_counter: the counters that have yet to tell that it is done
    bool landed;       // its work is done, but no wait has told the program so
    uint32_t lds_base; // of a load to LDS: where lane 0's bytes go
    struct sim_kept kept;
};

// Operations that are done in the order in which they were issued.
struct sim_queue {
    uint32_t first, count, size; // size: a power of two
    uint32_t landed;             // how many of the oldest have landed
    struct sim_operation *operations;
};

struct sim_waits {
    uint32_t in_flight; // operations in all of the following
    struct sim_queue memory, lds;
    uint32_t loose_count; // operations done in any order: scalar memory, flat ones that reach LDS
    uint64_t random;
    uint64_t vectors[2 * SIM_VGPRS / 64], scalars[SIM_SGPRS / 64]; // registers that operations in flight write
    struct sim_operation memory_operations[SIM_MAX_MEMORY_OPS], lds_operations[SIM_MAX_LDS_OPS],
        loose[SIM_MAX_LOOSE_OPS];
};

// When an instruction is issued: reports the use of a register that an operation in flight writes, completes the
// operations that an s_waitcnt covers, and puts a memory operation into its queue. Also reports accesses to LDS that a
// load in flight will write.
extern const struct sim_observer tessera_sim_wait_check;
