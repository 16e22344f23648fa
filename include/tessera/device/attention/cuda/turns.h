// SPDX-License-Identifier: MIT
// Warpgroups that compute start their products in turns, if TURNS says so: the softmax of one falls beside the products
// of the next. All of them have as many tiles of a task.
//
// Takes TURNS, WARPGROUPS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TURNS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TURNS_H

#include "tessera/isa/sm90_async.h"

INLINE int turn_barrier(int warpgroup) { return 1 + warpgroup; }

INLINE void take_turn(int warpgroup) {
    if (TURNS) wait_for_warpgroup(turn_barrier(warpgroup));
}
INLINE void pass_turn(int warpgroup) {
    if (TURNS) tell_warpgroup(turn_barrier(warpgroup + 1 < WARPGROUPS ? warpgroup + 1 : 0));
}

// Lets the first warpgroup begin.
INLINE void first_turn(int warpgroup) {
    if (warpgroup == WARPGROUPS - 1) pass_turn(warpgroup);
}

#endif
