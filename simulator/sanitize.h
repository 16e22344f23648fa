// SPDX-License-Identifier: MIT
// The sanitizer: what is checked of a wave beside what its instructions do, and kept for it while it runs.
//
// sanitize.c runs waves with checks. An instruction passes, in this order:
//   issue    it is next in the program; a memory operation may be put off (waits.c)
//   execute  its values are read, made and written: at issue, or later with the registers that it read at issue
//            back in place. wave->pc and wave->code are the instruction's own in both cases.
#pragma once

#include "deadlock.h"
#include "internal.h"
#include "races.h"
#include "shadow.h"

// Bits of registers that nothing has defined are set. Moves with its registers when an operation is put off.
struct sim_shadow {
    uint32_t sgpr[SIM_SGPRS];
    bool scc;
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));
};

// ---- memory operations in flight (waits.c)

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

// An instruction at its issue: reports registers that it takes from under an operation in flight, lets land what an
// s_waitcnt covers and, for a memory operation, takes it into its queue. Whether the instruction is to execute now.
bool tessera_sim_issue_waits(struct sim_wave *wave, const struct sim_code *code);
void tessera_sim_start_waits(struct sim_wave *wave);
// Lets land some operations if the launch's landings are random.
void tessera_sim_land_some(struct sim_wave *wave);
// Reports an access of LDS that a load to LDS in flight will write.
void tessera_sim_check_lds_in_flight(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes);

// ---- wait states (hazards.c)

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
void tessera_sim_issue_hazards(struct sim_wave *wave, const struct sim_code *code);

// ----

// Of a group.
struct sim_group_checks {
    uint32_t lds_loads; // in flight to LDS, of all waves
    uint64_t changes;   // of memory and LDS
};

// Of one wave.
struct sim_checks {
    struct sim_group_checks *group;
    struct sim_waits waits;
    struct sim_hazards hazards;
    struct sim_shadow shadow;
    struct sim_shadow_memory *memory;   // the group's
    struct sim_races *races;            // likewise
    struct sim_kept_state *kept_states; // of all waves
};

// The checks of a group's waves; NULL when out of memory.
struct sim_checks *tessera_sim_open_checks(const struct sim_launch *launch);
void tessera_sim_close_checks(struct sim_checks *checks);

// Makes a wave's checks those of a wave that has run nothing; its registers are set.
void tessera_sim_start_checks(struct sim_wave *wave);

// Runs a wave with checks until it has executed `until` instructions or cannot go on.
void tessera_sim_run_checked(struct sim_wave *wave, uint64_t until);

// Executes an instruction now, with the checks of its values.
void tessera_sim_execute_checked(struct sim_wave *wave, const struct sim_code *code);
