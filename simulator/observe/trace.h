// SPDX-License-Identifier: MIT
// Traces of waves for chrome://tracing and Perfetto, in Chrome's trace event format: a JSON array.
//
// A workgroup is a process of the trace, and each unit of each wave is a thread. The axis counts the wave's
// instructions, one microsecond each: it is not time. At a barrier, waves wait for the one with the most instructions.
// Successive instructions of a unit are one event, with their number.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_tracer;
