// SPDX-License-Identifier: MIT
// The way of a memory access from a compute unit: L1, the L2 of its XCD, Infinity Cache, HBM. Each level has a latency
// and a rate, of which the unit gets its share of the units that are at work.
#pragma once

#include "parameters.h"
#include "recording.h"

struct sim_cache {
    uint32_t sets, ways;
    uint64_t *line, *used; // of each way of each set: the line it holds, plus 1, and when it was used last
    uint64_t now;
};

// What the rest of the device does to this unit's accesses.
struct sim_neighbours {
    uint32_t units;   // at work on the device
    const float *own; // for each word of code, the share of the lines that its loads read which the unit brings to L2
                      // itself, where others of the XCD read these at about the same time; NULL: all
    bool in_mall;     // what HBM holds lies in Infinity Cache too
};

struct sim_caches {
    const struct sim_parameters *page;
    struct sim_neighbours neighbours;
    struct sim_cache l1, l2, scalar;
    double free[TESSERA_SIM_LEVEL_COUNT]; // when each level can begin another access
    double cycles_a_byte[TESSERA_SIM_LEVEL_COUNT];
    uint64_t bytes[TESSERA_SIM_LEVEL_COUNT]; // that each level delivered to loads
};

bool tessera_sim_caches_open(struct sim_caches *caches, const struct sim_parameters *page,
                             const struct sim_neighbours *neighbours);
void tessera_sim_caches_close(struct sim_caches *caches);

// A scalar access of a line, and of the next one if so: returns its latency.
uint32_t tessera_sim_caches_scalar(struct sim_caches *caches, uint64_t line, bool next);

struct sim_access_kind {
    bool store;
    float own; // as in struct sim_neighbours
};

// An access that L1 takes in at `start`: returns the cycle in which its last line has arrived.
uint64_t tessera_sim_caches_access(struct sim_caches *caches, uint64_t start, const uint64_t *lines, unsigned count,
                                   struct sim_access_kind kind);
