// SPDX-License-Identifier: MIT
// Whether a wave may touch an address, and where its bytes are.
#pragma once

#include "launch.h"

// Every access goes through one of these two. Memory at `address`, which the kernel loads from or stores to; NULL after
// a fault of the lane.
uint8_t *tessera_sim_touch(struct sim_wave *wave, int lane, uint64_t address, size_t bytes, bool store);

// LDS at `address`; NULL after a fault of the lane.
uint8_t *tessera_sim_lds(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes);

// Addresses that FLAT instructions take as LDS and scratch.
#define SIM_SHARED_APERTURE UINT64_C(0x0001000000000000)
#define SIM_PRIVATE_APERTURE UINT64_C(0x0002000000000000)
enum { SIM_APERTURE_SHIFT = 32 };
