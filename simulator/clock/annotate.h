// SPDX-License-Identifier: MIT
// A launch's disassembly with the modelled cycles of each instruction and the lines of C that it stems from, and what
// stands between the matrix instructions of its loops.
#pragma once

#include "machine/launch.h"

// Of each word of the module's code: how often its instruction issued, and as a branch was taken, and the cycles from
// the wave's instruction before it to this one.
struct sim_profile {
    uint64_t *issues, *taken, *cycles;
};

bool tessera_sim_profile_open(struct sim_profile *profile, const struct sim_launch *launch);
void tessera_sim_profile_close(struct sim_profile *profile);

// Adds a launch to a file; false where that cannot be written.
bool tessera_sim_annotate(const char *path, const struct sim_launch *launch, const struct sim_profile *profile);
