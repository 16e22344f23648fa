// SPDX-License-Identifier: MIT
// The requests of a wave that a counter of s_waitcnt counts, by the cycle in which each is done.
#pragma once

#include <stdint.h>

enum { SIM_MOST_IN_FLIGHT = 64 };

struct sim_in_flight {
    unsigned count;
    uint64_t done[SIM_MOST_IN_FLIGHT]; // ascending
};

// The cycle from which at most `most` requests are in flight; 0: they are that few.
static inline uint64_t sim_in_flight_until(const struct sim_in_flight *requests, unsigned most) {
    return requests->count > most ? requests->done[requests->count - most - 1] : 0;
}

// Adds a request; those that are done by `now` are forgotten.
static inline void sim_in_flight_add(struct sim_in_flight *requests, uint64_t now, uint64_t done) {
    unsigned gone = 0, at;
    while (gone < requests->count && requests->done[gone] <= now) gone++;
    if (requests->count - gone == SIM_MOST_IN_FLIGHT) gone++;
    requests->count -= gone;
    for (unsigned i = 0; gone && i < requests->count; i++) requests->done[i] = requests->done[i + gone];
    for (at = requests->count++; at > 0 && requests->done[at - 1] > done; at--)
        requests->done[at] = requests->done[at - 1];
    requests->done[at] = done;
}
