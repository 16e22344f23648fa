// SPDX-License-Identifier: MIT
// This thread's last error.
#pragma once

#include "tessera/simulator.h"

// Sets this thread's last error and returns `status`.
tessera_status tessera_sim_fail(tessera_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
