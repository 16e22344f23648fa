// SPDX-License-Identifier: MIT
// The cache lines that recorded workgroups load and store.
#pragma once

#include "recording.h"

// Marks in `shared`, which has a byte for each word of code, the loads of a workgroup of which some line is one that
// another workgroup loads too: sets those that are 0 to `apart`.
void tessera_sim_mark_shared(const struct sim_recording *recording, const struct sim_recording *other, uint8_t apart,
                             uint8_t *shared);

// How many lines a workgroup's loads ask for, each as often as it is asked for.
size_t tessera_sim_loaded_lines(const struct sim_recording *recording);

// How many lines a workgroup's stores touch, each counted once. 0 where there is no memory.
size_t tessera_sim_stored_lines(const struct sim_recording *recording);
