// SPDX-License-Identifier: MIT
#include "launch.h"

enum { DEFAULT_DENORMS = 0xf }; // of sources and of results, for all types

void tessera_sim_set_mode(struct sim_wave *wave, uint32_t mode) {
    wave->mode = mode;
    wave->special_floats = (mode & 0xff) != DEFAULT_DENORMS << 4 || mode & SIM_MODE_FP16_OVFL;
}

const uint32_t *tessera_sim_exec_lanes(struct sim_wave *wave) {
    const uint64_t exec = sim_exec(wave);
    if (exec != wave->exec_of_lanes) {
        for (int i = 0; i < SIM_LANES; i++) wave->exec_lanes[i] = 0u - (uint32_t)(exec >> i & 1);
        wave->exec_of_lanes = exec;
    }
    return wave->exec_lanes;
}

uint32_t tessera_sim_random(uint64_t *state, uint32_t limit) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 32) * limit >> 32);
}
