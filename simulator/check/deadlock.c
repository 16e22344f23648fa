// SPDX-License-Identifier: MIT
#include "deadlock.h"

#include <stdlib.h>
#include <string.h>

#include "sanitize.h"

enum { EVERY = 1 << 16, LONGEST_LOOP = 1 << 13 }; // instructions

// The state of one wave at one time.
struct sim_kept_state {
    uint64_t since;    // how many instructions the wave had run; 0: no state is kept
    uint64_t changes;  // how often the group's memory had changed
    uint64_t stuck_at; // `changes` when the wave was found in this state again, plus 1; 0: it was not
    uintptr_t pc;
    bool scc;
    uint32_t mode, in_flight;
    uint32_t sgpr[SIM_SGPRS];
    sim_vgpr vgpr[2 * SIM_VGPRS];
};

static bool open_states(struct sim_group *group) {
    struct sim_kept_state *kept = calloc(group->launch->waves_per_group, sizeof *kept);
    group->checks->group->kept_states = kept;
    return kept;
}

static void close_states(struct sim_group *group) { free(group->checks->group->kept_states); }

static struct sim_kept_state *state_of(const struct sim_wave *wave) {
    return &wave->checks->group->kept_states[wave->index];
}

static void start_wave(struct sim_wave *wave) {
    struct sim_kept_state *kept = state_of(wave);
    kept->since = kept->stuck_at = 0;
}

// Counts an instruction that has changed memory.
static void note_changes(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    unsigned count;
    const struct sim_touched *touched = tessera_sim_touched(wave, &count);
    bool changed = false;
    for (unsigned i = 0; i < count && !changed; i++)
        changed = memcmp(touched[i].before, touched[i].host, touched[i].bytes) != 0;
    wave->checks->group->changes += changed;
}

static void keep(struct sim_wave *wave, struct sim_kept_state *kept) {
    kept->since = wave->executed;
    kept->changes = wave->checks->group->changes;
    kept->pc = wave->pc;
    kept->scc = wave->scc;
    kept->mode = wave->mode;
    kept->in_flight = wave->checks->waits.in_flight;
    memcpy(kept->sgpr, wave->sgpr, sizeof kept->sgpr);
    memcpy(kept->vgpr, wave->vgpr, sizeof kept->vgpr);
}

static bool is_as_kept(const struct sim_wave *wave, const struct sim_kept_state *kept) {
    return kept->changes == wave->checks->group->changes && kept->scc == wave->scc && kept->mode == wave->mode &&
           kept->in_flight == wave->checks->waits.in_flight && memcmp(kept->sgpr, wave->sgpr, sizeof kept->sgpr) == 0 &&
           memcmp(kept->vgpr, wave->vgpr, sizeof kept->vgpr) == 0;
}

static void report_if_all_wait(struct sim_wave *wave, uint64_t length) {
    const struct sim_group *group = wave->group;
    uint32_t at_barrier = 0;
    for (uint32_t i = 0; i < group->wave_count; i++) {
        const struct sim_wave *other = &group->waves[i];
        at_barrier += other->state == SIM_AT_BARRIER;
        if (other->state == SIM_RUNNING && state_of(other)->stuck_at != wave->checks->group->changes + 1) return;
    }
    tessera_sim_trouble(
        wave, TESSERA_SIM_FAULT_DEADLOCK, -1, 0,
        "%llu instructions repeat with nothing changed, %u of the other waves wait at a barrier, and the "
        "rest repeat or have ended",
        (unsigned long long)length, at_barrier);
}

static void check_deadlock(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    struct sim_kept_state *kept = state_of(wave);
    if (wave->executed % EVERY == 0) {
        keep(wave, kept);
    } else if (kept->since && wave->pc == kept->pc) {
        const uint64_t length = wave->executed - kept->since;
        if (length > LONGEST_LOOP || wave->group->launch->threads > 1 || !is_as_kept(wave, kept)) return;
        kept->stuck_at = kept->changes + 1;
        report_if_all_wait(wave, length);
    }
}

const struct sim_observer tessera_sim_deadlock_check = {
    .wanted = tessera_sim_is_sanitized,
    .open = open_states,
    .close = close_states,
    .start_wave = start_wave,
    .next = check_deadlock,
    .executed = note_changes,
};
