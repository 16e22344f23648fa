// SPDX-License-Identifier: MIT
// Races and barriers among the waves of a workgroup.
//
// Two waves race for a byte of LDS if both touch it with no barrier in between, at least one of them stores, and not
// both accesses are atomics. A store that does not change the byte is harmless and does not count. An access counts at
// the time when the memory operation does its work, which may be after a barrier that it was issued before (waits.c).
// Waves that communicate through LDS without a barrier, for example by a flag that one waits for, are reported as well:
// loads and stores of C's atomics are ordinary instructions.
//
// A barrier waits only for waves that have not ended. It is a fault if a wave that has passed a barrier ends while
// others wait at a later one: they go on only by chance. A wave may end before its first barrier.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_race_check;
