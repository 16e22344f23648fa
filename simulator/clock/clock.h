// SPDX-License-Identifier: MIT
// The clock: models how long launches take. It records what sampled workgroups execute, and then replays that in time.
#pragma once

#include "machine/observer.h"
#include "parameters.h"

// A GPU's clock.
struct sim_clock {
    tessera_sim_clock mode;
    struct sim_parameters page;
    tessera_sim_timing timing; // of all launches since it was taken
    char *path;                // to which each launch adds a line of JSON; NULL: none
    char *annotation;          // likewise, its annotated disassembly
};

struct sim_clock *tessera_sim_clock_new(enum sim_arch arch);
void tessera_sim_clock_free(struct sim_clock *clock);

extern const struct sim_observer tessera_sim_clock_observer;
