// SPDX-License-Identifier: MIT
// The lists of what instructions do, one a subject. Rows name an instruction and the functions that do it.
#pragma once

#include "isa_names.h"
#include "machine/code.h"

// What an instruction does: `execute` moves operands, `lanes` is the arithmetic over 64 lanes for those that share an
// `execute`; `detail` is its parameter (bytes of an access, index in a table, flags), as each file says.
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

// NULL where the simulator lacks the instruction.
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

// Those of one instruction set of the host.
extern const struct sim_semantics_list tessera_sim_vector_integer; // vector_integer.c
extern const struct sim_semantics_list tessera_sim_vector_float;   // vector_float.c
extern const struct sim_semantics_list tessera_sim_vector_convert; // vector_convert.c
extern const struct sim_semantics_list tessera_sim_vector_compare; // vector_compare.c
extern const struct sim_semantics_list tessera_sim_matrix;         // mfma.c
