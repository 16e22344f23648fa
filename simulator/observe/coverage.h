// SPDX-License-Identifier: MIT
// Records which of the instructions that tessera_sim_instruction_at() lists have run.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_coverage;
