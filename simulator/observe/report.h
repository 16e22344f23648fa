// SPDX-License-Identifier: MIT
// Tells the caller of a launch's fault.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_reporter;
