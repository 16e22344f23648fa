// SPDX-License-Identifier: MIT
// The registers and constants that operands name.
#pragma once

#include "isa_names.h"
#include "machine/wave.h"

// The vector registers of an operand, of which `count` must exist; NULL after a fault (vector.c).
sim_vgpr *tessera_sim_registers(struct sim_wave *wave, const struct sim_operand *operand, unsigned count);

// The 32 or 64 bits of a scalar operand: SGPRs, a constant or a special register (scalar.c).
uint64_t tessera_sim_read_scalar(struct sim_wave *wave, const struct sim_operand *operand);
void tessera_sim_write_scalar(struct sim_wave *wave, const struct sim_operand *operand, uint64_t value);
