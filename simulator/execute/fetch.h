// SPDX-License-Identifier: MIT
// Turns bytes into instructions that are ready to run.
#pragma once

#include "machine/code.h"
#include "tessera/simulator.h"

// The instruction at words[0] of `count` words, which the caller frees; NULL, and the reason, where there is none.
struct sim_code *tessera_sim_make_code(enum sim_arch arch, const uint32_t *words, size_t count,
                                       enum sim_decode_error *error);

// The instruction at `pc`, decoded on its first use; NULL after a fault.
const struct sim_code *tessera_sim_fetch(struct sim_wave *wave, uintptr_t pc);

// Whether the kernel's module has atomics on global memory, so that its result may depend on the order of workgroups.
bool tessera_sim_has_atomics(const tessera_sim_kernel *kernel);
