// SPDX-License-Identifier: MIT
// Which workgroups of a launch are timed, and what their times say of the whole launch.
#pragma once

#include "machine/launch.h"
#include "parameters.h"

enum { SIM_MOST_POINTS = 8, SIM_MOST_RESIDENT = 32, SIM_NEIGHBOURS = 7 };

// Workgroups that share a unit.
struct sim_point {
    uint64_t numbers[SIM_MOST_RESIDENT];
    uint32_t count;
};

struct sim_sample {
    struct sim_point points[SIM_MOST_POINTS];
    uint32_t count;
    uint32_t resident;                   // workgroups that a unit holds
    uint64_t neighbours[SIM_NEIGHBOURS]; // that run on the first point's XCD; the first point's where there is none
};

// How many workgroups of the XCD later each neighbour is.
extern const uint8_t tessera_sim_neighbours[SIM_NEIGHBOURS];

struct sim_sample tessera_sim_sample(const struct sim_launch *launch, const struct sim_parameters *page);
bool tessera_sim_is_sampled(const struct sim_sample *sample, uint64_t number);

// The cycles that a workgroup took.
struct sim_timed {
    uint64_t number;
    double cycles;
};

// The cycles of a whole launch, and their relative standard error.
struct sim_estimate {
    double cycles, error;
};

struct sim_estimate tessera_sim_estimate(const struct sim_launch *launch, const struct sim_parameters *page,
                                         uint32_t resident, const struct sim_timed *timed, size_t count);
