// SPDX-License-Identifier: MIT
// What atomic instructions do to a word, for memory and LDS alike.
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
    SIM_ATOMIC_WRAP, // down by `compare` where that is possible, else up by the data
    SIM_ATOMIC_ADD_F,
    SIM_ATOMIC_MIN_F, // of a number and a quiet NaN the number; -0 is less than 0
    SIM_ATOMIC_MAX_F,
    SIM_ATOMIC_CMPSWAP_F, // compares as floats
    SIM_ATOMIC_PK_ADD_F16,
    SIM_ATOMIC_PK_ADD_BF16,
};

// What becomes of denormals: those of sources are taken for 0, and so are results.
enum { SIM_FLUSH_SOURCES = 1, SIM_FLUSH_RESULT = 2 };

// The new value of a word of 32 bits; `compare` is for cmpswap, and the mask of mskor.
uint32_t tessera_sim_atomic32(enum sim_atomic atomic, uint32_t old, uint32_t data, uint32_t compare, unsigned flush);
uint64_t tessera_sim_atomic64(enum sim_atomic atomic, uint64_t old, uint64_t data, uint64_t compare, unsigned flush);
