// SPDX-License-Identifier: MIT
// Which instructions ran, of those that tessera_sim_instruction_at() lists.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_coverage;
