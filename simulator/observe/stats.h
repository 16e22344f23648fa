// SPDX-License-Identifier: MIT
// What launches did, as lines of JSON in a file: one each, in the order that they end in.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_statistics;
