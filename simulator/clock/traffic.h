// SPDX-License-Identifier: MIT
// The cache lines that recorded workgroups load and store.
#pragma once

#include "recording.h"

// A recorded workgroup, and how many of its XCD come between the first of these and it, that one counted.
struct sim_neighbour {
    const struct sim_recording *recording;
    uint32_t place;
};

// For each of so many words of code the share of its loads' lines that a workgroup brings to L2 itself, where others
// that its XCD has at the same time, `of_die` at most, read them too. NULL where there is no memory; the caller frees
// it.
float *tessera_sim_own_shares(const struct sim_neighbour *neighbours, size_t count, size_t words, uint32_t of_die);

// How many lines a workgroup's loads ask for, each as often as it is asked for.
size_t tessera_sim_loaded_lines(const struct sim_recording *recording);

// How many lines a workgroup's stores touch, each counted once. 0 where there is no memory.
size_t tessera_sim_stored_lines(const struct sim_recording *recording);
