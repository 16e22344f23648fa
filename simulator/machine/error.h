// SPDX-License-Identifier: MIT
// The last error of the calling thread.
#pragma once

#include "tessera/simulator.h"

// Sets the calling thread's last error, and returns `status`.
tessera_status tessera_sim_fail(tessera_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
