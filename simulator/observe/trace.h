// SPDX-License-Identifier: MIT
// What waves did and when, for chrome://tracing and Perfetto: Chrome's trace event format, a JSON array.
//
// A workgroup is a process there, each unit of each wave a thread. The axis counts instructions of the wave, one
// microsecond each: it is no time. At a barrier waves wait for the one that has come furthest. Instructions of a unit
// that follow each other are one event, with their number.
#pragma once

#include "machine/launch.h"

struct sim_trace; // of one workgroup at a time

struct sim_trace *tessera_sim_open_trace(void); // NULL when out of memory
void tessera_sim_close_trace(struct sim_trace *trace);

// Opens the GPU's file if it has been told of one and no launch has done so.
tessera_status tessera_sim_begin_trace(struct sim_launch *launch);

void tessera_sim_trace_start(struct sim_group *group);
// The wave is about to issue an instruction.
void tessera_sim_trace_issue(struct sim_wave *wave, const struct sim_code *code);
// All waves stand at a barrier.
void tessera_sim_trace_barrier(struct sim_group *group);
// The group has ended: writes its events to the GPU's file.
void tessera_sim_trace_end(struct sim_group *group);
