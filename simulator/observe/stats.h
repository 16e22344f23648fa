// SPDX-License-Identifier: MIT
// Statistics of launches: one line of JSON for each, in the order in which they end.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_statistics;
