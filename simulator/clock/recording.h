// SPDX-License-Identifier: MIT
// What the waves of a workgroup executed, in order, with the addresses that decide how long it takes.
#pragma once

#include "machine/launch.h"

// An instruction that a wave executed.
struct sim_step {
    const struct sim_code *code;
    uint32_t at;    // its place: bytes from the start of the module's code
    uint32_t extra; // LDS: phases, and from bit 16 conflicts; memory: the index of its struct sim_lines in `words`;
                    // scalar memory: the index of twice its first line, plus 1 if it reaches into the next one
};

// The head of a memory access in `words`; the numbers of its cache lines follow it.
struct sim_lines {
    uint32_t bytes; // that the active lanes access
    uint16_t lines;
    uint16_t blocks; // of 64 bytes, that L1 handles one after another
};

enum { SIM_LINE_SHIFT = 7, SIM_BLOCK_SHIFT = 6, SIM_SCALAR_SHIFT = 6 };

#define SIM_NO_LINES UINT32_MAX // `extra` of scalar instructions that access no memory

struct sim_wave_recording {
    struct sim_step *steps;
    size_t count, capacity;
};

struct sim_recording {
    uint64_t number; // of the workgroup
    uint32_t id[3];
    uint32_t wave_count;
    struct sim_wave_recording *waves;
    uint64_t *words; // heads and lines of memory accesses
    size_t word_count, word_capacity;
    bool failed; // no memory
};

struct sim_recording *tessera_sim_recording_new(const struct sim_group *group);
void tessera_sim_recording_free(struct sim_recording *recording);

// Adds the instruction that the wave is about to execute.
void tessera_sim_record(struct sim_recording *recording, struct sim_wave *wave, const struct sim_code *code);

static inline struct sim_lines sim_lines_at(const struct sim_recording *recording, uint32_t index) {
    const uint64_t word = recording->words[index];
    return (struct sim_lines){(uint32_t)word, (uint16_t)(word >> 32), (uint16_t)(word >> 48)};
}
