// SPDX-License-Identifier: MIT
// Waves that wait for what never comes: a wave that is where it was before with the same registers, and no memory
// changed in between, does the same for ever. When each wave of a workgroup does, or stands at a barrier, that is a
// deadlock.
//
// Now and then a wave's state is kept and looked for again, in loops of a few thousand instructions. Launches on
// several host threads are left alone: there another workgroup may change what is waited for. On one thread workgroups
// run one after the other, so that waiting for a later one is a deadlock here, and may be none on a GPU.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_deadlock_check;
