// SPDX-License-Identifier: MIT
// The registers and constants that operands name.
#pragma once

#include "isa_names.h"
#include "machine/wave.h"

// Waves' registers for an operand; `more` registers from it must exist. NULL after a fault (vector.c).
sim_vgpr *tessera_sim_registers(struct sim_wave *wave, const struct sim_operand *operand, unsigned count);

// A scalar operand's bits: SGPRs, constants and special registers, 32 or 64 of them (scalar.c).
uint64_t tessera_sim_read_scalar(struct sim_wave *wave, const struct sim_operand *operand);
void tessera_sim_write_scalar(struct sim_wave *wave, const struct sim_operand *operand, uint64_t value);
