// SPDX-License-Identifier: MIT
// On x86-64 the vector files are compiled for several instruction sets, each with -DSIM_ISA=<suffix>, which their names
// then end in. fetch.c picks those that this machine can run.
#pragma once

#ifdef SIM_ISA
#define SIM_ISA_JOIN(name, suffix) name##_##suffix
#define SIM_ISA_EXPAND(name, suffix) SIM_ISA_JOIN(name, suffix)
#define SIM_ISA_NAME(name) SIM_ISA_EXPAND(name, SIM_ISA)
#define tessera_sim_execute_vector SIM_ISA_NAME(tessera_sim_execute_vector)
#define tessera_sim_registers SIM_ISA_NAME(tessera_sim_registers)
#define tessera_sim_read_vector SIM_ISA_NAME(tessera_sim_read_vector)
#define tessera_sim_write_vector SIM_ISA_NAME(tessera_sim_write_vector)
#define tessera_sim_vector_integer SIM_ISA_NAME(tessera_sim_vector_integer)
#define tessera_sim_vector_float SIM_ISA_NAME(tessera_sim_vector_float)
#define tessera_sim_vector_convert SIM_ISA_NAME(tessera_sim_vector_convert)
#define tessera_sim_vector_compare SIM_ISA_NAME(tessera_sim_vector_compare)
#define tessera_sim_matrix SIM_ISA_NAME(tessera_sim_matrix)
#endif
