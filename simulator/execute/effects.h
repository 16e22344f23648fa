// SPDX-License-Identifier: MIT
// The registers that an instruction reads and writes.
#pragma once

#include "machine/code.h"
#include "machine/wave.h"

// Finds the effects of a decoded instruction.
void tessera_sim_find_effects(const struct sim_code *code, struct sim_effects *effects);

// The first register of a range of VGPRs where M0 may move it.
unsigned tessera_sim_effect_moved(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect);

// The first register of a range when `wave` runs the instruction; of vectors, the index in wave->vgpr. M0 moves it
// where VGPR indexing is on. The sanitizer asks for each pair of operands of instructions that are close together.
static inline unsigned tessera_sim_effect_first(const struct sim_wave *wave, const struct sim_code *code,
                                                const struct sim_effect *effect) {
    if (effect->file != SIM_FILE_VECTOR) return effect->first;
    if (effect->first >= SIM_VGPRS) return effect->first - SIM_VGPRS + wave->first_agpr;
    return wave->mode & SIM_MODE_INDEX ? tessera_sim_effect_moved(wave, code, effect) : effect->first;
}

// The lanes of a vector range that the instruction of `wave` touches.
uint64_t tessera_sim_effect_lanes(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect);
