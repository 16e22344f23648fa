// SPDX-License-Identifier: MIT
#pragma once

#include "machine/launch.h"

// Tells the caller of the launch's fault, and returns the status of the launch.
tessera_status tessera_sim_report_trouble(struct sim_launch *launch);
