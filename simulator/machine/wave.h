// SPDX-License-Identifier: MIT
// A wave: its registers, and its place in the program.
#pragma once

#include "code.h"
#include "memory.h"
#include "observer.h"

enum { SIM_LANES = 64, SIM_SGPRS = 128, SIM_VGPRS = 256 };

enum sim_wave_state { SIM_RUNNING, SIM_AT_BARRIER, SIM_ENDED, SIM_FAULTED };

struct sim_checks;

typedef uint32_t sim_vgpr[SIM_LANES];

struct sim_wave {
    uintptr_t pc, next_pc;
    enum sim_wave_state state;
    bool scc;
    bool special_floats; // MODE asks for a rounding or flushing that is not the default
    uint32_t mode;       // hwreg MODE
    uint8_t priority;    // s_setprio
    bool gws_waits; // waits at a resource of global wave sync; the next two members are the resource's state when it
                    // came
    bool gws_flag;
    uint32_t gws_released;
    uint32_t index;        // number in the workgroup
    uint32_t set_sgprs;    // how many of the first SGPRs the hardware sets
    uint32_t vgprs, agprs; // how many exist
    uint32_t first_agpr;   // index in vgpr
    struct sim_group *group;
    const struct sim_code *code; // the instruction that runs
    uint64_t executed;
    uint64_t issued[SIM_UNITS]; // instructions issued, by unit
    uint64_t limit;             // instructions after which the wave counts as running away
    struct sim_range range;     // the range of memory that was touched last
    sim_access_hook access;     // NULL: no observer wants to see accesses
    struct sim_checks *checks;  // the sanitizer's state, where it observes the launch
    uint8_t *scratch;           // of this wave, lanes interleaved word by word
    uint8_t *scratch_undefined; // like `undefined` of struct sim_range
    uint32_t scratch_offset;    // distance from the launch's scratch base
    uint32_t sgpr[SIM_SGPRS] __attribute__((aligned(8)));
    uint64_t exec_of_lanes;                                      // the EXEC that exec_lanes was made from
    uint32_t exec_lanes[SIM_LANES] __attribute__((aligned(64))); // all ones in active lanes, else 0
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));   // one file: AGPRs start at first_agpr
};

enum {                            // bits of the hardware register MODE
    SIM_MODE_DX10_CLAMP = 1 << 8, // clamping turns NaN into 0
    SIM_MODE_IEEE = 1 << 9,       // signaling NaNs become quiet in minimum and maximum; no output factors
    SIM_MODE_FP16_OVFL = 1 << 23, // conversions to 16 and 8 bits, and halves, stay finite
    SIM_MODE_INDEX = 1 << 27,     // M0 indexes VGPRs
    SIM_MODE_SKIP = 1 << 28,      // instructions that are not for the scalar unit are skipped
};
void tessera_sim_set_mode(struct sim_wave *wave, uint32_t mode);

// Counts an instruction. Returns whether it is issued: MODE may make the wave skip it.
static inline bool sim_take(struct sim_wave *wave, const struct sim_code *code) {
    wave->executed++;
    if (wave->mode & SIM_MODE_SKIP && code->effects.unit >= SIM_UNIT_VALU) return false;
    wave->issued[code->effects.unit]++;
    return true;
}

// ---- registers

static inline uint64_t sim_get_sgpr64(const struct sim_wave *wave, unsigned index) {
    return wave->sgpr[index] | (uint64_t)wave->sgpr[index + 1] << 32;
}

static inline void sim_set_sgpr64(struct sim_wave *wave, unsigned index, uint64_t value) {
    wave->sgpr[index] = (uint32_t)value;
    wave->sgpr[index + 1] = (uint32_t)(value >> 32);
}

static inline uint64_t sim_exec(const struct sim_wave *wave) { return sim_get_sgpr64(wave, SIM_EXEC); }

// wave->exec_lanes, made anew if EXEC has changed.
const uint32_t *tessera_sim_exec_lanes(struct sim_wave *wave);
