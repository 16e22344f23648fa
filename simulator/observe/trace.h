// SPDX-License-Identifier: MIT
// What waves did and when, for chrome://tracing and Perfetto: Chrome's trace event format, a JSON array.
//
// A workgroup is a process there, each unit of each wave a thread. The axis counts instructions of the wave, one
// microsecond each: it is no time. At a barrier waves wait for the one that has come furthest. Instructions of a unit
// that follow each other are one event, with their number.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_tracer;
