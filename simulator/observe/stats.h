// SPDX-License-Identifier: MIT
#pragma once

#include "machine/launch.h"

// Where the environment asks for it.
tessera_status tessera_sim_write_stats(const struct sim_launch *launch, const tessera_sim_launch_stats *stats);
