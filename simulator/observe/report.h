// SPDX-License-Identifier: MIT
// Reports a launch's fault to the caller.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_reporter;
