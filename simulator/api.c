// SPDX-License-Identifier: MIT
// Opening and closing a simulated GPU, errors, and the words of faults.
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[512];

const char *tessera_sim_last_error(void) { return last_error; }

tessera_status tessera_sim_fail(tessera_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return status;
}

const char *const tessera_sim_arch_names[SIM_ARCHS] = {
    [SIM_GFX90A] = "gfx90a", [SIM_GFX942] = "gfx942", [SIM_GFX950] = "gfx950"};

uint32_t tessera_sim_lds_limit(enum sim_arch arch) { return arch == SIM_GFX950 ? 160 * 1024 : 64 * 1024; }

static bool find_arch(const char *text, enum sim_arch *arch) {
    const size_t length = strcspn(text, ":");
    for (int i = 0; i < SIM_ARCHS; i++)
        if (strlen(tessera_sim_arch_names[i]) == length && strncmp(text, tessera_sim_arch_names[i], length) == 0) {
            *arch = (enum sim_arch)i;
            return true;
        }
    return false;
}

tessera_status tessera_sim_open(const char *arch, tessera_sim **out) {
    enum sim_arch found;
    if (!arch || !find_arch(arch, &found))
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "arch=%s: accepted are gfx90a, gfx942 and gfx950",
                                arch ? arch : "NULL");
    tessera_sim *sim = calloc(1, sizeof *sim);
    if (!sim) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a GPU");
    sim->arch = found;
    tessera_sim_memory_open(&sim->memory);
    pthread_mutex_init(&sim->lock, NULL);
    *out = sim;
    return TESSERA_SUCCESS;
}

void tessera_sim_close(tessera_sim *sim) {
    if (!sim) return;
    while (sim->modules) tessera_sim_unload(sim->modules);
    tessera_sim_memory_close(&sim->memory);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

const char *tessera_sim_arch(const tessera_sim *sim) { return tessera_sim_arch_names[sim->arch]; }

tessera_status tessera_sim_set_threads(tessera_sim *sim, int count) {
    if (count < 0 || count > 1024)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "count=%d: accepted are 0 to 1024", count);
    sim->threads = count;
    return TESSERA_SUCCESS;
}

void tessera_sim_set_report(tessera_sim *sim, tessera_sim_report_fn fn, void *user) {
    pthread_mutex_lock(&sim->lock);
    sim->report = fn;
    sim->report_user = user;
    pthread_mutex_unlock(&sim->lock);
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
    };
    return (unsigned)fault < TESSERA_SIM_FAULT_COUNT ? names[fault] : "unknown fault";
}
