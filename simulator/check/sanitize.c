// SPDX-License-Identifier: MIT
#include "sanitize.h"

#include <stdlib.h>

bool tessera_sim_is_sanitized(const struct sim_launch *launch) { return launch->sanitize; }

static bool open_checks(struct sim_group *group) {
    const uint32_t waves = group->launch->waves_per_group;
    struct sim_checks *checks = aligned_alloc(64, waves * sizeof *checks);
    struct sim_group_checks *of_group = calloc(1, sizeof *of_group);
    if (!checks || !of_group) {
        free(checks);
        free(of_group);
        return false;
    }
    for (uint32_t i = 0; i < waves; i++) checks[i].group = of_group;
    group->checks = checks;
    return true;
}

static void close_checks(struct sim_group *group) {
    free(group->checks->group);
    free(group->checks);
}

static void start_group(struct sim_group *group) {
    group->checks->group->lds_loads = 0;
    group->checks->group->changes = 0;
}

static void start_wave(struct sim_wave *wave) { wave->checks = &wave->group->checks[wave->index]; }

const struct sim_observer tessera_sim_sanitizer = {
    .wanted = tessera_sim_is_sanitized,
    .open = open_checks,
    .close = close_checks,
    .start = start_group,
    .start_wave = start_wave,
};
