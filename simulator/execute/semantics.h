// SPDX-License-Identifier: MIT
// Lists of instructions with the functions that execute them, one list for each subject.
#pragma once

#include "isa_names.h"
#include "machine/code.h"

// How an instruction is executed: `execute` does it; several instructions of the vector ALU share one, and `lanes` is
// their own arithmetic over 64 lanes. `detail` is a parameter (bytes of an access, index in a table, flags) that each
// file defines.
struct sim_semantics {
    uint16_t op; // enum sim_op
    sim_execute execute;
    sim_lanes lanes;
    uint32_t detail;
};

struct sim_semantics_list {
    const struct sim_semantics *rows;
    size_t count;
};

// The row of an operation; NULL where the simulator does not implement it.
const struct sim_semantics *tessera_sim_find_semantics(uint16_t op);

extern const struct sim_semantics_list tessera_sim_scalar;             // scalar.c
extern const struct sim_semantics_list tessera_sim_scalar_control;     // control.c
extern const struct sim_semantics_list tessera_sim_scalar_memory;      // scalar_memory.c
extern const struct sim_semantics_list tessera_sim_hardware_registers; // hwreg.c
extern const struct sim_semantics_list tessera_sim_lane_moves;         // lane_moves.c
extern const struct sim_semantics_list tessera_sim_vector_memory;      // vector_memory.c
extern const struct sim_semantics_list tessera_sim_buffer_formats;     // buffer_formats.c
extern const struct sim_semantics_list tessera_sim_lds_list;           // lds.c
extern const struct sim_semantics_list tessera_sim_gws_list;           // gws.c
extern const struct sim_semantics_list tessera_sim_matrix_scaled;      // mfma_scaled.c
extern const struct sim_semantics_list tessera_sim_vector_small;       // vector_small.c

// Lists that are compiled for several instruction sets of the host.
extern const struct sim_semantics_list tessera_sim_vector_integer; // vector_integer.c
extern const struct sim_semantics_list tessera_sim_vector_float;   // vector_float.c
extern const struct sim_semantics_list tessera_sim_vector_convert; // vector_convert.c
extern const struct sim_semantics_list tessera_sim_vector_compare; // vector_compare.c
extern const struct sim_semantics_list tessera_sim_matrix;         // mfma.c
