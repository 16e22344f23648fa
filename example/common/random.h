// SPDX-License-Identifier: MIT
// Numbers that inputs are made of (SplitMix64).
#ifndef EXAMPLE_RANDOM_H
#define EXAMPLE_RANDOM_H

#include <stdint.h>

#define EXAMPLE_RANDOM_STEP UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t example_random(uint64_t *state) {
    uint64_t z = *state += EXAMPLE_RANDOM_STEP;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

// As if `count` numbers had been drawn.
static inline void example_skip(uint64_t *state, int64_t count) { *state += (uint64_t)count * EXAMPLE_RANDOM_STEP; }

static inline double example_uniform(uint64_t *state, double least, double greatest) {
    return least + (greatest - least) * ((double)(example_random(state) >> 40) * 0x1p-24);
}

#endif
