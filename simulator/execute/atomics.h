// SPDX-License-Identifier: MIT
// The operations of atomic instructions on a word of memory or LDS.
#pragma once

#include "float_formats.h"

enum sim_atomic {
    SIM_ATOMIC_SWAP,
    SIM_ATOMIC_CMPSWAP,
    SIM_ATOMIC_ADD,
    SIM_ATOMIC_SUB,
    SIM_ATOMIC_RSUB,
    SIM_ATOMIC_SMIN,
    SIM_ATOMIC_UMIN,
    SIM_ATOMIC_SMAX,
    SIM_ATOMIC_UMAX,
    SIM_ATOMIC_AND,
    SIM_ATOMIC_OR,
    SIM_ATOMIC_XOR,
    SIM_ATOMIC_MSKOR,
    SIM_ATOMIC_INC,
    SIM_ATOMIC_DEC,
    SIM_ATOMIC_WRAP, // subtracts `compare` if the result is not negative, else adds the data
    SIM_ATOMIC_ADD_F,
    SIM_ATOMIC_MIN_F, // of a number and a quiet NaN, the number; -0 is less than 0
    SIM_ATOMIC_MAX_F,
    SIM_ATOMIC_CMPSWAP_F, // cmpswap that compares as floats
    SIM_ATOMIC_PK_ADD_F16,
    SIM_ATOMIC_PK_ADD_BF16,
};

// Which denormals become 0.
enum { SIM_FLUSH_SOURCES = 1, SIM_FLUSH_RESULT = 2 };

// The new value of a 32-bit word. `compare`: what cmpswap compares with, or the mask of mskor.
uint32_t tessera_sim_atomic32(enum sim_atomic atomic, uint32_t old, uint32_t data, uint32_t compare, unsigned flush);
uint64_t tessera_sim_atomic64(enum sim_atomic atomic, uint64_t old, uint64_t data, uint64_t compare, unsigned flush);
