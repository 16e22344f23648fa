// SPDX-License-Identifier: MIT
// Checks that a wave may touch an address, and finds its bytes.
#pragma once

#include "launch.h"

// Every access goes through one of these two functions. The first finds the bytes of memory at `address` that the lane
// loads or stores; NULL after a fault of the lane.
uint8_t *tessera_sim_touch(struct sim_wave *wave, int lane, uint64_t address, size_t bytes, bool store);

// The same for LDS.
uint8_t *tessera_sim_lds(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes);

// Addresses that FLAT instructions take as LDS and scratch.
#define SIM_SHARED_APERTURE UINT64_C(0x0001000000000000)
#define SIM_PRIVATE_APERTURE UINT64_C(0x0002000000000000)
enum { SIM_APERTURE_SHIFT = 32 };
