// SPDX-License-Identifier: MIT
// Deadlocks. A wave that comes back to the same instruction with the same registers, while no memory has changed, will
// repeat itself for ever. If each wave of a workgroup does so or stands at a barrier, the workgroup is deadlocked.
//
// Now and then a wave's state is kept, and later states are compared with it, so loops of up to a few thousand
// instructions are found. Launches on several host threads are not checked: another workgroup may change the memory
// that a wave waits for. On one thread workgroups run one after the other, so waiting for a later workgroup is a
// deadlock here, though it may be none on a GPU.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_deadlock_check;
