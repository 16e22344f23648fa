// SPDX-License-Identifier: MIT
// The waves of a workgroup against each other: LDS that two of them touch, and the barriers that they meet at.
//
// Two waves race for a byte of LDS if one stores there, no barrier lies between, and not both are atomics. Stores that
// leave what was there do no harm and count as none. A memory operation takes part when it does its work, which may be
// behind a barrier that it was issued before (waits.c). So what waves tell each other through LDS without a barrier, as
// by a flag that one waits for, is a race here; loads and stores of C's atomics are the same instructions as others.
//
// A barrier waits for the waves that have not ended. It is a fault if a wave ends that has passed barriers, and others
// wait for more: that they go on is chance. A wave that ends before its first barrier has no part in them.
#pragma once

#include "machine/observer.h"

extern const struct sim_observer tessera_sim_race_check;
