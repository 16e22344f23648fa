// SPDX-License-Identifier: MIT
// What the clock of simulated GPUs says: modelled time. docs/simulator.md describes what it knows, and how well.
#ifndef TESSERA_CLOCK_H
#define TESSERA_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tessera_sim_clock {
    TESSERA_SIM_CLOCK_OFF = 0,
    TESSERA_SIM_CLOCK_ON = 1,     // launches are modelled from a sample of their workgroups
    TESSERA_SIM_CLOCK_SAMPLE = 2, // likewise, and other workgroups are not executed: what they compute is missing
    TESSERA_SIM_CLOCK_COUNT
} tessera_sim_clock;

// Files to which each modelled launch adds something.
typedef enum tessera_sim_output {
    TESSERA_SIM_OUTPUT_TIMING = 0,     // a line of JSON
    TESSERA_SIM_OUTPUT_ANNOTATION = 1, // its disassembly with the cycles of each instruction, lines of C, loops
    TESSERA_SIM_OUTPUT_TIMELINE = 2,   // a trace for Perfetto: what each wave of a unit does in each cycle
    TESSERA_SIM_OUTPUT_COUNT
} tessera_sim_output;

// What the four SIMDs of a compute unit spend their cycles on. Where the matrix pipe rests, a cycle counts for the
// vector ALU's work, or else for what kept the next instruction.
typedef enum tessera_sim_cause {
    TESSERA_SIM_CAUSE_MATRIX = 0,
    TESSERA_SIM_CAUSE_VALU = 1,
    TESSERA_SIM_CAUSE_TRANSCENDENTAL = 2,
    TESSERA_SIM_CAUSE_LDS = 3, // LDS or scalar memory is waited for
    TESSERA_SIM_CAUSE_MEMORY = 4,
    TESSERA_SIM_CAUSE_BARRIER = 5,
    TESSERA_SIM_CAUSE_ISSUE = 6, // scalar instructions, wait states, branches
    TESSERA_SIM_CAUSE_IDLE = 7,  // no wave
    TESSERA_SIM_CAUSE_COUNT
} tessera_sim_cause;

typedef enum tessera_sim_level {
    TESSERA_SIM_LEVEL_L1 = 0,
    TESSERA_SIM_LEVEL_L2 = 1,
    TESSERA_SIM_LEVEL_MALL = 2, // Infinity Cache
    TESSERA_SIM_LEVEL_HBM = 3,
    TESSERA_SIM_LEVEL_COUNT
} tessera_sim_level;

// Modelled, not measured.
typedef struct tessera_sim_timing {
    uint64_t launches;
    double cycles;                         // of the device, from the first workgroup to the last
    double ms, ms_band;                    // by clock_mhz, and by how much they may be wrong
    double clock_mhz;                      // a clock that falls with matrix and VALU work
    double sampling_error;                 // relative, of cycles: standard error of the sample
    double share[TESSERA_SIM_CAUSE_COUNT]; // of the SIMDs' cycles while workgroups run; their sum is 1
    double valu_busy;                      // part of these cycles with VALU work, beside matrix work or not
    double matrix;                         // matrix instructions
    double cycles_a_matrix;                // of a SIMD for each of its matrix instructions; 0 without any
    double waves_a_simd;                   // that are there on average
    double lds_cycles, lds_conflicts;      // cycles of LDS, and those of them that bank conflicts cost
    double bytes[TESSERA_SIM_LEVEL_COUNT]; // in whole lines: loads by the level that had them, and stores in L2 and
                                           // in the level that L2 writes them to
} tessera_sim_timing;

#ifdef __cplusplus
}
#endif
#endif
