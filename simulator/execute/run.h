// SPDX-License-Identifier: MIT
#pragma once

#include "machine/launch.h"

// Starts the group's waves, and runs them to their end or to a fault.
void tessera_sim_group_run(struct sim_group *group);
