// SPDX-License-Identifier: MIT
// Lists an architecture's instructions: which of them the simulator implements, and which have run.
#include "coverage.h"

#include <stdatomic.h>

#include "decode/decode_tables.h"
#include "execute/semantics.h"
#include "machine/gpu.h"

enum { MOST_ROWS = 2048 };
static atomic_bool ran[SIM_ARCHS][MOST_ROWS]; // indexed by row of the tables

// An instruction is decoded when it is about to run.
static void note_ran(struct sim_code *code) {
    const size_t row = (size_t)(code->inst.row - sim_rows);
    if (row < MOST_ROWS) atomic_store_explicit(&ran[code->inst.arch][row], true, memory_order_relaxed);
}

const struct sim_observer tessera_sim_coverage = {.decoded = note_ran};

static const char *encoding_name(uint8_t format) {
    static const char *const names[SIM_FORMATS] = {
        [SIM_SOP1] = "SOP1",     [SIM_SOP2] = "SOP2",       [SIM_SOPC] = "SOPC",   [SIM_SOPK] = "SOPK",
        [SIM_SOPP] = "SOPP",     [SIM_SMEM] = "SMEM",       [SIM_VOP1] = "VOP1",   [SIM_VOP2] = "VOP2",
        [SIM_VOPC] = "VOPC",     [SIM_VOP3] = "VOP3",       [SIM_VOP3P] = "VOP3P", [SIM_MAI] = "MAI",
        [SIM_DS] = "DS",         [SIM_MUBUF] = "MUBUF",     [SIM_MTBUF] = "MTBUF", [SIM_FLAT] = "FLAT",
        [SIM_GLOBAL] = "GLOBAL", [SIM_SCRATCH] = "SCRATCH",
    };
    return names[format];
}

bool tessera_sim_instruction_at(const tessera_sim *sim, size_t index, tessera_sim_instruction *out) {
    for (size_t row = 0; row < sim_row_count; row++) {
        if (sim_rows[row].opcode[sim->arch] < 0 || index-- > 0) continue;
        out->mnemonic = sim_rows[row].mnemonic;
        out->encoding = encoding_name(sim_rows[row].format);
        out->implemented = tessera_sim_find_semantics(sim_rows[row].op) != NULL;
        out->ran =
            out->implemented && row < MOST_ROWS && atomic_load_explicit(&ran[sim->arch][row], memory_order_relaxed);
        return true;
    }
    return false;
}
