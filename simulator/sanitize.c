// SPDX-License-Identifier: MIT
// Runs waves with checks: the order in which they are asked.
#include "sanitize.h"

#include <stdlib.h>
#include <string.h>

struct sim_checks *tessera_sim_open_checks(const struct sim_launch *launch) {
    return aligned_alloc(64, launch->waves_per_group * sizeof(struct sim_checks));
}

void tessera_sim_close_checks(struct sim_checks *checks) { free(checks); }

void tessera_sim_start_checks(struct sim_wave *wave) { memset(wave->checks, 0, sizeof *wave->checks); }

static void execute(struct sim_wave *wave, const struct sim_code *code) { code->execute(wave, code); }

void tessera_sim_run_checked(struct sim_wave *wave, uint64_t until) {
    while (wave->state == SIM_RUNNING && wave->executed < until) {
        const struct sim_code *code = tessera_sim_fetch(wave, wave->pc);
        if (!code) return;
        wave->code = code;
        wave->next_pc = wave->pc + code->size;
        execute(wave, code);
        wave->executed++;
        if (wave->state == SIM_FAULTED) return;
        wave->pc = wave->next_pc;
    }
}
