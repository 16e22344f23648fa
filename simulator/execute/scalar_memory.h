// SPDX-License-Identifier: MIT
// What a scalar instruction accesses in memory.
#pragma once

#include "machine/launch.h"

// The address and bytes of a scalar load, store or atomic that the wave is about to execute; no bytes: none.
uint64_t tessera_sim_scalar_address(struct sim_wave *wave, const struct sim_code *code, unsigned *bytes);
