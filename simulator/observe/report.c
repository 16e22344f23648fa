// SPDX-License-Identifier: MIT
#include "report.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "code_object/module.h"
#include "machine/error.h"
#include "machine/launch.h"

// The function or kernel that contains an address.
static const struct sim_symbol *find_function(const tessera_sim_module *module, uintptr_t pc) {
    const struct sim_symbol *best = NULL;
    for (size_t i = 0; i < module->symbol_count && module->symbols[i].address <= pc; i++)
        if (module->symbols[i].type == STT_FUNC) best = &module->symbols[i];
    return best;
}

static tessera_status report(struct sim_launch *launch, const tessera_sim_launch_stats *stats) {
    const struct sim_trouble *trouble = &launch->trouble;
    (void)stats;
    if (trouble->fault == TESSERA_SIM_FAULT_NONE) return TESSERA_SUCCESS;
    const struct sim_symbol *function = find_function(launch->kernel->module, trouble->pc);
    char place[32] = "", text[640];
    if (trouble->lane >= 0) snprintf(place, sizeof place, ", lane %d", trouble->lane);
    const tessera_sim_report told = {
        .fault = trouble->fault,
        .kernel = launch->kernel->info.name,
        .workgroup = {trouble->id[0], trouble->id[1], trouble->id[2]},
        .wave = trouble->wave,
        .lane = trouble->lane,
        .pc = trouble->pc - launch->kernel->entry,
        .function = function ? function->name : "",
        .function_offset = function ? trouble->pc - function->address : 0,
        .instruction = trouble->instruction,
        .address = trouble->address,
        .text = text,
    };
    snprintf(text, sizeof text, "%s: %s (kernel %s, workgroup %u,%u,%u, wave %u%s, %s+0x%llx: %s)",
             tessera_sim_fault_string(told.fault), trouble->what, told.kernel, told.workgroup[0], told.workgroup[1],
             told.workgroup[2], told.wave, place, told.function, (unsigned long long)told.function_offset,
             told.instruction);
    pthread_mutex_lock(&launch->sim->lock);
    if (launch->sim->report) launch->sim->report(launch->sim->report_user, &told);
    pthread_mutex_unlock(&launch->sim->lock);
    return tessera_sim_fail(TESSERA_ERROR_DEVICE, "%s", text);
}

const struct sim_observer tessera_sim_reporter = {.end = report};
