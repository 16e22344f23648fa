// SPDX-License-Identifier: MIT
// The clock: models how long launches take. It records what sampled workgroups execute, and then replays that in time.
#pragma once

#include "machine/observer.h"
#include "parameters.h"

// A GPU's clock.
struct sim_clock {
    tessera_sim_clock mode;
    struct sim_parameters page;
    tessera_sim_timing timing;               // of all launches since it was taken
    char *outputs[TESSERA_SIM_OUTPUT_COUNT]; // files to which launches add what they have to say; NULL: none
    uint32_t timelines;                      // launches in the file of timelines
};

struct sim_clock *tessera_sim_clock_new(enum sim_arch arch);
void tessera_sim_clock_free(struct sim_clock *clock);
// Sets a path, of which a copy is kept; NULL: none. False where there is no memory.
bool tessera_sim_clock_write(struct sim_clock *clock, tessera_sim_output output, const char *path);

extern const struct sim_observer tessera_sim_clock_observer;
