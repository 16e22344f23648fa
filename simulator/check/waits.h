// SPDX-License-Identifier: MIT
// Memory operations in flight: who takes their registers, and the LDS they load to, before an s_waitcnt covers them.
#pragma once

#include "machine/launch.h"

enum {
    SIM_MAX_MEMORY_OPS = 64, // what vmcnt can count
    SIM_MAX_LDS_OPS = 16,    // lgkmcnt likewise
    SIM_MAX_LOOSE_OPS = 16,
    SIM_KEPT_VECTORS = 6, // the most that a memory operation reads: an address and two operands of 64 bits
    SIM_KEPT_SCALARS = 16,
};

// Registers of a wave put aside.
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
    uint8_t counters;  // enum sim_counter: those that have yet to say that it is done
    bool landed;       // its work is done, though the program cannot know
    uint32_t lds_base; // a load to LDS: where lane 0's bytes go
    struct sim_kept kept;
};

// Operations that are done in the order in which they were issued.
struct sim_queue {
    uint32_t first, count, size; // size: a power of two
    uint32_t landed;             // of the oldest ones
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

// At an instruction's issue: reports registers that it takes from under an operation in flight, lets land what an
// s_waitcnt covers and, where it is a memory operation, takes it into its queue. Reports accesses of LDS that a load to
// LDS in flight will write.
extern const struct sim_observer tessera_sim_wait_check;
