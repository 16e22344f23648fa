// SPDX-License-Identifier: MIT
// The registers that an instruction reads and writes.
#pragma once

#include "machine/code.h"

// Finds the effects of a decoded instruction.
void tessera_sim_find_effects(const struct sim_code *code, struct sim_effects *effects);

// The first register of a range when `wave` runs the instruction; of vectors, the index in wave->vgpr. M0 moves it
// where VGPR indexing is on.
unsigned tessera_sim_effect_first(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect);

// The lanes of a vector range that the instruction of `wave` touches.
uint64_t tessera_sim_effect_lanes(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect);
