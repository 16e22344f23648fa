// SPDX-License-Identifier: MIT
// What the clock knows of hardware: a page of numbers for each target. parameters.def is the table, docs/simulator.md
// shows it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"

struct sim_parameters {
#define P(name, gfx90a, gfx942, gfx950, unit, meaning, source, fit) uint32_t name;
#include "parameters.def"
#undef P
};

// A row of the table.
struct sim_parameter {
    const char *name;
    size_t offset; // in struct sim_parameters
    uint32_t value[SIM_ARCHS];
    const char *unit, *meaning, *source;
    const char *fit; // what the value was fitted to; "": it was not fitted
};

extern const struct sim_parameter tessera_sim_parameters[];
extern const size_t tessera_sim_parameter_count;

struct sim_parameters tessera_sim_page(enum sim_arch arch);

// Changes parameters as "name=value,name=value" says; false where a name is unknown or a value is no number.
bool tessera_sim_change_page(struct sim_parameters *page, const char *text);
