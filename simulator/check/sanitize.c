// SPDX-License-Identifier: MIT
// Runs waves with checks: the order in which they are asked.
#include "sanitize.h"

#include <stdlib.h>
#include <string.h>

#include "execute/fetch.h"
#include "observe/trace.h"

struct sim_checks *tessera_sim_open_checks(const struct sim_launch *launch) {
    struct sim_checks *checks = aligned_alloc(64, launch->waves_per_group * sizeof(struct sim_checks));
    struct sim_group_checks *group = calloc(1, sizeof *group);
    struct sim_shadow_memory *memory = tessera_sim_open_shadow(launch);
    struct sim_races *races = tessera_sim_open_races(launch);
    struct sim_kept_state *kept_states = tessera_sim_open_deadlock(launch);
    if (!checks || !group || !memory || !races || !kept_states) {
        tessera_sim_close_deadlock(kept_states);
        tessera_sim_close_shadow(memory);
        tessera_sim_close_races(races);
        free(checks);
        free(group);
        return NULL;
    }
    for (uint32_t i = 0; i < launch->waves_per_group; i++) {
        checks[i].group = group;
        checks[i].memory = memory;
        checks[i].races = races;
        checks[i].kept_states = kept_states;
    }
    return checks;
}

void tessera_sim_close_checks(struct sim_checks *checks) {
    if (!checks) return;
    tessera_sim_close_shadow(checks->memory);
    tessera_sim_close_races(checks->races);
    tessera_sim_close_deadlock(checks->kept_states);
    free(checks->group);
    free(checks);
}

void tessera_sim_start_checks(struct sim_wave *wave) {
    if (wave->index == 0) memset(wave->checks->group, 0, sizeof *wave->checks->group);
    tessera_sim_start_waits(wave);
    memset(&wave->checks->hazards, 0, sizeof wave->checks->hazards);
    tessera_sim_start_shadow(wave);
    if (wave->index == 0) tessera_sim_start_races(wave->group);
    tessera_sim_start_deadlock(wave);
}

void tessera_sim_execute_checked(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_execute_shadow(wave, code);
    tessera_sim_check_races(wave, code);
    tessera_sim_note_changes(wave);
}

static void issue(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_issue_hazards(wave, code);
    if (wave->state == SIM_FAULTED) return;
    if (tessera_sim_issue_waits(wave, code)) tessera_sim_execute_checked(wave, code);
}

void tessera_sim_run_checked(struct sim_wave *wave, uint64_t until) {
    while (wave->state == SIM_RUNNING && wave->executed < until) {
        const struct sim_code *code = tessera_sim_fetch(wave, wave->pc);
        if (!code) return;
        wave->code = code;
        wave->next_pc = wave->pc + code->size;
        tessera_sim_check_deadlock(wave);
        if (wave->state == SIM_FAULTED) return;
        if (wave->group->trace) tessera_sim_trace_issue(wave, code);
        if (sim_take(wave, code)) issue(wave, code);
        if (wave->state == SIM_FAULTED) return;
        wave->pc = wave->next_pc;
        tessera_sim_land_some(wave);
    }
}
