// SPDX-License-Identifier: MIT
// Faults of a wave, and their texts.
#include <stdarg.h>
#include <stdio.h>

#include "launch.h"

void tessera_sim_trouble(struct sim_wave *wave, tessera_sim_fault fault, int lane, uint64_t address, const char *format,
                         ...) {
    struct sim_group *group = wave->group;
    struct sim_trouble *trouble = &group->trouble;
    if (wave->state == SIM_FAULTED) return; // only the first fault counts
    wave->state = SIM_FAULTED;
    *trouble = (struct sim_trouble){
        .fault = fault,
        .workgroup = group->number,
        .id = {group->id[0], group->id[1], group->id[2]},
        .wave = wave->index,
        .lane = lane,
        .pc = wave->pc,
        .address = address,
    };
    if (wave->code) tessera_sim_print(&wave->code->inst, trouble->instruction, sizeof trouble->instruction);
    va_list list;
    va_start(list, format);
    vsnprintf(trouble->what, sizeof trouble->what, format, list);
    va_end(list);
}

const char *tessera_sim_fault_string(tessera_sim_fault fault) {
    static const char *const names[TESSERA_SIM_FAULT_COUNT] = {
        [TESSERA_SIM_FAULT_NONE] = "none",
        [TESSERA_SIM_FAULT_UNKNOWN_INSTRUCTION] = "unknown instruction",
        [TESSERA_SIM_FAULT_UNIMPLEMENTED] = "unimplemented",
        [TESSERA_SIM_FAULT_OUT_OF_BOUNDS] = "out of bounds",
        [TESSERA_SIM_FAULT_MISALIGNED] = "misaligned",
        [TESSERA_SIM_FAULT_READ_ONLY] = "store to read-only memory",
        [TESSERA_SIM_FAULT_TRAP] = "trap",
        [TESSERA_SIM_FAULT_RUNAWAY] = "runaway",
        [TESSERA_SIM_FAULT_EARLY_USE] = "early use",
        [TESSERA_SIM_FAULT_WAIT_STATES] = "missing wait states",
        [TESSERA_SIM_FAULT_UNDEFINED] = "undefined value",
        [TESSERA_SIM_FAULT_LDS_RACE] = "LDS race",
        [TESSERA_SIM_FAULT_BARRIER_MISMATCH] = "barrier mismatch",
        [TESSERA_SIM_FAULT_DEADLOCK] = "deadlock",
        [TESSERA_SIM_FAULT_USE_AFTER_FREE] = "use after free",
    };
    return (unsigned)fault < TESSERA_SIM_FAULT_COUNT ? names[fault] : "unknown fault";
}
